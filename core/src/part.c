// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Parts: the clocks of this queue that go by steps of a common clock (steps.c).
 *
 * A class that several queues send has its rate once.  In each queue it is a class as
 * any other, whose clock moves by its frames; but it may only reach the end of the
 * step that the queue has of the class's common clock.  There the queue takes the next
 * step and moves the clock on to it: others have sent meanwhile.  A queue that is alone
 * takes one step after the other, and its clock moves as if there were none.  If two
 * send, they take turns: together they send at the class's rate, frame after frame.
 * With a ceil the ceil clock is another such clock.
 *
 * A step is what s->step_ps says, or one frame of the class if that takes longer; where
 * others wait no more than what waits in the queue.  So a queue waits for less than one
 * step of each other queue.
 *
 * The line of the device is a common clock, too.  What leaves at a guaranteed rate is
 * charged to it, once for each step that it amounts to.  All else (normal classes, what
 * is borrowed) may leave only in a step of the line, which begins when the line has
 * carried all that was charged: paced frames of one queue go before best effort of
 * another.
 *
 * Over-subscription.  Where guaranteed rates amount to more than the line, its common
 * clock runs away from time.  Then all class clocks of all queues are set back by the
 * same time: offset_ps of that clock, which each queue adopts when it next takes a step.
 * So every class loses the same part of its time, and they share in proportion to their
 * rates.
 *
 * Groups.  The node of a group is a class like the others, which rests while its group
 * has nothing due.  Classes of a group share their clocks as well; the inner scheduler
 * has no line, and knows the host's time by host_ps.  To it the node's clock is what the
 * line is to the port: lane.c.
 *
 * Positions.  A common clock is on the host's time in picoseconds; of a class of the port
 * less the offset.  Only TIMER has parts: there the port's clock is the host's.
 */
#include <pace/pace_sched.h>

/* So many steps and bursts of each queue clocks may be apart. */
#define SLACK_STEPS	2u

/* Returns what to add to a position on the port's clock to get the host's time. */
static inline u64 line_base(const struct pace_sched *s)
{
	return s->line.ns * PACE_PS_PER_NS - s->line.ps + s->host_ps;
}

/* Returns the same for a class clock; the offset of the device is taken off. */
static inline u64 class_base(const struct pace_sched *s)
{
	return line_base(s) + s->offset_ps - s->adopted_ps;
}

/* Returns what to take of a common clock: whole frames, at least one. */
static struct pace_wish wish_of(const struct pace_sched *s, u64 base, u64 now, u64 frame_ps,
				u64 wanted_ps)
{
	u64 rem, frames = pace_div_rem(s->step_ps + frame_ps - 1, frame_ps, &rem);

	return (struct pace_wish){
		.base = base,
		.now = now,
		.step_ps = frames * frame_ps,
		.frame_ps = frame_ps,
		.wanted_ps = wanted_ps,
	};
}

/* Returns what the bytes that wait cost by a rate; 0: unknown. */
static u64 wanted_of(const struct pace_part *p, u64 rate_bps)
{
	/* More is more than a step in any case, or the product were too long. */
	u64 most = 1u << 24;

	return pace_mul_div(p->backlog_bytes < most ? p->backlog_bytes : most,
			    PACE_BYTE_PS, rate_bps);
}

static inline u64 line_now(const struct pace_sched *s)
{
	return s->line.ns * PACE_PS_PER_NS + s->host_ps;
}

static inline u64 class_now(const struct pace_sched *s)
{
	return line_now(s) - s->adopted_ps;
}

/*
 * Returns the wish for a clock of a class.  Classes of a full group lag, each queue's by
 * some steps more or less: that is no time that the class has lost.
 */
static struct pace_wish class_wish(const struct pace_sched *s, const struct pace_class *c,
				   u64 frame_ps, u64 rate_bps)
{
	struct pace_wish w = wish_of(s, class_base(s), class_now(s), frame_ps,
				     wanted_of(c->part, rate_bps));

	if (!s->device && pace_over_subscribed(s))
		w.behind_ps = SLACK_STEPS * c->part->common->slots *
			      (s->step_ps + s->burst_ps);
	return w;
}

static struct pace_wish line_wish(const struct pace_sched *s)
{
	return wish_of(s, line_base(s), line_now(s), s->burst_ps, 0);
}

/* The class was silent for so long that the end of its step may look ahead. */
static void pace_part_forget(const struct pace_sched *s, struct pace_class *c)
{
	if (!s->step_ps || !c->part)
		return;
	c->part->end_ps = c->clock.ps;
	c->ceil_part->end_ps = c->ceil_clock.ps;
}

