/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A priority queue of ids.  A key has 44 bits of value above 20 bits of id,
 * so that equal values are ordered by id.  Values are on a circle of 2^44:
 * of two keys the smaller is the one from which the other is less than half
 * the circle away.  All values in a queue lie within 2^43 of each other;
 * that is the caller's duty (PACE_LEAD_MAX and the lag bound see to it).
 *
 * One id is in a queue at most once.  Nothing is allocated: the memory comes
 * with pace_queue_resize(), whose size pace_queue_bytes() tells, and with a
 * pool that several queues may share.
 *
 * Two structures: a heap (src/heap.c), and from `wheel_from` ids on, if there is
 * a pool, a wheel in front of which the heap goes on to be (src/wheel.h).
 */
#ifndef PACE_QUEUE_H
#define PACE_QUEUE_H

#include <pace/pace_sched.h>

#define PACE_KEY_ID_MASK	((1ull << PACE_ID_BITS) - 1)

/*
 * Queues of fewer ids have no wheel; from how many on it is faster was
 * measured: decisions/0018.
 */
#define PACE_WHEEL_FROM		2048u

/*
 * Bytes of a pool for queues of `capacity` ids, a multiple of 8; 0 if they are
 * too small for a wheel.
 */
size_t pace_pool_bytes(u32 capacity);

/*
 * Moves the pool, or NULL, with what is in it to new memory aligned as u64, for
 * no smaller a capacity; queues that share it are to be resized next.  NULL if
 * there is none for that capacity.  O(capacity).
 */
struct pace_pool *pace_pool_resize(const struct pace_pool *from, void *memory,
				   u32 capacity);

/* Bytes of memory for `capacity` ids, a multiple of 8. */
size_t pace_queue_bytes(u32 capacity);

/*
 * Moves the queue, with what is in it, to new memory aligned as u64.  Every
 * id in the queue is below the new capacity; a pool, once there, stays.
 * O(capacity).
 */
void pace_queue_resize(struct pace_queue *q, struct pace_pool *pool,
		       void *memory, u32 capacity);

/*
 * From how many ids on the wheel is used: PACE_WHEEL_FROM if nobody says
 * otherwise, 0 always, ~0 never.  To test and to measure; at any time.
 */
void pace_queue_wheel_from(struct pace_queue *q, u32 ids);

static inline bool pace_queue_empty(const struct pace_queue *q)
{
	return q->count == 0;
}

/* The id of the smallest key; the queue is not empty. O(1). */
static inline u32 pace_queue_min(const struct pace_queue *q)
{
	return q->key[0] & PACE_KEY_ID_MASK;
}

/* The id in `key` is not in the queue. O(log n). */
void pace_queue_insert(struct pace_queue *q, u64 key);

/* The id is in the queue. O(log n). */
void pace_queue_remove(struct pace_queue *q, u32 id);

/* Gives the smallest id another key; the id stays the same. O(log n). */
void pace_queue_replace_min(struct pace_queue *q, u64 key);

/* The wheel is in use. */
static inline bool pace_queue_has_wheel(const struct pace_queue *q)
{
	return !q->heap_keys;
}

/*
 * The id whose turn, as things are, is after `ahead` others and that of the
 * smallest, or PACE_ID_NONE if that is not known: only the wheel does.
 */
u32 pace_queue_coming(const struct pace_queue *q, u32 ahead);

#endif /* PACE_QUEUE_H */
