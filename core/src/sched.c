// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Who is next, and how long the wire stays silent before.
 *
 * Paper 002, 2.2 and 2.3: a class whose clock is not ahead of the port's, of
 * several the one that the order names; else a normal class; else a gap up to
 * the smallest clock.  No clock is altered by the rounding of gaps, so that
 * error does not add up: each frame is at most half a smallest gap early or
 * late (-42 .. +41 bytes).
 */
#include "internal.h"
#include "line.h"

u32 pace_wire_bytes(const struct pace_sched *s, u32 len_bytes)
{
	if (len_bytes < s->cfg.min_frame_bytes)
		len_bytes = s->cfg.min_frame_bytes;
	return len_bytes + s->cfg.overhead_bytes;
}

u32 pace_min_gap_bytes(const struct pace_sched *s)
{
	return s->min_gap_bytes;
}

/*
 * TIMER: nobody was due when time was last looked at.  Once the virtual line
 * was free it idled: until now, or to the first clock.
 */
static void note_idle(struct pace_sched *s)
{
	const struct pace_class *first = pace_paced_first(s);
	u64 until = pace_schedule_clock(s);
	u64 free = s->busy_until - s->offset;

	if (first)
		until = pace_clock_earlier(first->clock, until);
	if ((s64)(until - free) > 0)
		s->idled = until;
}

/*
 * TIMER: real time is the clock, also between frames.  What a host that stood
 * still has missed is forgotten at once, before anything is measured by it; a
 * line that has been free for years stays within a signed comparison.
 */
void pace_pass_time(struct pace_sched *s, u64 now_ns)
{
	bool idle;

	if (s->cfg.mode != PACE_MODE_TIMER)
		return;
	idle = !pace_paced_due(s);
	pace_line_follow(&s->line, s->cfg.line_rate_bps, now_ns);
	s->global = s->line.bytes;
	if (idle)
		note_idle(s);
	s->busy_until = pace_later(s->busy_until,
				   s->global - PACE_LEAD_WINDOW);
	pace_paced_follow(s);
}

/*
 * GAP: the first packet after an idle spell.  The wire has really been idle
 * only for what line() is ahead of the bytes handed out; if it is behind, the
 * difference is still in the transmit ring and must not be counted twice.
 * A ring holds a bounded amount: without that bound, a NIC faster than its
 * nominal rate would, after a long busy spell, keep the clock from following
 * real time for as long.
 *
 * Not called while any class is active: a device slower than its nominal
 * rate is never caught up.
 */
static void wake(struct pace_sched *s, u64 now_ns)
{
	u64 ring = (u64)PACE_RING_FRAMES * s->max_wire_bytes;
	s64 ahead;

	pace_line_follow(&s->line, s->cfg.line_rate_bps, now_ns);
	if (ring < s->stall_bytes)
		ring = s->stall_bytes;
	ahead = (s64)(s->line.bytes - s->global);
	if (ahead >= 0) {
		s->global = s->line.bytes;
		s->idled = pace_schedule_clock(s);
	} else if (ahead < -(s64)ring) {
		pace_line_anchor(&s->line, s->global - ring, s->line.ns);
	}
}

/* The class has a packet and takes part from now on. */
void pace_join(struct pace_sched *s, struct pace_class *c)
{
	c->active = true;
	if (c->kind == PACE_KIND_NORMAL) {
		pace_normal_put(s, c);
		return;
	}
	pace_demand_add(s, c);
	pace_return(s, c);
	pace_paced_put(s, c);
}

void pace_leave(struct pace_sched *s, struct pace_class *c)
{
	bool was_over = pace_over_subscribed(s);

	c->active = false;
	if (c->kind == PACE_KIND_NORMAL) {
		pace_normal_take(s, c);
		return;
	}
	pace_paced_take(s, c);
	pace_demand_sub(s, c);
	pace_lag_settle(s, was_over, c);
}

void pace_activate(struct pace_sched *s, struct pace_class *c, u64 now_ns)
{
	if (c->active || !PACE_ASSERT(pace_id_held(s, c)))
		return;
	if (s->cfg.mode == PACE_MODE_TIMER)
		pace_pass_time(s, now_ns);
	else if (!pace_active(s))
		wake(s, now_ns);
	pace_join(s, c);
}

void pace_deactivate(struct pace_sched *s, struct pace_class *c, u64 now_ns)
{
	if (!c->active)
		return;
	pace_pass_time(s, now_ns);
	pace_leave(s, c);
}

/*
 * Wire bytes of the next gap frame of a gap that is above half a smallest
 * one: as large as possible, and such that no remainder is too small for a
 * frame.
 */
static u32 gap_frame(const struct pace_sched *s, u64 gap_bytes)
{
	u32 min = s->min_gap_bytes;
	u32 max = s->max_wire_bytes;

	if (gap_bytes <= min)
		return min;
	if (gap_bytes <= max)
		return (u32)gap_bytes;
	if (gap_bytes >= (u64)max + min)
		return max;
	/* min later; where even that is too long, one frame of `min`. */
	return gap_bytes >= 2 * (u64)min ? (u32)gap_bytes - min : min;
}

