// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Steps: one clock of which several transmit queues, each with a lock of its own,
 * take turns.
 *
 * What several queues send together has one clock, the common clock, on the host's
 * time: until there all time has been given out.  A queue takes a step of it, the
 * time [start, start + step), and sends what that time is worth by a clock of its own
 * (src/part.c).  Then it takes the next step.  So no queue touches what another
 * writes but once a step, and what all of them send is worth no more than the time
 * that was given out, to the picosecond:
 *
 *   common clock - (where it began) - (what silence has passed over) =
 *	what all parts have sent + what they have left - what they owe
 *
 * A queue that has nothing more to send rests: it leaves what is left of its step where
 * others find it.  Whoever would have to wait for the common clock takes that first,
 * and sets the common clock back by as much.  Others get nothing of it: they send in time
 * that is still to come.  The queue itself still has what it left for as long as a step may last;
 * then what has passed unused is gone: silence earns nothing.
 *
 * A step is what waits in the queue or, where the queue has not to wait for the clock,
 * twice what it used of its last one.  So one that sends all the time soon takes the longest
 * step; and far below the rate steps are short, and nobody waits longer than for what
 * others do send.
 *
 * A new rate.  A step of a class is the time of some frames at its rate.  When that changes
 * the first queue that is told makes of what is given out ahead of now what it would be
 * by the new rate, and a queue that has a step of before gives back so much less or more.
 *
 * Error bound: a part has at most one step, and owes at most what one longest burst
 * costs.  So with q parts what leaves in any time T is worth at most T, q steps and q
 * bursts; and at least T less as much while a part has something to send all the time.
 *
 * core/tests/turns checks the equation over all interleavings of two and three
 * queues.  docs/decisions/core.md, "Classes of a device".
 */
#include <pace/pace_sched.h>

/* What a clock takes of its common clock. */
struct pace_wish {
	u64 base;	/* the clock and this is the host's time */
	u64 now;	/* on that */
	u64 behind_ps;	/* so much behind the common clock may be, and is not raised */
	u64 step_ps;	/* the longest step, of whole frames */
	u64 frame_ps;	/* what a frame costs, or 1 more: the shortest */
	u64 wanted_ps;	/* what waits costs; 0: unknown */
};

/*
 * Gives out `ps` of the common clock, from `floor` at the earliest.  Returns the start.
 */
static u64 pace_step_take(struct pace_common *k, u64 floor, u64 ps)
{
	u64 seen = pace_atomic_read(&k->clock_ps), start;

	do {
		start = pace_clock_later(seen, floor);
	} while (!pace_atomic_cmpxchg(&k->clock_ps, &seen, start + ps));
	return start;
}

/* Raises the offset of what goes by the clock to `to` at least. */
static void pace_offset_raise(struct pace_common *k, u64 to)
{
	u64 seen = pace_atomic_read(&k->offset_ps);

	while (pace_clock_ahead(to, seen) &&
	       !pace_atomic_cmpxchg(&k->offset_ps, &seen, to))
		;
}

/*
 * What free_until_ps says of a resting part: it has nothing left; somebody is taking
 * that, and reads free_from_ps; else where what is left ends.
 */
#define FREE_NOTHING	0u
#define FREE_NAMED	1u

/* The part has something to send again.  Returns what it still has of its step. */
static u64 step_resume(struct pace_part *p)
{
	u64 until = pace_atomic_read(&p->free_until_ps);

	if (until <= FREE_NAMED ||
	    !pace_atomic_cmpxchg(&p->free_until_ps, &until, FREE_NOTHING))
		return 0;
	/* Nobody else writes that. */
	return until - p->free_from_ps;
}

/* Leaves [from, until) of the part's step to others.  Returns false if it cannot. */
static bool step_rest(struct pace_part *p, u64 from, u64 until)
{
	if (until <= FREE_NAMED || pace_atomic_read(&p->free_until_ps) != FREE_NOTHING)
		return false;
	pace_write_once(p->free_from_ps, from);
	pace_atomic_xchg(&p->free_until_ps, until);
	return true;
}

/* Takes what is left of a resting part's step from `now` on. */
static u64 take_from(struct pace_part *p, u64 now)
{
	u64 until = pace_atomic_read(&p->free_until_ps), from;

	if (until <= FREE_NAMED || !pace_clock_ahead(until, now) ||
	    !pace_atomic_cmpxchg(&p->free_until_ps, &until, FREE_NAMED))
		return 0;
	from = pace_clock_later(pace_read_once(p->free_from_ps), now);
	pace_atomic_xchg(&p->free_until_ps, FREE_NOTHING);
	return pace_clock_ahead(until, from) ? until - from : 0;
}

/* The same for one part, which is used no more. */
static void pace_step_reclaim(struct pace_part *p, u64 now)
{
	u64 ps = take_from(p, now);

	if (ps)
		pace_atomic_add(&p->common->clock_ps, -ps);
}

/*
 * Sets the common clock back by what resting parts have left, as long as it is ahead of
 * `now`.  O(parts), once a step, and only where the caller would have to wait.
 */
static void pace_steps_reclaim(struct pace_common *k, u64 now)
{
	u64 ahead = pace_atomic_read(&k->clock_ps) - now, sum = 0;
	u32 i;

	for (i = 0; i < k->slots && sum < ahead; i++) {
		struct pace_part *p = pace_read_once(k->part[i]);

		if (p)
			sum += take_from(p, now);
	}
	if (sum)
		pace_atomic_add(&k->clock_ps, -sum);
}

