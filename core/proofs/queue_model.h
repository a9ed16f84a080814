/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Queues as queue.c describes them, as plainly as can be: what a harness
 * about those who use queues is linked with instead of heaps.  That a heap is
 * such a queue is proved in heap_step.c.
 *
 * key[0] is the smallest key, as pace_queue_min() expects; key[1 + id] is that
 * of an id.  index[id] says whether it is there.  Each of the scheduler's
 * queues is named: a pointer that may be to either of two parts of one structure
 * costs the solver a hundredfold.
 */
#ifndef QUEUE_MODEL_H
#define QUEUE_MODEL_H

#include "proof.h"

#define MODEL_KEYS	(1 + CLASSES)

static void model_find_min(struct pace_queue *q)
{
	bool found = false;
	u32 i;

	q->count = 0;
	for (i = 0; i < CLASSES; i++) {
		if (q->index[i] == PACE_ID_NONE)
			continue;
		q->count++;
		if (!found || (s64)(q->key[1 + i] - q->key[0]) < 0)
			q->key[0] = q->key[1 + i];
		found = true;
	}
}

static void model_insert(struct pace_queue *q, u64 key)
{
	u32 id = key & PACE_KEY_ID_MASK;

	PROVE(id < CLASSES && q->index[id] == PACE_ID_NONE, "not in the queue");
	q->key[1 + id] = key;
	q->index[id] = 0;
	model_find_min(q);
}

static void model_remove(struct pace_queue *q, u32 id)
{
	PROVE(id < CLASSES && q->index[id] != PACE_ID_NONE, "in the queue");
	q->index[id] = PACE_ID_NONE;
	model_find_min(q);
}

static void model_replace_min(struct pace_queue *q, u64 key)
{
	u32 id = key & PACE_KEY_ID_MASK;

	PROVE(q->count && pace_queue_min(q) == id, "the smallest");
	q->key[1 + id] = key;
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

static void pace_queue_insert(struct pace_queue *q, u64 key)
{
	MODEL_CALL(model_insert, q, key);
}

static void pace_queue_remove(struct pace_queue *q, u32 id)
{
	MODEL_CALL(model_remove, q, id);
}

static void pace_queue_replace_min(struct pace_queue *q, u64 key)
{
	MODEL_CALL(model_replace_min, q, key);
}

/* None has a wheel, so none knows who comes. */
#define pace_queue_has_wheel(q)	false

static u32 pace_queue_coming(const struct pace_queue *q, u32 ahead)
{
	(void)q;
	(void)ahead;
	return PACE_ID_NONE;
}

/* The memory of those queues. */
static size_t pace_pool_bytes(u32 capacity)
{
	return 0 * capacity;
}

static struct pace_pool *pace_pool_resize(const struct pace_pool *from, void *memory,
				   u32 capacity)
{
	(void)from;
	(void)memory;
	(void)capacity;
	return NULL;
}

static size_t pace_queue_bytes(u32 capacity)
{
	return 8 * (1 + 2 * (size_t)capacity);
}

static void pace_queue_resize(struct pace_queue *q, struct pace_pool *pool,
		       void *memory, u32 capacity)
{
	static u64 keys[4][MODEL_KEYS];
	static u32 indices[4][CLASSES];
	static u32 queues;
	u32 i;

	(void)pool;
	(void)memory;
	q->key = keys[queues];
	q->index = indices[queues];
	q->capacity = capacity;
	q->heap_keys = PACE_ID_NONE;
	for (i = 0; i < CLASSES; i++)
		q->index[i] = PACE_ID_NONE;
	queues++;
}

static void pace_queue_wheel_from(struct pace_queue *q, u32 ids)
{
	(void)q;
	(void)ids;
}

#endif /* QUEUE_MODEL_H */
