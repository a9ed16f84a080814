// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Paced classes: who waits, who is eligible, and over-subscription.
 *
 * Order.  ORDER_CLOCK (paper 002, 2.2): one queue by clock.  The others: a
 * class waits in the queue by clock until its clock is reached, and then in a
 * second one; ORDER_RATE (paper 000, 3.4) by rate, ORDER_NEXT (WF2Q+) by
 * virtual finish time.  Each class changes queue once per frame, so a frame
 * costs O(log n) in all.
 *
 * Keys of both queues are class clocks: no common move of all clocks touches
 * them.  Such a rebase may set the schedule clock back behind an eligible class,
 * which returns to the waiting ones when it becomes the head.
 */
#include <pace/pace_sched.h>

/* Returns the first class of a queue, or NULL. */
static inline struct pace_class *queue_head(const struct pace_sched *s,
					    const struct pace_queue *q)
{
	return pace_queue_empty(q) ? NULL : s->by_id[pace_queue_min(q)];
}

/* Returns the waiting class with the smallest eligible time, or NULL. */
static inline struct pace_class *pace_first_waiting(const struct pace_sched *s)
{
	return queue_head(s, &s->waiting);
}

/*
 * Returns the class with the smallest virtual finish time: in ORDER_NEXT among
 * the eligible ones.  NULL in ORDER_RATE, which has no virtual time.
 */
static inline struct pace_class *pace_min_virtual_time(const struct pace_sched *s)
{
	if (s->cfg.order == PACE_ORDER_RATE)
		return NULL;
	return queue_head(s, pace_queue_empty(&s->eligible) ? &s->waiting :
							       &s->eligible);
}

/* How many classes ahead the memory of a class is prefetched. */
#define TABLE_AHEAD	28u
#define CLASS_AHEAD	14u

/*
 * Prefetches the memory of classes that send soon.  A wheel knows them; among
 * its many classes none is in a cache.
 */
static void fetch_coming(const struct pace_sched *s,
			 const struct pace_queue *q)
{
	u32 id = pace_queue_coming(q, TABLE_AHEAD);
	const struct pace_class *c;

	if (id == PACE_ID_NONE)
		return;
	pace_prefetch(&s->by_id[id]);
	c = s->by_id[pace_queue_coming(q, CLASS_AHEAD)];
	if (!c)
		return;
	pace_prefetch(c);
	if (s->cfg.order == PACE_ORDER_NEXT)
		pace_prefetch(&c->max_cost_ps);
}

struct pace_class *pace_coming(const struct pace_sched *s, u32 ahead)
{
	u32 id = pace_queue_coming(s->cfg.order == PACE_ORDER_CLOCK ?
				   &s->waiting : &s->eligible, ahead);

	return id == PACE_ID_NONE ? NULL : s->by_id[id];
}

static void insert_waiting(struct pace_sched *s, struct pace_class *c)
{
	pace_key_add(s, &s->waiting, c);
}

static void insert_eligible(struct pace_sched *s, struct pace_class *c)
{
	pace_key_add(s, &s->eligible, c);
}

static void remove_from_queue(struct pace_sched *s, struct pace_class *c)
{
	struct pace_queue *q = c->place == PACE_ELIGIBLE ? &s->eligible :
							   &s->waiting;

	pace_key_remove(s, q, c);
	if (pace_queue_has_wheel(q))
		fetch_coming(s, q);
}

/*
 * Returns true if of the classes that wait the first goes first, which is due at
 * global_ps; none is in the queue of eligible ones.  No second one is due; or in
 * ORDER_NEXT no other's virtual finish time can be as early: that is at least the
 * second clock and what the cheapest burst of a class costs.  Such a class needs no
 * other queue, so it is served from among the waiting ones: one path for one due class.
 * In ORDER_RATE a class might be behind without bound, and has to leave them.
 */
static __always_inline bool is_first_in_order(const struct pace_sched *s,
					      const struct pace_class *c, u64 global_ps)
{
	u64 second, least;

	if (s->cfg.order == PACE_ORDER_CLOCK || s->waiting.count == 1)
		return true;
	if (s->cfg.order == PACE_ORDER_RATE)
		return false;
	second = pace_queue_second(&s->waiting);
	if (pace_key_before(pace_key_of(global_ps - s->offset_ps) | PACE_KEY_ID_MASK,
			    second))
		return true;
	least = (second & ~PACE_KEY_ID_MASK) + pace_key_of(s->least_cost_ps);
	return pace_key_before(pace_key_of(pace_virtual_finish(s, c)) |
			       PACE_KEY_ID_MASK, least);
}

