// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The core's queue (core/src/queue.c) as the core calls it, restricted to one
 * of its two structures: the 4-ary heap or the wheel.
 */
#include "pace.c"

#include "loops.h"

/* Classes ahead whose cache lines are prefetched, as the core does. */
#define COMING_AHEAD	16

struct core_queue {
	struct pace_queue queue;
	void *memory;
	void *pool;
	u64 *queued;		/* a bit for each class: it has a live key */
	u32 capacity;
};

/*
 * Returns the capacity to use: a queue that is too small has no wheel to
 * measure.
 */
static u32 capacity_of(const struct world *w, u32 wheel_from)
{
	return !wheel_from && w->classes < PACE_WHEEL_FROM ? PACE_WHEEL_FROM :
							     w->classes;
}

static inline u32 queue_min(struct world *w)
{
	return pace_queue_min(w->queue);
}

static inline size_t queued_bytes(u32 capacity)
{
	return (capacity / 64 + 1) * sizeof(u64);
}

static inline void set_queued(struct core_queue *q, u32 id, bool queued)
{
	q->queued[id / 64] &= ~(1ull << id % 64);
	q->queued[id / 64] |= (u64)queued << id % 64;
}

/* As core/src/stale.c does it: a key is live if its class says so. */
static bool is_live_key(const struct world *w, u64 key)
{
	const struct core_queue *q = w->queue;
	u32 id = key & PACE_KEY_ID_MASK;

	return q->queued[id / 64] >> id % 64 & 1 && key == flow_key(w, id);
}

static inline void drop_stale(struct world *w)
{
	struct pace_queue *q = w->queue;

	while (q->stale && q->count && !is_live_key(w, q->min)) {
		pace_queue_pop(q);
		q->stale--;
	}
}

static void drop_all(struct world *w)
{
	struct core_queue *c = w->queue;
	struct pace_queue *q = &c->queue;
	u32 n = pace_queue_gather(q), kept = 0, i;

	for (i = 0; i < n; i++)
		if (is_live_key(w, q->heap[i])) {
			set_queued(c, q->heap[i] & PACE_KEY_ID_MASK, false);
			q->heap[kept++] = q->heap[i];
		}
	q->stale = 0;
	for (i = 0; i < kept; i++) {
		u64 key = q->heap[i];

		set_queued(c, key & PACE_KEY_ID_MASK, true);
		pace_queue_insert(q, key);
	}
}

static inline void queue_replace_min(struct world *w, u32 id)
{
	u32 coming;

	pace_queue_replace_min(w->queue, flow_key(w, id));
	drop_stale(w);
	coming = pace_queue_coming(w->queue, COMING_AHEAD);
	if (coming != PACE_ID_NONE)
		__builtin_prefetch(&w->flow[coming], 1);
}

static inline void queue_insert(struct world *w, u32 id)
{
	if (pace_queue_full(w->queue))
		drop_all(w);
	set_queued(w->queue, id, true);
	pace_queue_insert(w->queue, flow_key(w, id));
}

static inline void queue_remove(struct world *w, u32 id)
{
	struct core_queue *q = w->queue;

	set_queued(q, id, false);
	if (pace_queue_min(&q->queue) != id) {
		q->queue.stale++;
		return;
	}
	pace_queue_pop(&q->queue);
	drop_stale(w);
}

static void queue_close(struct world *w)
{
	struct core_queue *q = w->queue;

	give_memory(q->memory, pace_queue_bytes(q->capacity));
	give_memory(q->pool, pace_pool_bytes(q->capacity));
	give_memory(q->queued, queued_bytes(q->capacity));
	give_memory(q, sizeof(*q));
	w->queue = NULL;
}

static bool queue_open(struct world *w, u32 wheel_from)
{
	u32 capacity = capacity_of(w, wheel_from);
	struct core_queue *q = take_memory(&w->memory, sizeof(*q));
	struct pace_pool *pool = NULL;

	if (!q)
		return false;
	w->queue = q;
	q->capacity = capacity;
	q->memory = take_memory(&w->memory, pace_queue_bytes(capacity));
	if (!wheel_from)
		q->pool = take_memory(&w->memory, pace_pool_bytes(capacity));
	q->queued = take_memory(&w->memory, queued_bytes(capacity));
	if (!q->memory || !q->queued || (!wheel_from && !q->pool)) {
		queue_close(w);
		return false;
	}
	if (q->pool)
		pool = pace_pool_init(q->pool, capacity);
	pace_queue_resize(&q->queue, pool, q->memory, capacity, NULL, 0);
	pace_queue_wheel_from(&q->queue, wheel_from);
	return true;
}

static bool open_heap(struct world *w)
{
	return queue_open(w, ~0u);
}

static bool open_wheel(struct world *w)
{
	return queue_open(w, 0);
}

const struct rival rival_4ary_heap = {
	.name = "4ary_heap",
	.title = "4-ary heap, the core's",
	.order = ORDER_STRUCTURES,
	.open = open_heap,
	.close = queue_close,
	.insert = loops_insert,
	.run = loops_run,
	.run_timestamped = loops_run_timestamped,
};

const struct rival rival_wheel = {
	.name = "wheel",
	.title = "wheel, the core's",
	.order = ORDER_STRUCTURES,
	.open = open_wheel,
	.close = queue_close,
	.insert = loops_insert,
	.run = loops_run,
	.run_timestamped = loops_run_timestamped,
};
