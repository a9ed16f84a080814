/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Takes a newer image of a port's configuration, and what of the old one goes on in it.
 */
#ifndef BPF_PORT_IMAGE_H
#define BPF_PORT_IMAGE_H

#include "port.h"

/*
 * Returns the number of the image that is to be taken, or PORT_STAYS.  A process may
 * withdraw it at any time, so the caller keeps the number until it is taken.
 */
ARENA_CODE u32 port_newer_image(u32 at)
{
	const struct port *p = port_of(at);
	u32 wanted = port_wish(p);

	if (wanted == PORT_STAYS || wanted == (p->current & 1) || !p->image[wanted]->ready)
		return PORT_STAYS;
	return wanted;
}

/* Is there no class for what waits in a slot, in the image that comes? */
ARENA_CODE u32 port_is_removed(u32 at, u32 wanted, u32 slot)
{
	const struct port *p = port_of(at);

	return !p->image[wanted & 1]->classes[slot].minor;
}

/* A clock, what it is measured by, and its rate. */
struct port_clock {
	struct pace_clock *clock;
	u64 at;
	u64 rate_bps;
};

/* What a clock is ahead takes as long as those bytes take at the new rate. */
static inline __attribute__((always_inline)) void
port_carry(struct port_clock to, struct port_clock from)
{
	u64 ps = from.clock->ps, lead = pace_clock_ahead(ps, from.at) ? ps - from.at : 0;

	pace_clock_set(to.clock, to.at + pace_lead_scale(lead, from.rate_bps, to.rate_bps));
}

/* A class goes on where it was by its rate, by its ceil, and among those that borrow. */
ARENA_CODE void port_carry_clocks(const struct pace_sched *to, struct pace_class *class,
				  const struct pace_sched *from, struct pace_class *old)
{
	u64 then = pace_schedule_clock(from), now = pace_schedule_clock(to);

	if (class->type != PACE_TYPE_PACED || old->type != PACE_TYPE_PACED)
		return;
	port_carry((struct port_clock){ &class->clock, now, class->rate_bps },
		   (struct port_clock){ &old->clock, then, old->rate_bps });
	if (class->has_ceil && old->has_ceil) {
		port_carry((struct port_clock){ &class->ceil_clock, now, class->ceil_bps },
			   (struct port_clock){ &old->ceil_clock, then, old->ceil_bps });
		port_carry((struct port_clock){ &class->borrow_clock, to->borrow_time_ps,
						class->rate_bps },
			   (struct port_clock){ &old->borrow_clock, from->borrow_time_ps,
						old->rate_bps });
	}
	pace_eligible_update(class);
}

/*
 * The running period goes on, if the new ones are as long: with its end, and what is left
 * of its budget.  Else periods begin anew.
 */
static bool port_carry_period(struct pace_sched *to, const struct pace_sched *from)
{
	struct pace_period *p = &to->period;
	const struct pace_period *was = &from->period;

	to->stats = from->stats;
	if (!p->classes || !was->running || was->length_ps != p->length_ps)
		return false;
	p->running = true;
	p->number = was->number;
	p->left_bytes = was->left_bytes;
	p->end_ps = to->global_ps + (was->end_ps - from->global_ps);
	p->end_ns = was->end_ns;
	return true;
}

static s64 port_at_most(s64 bytes, s64 most)
{
	return bytes < most ? bytes : most;
}

/*
 * A class that stays of type rt or nrt goes on with its counters, its credit or debt, and
 * within a period that goes on with what it may still send in it.
 */
static void port_carry_reservation(const struct pace_sched *to, struct pace_class *class,
				   const struct pace_sched *from, struct pace_class *old,
				   bool same_period)
{
	struct pace_reservation *st = class->reservation, *was = old->reservation;
	s64 reserve;

	if (!st || !was || class->type != old->type)
		return;
	update_class(from, old);
	reserve = (s64)st->reserve_bytes;
	st->over = was->over;
	st->deferred = was->deferred;
	st->overrun = was->overrun;
	st->excess = was->excess;
	st->catchup_bytes = was->catchup_bytes;
	st->credit_bytes = port_at_most(was->credit_bytes, st->credit_bytes);
	if (same_period) {
		st->period = to->period.number;
		st->left_bytes = port_at_most(was->left_bytes, reserve);
		st->late_left_bytes = port_at_most(was->late_left_bytes, reserve);
	} else if (class->type == PACE_TYPE_NRT) {
		st->left_bytes = port_at_most(was->left_bytes, 0);
	}
}

/*
 * Tells the core what waits in an rt class.  All of it arrived before a period that begins
 * anew, and before one that goes on what had arrived before it.
 */
static void port_carry_backlog(struct pace_sched *to, struct pace_class *class,
			       const struct pace_class *old, u64 bytes, bool same_period)
{
	struct pace_reservation *st = class->reservation, *was = old->reservation;

	st->backlog_wire_bytes = bytes;
	st->gated_wire_bytes = bytes;
	if (was && old->type == PACE_TYPE_RT) {
		st->backlog_wire_bytes = was->backlog_wire_bytes;
		st->gated_wire_bytes = same_period ? was->gated_wire_bytes :
						     was->backlog_wire_bytes;
	}
	to->period.backlog_wire_bytes += st->backlog_wire_bytes;
	to->period.gated_wire_bytes += st->gated_wire_bytes;
}

/*
 * Takes the newer image; what waits in slots without a class was dropped before.
 * O(slots).
 */
ARENA_CODE void port_take_image(u32 at, u32 wanted, u64 now_ns)
{
	struct port *p = port_of(at);
	struct port_image *old = port_image_of(p);
	struct port_image *image = p->image[wanted & 1];
	u32 slots = PORT_TABLE->slots, slot;
	bool same_period;

	pace_advance_clock(&old->sched, now_ns);
	pace_advance_clock(&image->sched, now_ns);
	same_period = port_carry_period(&image->sched, &old->sched);
	for (slot = 0; slot < slots; slot++) {
		struct port_class *class = &image->classes[slot];
		struct port_class *was = &old->classes[slot];
		const struct port_slot *s = &p->slot[slot];

		if (!class->minor)
			continue;
		if (was->minor == class->minor) {
			port_carry_clocks(&image->sched, &class->pace,
					  &old->sched, &was->pace);
			port_carry_reservation(&image->sched, &class->pace,
					       &old->sched, &was->pace, same_period);
		}
		if (!s->packets)
			continue;
		if (class->pace.type == PACE_TYPE_RT)
			port_carry_backlog(&image->sched, &class->pace, &was->pace, s->bytes,
					   same_period);
		if (image->sched.cfg.guard_band)
			port_note_head(image, &class->pace);
		pace_activate(&image->sched, &class->pace, now_ns);
	}
	/* Its classes are as they were: nobody may take it again as it is. */
	old->ready = 0;
	p->images_taken++;
	p->current = wanted & 1;
}

#endif