/* Returns true if the first waiting class is to move to the eligible ones. */
static inline bool has_to_promote(const struct pace_sched *s)
{
	const struct pace_class *c = pace_first_waiting(s);

	return c && pace_is_eligible(s, c) &&
	       (!pace_queue_empty(&s->eligible) ||
		!is_first_in_order(s, c, s->global_ps));
}

/* Moves the first waiting class to the eligible ones: has_to_promote(). */
static void promote_first(struct pace_sched *s)
{
	struct pace_class *c = pace_first_waiting(s);

	remove_from_queue(s, c);
	insert_eligible(s, c);
}

/* Moves all classes whose time has come to the eligible ones, if the first needs it. */
static inline void promote_eligible(struct pace_sched *s)
{
	while (has_to_promote(s))
		promote_first(s);
}

/*
 * Returns the first class of the queue of eligible ones, or NULL.  A common move
 * of all clocks may have set the schedule clock back behind those before it:
 * they wait again.
 */
static struct pace_class *first_in_eligible(struct pace_sched *s)
{
	struct pace_class *c;

	while ((c = queue_head(s, &s->eligible)) && !pace_is_eligible(s, c)) {
		remove_from_queue(s, c);
		insert_waiting(s, c);
	}
	return c;
}

/*
 * Returns the paced class to serve now, or NULL if none is eligible.  Mostly it is
 * the first that waits, or nobody.
 */
static inline struct pace_class *pace_first_eligible(struct pace_sched *s)
{
	struct pace_class *c = pace_first_waiting(s);
	bool due = c && pace_is_eligible(s, c);

	for (;;) {
		if (pace_queue_empty(&s->eligible)) {
			if (!due)
				return NULL;
			if (is_first_in_order(s, c, s->global_ps))
				return c;
		}
		promote_eligible(s);
		c = first_in_eligible(s);
		if (c)
			return c;
		/* All of them wait again. */
		c = pace_first_waiting(s);
		due = c && pace_is_eligible(s, c);
	}
}

static void insert_in_queue(struct pace_sched *s, struct pace_class *c)
{
	if (s->cfg.order != PACE_ORDER_CLOCK) {
		/*
		 * Time may have run far ahead of those that wait; what stays
		 * in the queue by clock must be close together.
		 */
		promote_eligible(s);
		if (!pace_queue_empty(&s->eligible) && pace_is_eligible(s, c)) {
			insert_eligible(s, c);
			return;
		}
	}
	insert_waiting(s, c);
}

static void pace_paced_insert(struct pace_sched *s, struct pace_class *c)
{
	insert_in_queue(s, c);
	s->active_paced++;
}

static void pace_paced_remove(struct pace_sched *s, struct pace_class *c)
{
	remove_from_queue(s, c);
	s->active_paced--;
}

/* Moves an active class to where its new clock or rate belongs. */
static void pace_paced_update(struct pace_sched *s, struct pace_class *c)
{
	if (c->place == PACE_WAITING && pace_queue_min(&s->waiting) == c->id) {
		pace_key_move_first(s, &s->waiting, c);
		if (pace_queue_has_wheel(&s->waiting))
			fetch_coming(s, &s->waiting);
	} else {
		remove_from_queue(s, c);
		insert_in_queue(s, c);
	}
}

/*
 * Over-subscription (paper 002, 2.4; start-time fair queueing: Goyal, Vin and
 * Cheng, 1996).
 *
 * When the offered load exceeds the line, the smallest virtual finish time goes
 * first and clocks fall behind the port's together, so the line divides in
 * proportion to the rates.  Lag is how far a virtual finish time is behind.
 * ORDER_RATE has no common lag.  Three questions remain.
 *
 * 1. What must not come out as a burst.  Once the line suffices again, the
 *    common lag is forgotten: all clocks move forward until the smallest
 *    virtual finish time equals the schedule clock.  All means every paced
 *    class, active or not: one that is silent for a moment keeps its place
 *    relative to the others.  Nothing is added to anything; the schedule clock,
 *    global - offset, is set back instead. O(1).
 *
 * 2. Which clock a class has that becomes active again: pace_paced_return().
 *    Silence earns nothing, and a queue that is empty for an instant costs
 *    nothing.
 *
 * 3. What the offered load is.  It is not the sum of the rates: padding and
 *    overhead count too.  A class offers rate x wire / counted bytes of its last
 *    burst, rounded up, in bit/s.
 *
 * While the line suffices, lag is a transient of one frame per class and belongs
 * to the classes: to forget it would make rates drift.  In every case (frame
 * sizes that change the offered load, a host that stood still) lag is at most
 * pace_lag_max().
 *
 * Error bound: shares are exact, as clocks are.  docs/decisions/core.md, "Lag,
 * and where a class returns", "Smallest virtual finish time first".
 */

