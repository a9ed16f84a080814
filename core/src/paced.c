// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Active paced classes in the order in which they may send.
 *
 * ORDER_CLOCK (paper 002, 2.2): one queue by clock.  ORDER_RATE (paper 000,
 * 3.4): a class waits in the queue by clock until its clock is reached, and
 * then in a second one by rate.  Each class changes queue once per frame, so
 * a frame costs O(log n) in both.
 */
#include "internal.h"
#include "queue.h"

/* Above any rate: rates are at most 10^12 < 2^40. */
#define RATE_KEY_TOP	(1ull << 40)

/* Highest rate first, then lowest id. */
static u64 rate_key(const struct pace_class *c)
{
	return (RATE_KEY_TOP - c->rate_bps) << PACE_ID_BITS | c->id;
}

/* The class with the smallest clock among those not seen due yet. */
struct pace_class *pace_paced_first(const struct pace_sched *s)
{
	if (pace_queue_empty(&s->waiting))
		return NULL;
	return s->by_id[pace_queue_min(&s->waiting)];
}

static void put_due(struct pace_sched *s, struct pace_class *c)
{
	c->due = true;
	pace_queue_insert(&s->due, rate_key(c));
}

/* ORDER_RATE: classes whose clock has been reached change queue. */
static void promote(struct pace_sched *s)
{
	struct pace_class *c = pace_paced_first(s);

	while (c && pace_is_due(s, c)) {
		pace_queue_remove(&s->waiting, c->id);
		put_due(s, c);
		c = pace_paced_first(s);
	}
}

/* The class to send now, or NULL. */
struct pace_class *pace_paced_due(struct pace_sched *s)
{
	struct pace_class *c;

	if (s->cfg.order == PACE_ORDER_RATE) {
		promote(s);
		if (pace_queue_empty(&s->due))
			return NULL;
		return s->by_id[pace_queue_min(&s->due)];
	}
	c = pace_paced_first(s);
	return c && pace_is_due(s, c) ? c : NULL;
}

static void enqueue(struct pace_sched *s, struct pace_class *c)
{
	if (s->cfg.order == PACE_ORDER_RATE) {
		/*
		 * Time may have run far ahead of those that wait; what stays
		 * in the queue by clock must be close together.
		 */
		promote(s);
		if (pace_is_due(s, c)) {
			put_due(s, c);
			return;
		}
	}
	pace_queue_insert(&s->waiting, pace_clock_key(c));
}

static void dequeue(struct pace_sched *s, struct pace_class *c)
{
	pace_queue_remove(c->due ? &s->due : &s->waiting, c->id);
	c->due = false;
}

void pace_paced_put(struct pace_sched *s, struct pace_class *c)
{
	enqueue(s, c);
	s->active_paced++;
}

void pace_paced_take(struct pace_sched *s, struct pace_class *c)
{
	dequeue(s, c);
	s->active_paced--;
}

/* The clock (or, in ORDER_RATE, the rate) of an active class is another. */
void pace_paced_moved(struct pace_sched *s, struct pace_class *c)
{
	if (s->cfg.order == PACE_ORDER_CLOCK &&
	    pace_queue_min(&s->waiting) == c->id) {
		pace_queue_replace_min(&s->waiting, pace_clock_key(c));
	} else {
		dequeue(s, c);
		enqueue(s, c);
	}
}

/* Changes cfg.order and with it the queues. */
void pace_paced_reorder(struct pace_sched *s, enum pace_order order)
{
	u64 floor = pace_schedule_clock(s) - pace_lag_max(s);

	if (s->cfg.order == PACE_ORDER_RATE)
		promote(s);
	s->cfg.order = order;
	while (!pace_queue_empty(&s->due)) {
		struct pace_class *c = s->by_id[pace_queue_min(&s->due)];

		dequeue(s, c);
		/* May have starved for long; clocks in a queue are close. */
		pace_clock_raise(c, floor);
		pace_queue_insert(&s->waiting, pace_clock_key(c));
	}
}