/* A class that rests, or that is inactive, is about to have another rate or ceil. */
static void pace_part_rescale(const struct pace_sched *s, const struct pace_class *c,
			      const struct pace_class_config *cfg)
{
	u64 ceil_bps = cfg->ceil_bps > cfg->rate_bps ? cfg->ceil_bps : 0;

	if (c->type != PACE_TYPE_PACED || cfg->type != PACE_TYPE_PACED || !c->part)
		return;
	pace_steps_rescale(c->part->common, c->rate_bps, cfg->rate_bps, class_now(s));
	pace_steps_rescale(c->ceil_part->common, c->ceil_bps, ceil_bps, class_now(s));
}

/* A step is at most so many of the longest, where what borrows has different rates. */
#define SPARE_STEPS	8u

/*
 * Says what borrows in the queue that the part is of, the port's or a group's: on average,
 * since who reaches its ceil mostly waits for a frame or two.
 */
static void publish_spare(const struct pace_sched *s, struct pace_part *p)
{
	u64 bps = s->active_normal ? 0 : s->borrowing_bps, was = p->spare_bps;

	if (bps && was)
		bps = was - was / 16 + bps / 16;
	if (was != bps)
		pace_write_once(p->spare_bps, bps);
}

/*
 * What borrows shares in proportion to the rates, in several queues as in one: where all
 * that waits in a queue borrows, its steps are as long as its rates are beside the
 * highest of all queues.  The steps of that one take what makes the shortest a frame, but
 * no more than SPARE_STEPS.  A class counts in each queue that it waits in.  Returns the
 * longest.  O(queues), once a step.
 */
static u64 set_spare_step(const struct pace_part *p, struct pace_wish *w)
{
	const struct pace_common *k = p->common;
	u64 own = p->spare_bps, most = own, least = own, longest_ps = w->step_ps, ps;
	u32 i;

	for (i = 0; i < k->slots && own; i++) {
		const struct pace_part *other = pace_read_once(k->part[i]);
		u64 bps = other ? pace_read_once(other->spare_bps) : 0;

		if (bps > most)
			most = bps;
		if (bps && bps < least)
			least = bps;
	}
	if (least == most)
		return longest_ps;
	ps = pace_mul_div(w->frame_ps, most, least);
	if (ps > SPARE_STEPS * longest_ps)
		ps = SPARE_STEPS * longest_ps;
	if (ps > longest_ps)
		longest_ps = ps;
	w->step_ps = pace_later(pace_mul_div(longest_ps, own, most), w->frame_ps);
	return longest_ps;
}

/*
 * Takes the next step of a common clock that others charge with what they have sent; not
 * while that is further ahead than one step of each queue.  Else who asks for steps would
 * keep a turn among the guaranteed rates, which only add what they have sent.  Then it
 * waits, and asks again.
 */
static void step_ask(const struct pace_device *d, struct pace_part *p, u64 *clock,
		     const struct pace_wish *w, u64 longest_ps)
{
	struct pace_common *k = p->common;
	u64 given = pace_atomic_read(&k->clock_ps);
	u64 most = w->now + pace_read_once(d->queues) * longest_ps;

	if (pace_clock_ahead(given, most)) {
		pace_steps_reclaim(k, w->now);
		given = pace_atomic_read(&k->clock_ps);
	}
	if (!pace_clock_ahead(given, most)) {
		pace_step_next(p, clock, w);
		return;
	}
	/* Below 0: left. */
	pace_step_take(k, w->now, *clock - p->end_ps);
	*clock = w->now + (given - most) - w->base;
	p->end_ps = *clock;
}

/* Returns the load of all classes that go by a common clock, each counted once. */
static u64 loads_of(const struct pace_part *p)
{
	return pace_atomic_read(&p->common->loads_bps);
}

/* Sets what a class of the device offers to what all of `s` goes by. */
static void set_load(const struct pace_sched *s, struct pace_common *k, u64 load_bps)
{
	u64 was = pace_atomic_xchg(&k->load_bps, load_bps);

	pace_atomic_add(&s->line_part->common->loads_bps, load_bps - was);
}

/*
 * Counts the class, or its load that has changed.  Where one queue leaves as another comes
 * it may miss the load until the next step.
 */
