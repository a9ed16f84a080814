/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Periods, their budget, and the classes that go by them. */
#ifndef PACE_PERIOD_H
#define PACE_PERIOD_H

#include "internal.h"

/*
 * Where an active rt or nrt class is.  A new period takes all that wait to those
 * that may send, at once; what it changes of a class is done when that class is
 * looked at next: pace_stream_follow().
 */
enum pace_place {
	PACE_PLACE_RT,		/* frames that came before the period */
	PACE_PLACE_RT_LATE,	/* the same, beyond what is reserved */
	PACE_PLACE_RT_NEXT,	/* frames that came in it */
	PACE_PLACE_NRT,		/* has some of its share left */
	PACE_PLACE_NRT_NEXT,	/* has sent its share */
};

static inline bool pace_kind_has_stream(enum pace_kind kind)
{
	return kind == PACE_KIND_RT || kind == PACE_KIND_NRT;
}

/* Something is left of the budget, or there is none in force. */
static inline bool pace_budget_left(const struct pace_sched *s)
{
	return !s->period.classes || s->period.left_bytes > 0;
}

/* period.c */
void pace_period_set(struct pace_sched *s);
void pace_period_follow(struct pace_sched *s, u64 now_ns);
bool pace_period_awaited(const struct pace_sched *s);

/* stream.c */
void pace_stream_begin(struct pace_sched *s, struct pace_class *c,
		       const struct pace_class_config *cfg);
void pace_stream_end(struct pace_sched *s, struct pace_class *c);
void pace_stream_put(struct pace_sched *s, struct pace_class *c);
void pace_stream_take(struct pace_sched *s, struct pace_class *c);
void pace_stream_sent(struct pace_sched *s, struct pace_class *c,
		      const struct pace_train *t, bool more);
void pace_stream_arrived(struct pace_sched *s, struct pace_class *c,
			 u32 wire_bytes);
void pace_stream_dropped(struct pace_sched *s, struct pace_class *c,
			 u32 wire_bytes);
struct pace_class *pace_rt_turn(struct pace_sched *s);
bool pace_rt_urgent(const struct pace_sched *s);
struct pace_class *pace_nrt_turn(struct pace_sched *s);

#endif /* PACE_PERIOD_H */
