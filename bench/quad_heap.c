// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A 4-ary heap as fast as we can make one, so that whoever beats the heaps
 * here beats a good one: four children fill half a cache line and never
 * straddle two, and the smallest of them is found without a branch.
 */
#include "loops.h"

#define ARY	4u
/* The root at 3 puts the children of any place at a multiple of 4. */
#define ROOT	3u

struct heap {
	u64 *key;	/* aligned as a page */
	u32 *place;
	u32 end;	/* place after the last */
};

static inline bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static inline u32 children_of(u32 place)
{
	return (place - ROOT) * ARY + ROOT + 1;
}

static inline u32 parent_of(u32 place)
{
	return (place - ROOT - 1) / ARY + ROOT;
}

static inline void put(struct heap *h, u32 place, u64 key)
{
	h->key[place] = key;
	h->place[key & (PACE_CLASSES_MAX - 1)] = place;
}

/* A key and its place, so that no key is loaded twice. */
struct found {
	u64 key;
	u32 place;
};

static inline struct found smaller(struct found a, struct found b)
{
	u64 take = -(u64)before(b.key, a.key);

	a.key ^= (a.key ^ b.key) & take;
	a.place ^= (a.place ^ b.place) & (u32)take;
	return a;
}

static inline struct found at(const struct heap *h, u32 place)
{
	return (struct found){ h->key[place], place };
}

static inline struct found smallest_child(const struct heap *h, u32 first)
{
	struct found best;
	u32 place;

	if (first + ARY <= h->end)
		return smaller(smaller(at(h, first), at(h, first + 1)),
			       smaller(at(h, first + 2), at(h, first + 3)));
	best = at(h, first);
	for (place = first + 1; place < h->end; place++)
		best = smaller(best, at(h, place));
	return best;
}

static inline void sift_up(struct heap *h, u32 place, u64 key)
{
	while (place > ROOT) {
		u32 parent = parent_of(place);

		if (!before(key, h->key[parent]))
			break;
		put(h, place, h->key[parent]);
		place = parent;
	}
	put(h, place, key);
}

static inline void sift_down(struct heap *h, u32 place, u64 key)
{
	for (;;) {
		u32 first = children_of(place);
		struct found child;

		if (first >= h->end)
			break;
		child = smallest_child(h, first);
		if (!before(child.key, key))
			break;
		put(h, place, child.key);
		place = child.place;
	}
	put(h, place, key);
}

static inline u32 queue_min(struct world *w)
{
	struct heap *h = w->queue;

	return h->key[ROOT] & (PACE_CLASSES_MAX - 1);
}

static inline void queue_replace_min(struct world *w, u32 id)
{
	sift_down(w->queue, ROOT, flow_key(w, id));
}

static inline void queue_insert(struct world *w, u32 id)
{
	struct heap *h = w->queue;

	sift_up(h, h->end++, flow_key(w, id));
}

static inline void queue_remove(struct world *w, u32 id)
{
	struct heap *h = w->queue;
	u32 place = h->place[id];
	u64 last = h->key[--h->end];

	if (place == h->end)
		return;
	if (place > ROOT && before(last, h->key[parent_of(place)]))
		sift_up(h, place, last);
	else
		sift_down(h, place, last);
}

static size_t key_bytes(const struct world *w)
{
	return (w->classes + ROOT) * sizeof(u64);
}

static void heap_close(struct world *w)
{
	struct heap *h = w->queue;

	give_memory(h->key, key_bytes(w));
	give_memory(h->place, w->classes * sizeof(*h->place));
	give_memory(h, sizeof(*h));
	w->queue = NULL;
}

static bool heap_open(struct world *w)
{
	struct heap *h = take_memory(&w->memory, sizeof(*h));

	if (!h)
		return false;
	w->queue = h;
	h->end = ROOT;
	h->key = take_memory(&w->memory, key_bytes(w));
	h->place = take_memory(&w->memory, w->classes * sizeof(*h->place));
	if (h->key && h->place)
		return true;
	heap_close(w);
	return false;
}

const struct rival rival_quad_heap = {
	.name = "quad_heap",
	.title = "4-ary heap, aligned, branch-free",
	.order = ORDER_STRUCTURES,
	.open = heap_open,
	.close = heap_close,
	.insert = loops_insert,
	.run = loops_run,
	.run_stamped = loops_run_stamped,
};
