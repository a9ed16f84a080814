// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A 4-ary implicit heap of packed keys (D. B. Johnson, "Priority queues with
 * update and finding minimum spanning trees", 1975): half the levels of a
 * binary heap, and the four children of an index share a cache line half of the
 * time.
 *
 * A key has 44 bits of value above 20 bits of id, so that equal values are
 * ordered by id.  Values are on a circle of 2^44: of two keys the smaller is
 * the one from which the other is less than half the circle away.  All values
 * in a heap lie within 2^43 of each other; that is the caller's duty
 * (PACE_LEAD_MAX and pace_lag_bound() ensure it).
 */
#include <pace/pace_sched.h>

#define PACE_KEY_ID_MASK	((1ull << PACE_ID_BITS) - 1)

static inline bool pace_key_before(u64 a, u64 b)
{
	/* Wrap-safe: the difference on the circle of 2^64, signed. */
	return (s64)(a - b) < 0;
}

static inline bool pace_queue_empty(const struct pace_queue *q)
{
	return q->count == 0;
}

/* Returns the id of the smallest key; the queue is not empty.  O(1). */
static inline u32 pace_queue_min(const struct pace_queue *q)
{
	return q->key[0] & PACE_KEY_ID_MASK;
}

#define HEAP_ARY	4u

static inline void heap_set(struct pace_queue *q, u32 index, u64 key)
{
	q->key[index] = key;
	q->index[key & PACE_KEY_ID_MASK] = index;
}

/* Inserts a key that belongs at `index` or nearer to the root. */
static void sift_up(struct pace_queue *q, u32 index, u64 key)
{
	while (index) {
		u32 parent = (index - 1) / HEAP_ARY;

		if (!pace_key_before(key, q->key[parent]))
			break;
		heap_set(q, index, q->key[parent]);
		index = parent;
	}
	heap_set(q, index, key);
}

/* A key and its index, so that no key is loaded twice. */
struct heap_entry {
	u64 key;
	u32 index;
};

static inline struct heap_entry entry_at(const u64 *key, u32 index)
{
	return (struct heap_entry){ .key = key[index], .index = index };
}

/* Returns the entry with the smaller key; a mask avoids a branch. */
static inline struct heap_entry smaller_entry(struct heap_entry a,
					      struct heap_entry b)
{
	u64 take_b = -(u64)pace_key_before(b.key, a.key);

	a.key ^= (a.key ^ b.key) & take_b;
	a.index ^= (a.index ^ b.index) & (u32)take_b;
	return a;
}

/*
 * Returns the smallest of the children from `first` on, in a heap of `count`
 * keys.  Any child is as likely as another, so no branch depends on which it is.
 */
static inline struct heap_entry smallest_child(const u64 *key, u32 first,
					       u32 count)
{
	struct heap_entry best;
	u32 i;

	if (count - first >= HEAP_ARY)
		return smaller_entry(smaller_entry(entry_at(key, first),
						   entry_at(key, first + 1)),
				     smaller_entry(entry_at(key, first + 2),
						   entry_at(key, first + 3)));
	best = entry_at(key, first);
	for (i = first + 1; i < count; i++)
		best = smaller_entry(best, entry_at(key, i));
	return best;
}

/* Inserts a key that belongs at `index` or farther from the root. */
static void sift_down(struct pace_queue *q, u32 index, u64 key)
{
	u64 *const keys = q->key;
	u32 *const index_of = q->index;
	const u32 count = q->count;
	u32 first;

	while ((first = index * HEAP_ARY + 1) < count) {
		struct heap_entry child = smallest_child(keys, first, count);

		if (!pace_key_before(child.key, key))
			break;
		keys[index] = child.key;
		index_of[child.key & PACE_KEY_ID_MASK] = index;
		index = child.index;
	}
	keys[index] = key;
	index_of[key & PACE_KEY_ID_MASK] = index;
}

static void pace_heap_insert(struct pace_queue *q, u64 key)
{
	sift_up(q, q->count++, key);
}

static void pace_heap_remove(struct pace_queue *q, u32 index)
{
	u64 last = q->key[--q->count];

	q->index[q->key[index] & PACE_KEY_ID_MASK] = PACE_ID_NONE;
	if (index == q->count)
		return;
	/* The last key fills the hole, then moves to where it belongs. */
	if (index && pace_key_before(last, q->key[(index - 1) / HEAP_ARY]))
		sift_up(q, index, last);
	else
		sift_down(q, index, last);
}

/* Returns true if `key` may replace the root without moving any other. */
static bool pace_heap_root_may_be(const struct pace_queue *q, u64 key)
{
	return q->count == 1 ||
	       pace_key_before(key, smallest_child(q->key, 1, q->count).key);
}

/* Gives the smallest id another key. */
static void pace_heap_replace_min(struct pace_queue *q, u64 key)
{
	sift_down(q, 0, key);
}
