// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The keys of classes in the queues.  A key is live if its class says so: it is in
 * that queue, and its key there is this one.  A class that leaves from elsewhere
 * than the head leaves a stale key behind.
 *
 * Between calls the head of every queue is live.
 */
#include <pace/pace_sched.h>

static bool is_live(const struct pace_sched *s, const struct pace_queue *q,
		    u64 key)
{
	const struct pace_class *c = s->by_id[key & PACE_KEY_ID_MASK];
	enum pace_place place = place_in(s, q);

	return c && (c->place == place || c->ceil_place == place) &&
	       key == key_in(s, q, c);
}

/* Makes the head live again after the one before it has gone. */
static void drop_stale_head(const struct pace_sched *s, struct pace_queue *q)
{
	while (!pace_queue_empty(q) && !is_live(s, q, q->min)) {
		pace_queue_pop(q);
		q->stale--;
	}
}

/*
 * Drops all stale keys.  O(n), after a quarter as many classes or more have left
 * from the middle.
 */
static void drop_all_stale(const struct pace_sched *s, struct pace_queue *q)
{
	u32 n = pace_queue_gather(q), kept = 0, i;

	/* Of equal keys one is live. */
	for (i = 0; i < n; i++)
		if (is_live(s, q, q->heap[i])) {
			set_place(s, q, s->by_id[q->heap[i] & PACE_KEY_ID_MASK],
				  PACE_NOWHERE);
			q->heap[kept++] = q->heap[i];
		}
	q->stale = 0;
	for (i = 0; i < kept; i++) {
		u64 key = q->heap[i];

		set_place(s, q, s->by_id[key & PACE_KEY_ID_MASK],
			  place_in(s, q));
		pace_queue_insert(q, key);
	}
}

/* Adds a class to a queue; it is in none of that kind. */
static inline void pace_key_add(const struct pace_sched *s, struct pace_queue *q,
			 struct pace_class *c)
{
	if (pace_queue_full(q))
		drop_all_stale(s, q);
	set_place(s, q, c, place_in(s, q));
	pace_queue_insert(q, key_in(s, q, c));
}

/* Removes a class from the queue that it is in; its clocks may have changed. */
static __always_inline void pace_key_remove(const struct pace_sched *s,
					    struct pace_queue *q, struct pace_class *c)
{
	set_place(s, q, c, PACE_NOWHERE);
	if (pace_queue_min(q) != c->id) {
		q->stale++;
		return;
	}
	pace_queue_pop(q);
	if (q->stale)
		drop_stale_head(s, q);
}

/* Moves the first class of a queue to where its new clocks belong in it. */
static inline void pace_key_move_first(const struct pace_sched *s,
				struct pace_queue *q, struct pace_class *c)
{
	pace_queue_replace_min(q, key_in(s, q, c));
	if (q->stale)
		drop_stale_head(s, q);
}