/* Adds the load of a class that becomes active to the offered load. */
static void pace_load_add(struct pace_sched *s, const struct pace_class *c)
{
	s->offered_load_bps += c->offered_load_bps;
}

static void pace_load_sub(struct pace_sched *s, const struct pace_class *c)
{
	s->offered_load_bps -= c->offered_load_bps;
}

static bool pace_over_subscribed(const struct pace_sched *s)
{
	return s->offered_load_bps > s->load_most_bps;
}

/* Rebases all class clocks: moves them forward together. */
static void rebase(struct pace_sched *s, u64 ps)
{
	s->offset_ps += ps;
	s->stats.rebases++;
	s->stats.rebased_ps += ps;
}

/* Returns how far `clock` is behind the schedule clock; 0 if it is not. */
static inline u64 lag_of(const struct pace_sched *s, u64 clock)
{
	u64 now = pace_schedule_clock(s);

	return pace_clock_ahead(clock, now) ? 0 : now - clock;
}

/*
 * Returns how far the virtual finish time of a class is behind, as a queue orders it:
 * those that are one to the queue have one lag.
 */
static inline u64 lag_in_order(const struct pace_sched *s,
			       const struct pace_class *c)
{
	return lag_of(s, pace_key_clock(pace_virtual_finish(s, c)));
}

/*
 * Forgets the common lag if the offered load exceeded the line and no longer
 * does.  `left`, if not NULL, is the class that has just left: its virtual
 * finish time counts, or it would return ahead of it.
 */
static void pace_lag_settle(struct pace_sched *s, bool was_over,
			    const struct pace_class *left)
{
	const struct pace_class *first;
	u64 lag = 0;

	if (!was_over || pace_over_subscribed(s) ||
	    s->cfg.order == PACE_ORDER_RATE)
		return;
	first = pace_first_eligible(s);
	if (first)
		lag = lag_in_order(s, first);
	if (left && lag_in_order(s, left) > lag)
		lag = lag_in_order(s, left);
	if (lag)
		rebase(s, lag);
}

/*
 * Returns the lag limit of a virtual finish time.  While the line suffices,
 * what is eligible and unsent is at most one frame of each class, the frame on the
 * wire and the rounding of a gap: n + 2 largest frames.  A timer adds its own
 * lateness.  A line on which that is long keeps PACE_LAG_MAX_PS: keys of a queue are
 * close.
 */
static inline u64 pace_lag_max(const struct pace_sched *s)
{
	u64 ps = ((u64)s->active_paced + 2) * s->burst_ps + s->timer_ps;

	return ps < PACE_LAG_MAX_PS ? ps : PACE_LAG_MAX_PS;
}

/* Adopts by how much all that goes by the clock of the line was set back: part.c. */
static void pace_offset_adopt(struct pace_sched *s)
{
	u64 offset, ps;

	if (!s->line_part)
		return;
	offset = pace_atomic_read(&s->line_part->common->offset_ps);
	if (!s->device)
		offset += s->port_adopted_ps;
	ps = offset - s->adopted_ps;
	if (!ps)
		return;
	s->adopted_ps = offset;
	rebase(s, ps);
}

/* Exceeds what all queues have the line or, of a group, what this one has the node's rate? */
static bool lags_with_others(const struct pace_sched *s)
{
	if (!PACE_GROUPS || !s->line_part)
		return false;
	return s->device ? pace_atomic_read(&s->line_part->common->loads_bps) >
			   s->cfg.line_rate_bps : pace_over_subscribed(s);
}

/*
 * Forgets so much of a lag that all classes have in common.  Those of a full group, or of
 * a line that their rates exceed and whose device takes less than psp hands out, forget
 * it on all queues; but a queue that stood still forgets alone what it missed.
 */
static void pace_lag_forget(struct pace_sched *s, u64 ps)
{
	u64 before = s->adopted_ps;

	if (lags_with_others(s)) {
		pace_offset_raise(s->line_part->common,
				  before - (s->device ? 0 : s->port_adopted_ps) +
				  (ps < s->burst_ps ? ps : s->burst_ps));
		pace_offset_adopt(s);
		if (!pace_clock_ahead(ps, s->adopted_ps - before))
			return;
		ps -= s->adopted_ps - before;
	}
	rebase(s, ps);
}