static void pace_part_load(const struct pace_sched *s, struct pace_class *c)
{
	struct pace_common *k;

	if (!c->part)
		return;
	k = c->part->common;
	if (!c->part->loads) {
		c->part->loads = true;
		pace_atomic_add(&k->users, 1);
	}
	if (pace_atomic_read(&k->load_bps) != c->offered_load_bps)
		set_load(s, k, c->offered_load_bps);
}

/* The class becomes inactive in this queue. */
static void pace_part_unload(const struct pace_sched *s, struct pace_class *c)
{
	struct pace_common *k;

	if (c->type != PACE_TYPE_PACED || !c->part || !c->part->loads)
		return;
	k = c->part->common;
	c->part->loads = false;
	pace_atomic_add(&k->users, -1ull);
	if (!pace_atomic_read(&k->users))
		set_load(s, k, 0);
}

/* Takes the next step of one of the clocks of a class. */
static void class_step(struct pace_sched *s, struct pace_class *c, struct pace_part *p,
		       u64 *clock, struct pace_wish w)
{
	u64 longest_ps;

	pace_part_load(s, c);
	if (!PACE_GROUPS || !c->part->lane || !s->device) {
		pace_step_next(p, clock, &w);
		return;
	}
	longest_ps = set_spare_step(c->part, &w);
	step_ask(s->device, p, clock, &w, longest_ps);
}

static void next_step(struct pace_sched *s, struct pace_class *c)
{
	class_step(s, c, c->part, &c->clock.ps,
		   class_wish(s, c, c->rate_quot + 1, c->rate_bps));
}

static void next_ceil_step(struct pace_sched *s, struct pace_class *c)
{
	class_step(s, c, c->ceil_part, &c->ceil_clock.ps,
		   class_wish(s, c, c->ceil_quot + 1, c->ceil_bps));
}

/* The class becomes active, and its clocks have been set. */
static void pace_part_begin(struct pace_sched *s, struct pace_class *c)
{
	u64 now;

	if (pace_step_pays_after(c->part) || c->part->open)
		return;
	c->part->open = true;
	pace_offset_adopt(s);
	now = class_now(s);
	if (pace_steps_begin(c->part, c->clock.ps, now, c->rate_quot))
		next_step(s, c);
	if (c->has_ceil &&
	    pace_steps_begin(c->ceil_part, c->ceil_clock.ps, now, c->ceil_quot))
		next_ceil_step(s, c);
	pace_eligible_update(c);
}

/* The class has sent: takes the next step if it needs one. */
static void pace_part_settle(struct pace_sched *s, struct pace_class *c)
{
	bool next = pace_step_is_used(c->part, c->clock.ps, c->rate_quot);
	bool next_ceil = c->has_ceil && pace_step_is_used(c->ceil_part, c->ceil_clock.ps,
							  c->ceil_quot);

	if (!next && !next_ceil)
		return;
	pace_offset_adopt(s);
	if (next)
		next_step(s, c);
	if (next_ceil)
		next_ceil_step(s, c);
	pace_eligible_update(c);
}

/* The clocks of the class, which is in no queue, are where it may send. */
static inline void pace_part_look_down(struct pace_class *c)
{
	if (!PACE_GROUPS || !c->part->peeks)
		return;
	c->part->peeks = false;
	c->clock = c->part->step_clock;
	c->ceil_clock = c->ceil_part->step_clock;
	pace_eligible_update(c);
}

/* The class becomes inactive. */
static void pace_part_rest(const struct pace_sched *s, struct pace_class *c)
{
	if (pace_step_pays_after(c->part) || !c->part->open)
		return;
	c->part->open = false;
	if (c->part->spare_bps)
		pace_write_once(c->part->spare_bps, 0);
	pace_part_look_down(c);
	pace_steps_end(c->part, c->clock.ps, class_base(s), class_now(s));
	if (c->has_ceil)
		pace_steps_end(c->ceil_part, c->ceil_clock.ps, class_base(s),
			       class_now(s));
}

/* Queues a paced class that becomes active, and whose clock has been set. */
static void pace_paced_enter(struct pace_sched *s, struct pace_class *c)
{
	if (c->has_ceil)
		pace_ceil_return(s, c);
	if (c->part)
		pace_part_begin(s, c);
	if (c->has_ceil)
		pace_borrow_join(s, c);
	pace_paced_insert(s, c);
}

/* The line. */

/* Is there something that no rate guarantees and that could be sent? */
static inline bool spare_is_wanted(const struct pace_sched *s)
{
	return s->active_normal || !pace_queue_empty(&s->borrowing);
}

/* Has such a frame to wait for the line's step to begin? */
static inline bool spare_is_early(const struct pace_sched *s)
{
	return (s64)(s->spare_ps - s->global_ps) > 0;
}

