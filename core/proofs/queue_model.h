/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Queues as queue.c describes them, as plainly as can be: what a harness
 * about those who use queues is linked with instead of heaps and stale keys.
 * That a heap is such a queue is proved in heap_step.c.
 *
 * heap[id] is the key of an id; bit `id` of `limit` says whether it is there.
 * Each of the scheduler's queues is named: a pointer that may be to either of two
 * parts of one structure costs the solver a hundredfold.
 */
#ifndef QUEUE_MODEL_H
#define QUEUE_MODEL_H

#include "proof.h"

#define MODEL_KEYS	CLASSES

static inline bool pace_queue_empty(const struct pace_queue *q)
{
	return q->count == 0;
}

static inline u32 pace_queue_min(const struct pace_queue *q)
{
	return q->min & PACE_KEY_ID_MASK;
}

/* None has a wheel, so none knows who comes. */
#define pace_queue_has_wheel(q)	false

static u32 pace_queue_coming(const struct pace_queue *q, u32 ahead)
{
	(void)q;
	(void)ahead;
	return PACE_ID_NONE;
}

/* Keys of two classes differ. */
static u64 pace_queue_second(const struct pace_queue *q)
{
	u64 second = q->min;
	u32 i;

	for (i = 0; i < CLASSES; i++)
		if (q->limit >> i & 1 && q->heap[i] != q->min &&
		    (second == q->min || (s64)(q->heap[i] - second) < 0))
			second = q->heap[i];
	return second;
}

static void model_find_min(struct pace_queue *q)
{
	bool found = false;
	u32 i;

	q->count = 0;
	for (i = 0; i < CLASSES; i++) {
		if (!(q->limit >> i & 1))
			continue;
		q->count++;
		if (!found || (s64)(q->heap[i] - q->min) < 0)
			q->min = q->heap[i];
		found = true;
	}
}

static void model_add(struct pace_queue *q, u64 key)
{
	u32 id = key & PACE_KEY_ID_MASK;

	PROVE(id < CLASSES && !(q->limit >> id & 1), "not in the queue");
	q->heap[id] = key;
	q->limit |= 1u << id;
	model_find_min(q);
}

static void model_remove(struct pace_queue *q, u64 id)
{
	PROVE(id < CLASSES && q->limit >> id & 1, "in the queue");
	q->limit &= ~(1u << id);
	model_find_min(q);
}

static void model_move_first(struct pace_queue *q, u64 key)
{
	u32 id = key & PACE_KEY_ID_MASK;

	PROVE(q->count && pace_queue_min(q) == id, "the smallest");
	q->heap[id] = key;
	model_find_min(q);
}

#define MODEL_CALL(operation, q, value)				\
	do {							\
		if ((q) == &s.waiting)				\
			operation(&s.waiting, value);		\
		else if ((q) == &s.eligible)				\
			operation(&s.eligible, value);		\
		else if ((q) == &s.at_ceil)			\
			operation(&s.at_ceil, value);		\
		else						\
			operation(&s.borrowing, value);		\
	} while (0)

static void pace_queue_replace_min(struct pace_queue *q, u64 key)
{
	MODEL_CALL(model_move_first, q, key);
}

/* The memory of those queues. */
static size_t pace_pool_bytes(u32 capacity)
{
	return 0 * capacity;
}

static struct pace_pool *pace_pool_init(void *memory, u32 capacity)
{
	(void)memory;
	(void)capacity;
	return NULL;
}

static size_t pace_queue_bytes(u32 capacity)
{
	return 8 * (size_t)capacity;
}

static bool pace_queue_fits(const struct pace_queue *q, u32 capacity)
{
	(void)q;
	(void)capacity;
	return true;
}

static u32 pace_queue_gather(struct pace_queue *q)
{
	return 0 * q->count;
}

static void pace_queue_resize(struct pace_queue *q, struct pace_pool *pool,
			      void *memory, u32 capacity, const u64 *key, u32 keys)
{
	static u64 model_keys[4][MODEL_KEYS];
	static u32 queues;

	(void)pool;
	(void)memory;
	(void)capacity;
	(void)key;
	(void)keys;
	q->heap = model_keys[queues];
	queues++;
}

static void pace_queue_wheel_from(struct pace_queue *q, u32 keys)
{
	(void)q;
	(void)keys;
}

#endif /* QUEUE_MODEL_H */
