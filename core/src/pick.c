// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Who may send now, and what is the first to come if nobody may.
 *
 * In this order: paced frames that are due; rt frames of the period, or these
 * first where time gets short for them (src/stream.c); nrt frames; normal ones;
 * what would be a gap is shared (src/spare.c).  What the budget holds back waits
 * for the next period (src/period.c).
 */
#include "period.h"
#include "queue.h"

/* Whose nrt frame may go now, under guard too. */
static struct pace_class *pick_nrt(struct pace_sched *s)
{
	struct pace_class *c = pace_nrt_turn(s);

	if (!c || !s->cfg.guard || pace_head_fits(s, c))
		return c;
	s->stats.guarded++;
	return NULL;
}

/*
 * Who may send now, after paced and rt frames: an nrt class; a normal class; else
 * what would be a gap is shared.  While guard holds frames of those back, what is
 * shared ends in time as well, or they would never find room.
 */
static struct pace_class *pick_rest(struct pace_sched *s)
{
	struct pace_class *c;
	bool held = false;

	if (!pace_budget_left(s))
		return NULL;
	if (s->period.active) {
		c = pick_nrt(s);
		if (c)
			return c;
		held = s->period.ring[PACE_PLACE_NRT];
	}
	if (s->active_normal) {
		if (!s->cfg.guard)
			return pace_normal_turn(s);
		c = pace_guarded_turn(s);
		if (c)
			return c;
		held = true;
	}
	if (pace_queue_empty(&s->spare) && pace_queue_empty(&s->ceiled))
		return NULL;
	c = pace_spare_due(s);
	if (c && held && !pace_fits(s, c->last.wire_bytes))
		return NULL;
	return c;
}

/* Who may send now, or NULL. */
struct pace_class *pace_pick(struct pace_sched *s)
{
	struct pace_class *rt = s->period.active ? pace_rt_turn(s) : NULL;
	struct pace_class *c;

	if (rt && pace_rt_urgent(s))
		return rt;
	c = pace_paced_due(s);
	if (c)
		return c;
	return rt ? rt : pick_rest(s);
}

/*
 * What is the first to come, and when: the clock or ceil clock of a class, or,
 * NULL, the next period.  False: nothing is.
 */
bool pace_first_ahead(const struct pace_sched *s, struct pace_class **cls,
		      u64 *clock)
{
	struct pace_class *c = pace_paced_first(s);
	struct pace_class *spare = NULL;
	u64 end = s->period.end.bytes - s->offset;

	if (!pace_queue_empty(&s->ceiled) && pace_budget_left(s))
		spare = pace_spare_first(s);
	if (c)
		*clock = pace_start(c);
	if (spare && (!c || pace_clock_ahead(*clock,
					     spare->ceil_clock.bytes))) {
		*clock = spare->ceil_clock.bytes;
		c = spare;
	}
	*cls = c;
	if (!pace_period_awaited(s) || (c && !pace_clock_ahead(*clock, end)))
		return c;
	*cls = NULL;
	*clock = end;
	return true;
}

/* Somebody may send, were the line free. */
bool pace_somebody_may(struct pace_sched *s)
{
	if (pace_paced_due(s) || (s->period.active && pace_rt_turn(s)))
		return true;
	if (!pace_budget_left(s))
		return false;
	return s->active_normal || (s->period.active && pace_nrt_turn(s)) ||
	       pace_spare_due(s);
}
