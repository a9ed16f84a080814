// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * More demand than line (paper 002, 2.4; start-time fair queueing: Goyal, Vin
 * and Cheng, 1996).
 *
 * When classes ask for more than the line carries, the smallest clock (or next
 * clock) goes first and clocks fall behind the port's together, so capacity
 * divides in proportion to the rates.  What of a class is compared is its
 * turn, pace_turn(), and lag is how far that is behind.  ORDER_RATE has no
 * common lag.  Three questions remain.
 *
 * 1. What must not come out as a burst.  Once the line suffices again, the
 *    common lag is forgotten: all clocks move forward until the smallest turn
 *    equals the schedule clock.  All means every paced class, active or not:
 *    one that is silent for a moment keeps its place relative to the others.
 *    Nothing is added to anything; the schedule clock, global - offset, is
 *    set back instead. O(1).
 *
 * 2. Where a class starts that comes back: pace_return().  Silence earns
 *    nothing, and a queue that is empty for an instant costs nothing.
 *
 * 3. What "more than the line" is.  Not the sum of the rates: padding and
 *    overhead count too.  A class demands rate x wire / counted bytes of its
 *    last frame, rounded up, in bit/s.
 *
 * Where the line suffices, lag is a transient of one frame per class and
 * belongs to the classes: forgetting it would make rates drift.  Whatever
 * else happens (frame sizes that change what is demanded, a host that stood
 * still), lag is never more than pace_lag_max().
 *
 * Error bound: shares are exact, as clocks are.  decisions/0011, 0014.
 */
#include "internal.h"

/* Classes that enter and leave carry their demand with them. */
void pace_demand_add(struct pace_sched *s, const struct pace_class *c)
{
	s->demand_bps += c->demand_bps;
}

void pace_demand_sub(struct pace_sched *s, const struct pace_class *c)
{
	s->demand_bps -= c->demand_bps;
}

bool pace_over_subscribed(const struct pace_sched *s)
{
	return s->demand_bps > s->cfg.line_rate_bps;
}

/* Moves all class clocks forward. */
static void shift(struct pace_sched *s, u64 bytes)
{
	s->offset += bytes;
	s->stats.shifts++;
	s->stats.shifted_bytes += bytes;
}

/* How far `clock` is behind the schedule clock; 0 if it is not. */
static u64 lag_of(const struct pace_sched *s, u64 clock)
{
	u64 now = pace_schedule_clock(s);

	return pace_clock_ahead(clock, now) ? 0 : now - clock;
}

/*
 * After demand has shrunk: if it exceeded the line and does no longer, the
 * lag is forgotten.  `left`, not NULL, is the class that has just left: its
 * turn counts, or it would return ahead of it.
 */
void pace_lag_settle(struct pace_sched *s, bool was_over,
		     const struct pace_class *left)
{
	const struct pace_class *first;
	u64 lag = 0;

	if (!was_over || pace_over_subscribed(s) ||
	    s->cfg.order == PACE_ORDER_RATE)
		return;
	first = pace_paced_due(s);
	if (first)
		lag = lag_of(s, pace_turn(s, first));
	if (left && lag_of(s, pace_turn(s, left)) > lag)
		lag = lag_of(s, pace_turn(s, left));
	if (lag)
		shift(s, lag);
}

/*
 * The most a turn may be behind.  While the line suffices, what is due and
 * unsent is at most one frame of each class, the frame on the wire and the
 * rounding of a gap: n + 2 largest frames.  A timer adds its own lateness.
 */
u64 pace_lag_max(const struct pace_sched *s)
{
	return ((u64)s->active_paced + 2) * s->train_wire_bytes +
	       s->timer_bytes;
}

/* Enforces pace_lag_max() on all classes together; not ORDER_RATE. O(1). */
void pace_lag_bound(struct pace_sched *s)
{
	const struct pace_class *last = pace_paced_last(s);
	u64 lag, max;

	if (!last)
		return;
	lag = lag_of(s, pace_turn(s, last));
	max = pace_lag_max(s);
	if (lag > max)
		shift(s, lag - max);
}

/*
 * ORDER_RATE: rate decides, so lag is not common: classes of high rate have
 * none and the lowest starve.  A class is owed at most n + 2 largest frames'
 * worth of its own (and 2^20 frames, so that the product fits).
 */
void pace_owed_bound(const struct pace_sched *s, struct pace_class *c)
{
	u32 wire = c->last.wire_bytes;
	u64 frames = ((u64)s->active_paced + 2) *
		     ((s->train_wire_bytes + wire - 1) / wire);
	u64 max;

	if (frames > 1u << 20)
		frames = 1u << 20;
	max = frames * (c->rate_quot + 1) + s->timer_bytes;
	if (lag_of(s, c->clock.bytes) > max) {
		pace_clock_set(&c->clock, pace_schedule_clock(s) - max);
		pace_start_follow(c);
	}
}

/*
 * How far behind the schedule stands: classes of an earlier turn have had it.
 *
 * That is the turn of the last frame, as in start-time fair queueing, but not
 * before the line last idled.  It is not the smallest turn of those active,
 * which would cost a fast class that runs empty its turns before a slow one's.
 *
 * Only a host that stood still leaves the last frame behind by twice what lag
 * may be.
 */
static u64 standing(const struct pace_sched *s)
{
	u64 lag = 2 * pace_lag_max(s);

	if (s->cfg.order == PACE_ORDER_RATE)
		return 0;
	if (lag_of(s, s->served) < lag)
		lag = lag_of(s, s->served);
	if (lag_of(s, s->idled) < lag)
		lag = lag_of(s, s->idled);
	return lag;
}

/*
 * `c`, its demand added already, comes (back).  If its turn has not come yet
 * it keeps its clock: a queue that is empty for an instant has cost it
 * nothing.  If it was silent at its turn, or could have sent while the line
 * idled, it has earned nothing: it starts now, or, where clocks are behind
 * because demand exceeds the line, where they are.
 */
void pace_return(const struct pace_sched *s, struct pace_class *c)
{
	u64 lag = standing(s);

	if (lag_of(s, pace_turn(s, c)) <= lag &&
	    lag_of(s, pace_start(c)) <= lag_of(s, s->idled))
		return;
	pace_clock_set(&c->clock, pace_schedule_clock(s) -
				  (pace_over_subscribed(s) ? lag : 0));
	pace_start_follow(c);
}
