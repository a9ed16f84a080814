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
/* GAP: a transmit ring holds at least so many of the longest trains. */
#define PACE_RING_FRAMES	256u
/*
 * HYBRID: how early timers are set, at first, at least and at most.  Timers are
 * seen 11 to 25 us late.  Below 10 us a timer costs the host more than the gap
 * frames that it saves; what is later than 250 us (60 us with interrupts held
 * off, 100 to 200 us out of a deep sleep) is a host that stood still.
 */
#define PACE_LEAD_NS_FIRST	30000u
#define PACE_LEAD_NS_MIN	10000u
#define PACE_LEAD_NS_MAX	250000u

/* The clock that class clocks are compared with. */
static inline u64 pace_schedule_clock(const struct pace_sched *s)
{
	return s->global - s->offset;
}

static inline bool pace_is_due(const struct pace_sched *s,
			       const struct pace_class *c)
{
	return !pace_clock_ahead(pace_start(c), pace_schedule_clock(s));
}

/*
 * What decides between classes that are due, and what lag is measured by
 * (share.c): ORDER_CLOCK the clock, ORDER_NEXT the next clock.
 */
static inline u64 pace_turn(const struct pace_sched *s,
			    const struct pace_class *c)
{
	return s->cfg.order == PACE_ORDER_NEXT ? pace_start(c) + c->period :
						 pace_start(c);
}

/* HYBRID: bytes are the clock again, and no timer is waited for. */
static inline void pace_handed_out(struct pace_sched *s)
{
	s->idling = false;
	s->armed = false;
}

static inline u32 pace_active(const struct pace_sched *s)
{
	return s->active_paced + s->active_normal + s->period.active;
}

static inline u64 pace_later(u64 a, u64 b)
{
	return (s64)(a - b) < 0 ? b : a;
}

/* storage.c: ids. */
bool pace_id_take(struct pace_sched *s, struct pace_class *c);
void pace_id_give_back(struct pace_sched *s, struct pace_class *c);
bool pace_id_held(const struct pace_sched *s, const struct pace_class *c);

/* class.c: what a train costs a class. */
void pace_class_price(const struct pace_sched *s, struct pace_class *c,
		      const struct pace_train *t);

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
u32 pace_quantum(const struct pace_sched *s, const struct pace_class *c);
struct pace_class *pace_normal_turn(struct pace_sched *s);
void pace_normal_put(struct pace_sched *s, struct pace_class *c);
void pace_normal_take(struct pace_sched *s, struct pace_class *c);

/* spare.c: what is sent above a rate, below a ceil. */
void pace_ceil_return(const struct pace_sched *s, struct pace_class *c);
void pace_spare_put(struct pace_sched *s, struct pace_class *c);
void pace_spare_take(struct pace_sched *s, struct pace_class *c);
struct pace_class *pace_spare_due(struct pace_sched *s);
struct pace_class *pace_spare_first(const struct pace_sched *s);
void pace_ceil_sent(const struct pace_sched *s, struct pace_class *c);
void pace_spare_sent(struct pace_sched *s, struct pace_class *c);

/* guard.c: normal frames that would end too late. */
bool pace_fits(const struct pace_sched *s, u32 wire_bytes);
bool pace_head_fits(const struct pace_sched *s, const struct pace_class *c);
struct pace_class *pace_guarded_turn(struct pace_sched *s);

/* pick.c: who may send, and what is to come. */
struct pace_class *pace_pick(struct pace_sched *s);
bool pace_first_ahead(const struct pace_sched *s, struct pace_class **cls,
		      u64 *clock);
bool pace_somebody_may(struct pace_sched *s);

/* hybrid.c: timers, and how early they are set. */
void pace_lead_set(struct pace_sched *s, u64 lead_ns);
u64 pace_idle_least(const struct pace_sched *s);
void pace_idle_begin(struct pace_sched *s, u64 now_ns);
void pace_idle_follow(struct pace_sched *s, u64 now_ns);
struct pace_decision pace_idle_wait(struct pace_sched *s, u64 clock);
void pace_lead_decay(struct pace_sched *s);

/* sched.c */
u64 pace_ring_bytes(const struct pace_sched *s);
void pace_note_idle(struct pace_sched *s, u64 free_bytes);
void pace_pass_time(struct pace_sched *s, u64 now_ns);
void pace_stir(struct pace_sched *s);
void pace_join(struct pace_sched *s, struct pace_class *c);
void pace_leave(struct pace_sched *s, struct pace_class *c);

#endif /* PACE_INTERNAL_H */
