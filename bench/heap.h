/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An implicit heap of packed keys (J. W. J. Williams, "Algorithm 232", 1964),
 * with the index of each id beside it, which removal from its middle needs. The
 * including file defines its shape: HEAP_ARY, the number of children;
 * HEAP_ROOT, the index of the root; and smallest_child().
 */
#ifndef BENCH_HEAP_H
#define BENCH_HEAP_H

#include "loops.h"

struct heap {
	u64 *key;	/* aligned to a page */
	u32 *index;
	u32 end;	/* index after the last key */
};

/* A key and its index, so that no key is loaded twice. */
struct found {
	u64 key;
	u32 index;
};

static inline bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static inline struct found at(const struct heap *h, u32 index)
{
	return (struct found){ h->key[index], index };
}

/* Returns the smallest of the children from `first` on; at least one exists. */
static inline struct found smallest_child(const struct heap *h, u32 first);

static inline u32 children_of(u32 index)
{
	return (index - HEAP_ROOT) * HEAP_ARY + HEAP_ROOT + 1;
}

static inline u32 parent_of(u32 index)
{
	return (index - HEAP_ROOT - 1) / HEAP_ARY + HEAP_ROOT;
}

static inline void set_key(struct heap *h, u32 index, u64 key)
{
	h->key[index] = key;
	h->index[key & (PACE_CLASSES_MAX - 1)] = index;
}

static inline void sift_up(struct heap *h, u32 index, u64 key)
{
	while (index > HEAP_ROOT) {
		u32 parent = parent_of(index);

		if (!before(key, h->key[parent]))
			break;
		set_key(h, index, h->key[parent]);
		index = parent;
	}
	set_key(h, index, key);
}

static inline void sift_down(struct heap *h, u32 index, u64 key)
{
	for (;;) {
		u32 first = children_of(index);
		struct found child;

		if (first >= h->end)
			break;
		child = smallest_child(h, first);
		if (!before(child.key, key))
			break;
		set_key(h, index, child.key);
		index = child.index;
	}
	set_key(h, index, key);
}

static inline u32 queue_min(struct world *w)
{
	struct heap *h = w->queue;

	return h->key[HEAP_ROOT] & (PACE_CLASSES_MAX - 1);
}

static inline void queue_replace_min(struct world *w, u32 id)
{
	sift_down(w->queue, HEAP_ROOT, flow_key(w, id));
}

static inline void queue_insert(struct world *w, u32 id)
{
	struct heap *h = w->queue;

	sift_up(h, h->end++, flow_key(w, id));
}

static inline void queue_remove(struct world *w, u32 id)
{
	struct heap *h = w->queue;
	u32 index = h->index[id];
	u64 last = h->key[--h->end];

	if (index == h->end)
		return;
	if (index > HEAP_ROOT && before(last, h->key[parent_of(index)]))
		sift_up(h, index, last);
	else
		sift_down(h, index, last);
}

static size_t key_bytes(const struct world *w)
{
	return (w->classes + HEAP_ROOT) * sizeof(u64);
}

static void heap_close(struct world *w)
{
	struct heap *h = w->queue;

	give_memory(h->key, key_bytes(w));
	give_memory(h->index, w->classes * sizeof(*h->index));
	give_memory(h, sizeof(*h));
	w->queue = NULL;
}

static bool heap_open(struct world *w)
{
	struct heap *h = take_memory(&w->memory, sizeof(*h));

	if (!h)
		return false;
	w->queue = h;
	h->end = HEAP_ROOT;
	h->key = take_memory(&w->memory, key_bytes(w));
	h->index = take_memory(&w->memory, w->classes * sizeof(*h->index));
	if (h->key && h->index)
		return true;
	heap_close(w);
	return false;
}

#endif
