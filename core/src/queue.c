// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A priority queue of keys.  It is a heap; from `wheel_from` keys on it is a
 * wheel, if there is a pool, and the heap holds keys in front of it.
 *
 * Only the smallest key can be removed.  A class that is to leave from elsewhere
 * leaves its key behind, stale: whose keys these are the user knows, and drops one
 * when it has become the smallest, or all of them when the queue is full
 * (pace_queue_gather()).  So no table says where an id's key is.
 *
 * Bound: a queue of `capacity` ids holds at most capacity live keys, so it has
 * capacity / 4 stale ones or more when it is full.  Dropping them all costs O(1) for
 * each key that was left behind, amortised.
 *
 * A queue allocates nothing: its memory comes with pace_queue_resize(), and
 * pace_queue_bytes() returns the size of that.  Several queues may share a pool.
 */
#include <pace/pace_sched.h>

/* Returns how many keys a queue of `capacity` ids has room for. */
static u32 queue_limit(u32 capacity)
{
	return capacity + capacity / 4 + 16;
}

/* Returns the bytes of a queue of `capacity` ids, a multiple of 8. */
static size_t pace_queue_bytes(u32 capacity)
{
	return queue_limit(capacity) * sizeof(u64) +
	       (pool_chunks(capacity) ? sizeof(struct pace_wheel) : 0);
}

static inline bool pace_queue_empty(const struct pace_queue *q)
{
	return q->count == 0;
}

/* Returns the id of the smallest key; the queue is not empty.  O(1). */
static inline u32 pace_queue_min(const struct pace_queue *q)
{
	return q->min & PACE_KEY_ID_MASK;
}

/* Returns true if no key can be inserted before stale ones are dropped. */
static inline bool pace_queue_full(const struct pace_queue *q)
{
	return q->count == q->limit;
}

/* Returns true if the wheel is in use. */
static inline bool pace_queue_has_wheel(const struct pace_queue *q)
{
	return q->has_wheel;
}

/*
 * Returns a key that none is before but the smallest; there are two keys or more.  A
 * wheel may return one that it does not hold.  O(1).
 */
static inline u64 pace_queue_second(const struct pace_queue *q)
{
	return q->has_wheel ? pace_wheel_second(q) :
			      smallest_child(q->heap, 1, q->heap_keys).key;
}

/* Inserts a key into a queue that is not full.  O(log n). */
static void pace_queue_insert(struct pace_queue *q, u64 key)
{
	if (!PACE_ASSERT(q->count < q->limit))
		return;
	q->count++;
	if (q->wheel && q->count >= q->wheel_from)
		pace_wheel_open(q);
	if (q->has_wheel) {
		pace_wheel_insert(q, key);
	} else {
		pace_heap_push(q, key);
		q->min = q->heap[0];
	}
}

/* Removes the smallest key.  O(log n). */
static void pace_queue_pop(struct pace_queue *q)
{
	if (!PACE_ASSERT(q->count))
		return;
	q->count--;
	if (q->has_wheel) {
		if (q->count < q->wheel_from / 2)
			pace_wheel_close(q);
		pace_wheel_pop(q);
	} else {
		pace_heap_pop(q);
		q->min = q->heap[0];
	}
}

/* Replaces the smallest key by another.  O(log n). */
static void pace_queue_replace_min(struct pace_queue *q, u64 key)
{
	if (!PACE_ASSERT(q->count))
		return;
	if (q->has_wheel) {
		pace_wheel_replace_min(q, key);
	} else {
		pace_heap_replace(q, key);
		q->min = q->heap[0];
	}
}

/* Returns true if its keys fit a queue of `capacity` ids. */
static bool pace_queue_fits(const struct pace_queue *q, u32 capacity)
{
	return q->count <= queue_limit(capacity);
}

/*
 * Sets the number of keys from which the queue uses its wheel: 0 means always,
 * ~0 never; the initial value is PACE_WHEEL_FROM.  Tests and measurements may
 * call this at any time.
 */
static void pace_queue_wheel_from(struct pace_queue *q, u32 keys)
{
	q->wheel_from = keys;
	if (!q->wheel)
		return;
	if (q->count >= keys)
		pace_wheel_open(q);
	else
		pace_wheel_close(q);
}

/*
 * Removes all keys: their number is returned, and they are in q->heap, in no
 * order, until one is inserted; the i-th is there until i have been.
 */
static u32 pace_queue_gather(struct pace_queue *q)
{
	u32 keys = q->count;

	if (q->wheel)
		pace_wheel_gather(q);
	q->count = 0;
	q->heap_keys = 0;
	return keys;
}

/*
 * Gives an empty queue its memory, aligned as u64, and the keys in the array
 * `key`.  There are no more of them than fit.
 */
static void pace_queue_resize(struct pace_queue *q, struct pace_pool *pool,
			      void *memory, u32 capacity, const u64 *key,
			      u32 keys)
{
	u32 i;

	if (!q->limit)
		q->wheel_from = PACE_WHEEL_FROM;
	q->heap = memory;
	q->limit = queue_limit(capacity);
	q->pool = pool;
	q->wheel = pool ? pace_wheel_init(q->heap + q->limit) : NULL;
	q->has_wheel = false;
	pace_queue_wheel_from(q, q->wheel_from);
	for (i = 0; i < keys; i++)
		pace_queue_insert(q, key[i]);
}

/*
 * Returns the id that will be the smallest when the present smallest and
 * `ahead` more have been removed, if no key changes.  Returns PACE_ID_NONE
 * without a wheel, because only the wheel keeps its next keys sorted, or if
 * fewer are.
 */
static u32 pace_queue_coming(const struct pace_queue *q, u32 ahead)
{
	const struct pace_wheel *w = q->wheel;
	u32 at;

	if (!q->has_wheel || !run_keys(w))
		return PACE_ID_NONE;
	at = w->head + ahead + (w->run[w->head] == q->min);
	return at < w->tail ? w->run[at] & PACE_KEY_ID_MASK : PACE_ID_NONE;
}
