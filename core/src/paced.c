// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Active paced classes in the order in which they may send.
 *
 * ORDER_CLOCK (paper 002, 2.2): one queue by clock.  The others: a class waits
 * in the queue by clock until its clock is reached, and then in a second one;
 * ORDER_RATE (paper 000, 3.4) by rate, ORDER_NEXT (WF2Q+) by next clock.  Each
 * class changes queue once per frame, so a frame costs O(log n) in all.
 *
 * Keys of both queues are class clocks: no common move of all clocks touches
 * them.  Such a move may set the port back behind a class in `due`; it is put
 * back among those that wait when it comes to the head.
 */
#include "internal.h"
#include "queue.h"

/* Above any rate: rates are at most 10^12 < 2^40. */
#define RATE_KEY_TOP	(1ull << 40)

/* What those due are ordered by, then by lowest id. */
static u64 due_key(const struct pace_sched *s, const struct pace_class *c)
{
	u64 value = s->cfg.order == PACE_ORDER_RATE ?
		    RATE_KEY_TOP - c->rate_bps : pace_turn(s, c);

	return value << PACE_ID_BITS | c->id;
}

static struct pace_class *head(const struct pace_sched *s,
			       const struct pace_queue *q)
{
	return pace_queue_empty(q) ? NULL : s->by_id[pace_queue_min(q)];
}

/* The class with the smallest start among those not seen due yet. */
struct pace_class *pace_paced_first(const struct pace_sched *s)
{
	return head(s, &s->waiting);
}

/*
 * The class furthest behind: of the smallest turn, among those seen due where
 * the order keeps them apart.  NULL in ORDER_RATE, which has no turns.
 */
struct pace_class *pace_paced_last(const struct pace_sched *s)
{
	switch (s->cfg.order) {
	case PACE_ORDER_CLOCK:
		return head(s, &s->waiting);
	case PACE_ORDER_NEXT:
		return s->active_paced <= 1 && pace_queue_empty(&s->due) ?
		       head(s, &s->waiting) : head(s, &s->due);
	case PACE_ORDER_RATE:
	default:
		return NULL;
	}
}

/* How many turns before its own a class's memory is fetched. */
#define TABLE_AHEAD	28u
#define CLASS_AHEAD	14u

/*
 * The first of the queue has gone.  A wheel knows who comes next; among so many
 * classes none is in a cache.
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
	pace_prefetch(c);
	if (s->cfg.order == PACE_ORDER_NEXT)
		pace_prefetch(&c->period);
}

struct pace_class *pace_coming(const struct pace_sched *s, u32 ahead)
{
	u32 id = pace_queue_coming(s->cfg.order == PACE_ORDER_CLOCK ?
				   &s->waiting : &s->due, ahead);

	return id == PACE_ID_NONE ? NULL : s->by_id[id];
}

static void put_waiting(struct pace_sched *s, struct pace_class *c)
{
	pace_queue_insert(&s->waiting, pace_clock_key(pace_start(c), c));
}

static void put_due(struct pace_sched *s, struct pace_class *c)
{
	c->due = true;
	pace_queue_insert(&s->due, due_key(s, c));
}

static void dequeue(struct pace_sched *s, struct pace_class *c)
{
	struct pace_queue *q = c->due ? &s->due : &s->waiting;

	pace_queue_remove(q, c->id);
	if (pace_queue_has_wheel(q))
		fetch_coming(s, q);
	c->due = false;
}

/* The first class that waits changes queue if its clock has been reached. */
static bool promote(struct pace_sched *s)
{
	struct pace_class *c = pace_paced_first(s);

	if (!c || !pace_is_due(s, c))
		return false;
	dequeue(s, c);
	put_due(s, c);
	return true;
}

/*
 * The class to send now, or NULL.  One alone needs no order: it stays where it
 * is.
 */
struct pace_class *pace_paced_due(struct pace_sched *s)
{
	struct pace_class *c;

	if (s->cfg.order == PACE_ORDER_CLOCK || s->active_paced <= 1) {
		c = pace_paced_first(s);
		if (c || pace_queue_empty(&s->due))
			return c && pace_is_due(s, c) ? c : NULL;
	}
	while (promote(s))
		;
	while ((c = head(s, &s->due)) && !pace_is_due(s, c)) {
		dequeue(s, c);
		put_waiting(s, c);
	}
	return c;
}

/*
 * Time has passed, maybe more than keys may be apart: lag is bounded before
 * each class that joins those due, so that no key is put far from the others.
 */
void pace_paced_follow(struct pace_sched *s)
{
	pace_lag_bound(s);
	if (s->cfg.order != PACE_ORDER_CLOCK && s->active_paced > 1)
		while (promote(s))
			pace_lag_bound(s);
}

static void enqueue(struct pace_sched *s, struct pace_class *c)
{
	if (s->cfg.order != PACE_ORDER_CLOCK) {
		/*
		 * Time may have run far ahead of those that wait; what stays
		 * in the queue by clock must be close together.
		 */
		while (promote(s))
			;
		if (pace_is_due(s, c)) {
			put_due(s, c);
			return;
		}
	}
	put_waiting(s, c);
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

/* What an active class is ordered by (clock, rate, next clock) is another. */
void pace_paced_moved(struct pace_sched *s, struct pace_class *c)
{
	if (!c->due && (s->cfg.order == PACE_ORDER_CLOCK ||
			s->active_paced == 1) &&
	    pace_queue_min(&s->waiting) == c->id) {
		pace_queue_replace_min(&s->waiting,
				       pace_clock_key(pace_start(c), c));
		if (pace_queue_has_wheel(&s->waiting))
			fetch_coming(s, &s->waiting);
	} else {
		dequeue(s, c);
		enqueue(s, c);
	}
}

/* Sets cfg.order; all wait until they are found due in it. O(n log n). */
void pace_paced_reorder(struct pace_sched *s, enum pace_order order)
{
	u64 floor = pace_schedule_clock(s) - pace_lag_max(s);
	struct pace_class *c;

	if (s->cfg.order != PACE_ORDER_CLOCK)
		while (promote(s))
			;
	s->cfg.order = order;
	while ((c = head(s, &s->due))) {
		dequeue(s, c);
		/* May have been behind for long; starts in a queue are close. */
		if (!pace_clock_ahead(pace_start(c), floor) &&
		    pace_start(c) != floor)
			pace_clock_set(&c->clock, floor);
		pace_start_follow(c);
		put_waiting(s, c);
	}
}
