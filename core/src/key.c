// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What paced classes are ordered by: in which queues a class is, and the key that
 * it has in each.
 */
#include <pace/pace_sched.h>

/*
 * Updates the eligible time after either clock has changed: the later of both.
 * The ceil clock is the one that may have been left behind for years.
 */
static inline void pace_eligible_update(struct pace_class *c)
{
	if (c->has_ceil)
		c->eligible_time = pace_clock_later(c->ceil_clock.ps,
					      c->clock.ps);
}

/* Returns the eligible time of a class; without a ceil that is its clock. */
static inline u64 pace_eligible_time(const struct pace_class *c)
{
	return c->has_ceil ? c->eligible_time : c->clock.ps;
}

/*
 * A queue key: 44 bits of clock, in units of 64 ps, above 20 of id; heap.c has the
 * order.  Clocks within one unit are one: they are ordered by id, and reached together.
 */
#ifndef KEY_UNIT_SHIFT
#define KEY_UNIT_SHIFT	6	/* proofs have small clocks, and 0 */
#endif

/* Returns the least key of a clock. */
static inline u64 pace_key_of(u64 ps)
{
	return ps >> KEY_UNIT_SHIFT << PACE_ID_BITS;
}

/* Returns the earliest clock that is one to a queue with this. */
static inline u64 pace_key_clock(u64 ps)
{
	return ps >> KEY_UNIT_SHIFT << KEY_UNIT_SHIFT;
}

static inline u64 pace_clock_key(u64 ps, const struct pace_class *c)
{
	return pace_key_of(ps) | c->id;
}

/*
 * Returns true if the class may send at its rate now: less than 64 ps before its clock
 * is at its clock, as for a queue.
 */
static inline bool pace_is_eligible(const struct pace_sched *s,
				    const struct pace_class *c)
{
	return !pace_clock_ahead(pace_key_clock(pace_eligible_time(c)),
				 pace_schedule_clock(s));
}

/*
 * Returns the virtual finish time, which decides between eligible classes and
 * which lag is measured by: in ORDER_NEXT the eligible time moved on by one
 * longest burst, in ORDER_CLOCK the eligible time itself.
 */
static inline u64 pace_virtual_finish(const struct pace_sched *s,
				      const struct pace_class *c)
{
	u64 eligible = pace_eligible_time(c);

	return s->cfg.order == PACE_ORDER_NEXT ? eligible + c->max_cost_ps : eligible;
}

/* Above any rate: rates are at most 10^12 < 2^40. */
#define RATE_KEY_TOP	(1ull << 40)

/* Returns the key that orders eligible classes, then by lowest id. */
static u64 eligible_key(const struct pace_sched *s, const struct pace_class *c)
{
	if (s->cfg.order == PACE_ORDER_RATE)
		return (RATE_KEY_TOP - c->rate_bps) << PACE_ID_BITS | c->id;
	return pace_clock_key(pace_virtual_finish(s, c), c);
}

/* Returns which place of a class a queue is. */
static inline enum pace_place place_in(const struct pace_sched *s,
				       const struct pace_queue *q)
{
	return q == &s->waiting ? PACE_WAITING :
	       q == &s->eligible ? PACE_ELIGIBLE :
	       q == &s->at_ceil ? PACE_AT_CEIL :
	       q == &s->launching ? PACE_LAUNCHING :
	       q == &s->resting ? PACE_RESTING : PACE_BORROWING;
}

/* Says that a class is in the queue, or in neither of its kind. */
static inline void set_place(const struct pace_sched *s,
			     const struct pace_queue *q, struct pace_class *c,
			     enum pace_place place)
{
	if (q == &s->waiting || q == &s->eligible || q == &s->launching ||
	    q == &s->resting)
		c->place = place;
	else
		c->ceil_place = place;
}

/* Returns the key that a class has in the queue if it is in there. */
static inline u64 key_in(const struct pace_sched *s, const struct pace_queue *q,
			 const struct pace_class *c)
{
	switch (place_in(s, q)) {
	case PACE_WAITING:
		return pace_clock_key(pace_eligible_time(c), c);
	case PACE_ELIGIBLE:
		return eligible_key(s, c);
	case PACE_AT_CEIL:
		return pace_clock_key(c->ceil_clock.ps, c);
	case PACE_LAUNCHING:
		return c->launch_ns << PACE_ID_BITS | c->id;
	case PACE_RESTING:
		return pace_clock_key(c->rest_ps, c);
	default:
		return pace_clock_key(c->borrow_clock.ps, c);
	}
}
