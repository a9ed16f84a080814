/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the parts of the scheduler know of each other. */
#ifndef PACE_INTERNAL_H
#define PACE_INTERNAL_H

#include <pace/pace_sched.h>

#include "clock.h"

/*
 * TIMER: how much lateness of the host's timer the line makes up for by
 * frames back to back.  High-resolution timers are seen 11 to 25 us late;
 * 100 us covers a busy host and is 13 kB at 1 Gbit/s.
 */
#define PACE_SLACK_NS		100000u
/*
 * The longest ordinary stall: one tick at HZ=250; also what a transmit ring
 * holds where its frames are no bound (PACE_RING_FRAMES, on a fast line).
 */
#define PACE_STALL_NS		4000000u
/* GAP: a transmit ring holds at least so many of the largest frames. */
#define PACE_RING_FRAMES	256u

/* The clock that class clocks are compared with. */
static inline u64 pace_schedule_clock(const struct pace_sched *s)
{
	return s->global - s->offset;
}

static inline bool pace_is_due(const struct pace_sched *s,
			       const struct pace_class *c)
{
	return !pace_clock_ahead(c->clock, pace_schedule_clock(s));
}

/*
 * What decides between classes that are due, and what lag is measured by
 * (share.c): ORDER_CLOCK the clock, ORDER_NEXT the next clock.
 */
static inline u64 pace_turn(const struct pace_sched *s,
			    const struct pace_class *c)
{
	return s->cfg.order == PACE_ORDER_NEXT ? c->clock + c->period :
						 c->clock;
}

static inline u32 pace_active(const struct pace_sched *s)
{
	return s->active_paced + s->active_normal;
}

static inline u64 pace_later(u64 a, u64 b)
{
	return (s64)(a - b) < 0 ? b : a;
}

/* storage.c: ids. */
bool pace_id_take(struct pace_sched *s, struct pace_class *c);
void pace_id_give_back(struct pace_sched *s, struct pace_class *c);
bool pace_id_held(const struct pace_sched *s, const struct pace_class *c);

/* class.c: what a frame of a length costs a class. */
void pace_class_price(const struct pace_sched *s, struct pace_class *c,
		      u32 len_bytes);

/* share.c: capacity beyond the line. */
void pace_demand_add(struct pace_sched *s, const struct pace_class *c);
void pace_demand_sub(struct pace_sched *s, const struct pace_class *c);
bool pace_over_subscribed(const struct pace_sched *s);
void pace_lag_settle(struct pace_sched *s, bool was_over,
		     const struct pace_class *left);
u64 pace_lag_max(const struct pace_sched *s);
void pace_lag_bound(struct pace_sched *s);
void pace_return(const struct pace_sched *s, struct pace_class *c);
void pace_owed_bound(const struct pace_sched *s, struct pace_class *c);

/* paced.c: active paced classes, in order. */
struct pace_class *pace_paced_first(const struct pace_sched *s);
struct pace_class *pace_paced_last(const struct pace_sched *s);
struct pace_class *pace_paced_due(struct pace_sched *s);
void pace_paced_follow(struct pace_sched *s);
void pace_paced_put(struct pace_sched *s, struct pace_class *c);
void pace_paced_take(struct pace_sched *s, struct pace_class *c);
void pace_paced_moved(struct pace_sched *s, struct pace_class *c);
void pace_paced_reorder(struct pace_sched *s, enum pace_order order);

/* normal.c: active normal classes, in turn. */
struct pace_class *pace_normal_turn(struct pace_sched *s);
void pace_normal_put(struct pace_sched *s, struct pace_class *c);
void pace_normal_take(struct pace_sched *s, struct pace_class *c);

/* sched.c */
void pace_pass_time(struct pace_sched *s, u64 now_ns);
void pace_join(struct pace_sched *s, struct pace_class *c);
void pace_leave(struct pace_sched *s, struct pace_class *c);

#endif /* PACE_INTERNAL_H */
