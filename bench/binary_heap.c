// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A binary implicit heap of packed keys (J. W. J. Williams, "Algorithm 232",
 * 1964), with the place of each id beside it, without which nothing could be
 * taken out of its middle.
 */
#include "loops.h"

struct heap {
	u64 *key;
	u32 *place;
	u32 count;
	u32 capacity;
};

static inline bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static inline void put(struct heap *h, u32 place, u64 key)
{
	h->key[place] = key;
	h->place[key & (PACE_CLASSES_MAX - 1)] = place;
}

static inline void sift_up(struct heap *h, u32 place, u64 key)
{
	while (place) {
		u32 parent = (place - 1) / 2;

		if (!before(key, h->key[parent]))
			break;
		put(h, place, h->key[parent]);
		place = parent;
	}
	put(h, place, key);
}

/* Which child is smaller is as good as random: added, not branched on. */
static inline void sift_down(struct heap *h, u32 place, u64 key)
{
	for (;;) {
		u32 child = place * 2 + 1;

		if (child >= h->count)
			break;
		if (child + 1 < h->count)
			child += before(h->key[child + 1], h->key[child]);
		if (!before(h->key[child], key))
			break;
		put(h, place, h->key[child]);
		place = child;
	}
	put(h, place, key);
}

static inline u32 queue_min(struct world *w)
{
	struct heap *h = w->queue;

	return h->key[0] & (PACE_CLASSES_MAX - 1);
}

static inline void queue_replace_min(struct world *w, u32 id)
{
	sift_down(w->queue, 0, flow_key(w, id));
}

static inline void queue_insert(struct world *w, u32 id)
{
	struct heap *h = w->queue;

	sift_up(h, h->count++, flow_key(w, id));
}

static inline void queue_remove(struct world *w, u32 id)
{
	struct heap *h = w->queue;
	u32 place = h->place[id];
	u64 last = h->key[--h->count];

	if (place == h->count)
		return;
	if (place && before(last, h->key[(place - 1) / 2]))
		sift_up(h, place, last);
	else
		sift_down(h, place, last);
}

static void heap_close(struct world *w)
{
	struct heap *h = w->queue;

	give_memory(h->key, h->capacity * sizeof(*h->key));
	give_memory(h->place, h->capacity * sizeof(*h->place));
	give_memory(h, sizeof(*h));
	w->queue = NULL;
}

static bool heap_open(struct world *w)
{
	struct heap *h = take_memory(&w->memory, sizeof(*h));

	if (!h)
		return false;
	w->queue = h;
	h->capacity = w->classes;
	h->key = take_memory(&w->memory, h->capacity * sizeof(*h->key));
	h->place = take_memory(&w->memory, h->capacity * sizeof(*h->place));
	if (h->key && h->place)
		return true;
	heap_close(w);
	return false;
}

const struct rival rival_binary_heap = {
	.name = "binary_heap",
	.title = "binary heap",
	.order = ORDER_STRUCTURES,
	.open = heap_open,
	.close = heap_close,
	.insert = loops_insert,
	.run = loops_run,
	.run_stamped = loops_run_stamped,
};