/* Enforces pace_lag_max() on all classes together, but in ORDER_RATE.  O(1). */
static inline void pace_lag_bound(struct pace_sched *s)
{
	const struct pace_class *last = pace_min_virtual_time(s);
	u64 lag, max;

	if (!last)
		return;
	lag = lag_in_order(s, last);
	if (!lag)
		return;
	max = pace_lag_max(s);
	if (lag > max)
		pace_lag_forget(s, lag - max);
}

/*
 * Enforces a lag limit on one class in ORDER_RATE.  There rate decides, so lag
 * is not common: classes of high rate have none and the lowest starve.  A class
 * lags at most n + 2 largest frames' worth of its own (and 2^20 frames, so that
 * the product fits).
 */
static void pace_rate_lag_bound(const struct pace_sched *s,
				struct pace_class *c)
{
	u32 wire = c->last.wire_bytes;
	u64 frames = ((u64)s->active_paced + 2) *
		     ((s->burst_wire_bytes + wire - 1) / wire);
	u64 max;

	if (frames > 1u << 20)
		frames = 1u << 20;
	max = frames * (c->rate_quot + 1) + s->timer_ps;
	if (max > PACE_LAG_MAX_PS)
		max = PACE_LAG_MAX_PS;
	if (lag_of(s, c->clock.ps) > max) {
		pace_clock_set(&c->clock, pace_schedule_clock(s) - max);
		pace_step_raise(c->part, c->clock.ps);
		pace_eligible_update(c);
	}
}

/*
 * Returns how far virtual time is behind the schedule clock.
 *
 * Virtual time is the virtual finish time of the last frame, as in start-time
 * fair queueing, but not before the line last idled.  It is not the smallest of
 * the active classes: a fast class that runs empty would lose its frames before
 * a slow one's.
 *
 * Only a host that stood still leaves the last frame behind by twice what lag
 * may be.
 */
static u64 virtual_time_lag(const struct pace_sched *s)
{
	u64 lag = 2 * pace_lag_max(s);

	if (s->cfg.order == PACE_ORDER_RATE)
		return 0;
	if (lag_of(s, s->last_finish_ps) < lag)
		lag = lag_of(s, s->last_finish_ps);
	if (lag_of(s, s->idled_ps) < lag)
		lag = lag_of(s, s->idled_ps);
	return lag;
}

/*
 * Sets the clock of a class that becomes active; its load is added already.  If
 * virtual time has not passed it, it keeps its clock: a queue that is empty for
 * an instant costs nothing.  If it was silent when it would have been served,
 * or could have sent while the line idled, it has earned nothing: it starts
 * now, or at virtual time if clocks lag because the load exceeds the line.
 */
static void pace_paced_return(const struct pace_sched *s, struct pace_class *c)
{
	u64 lag = virtual_time_lag(s);

	if (lag_of(s, pace_virtual_finish(s, c)) <= lag &&
	    lag_of(s, pace_eligible_time(c)) <= lag_of(s, s->idled_ps))
		return;
	pace_clock_set(&c->clock, pace_schedule_clock(s) -
				  (pace_over_subscribed(s) ? lag : 0));
	pace_eligible_update(c);
}

/*
 * Moves classes to the eligible ones after time has passed, maybe more than
 * keys may be apart.  Lag is bounded before each, so that no key is far from
 * the others.
 */
static void pace_paced_advance(struct pace_sched *s)
{
	pace_lag_bound(s);
	if (s->cfg.order == PACE_ORDER_CLOCK || s->active_paced <= 1)
		return;
	while (has_to_promote(s)) {
		promote_first(s);
		pace_lag_bound(s);
	}
}

/* Sets cfg.order; all classes wait until found eligible in it.  O(n log n). */
static void pace_paced_reorder(struct pace_sched *s, enum pace_order order)
{
	u64 floor = pace_schedule_clock(s) - pace_lag_max(s);
	struct pace_class *c;

	if (s->cfg.order != PACE_ORDER_CLOCK)
		while ((c = pace_first_waiting(s)) && pace_is_eligible(s, c))
			promote_first(s);
	/* The keys of those that are eligible are of the old order. */
	while ((c = queue_head(s, &s->eligible))) {
		remove_from_queue(s, c);
		/*
		 * It may have been behind for long; keys of a queue are close.
		 */
		if (!pace_clock_ahead(pace_eligible_time(c), floor) &&
		    pace_eligible_time(c) != floor)
			pace_clock_set(&c->clock, floor);
		pace_eligible_update(c);
		insert_waiting(s, c);
	}
	s->cfg.order = order;
}