static struct pace_decision send(struct pace_class *c)
{
	return (struct pace_decision){ .verdict = PACE_SEND, .cls = c };
}

static struct pace_decision next_gap(struct pace_sched *s)
{
	struct pace_class *c = pace_paced_due(s);
	u64 gap;

	if (c)
		return send(c);
	if (s->active_normal)
		return send(pace_normal_turn(s));
	c = pace_paced_first(s);
	if (!c)
		return (struct pace_decision){ .verdict = PACE_IDLE };
	gap = c->clock - pace_schedule_clock(s);
	if (gap <= s->min_gap_bytes / 2)
		return send(c);
	return (struct pace_decision){
		.verdict = PACE_GAP,
		.gap_bytes = gap_frame(s, gap),
	};
}

static struct pace_decision wait_for(const struct pace_sched *s, u64 bytes)
{
	return (struct pace_decision){
		.verdict = PACE_WAIT,
		.until_ns = pace_line_reaches_ns(&s->line,
						 s->cfg.line_rate_bps, bytes),
	};
}

/*
 * TIMER: the line is virtual.  A frame may leave when the one before it would
 * have left the wire.
 */
static struct pace_decision next_timer(struct pace_sched *s)
{
	bool free = (s64)(s->global - s->busy_until) >= 0;
	struct pace_class *c;
	u64 at;

	if (!pace_active(s))
		return (struct pace_decision){ .verdict = PACE_IDLE };
	c = pace_paced_due(s);
	if (c || s->active_normal) {
		if (!free)
			return wait_for(s, s->busy_until);
		return send(c ? c : pace_normal_turn(s));
	}
	at = pace_paced_first(s)->clock + s->offset;
	return wait_for(s, free ? at : pace_later(at, s->busy_until));
}

struct pace_decision pace_next(struct pace_sched *s, u64 now_ns)
{
	if (s->cfg.mode == PACE_MODE_TIMER) {
		pace_pass_time(s, now_ns);
		return next_timer(s);
	}
	return next_gap(s);
}

/* A frame goes to the wire. */
static void occupy(struct pace_sched *s, u32 wire_bytes)
{
	s->stats.sent_frames++;
	s->stats.sent_wire_bytes += wire_bytes;
	if (s->cfg.mode == PACE_MODE_TIMER)
		s->busy_until = pace_later(s->busy_until,
					   s->global - s->slack_bytes) +
				wire_bytes;
	else
		s->global += wire_bytes;
}

static void note_lateness(struct pace_sched *s, const struct pace_class *c)
{
	u64 now = pace_schedule_clock(s);
	u64 early;

	if (pace_clock_ahead(c->clock, now)) {
		early = c->clock - now;
		if (early > s->stats.early_bytes_max)
			s->stats.early_bytes_max = early;
	} else if (now - c->clock > s->stats.late_bytes_max) {
		s->stats.late_bytes_max = now - c->clock;
	}
}

static void sent_normal(struct pace_sched *s, struct pace_class *c,
			u32 wire_bytes, bool more)
{
	s->idled = pace_schedule_clock(s);
	occupy(s, wire_bytes);
	c->deficit_bytes -= wire_bytes;
	if (!more)
		pace_leave(s, c);
	else if (c->deficit_bytes <= 0 && s->ring == c)
		s->ring = c->next;
}

static void sent_paced(struct pace_sched *s, struct pace_class *c,
		       u32 len_bytes, u32 wire_bytes, bool more)
{
	if (c->cached_len != len_bytes) {
		pace_demand_sub(s, c);
		pace_class_price(s, c, len_bytes);
		pace_demand_add(s, c);
	}
	note_lateness(s, c);
	if (s->cfg.order == PACE_ORDER_RATE)
		pace_owed_bound(s, c);
	s->served = pace_turn(s, c);
	pace_clock_advance(c);
	occupy(s, wire_bytes);
	if (more)
		pace_paced_moved(s, c);
	else
		pace_leave(s, c);
}

void pace_sent(struct pace_sched *s, struct pace_class *c, u32 len_bytes,
	       bool more, u64 now_ns)
{
	u32 wire_bytes;

	if (!PACE_ASSERT(c->active && len_bytes &&
			 len_bytes <= PACE_FRAME_MAX))
		return;
	pace_pass_time(s, now_ns);
	wire_bytes = pace_wire_bytes(s, len_bytes);
	if (c->kind == PACE_KIND_NORMAL)
		sent_normal(s, c, wire_bytes, more);
	else
		sent_paced(s, c, len_bytes, wire_bytes, more);
	pace_lag_bound(s);
}

void pace_gap_sent(struct pace_sched *s, u32 gap_bytes)
{
	s->idled = pace_schedule_clock(s);
	s->stats.gap_frames++;
	s->stats.gap_wire_bytes += gap_bytes;
	if (s->cfg.mode == PACE_MODE_GAP)
		s->global += gap_bytes;
}