static void next_spare_step(struct pace_sched *s)
{
	struct pace_wish w = line_wish(s);
	u64 longest_ps;

	publish_spare(s, s->line_part);
	longest_ps = set_spare_step(s->line_part, &w);
	step_ask(s->device, s->line_part, &s->spare_ps, &w, longest_ps);
}

/*
 * Returns true if what no rate guarantees has to wait for a step of the line; takes the
 * first one.
 */
static bool pace_spare_holds(struct pace_sched *s)
{
	bool used;

	if (!s->device)
		return false;
	promote_borrowing(s);
	if (!spare_is_wanted(s))
		return false;
	if (s->spare_open) {
		if (spare_is_early(s))
			return true;
		used = pace_step_is_used(s->line_part, s->spare_ps, s->burst_ps);
	} else {
		s->spare_open = true;
		s->spare_ps = pace_later(s->spare_ps, s->global_ps);
		used = pace_steps_begin(s->line_part, s->spare_ps, line_now(s), s->burst_ps);
	}
	if (used)
		next_spare_step(s);
	return spare_is_early(s);
}

/* Returns true if such a frame waits only for a step of the line: until spare_ps. */
static inline bool pace_spare_waits(const struct pace_sched *s)
{
	return s->spare_open && spare_is_wanted(s) && spare_is_early(s);
}

/* Such a frame was sent; the line takes `ps` for it. */
static void spare_sent(struct pace_sched *s, u64 ps)
{
	/* It may have waited for guaranteed frames of this queue, which have paid. */
	s->spare_ps = pace_later(s->spare_ps,
				 s->global_ps - PACE_SLACK_PS - 2 * s->burst_ps);
	pace_step_raise(s->line_part, s->spare_ps);
	s->spare_ps += ps;
	if (s->spare_open && pace_step_is_used(s->line_part, s->spare_ps, s->burst_ps))
		next_spare_step(s);
}

/* Nothing waits for such a step. */
static void spare_end(struct pace_sched *s)
{
	if (!s->spare_open)
		return;
	s->spare_open = false;
	pace_write_once(s->line_part->spare_bps, 0);
	pace_steps_end(s->line_part, s->spare_ps, line_base(s), line_now(s));
}

/*
 * Sets all class clocks back, so that no class sends until the common clock has carried
 * what it was charged with, at `until`.  The time for which they have been set back
 * already counts once.
 */
static void set_back(struct pace_common *k, u64 until, u64 now)
{
	u64 held = pace_atomic_read(&k->held_until_ps), from;

	do {
		from = pace_clock_later(held, now);
		if (!pace_clock_ahead(until, from))
			return;
	} while (!pace_atomic_cmpxchg(&k->held_until_ps, &held, until));
	pace_atomic_add(&k->offset_ps, until - from);
}

/*
 * Charges the common clock by which all classes of `s` go, the line or a node's, with
 * what was sent at their rates.  Returns by how much it is ahead of `now`, beyond what it
 * may be.
 */
static u64 charge(struct pace_sched *s, const struct pace_device *d, u64 now, u64 ps)
{
	struct pace_common *k = s->line_part->common;
	u64 after;

	after = pace_step_take(k, now - ps, ps) + ps;
	after -= SLACK_STEPS * pace_read_once(d->queues) * (s->step_ps + s->burst_ps);
	return pace_clock_ahead(after, now) ? after - now : 0;
}

/* Charges the line with what was sent at guaranteed rates, in steps. */
static void line_settle(struct pace_sched *s, u64 ps)
{
	u64 now = line_now(s), ahead_ps;

	s->owed_ps += ps;
	if (s->owed_ps < s->step_ps)
		return;
	ahead_ps = charge(s, s->device, now, s->owed_ps);
	s->owed_ps = 0;
	/* Do the rates of what is active exceed the line? */
	if (ahead_ps && loads_of(s->line_part) > s->cfg.line_rate_bps)
		set_back(&s->device->line, now + ahead_ps, now);
	pace_offset_adopt(s);
}

/* A class has become inactive, or has borrowed. */
static void pace_device_rest(struct pace_sched *s)
{
	if (!spare_is_wanted(s))
		spare_end(s);
}

/* A frame was sent, for which the line takes `ps`.  guaranteed: it left at a rate. */
static noinline void pace_device_sent(struct pace_sched *s, u64 ps, bool guaranteed)
{
	if (guaranteed)
		line_settle(s, ps);
	else
		spare_sent(s, ps);
}
