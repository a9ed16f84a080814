// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Selects the class to serve now, or finds the first to come if none may send.
 *
 * The order: eligible paced frames; rt frames of the period, which go before
 * paced ones where time gets short (reservation.c); nrt frames; normal ones;
 * frames that borrow what would be a gap (borrow.c); excess of rt classes.  What
 * the budget holds back waits for the next period (reservation.c).
 */
#include <pace/pace_sched.h>

/* Returns how many classes have a packet, or more; 0 if none has. */
static inline u32 pace_active(const struct pace_sched *s)
{
	return s->active_paced + s->others;
}

/*
 * Returns `c`, of which an nrt frame or excess may go, or NULL if the guard band
 * holds that back.
 */
static struct pace_class *pick_within_guard(struct pace_sched *s,
					    struct pace_class *c)
{
	if (!c || !s->cfg.guard_band || pace_head_fits(s, c))
		return c;
	s->stats.guard_band_held++;
	return NULL;
}

/*
 * Returns the class to serve when no paced or rt frame may go, or NULL: an nrt
 * class; a normal class; one that borrows what would be a gap; else an rt class
 * with excess.  While the guard band holds frames back, a borrowed frame has to
 * end in time as well, or they would never find room.
 */
static struct pace_class *pick_rest(struct pace_sched *s)
{
	struct pace_class *c;
	bool held = false;

	if (!pace_budget_left(s) || pace_spare_holds(s))
		return NULL;
	if (s->period.active) {
		c = pick_within_guard(s, pace_nrt_next(s));
		if (c)
			return c;
		held = s->period.ring[PACE_RING_NRT];
	}
	if (s->active_normal) {
		if (!s->cfg.guard_band)
			return pace_best_effort_next(s);
		c = pace_guarded_next(s);
		if (c)
			return c;
		held = true;
	}
	if (!pace_queue_empty(&s->borrowing) || !pace_queue_empty(&s->at_ceil)) {
		c = pace_borrow_next(s);
		if (c)
			return !held || pace_fits(s, c->last.wire_bytes) ? c : NULL;
	}
	return pick_within_guard(s, s->period.ring[PACE_RING_RT_EXCESS]);
}

/* Returns true if no class is active but paced ones without a ceil. */
static inline bool only_paced(const struct pace_sched *s)
{
	return !s->others;
}

/* Returns the class to serve now if others than paced ones may be active. */
static struct pace_class *select_any(struct pace_sched *s)
{
	struct pace_class *rt, *c;

	rt = s->period.active ? pace_rt_next(s) : NULL;
	if (rt && pace_rt_urgent(s))
		return rt;
	c = pace_first_eligible(s);
	if (c)
		return c;
	return rt ? rt : pick_rest(s);
}

/* Returns the class to serve now, or NULL if none may send. */
static inline struct pace_class *pace_select(struct pace_sched *s)
{
	return only_paced(s) ? pace_first_eligible(s) : select_any(s);
}

/* pace_first_ahead() if others than paced classes may be active. */
static bool first_ahead_any(const struct pace_sched *s, struct pace_class **cls,
			    u64 *clock)
{
	struct pace_class *c = pace_first_waiting(s);
	struct pace_class *borrower = NULL;
	u64 end = s->period.end_ps - s->offset_ps;

	if (!pace_queue_empty(&s->at_ceil) && pace_budget_left(s))
		borrower = pace_first_at_ceil(s);
	/* 0: BPF reads no variable that is not set. */
	*clock = c ? pace_eligible_time(c) : 0;
	if (borrower && (!c || pace_clock_ahead(*clock,
					     borrower->ceil_clock.ps))) {
		*clock = borrower->ceil_clock.ps;
		c = borrower;
	}
	if (s->launching.count &&
	    (!c || pace_clock_ahead(*clock, s->launch_at_ps - s->offset_ps))) {
		*clock = s->launch_at_ps - s->offset_ps;
		c = queue_head(s, &s->launching);
	}
	if (PACE_GROUPS && s->resting.count)
		c = pace_first_resting(s, c, clock);
	if (pace_spare_waits(s) &&
	    (!c || pace_clock_ahead(*clock, s->spare_ps - s->offset_ps))) {
		*cls = NULL;
		*clock = s->spare_ps - s->offset_ps;
		return true;
	}
	*cls = c;
	if (!pace_period_awaited(s) || (c && !pace_clock_ahead(*clock, end)))
		return c;
	*cls = NULL;
	*clock = end;
	return true;
}

/*
 * Finds the first class to come, and at which clock; NULL stands for the next
 * period.  Returns false if nothing is to come: `clock` is not set then.
 */
static inline bool pace_first_ahead(const struct pace_sched *s,
				    struct pace_class **cls, u64 *clock)
{
	if (!only_paced(s))
		return first_ahead_any(s, cls, clock);
	*cls = pace_first_waiting(s);
	if (*cls)
		*clock = pace_eligible_time(*cls);
	return *cls;
}

/* Returns true if a class might send, were the line free. */
static bool pace_any_ready(struct pace_sched *s)
{
	if (pace_first_eligible(s) || (s->period.active && pace_rt_next(s)))
		return true;
	if (!pace_budget_left(s) || pace_spare_holds(s))
		return false;
	return s->active_normal || (s->period.active && pace_nrt_next(s)) ||
	       pace_borrow_next(s) || s->period.ring[PACE_RING_RT_EXCESS];
}
