/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Queues as src/queue.h describes them, as plainly as can be: what a harness
 * about those who use queues is linked with instead of heaps.  That a heap is
 * such a queue is proved in heap_step.c.
 *
 * key[0] is the smallest key, as pace_queue_min() expects; key[1 + id] is that
 * of an id.  place[id] says whether it is there.  Each of the scheduler's
 * queues is named: a pointer that may be to either of two parts of one structure
 * costs the solver a hundredfold.
 */
#ifndef QUEUE_MODEL_H
#define QUEUE_MODEL_H

#include "queue.h"
#include "proof.h"

#define MODEL_KEYS	(1 + CLASSES)

static void model_find_min(struct pace_queue *q)
{
	bool found = false;
	u32 i;

	q->count = 0;
	for (i = 0; i < CLASSES; i++) {
		if (q->place[i] == PACE_ID_NONE)
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

	PROVE(id < CLASSES && q->place[id] == PACE_ID_NONE, "not in the queue");
	q->key[1 + id] = key;
	q->place[id] = 0;
	model_find_min(q);
}

static void model_remove(struct pace_queue *q, u32 id)
{
	PROVE(id < CLASSES && q->place[id] != PACE_ID_NONE, "in the queue");
	q->place[id] = PACE_ID_NONE;
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
		else if ((q) == &s.due)				\
			operation(&s.due, value);		\
		else if ((q) == &s.ceiled)			\
			operation(&s.ceiled, value);		\
		else						\
			operation(&s.spare, value);		\
	} while (0)

void pace_queue_insert(struct pace_queue *q, u64 key)
{
	MODEL_CALL(model_insert, q, key);
}

void pace_queue_remove(struct pace_queue *q, u32 id)
{
	MODEL_CALL(model_remove, q, id);
}

void pace_queue_replace_min(struct pace_queue *q, u64 key)
{
	MODEL_CALL(model_replace_min, q, key);
}

/* None has a wheel, so none knows who comes. */
#define pace_queue_has_wheel(q)	false

u32 pace_queue_coming(const struct pace_queue *q, u32 ahead)
{
	(void)q;
	(void)ahead;
	return PACE_ID_NONE;
}

#endif /* QUEUE_MODEL_H */
