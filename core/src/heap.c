// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The queue of src/queue.h: a 4-ary implicit heap (D. B. Johnson, "Priority
 * queues with update and finding minimum spanning trees", 1975): half the
 * levels of a binary heap, and the four children of a place share a cache
 * line half of the time.  Once there are many keys, the wheel's part in it is
 * asked (src/wheel.h).
 */
#include "wheel.h"

#define ARY	4u

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

		if (!pace_key_before(key, q->key[parent]))
			break;
		put(q, place, q->key[parent]);
		place = parent;
	}
	put(q, place, key);
}

/* A key and where it is, so that none is loaded twice. */
struct found {
	u64 key;
	u32 place;
};

static inline struct found at(const u64 *key, u32 place)
{
	return (struct found){ .key = key[place], .place = place };
}

/* Whichever has the smaller key.  A mask, no branch. */
static inline struct found smaller(struct found a, struct found b)
{
	u64 take_b = -(u64)pace_key_before(b.key, a.key);

	a.key ^= (a.key ^ b.key) & take_b;
	a.place ^= (a.place ^ b.place) & (u32)take_b;
	return a;
}

/*
 * The smallest of the children from `first` on; there are `count` keys.  Which
 * child wins is as good as random, so nothing branches on it.
 */
static inline struct found smallest_child(const u64 *key, u32 first, u32 count)
{
	struct found best;
	u32 i;

	if (count - first >= ARY)
		return smaller(smaller(at(key, first), at(key, first + 1)),
			       smaller(at(key, first + 2), at(key, first + 3)));
	best = at(key, first);
	for (i = first + 1; i < count; i++)
		best = smaller(best, at(key, i));
	return best;
}

/* `key` belongs at `place` or farther from the root. */
static void sift_down(struct pace_queue *q, u32 place, u64 key)
{
	u64 *const keys = q->key;
	u32 *const place_of = q->place;
	const u32 count = q->count;
	u32 first;

	while ((first = place * ARY + 1) < count) {
		struct found child = smallest_child(keys, first, count);

		if (!pace_key_before(child.key, key))
			break;
		keys[place] = child.key;
		place_of[child.key & PACE_KEY_ID_MASK] = place;
		place = child.place;
	}
	keys[place] = key;
	place_of[key & PACE_KEY_ID_MASK] = place;
}

void pace_heap_insert(struct pace_queue *q, u64 key)
{
	sift_up(q, q->count++, key);
}

void pace_heap_remove(struct pace_queue *q, u32 place)
{
	u64 last = q->key[--q->count];

	q->place[q->key[place] & PACE_KEY_ID_MASK] = PACE_ID_NONE;
	if (place == q->count)
		return;
	/* The last key fills the hole, then moves to where it belongs. */
	if (place && pace_key_before(last, q->key[(place - 1) / ARY]))
		sift_up(q, place, last);
	else
		sift_down(q, place, last);
}

bool pace_heap_root_may_be(const struct pace_queue *q, u64 key)
{
	return q->count == 1 ||
	       pace_key_before(key, smallest_child(q->key, 1, q->count).key);
}

void pace_queue_insert(struct pace_queue *q, u64 key)
{
	u32 id = key & PACE_KEY_ID_MASK;

	if (!PACE_ASSERT(id < q->capacity && q->place[id] == PACE_ID_NONE))
		return;
	if (q->count >= q->heap_keys)
		pace_wheel_insert(q, key);
	else
		pace_heap_insert(q, key);
}

void pace_queue_remove(struct pace_queue *q, u32 id)
{
	if (!PACE_ASSERT(id < q->capacity && q->place[id] != PACE_ID_NONE))
		return;
	if (!q->heap_keys)
		pace_wheel_remove(q, id);
	else
		pace_heap_remove(q, q->place[id]);
}

void pace_queue_replace_min(struct pace_queue *q, u64 key)
{
	if (!PACE_ASSERT(q->count && pace_queue_min(q) ==
			 (key & PACE_KEY_ID_MASK)))
		return;
	if (!q->heap_keys)
		pace_wheel_replace_min(q, key);
	else
		sift_down(q, 0, key);
}
