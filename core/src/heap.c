// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The queue of src/queue.h as a 4-ary implicit heap (D. B. Johnson, "Priority
 * queues with update and finding minimum spanning trees", 1975): half the
 * levels of a binary heap, and the four children of a place share a cache
 * line half of the time.
 */
#include "queue.h"

#define ARY	4u

size_t pace_queue_bytes(u32 capacity)
{
	size_t places = ((size_t)capacity * sizeof(u32) + 7) & ~(size_t)7;

	return (size_t)capacity * sizeof(u64) + places;
}

void pace_queue_resize(struct pace_queue *q, void *memory, u32 capacity)
{
	u64 *key = memory;
	u32 *place = (u32 *)(key + capacity);
	u32 kept = q->capacity < capacity ? q->capacity : capacity;

	if (kept) {
		pace_memmove(key, q->key, q->count * sizeof(*key));
		pace_memmove(place, q->place, kept * sizeof(*place));
	}
	pace_memset(place + kept, 0xff, (capacity - kept) * sizeof(*place));
	q->key = key;
	q->place = place;
	q->capacity = capacity;
}

/* Wrap-safe: the difference on the circle of 2^64, as a signed number. */
static inline bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

static inline void put(struct pace_queue *q, u32 place, u64 key)
{
	q->key[place] = key;
	q->place[key & PACE_KEY_ID_MASK] = place;
}

/* `key` belongs at `place` or nearer to the root. */
static void sift_up(struct pace_queue *q, u32 place, u64 key)
{
	while (place) {
		u32 parent = (place - 1) / ARY;

		if (!before(key, q->key[parent]))
			break;
		put(q, place, q->key[parent]);
		place = parent;
	}
	put(q, place, key);
}

/*
 * The place of the smallest of the children from `first` on.  Which child
 * wins is as good as random: a mask instead of a branch.
 */
static u32 smallest_child(const struct pace_queue *q, u32 first)
{
	u32 end = q->count - first < ARY ? q->count : first + ARY;
	u32 best = first;
	u32 i;

	for (i = first + 1; i < end; i++) {
		u32 take = -(u32)before(q->key[i], q->key[best]);

		best ^= (best ^ i) & take;
	}
	return best;
}

/* `key` belongs at `place` or farther from the root. */
static void sift_down(struct pace_queue *q, u32 place, u64 key)
{
	for (;;) {
		u32 child = place * ARY + 1;

		if (child >= q->count)
			break;
		child = smallest_child(q, child);
		if (!before(q->key[child], key))
			break;
		put(q, place, q->key[child]);
		place = child;
	}
	put(q, place, key);
}

void pace_queue_insert(struct pace_queue *q, u64 key)
{
	u32 id = key & PACE_KEY_ID_MASK;

	if (!PACE_ASSERT(id < q->capacity && q->place[id] == PACE_ID_NONE))
		return;
	sift_up(q, q->count++, key);
}

void pace_queue_remove(struct pace_queue *q, u32 id)
{
	u32 place;
	u64 last;

	if (!PACE_ASSERT(id < q->capacity && q->place[id] != PACE_ID_NONE))
		return;
	place = q->place[id];
	q->place[id] = PACE_ID_NONE;
	last = q->key[--q->count];
	if (place == q->count)
		return;
	/* The last key fills the hole, then moves to where it belongs. */
	if (place && before(last, q->key[(place - 1) / ARY]))
		sift_up(q, place, last);
	else
		sift_down(q, place, last);
}

void pace_queue_replace_min(struct pace_queue *q, u64 key)
{
	if (!PACE_ASSERT(q->count && pace_queue_min(q) ==
			 (key & PACE_KEY_ID_MASK)))
		return;
	sift_down(q, 0, key);
}
