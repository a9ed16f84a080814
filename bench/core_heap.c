// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The core's 4-ary heap (core/src/heap.c), as the core calls it. */
#include "queue.h"

#include "loops.h"

static inline u32 queue_min(struct world *w)
{
	return pace_queue_min(w->queue);
}

static inline void queue_replace_min(struct world *w, u32 id)
{
	pace_queue_replace_min(w->queue, flow_key(w, id));
}

static inline void queue_insert(struct world *w, u32 id)
{
	pace_queue_insert(w->queue, flow_key(w, id));
}

static inline void queue_remove(struct world *w, u32 id)
{
	pace_queue_remove(w->queue, id);
}

static bool heap_open(struct world *w)
{
	struct pace_queue *q = take_memory(&w->memory, sizeof(*q));
	void *memory = take_memory(&w->memory, pace_queue_bytes(w->classes));

	if (!q || !memory) {
		give_memory(q, sizeof(*q));
		give_memory(memory, pace_queue_bytes(w->classes));
		return false;
	}
	w->queue = q;
	pace_queue_resize(q, memory, w->classes);
	return true;
}

static void heap_close(struct world *w)
{
	struct pace_queue *q = w->queue;

	give_memory(q->key, pace_queue_bytes(w->classes));
	give_memory(q, sizeof(*q));
	w->queue = NULL;
}

const struct rival rival_4ary_heap = {
	.name = "4ary_heap",
	.title = "4-ary heap, the core's",
	.order = ORDER_STRUCTURES,
	.open = heap_open,
	.close = heap_close,
	.insert = loops_insert,
	.run = loops_run,
	.run_stamped = loops_run_stamped,
};
