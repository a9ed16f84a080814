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
 * and sets the common clock back by as much.  Only time to come is worth anything:
 * what passes unused is gone, silence earns nothing.
 *
 * Error bound: a part has at most one step, and owes at most what one longest burst
 * costs.  So with q parts what leaves in any time T is worth at most T, q steps and q
 * bursts; and at least T less as much while a part has something to send all the time.
 * A part that is named late takes too little, never too much (`free_from_ps`).
 *
 * core/proofs/steps.c checks the equation over all interleavings of two and three
 * queues.  docs/decisions/core.md, "Classes of a device".
 */
#include <pace/pace_sched.h>

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

/* The part has something to send again.  Does it still have its step? */
static bool pace_step_resume(struct pace_part *p)
{
	return pace_atomic_read(&p->free_until_ps) &&
	       pace_atomic_xchg(&p->free_until_ps, 0);
}

/* Leaves [from, until) of the part's step to others.  0 stands for nothing. */
static void pace_step_rest(struct pace_part *p, u64 from, u64 until)
{
	pace_write_once(p->free_from_ps, from);
	pace_atomic_xchg(&p->free_until_ps, until ? until : 1);
}

/*
 * Takes what is left of a resting part's step from `now` on.  The part may resume and
 * rest again meanwhile: free_from_ps is then later than that of the step taken.
 */
static u64 take_from(struct pace_part *p, u64 now)
{
	u64 until, from;

	if (!pace_clock_ahead(pace_atomic_read(&p->free_until_ps), now))
		return 0;
	until = pace_atomic_xchg(&p->free_until_ps, 0);
	if (!until)
		return 0;
	from = pace_clock_later(pace_read_once(p->free_from_ps), now);
	return pace_clock_ahead(until, from) ? until - from : 0;
}

/* The same for one part, which is used no more. */
static void pace_steps_reclaim_of(struct pace_part *p, u64 now)
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