/*
 * The rate by which the clock counts its time changes from `from_bps` to `to_bps`, 0 if
 * none does: what is given out ahead of `now` becomes what it would be by that.  No effect
 * if another queue has done so already.  Not called by two queues at once.
 */
static void pace_steps_rescale(struct pace_common *k, u64 from_bps, u64 to_bps, u64 now)
{
	u64 seen, to;

	if (from_bps == to_bps || pace_atomic_read(&k->rate_bps) != from_bps)
		return;
	seen = pace_atomic_read(&k->clock_ps);
	if (from_bps && to_bps && pace_clock_ahead(seen, now)) {
		pace_steps_reclaim(k, now);
		seen = pace_atomic_read(&k->clock_ps);
		do {
			if (!pace_clock_ahead(seen, now))
				break;
			to = now + pace_lead_scale(seen - now, from_bps, to_bps);
		} while (!pace_atomic_cmpxchg(&k->clock_ps, &seen, to));
	}
	pace_atomic_xchg(&k->rate_bps, to_bps);
}

/*
 * Returns what a part of the step is worth by now: the clock may count by another rate
 * since the step was taken.
 */
static u64 step_worth(const struct pace_part *p, u64 ps)
{
	u64 rate_bps = pace_atomic_read(&p->common->rate_bps);

	return p->rate_bps && rate_bps ? pace_lead_scale(ps, p->rate_bps, rate_bps) : ps;
}

/* Is the step of the rate by which the clock counts? */
static bool step_is_current(const struct pace_part *p)
{
	return p->rate_bps == pace_atomic_read(&p->common->rate_bps);
}

/* Is what its class sends charged afterwards?  Then its clocks are none of steps: lane.c. */
static inline bool pace_step_pays_after(const struct pace_part *p)
{
	return p->lane == PACE_LANE_GUARANTEED;
}

/* Is less left of the step than half a frame?  What is left or owed is carried on. */
static inline bool pace_step_is_used(const struct pace_part *p, u64 clock, u64 frame_ps)
{
	return !pace_step_pays_after(p) &&
	       (s64)(p->end_ps - clock) < (s64)(frame_ps / 2);
}

/*
 * Returns how much to take of the common clock: what waits and, unless that is known and
 * the queue has to wait for the clock, twice what it used of the last step.
 */
static u64 step_of(const struct pace_part *p, u64 left_ps, const struct pace_wish *w,
		   bool waits)
{
	u64 ps = w->wanted_ps;

	if (!waits || !ps)
		ps = pace_later(ps, 2 * (p->taken_ps - left_ps));
	if (ps < w->frame_ps)
		ps = w->frame_ps;
	return ps < w->step_ps ? ps : w->step_ps;
}

/* Takes the next step for *clock, which is at the end of the last one. */
static void pace_step_next(struct pace_part *p, u64 *clock, const struct pace_wish *w)
{
	struct pace_common *k = p->common;
	/* Below 0: owed. */
	u64 left_ps = p->end_ps - *clock, step_ps;
	u64 floor = pace_clock_earlier(p->end_ps + w->base, w->now) - w->behind_ps;
	u64 start;
	bool waits = pace_clock_ahead(pace_atomic_read(&k->clock_ps), w->now);

	if (waits) {
		pace_steps_reclaim(k, w->now);
		waits = pace_clock_ahead(pace_atomic_read(&k->clock_ps), w->now);
	}
	step_ps = step_of(p, left_ps, w, waits);
	p->rate_bps = pace_atomic_read(&k->rate_bps);
	start = pace_step_take(k, floor, step_ps - left_ps);
	*clock = start - w->base - left_ps;
	p->end_ps = *clock + step_ps;
	p->taken_ps = step_ps;
	p->keeps_until_ps = pace_clock_later(start, w->now) + w->step_ps;
}

/*
 * The clock was raised to `clock`, because it was left behind: the time until there has
 * passed unused, and is not owed.
 */
static inline void pace_step_raise(struct pace_part *p, u64 clock)
{
	if (p && !pace_step_pays_after(p) && pace_clock_ahead(clock, p->end_ps))
		p->end_ps = clock;
}

/* The clock is about to be used again.  Returns true if it needs the next step. */
static bool pace_steps_begin(struct pace_part *p, u64 clock, u64 now, u64 frame_ps)
{
	u64 left_ps = step_resume(p);

	if (left_ps && !step_is_current(p)) {
		pace_atomic_add(&p->common->clock_ps, -step_worth(p, left_ps));
		left_ps = 0;
	}
	/* Later it has what is still to come. */
	if (left_ps && !pace_clock_ahead(p->keeps_until_ps, now))
		left_ps = pace_clock_ahead(p->end_ps, clock) ? p->end_ps - clock : 0;
	p->taken_ps += left_ps;
	p->end_ps = clock + left_ps;
	return pace_step_is_used(p, clock, frame_ps);
}

/* The clock is not used for now: leaves the rest to others, pays what is owed. */
static void pace_steps_end(struct pace_part *p, u64 clock, u64 base, u64 now)
{
	u64 until = p->end_ps + base, from = clock + base;

	p->taken_ps -= until - from;
	if (from == until || (pace_clock_ahead(until, from) && step_is_current(p) &&
			      step_rest(p, from, until)))
		return;
	p->end_ps = clock;
	if (!pace_clock_ahead(until, from))
		pace_step_take(p->common, pace_clock_earlier(until, now),
			       step_worth(p, from - until));
	else if (pace_clock_ahead(until, now))
		pace_atomic_add(&p->common->clock_ps,
				-step_worth(p, until - pace_clock_later(from, now)));
}
