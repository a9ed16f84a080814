// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A 4-ary implicit heap of packed keys (D. B. Johnson, "Priority queues with
 * update and finding minimum spanning trees", 1975): half the levels of a
 * binary heap, and the four children of an index share a cache line half of the
 * time.  Only its root is ever removed.
 *
 * A key has 44 bits of value above 20 bits of id, so that equal values are
 * ordered by id.  Values are on a circle of 2^44: of two keys the smaller is
 * the one from which the other is less than half the circle away.  All values
 * in a heap lie within 2^43 of each other; that is the caller's duty
 * (PACE_LEAD_MAX_PS and pace_lag_bound() ensure it).
 */
#include <pace/pace_sched.h>

#define PACE_KEY_ID_MASK	((1ull << PACE_ID_BITS) - 1)

static inline bool pace_key_before(u64 a, u64 b)
{
	/* Wrap-safe: the difference on the circle of 2^64, signed. */
	return (s64)(a - b) < 0;
}

#define HEAP_ARY	4u

/* Inserts a key that belongs at `index` or nearer to the root. */
static void sift_up(u64 *heap, u32 index, u64 key)
{
	while (index) {
		u32 parent = (index - 1) / HEAP_ARY;

		if (!pace_key_before(key, heap[parent]))
			break;
		heap[index] = heap[parent];
		index = parent;
	}
	heap[index] = key;
}

/* A key and its index, so that no key is loaded twice. */
struct heap_entry {
	u64 key;
	u32 index;
};

/* Returns the entry with the smaller key; a mask avoids a branch, but in BPF (bpf/core.h). */
static inline struct heap_entry smaller_entry(struct heap_entry a,
					      struct heap_entry b)
{
#ifdef PACE_BRANCHES
	return pace_key_before(b.key, a.key) ? b : a;
#else
	u64 apart = b.key - a.key;
	u64 take_b = (u64)((s64)apart >> 63);

	a.key += apart & take_b;
	a.index += (b.index - a.index) & (u32)take_b;
	return a;
#endif
}

static inline struct heap_entry smaller_of_two(const u64 *heap, u32 index)
{
	return smaller_entry((struct heap_entry){ heap[index], index },
			     (struct heap_entry){ heap[index + 1], index + 1 });
}

/*
 * Returns the smallest of the children from `first` on, in a heap of `count`
 * keys.  Any child is as likely as another, so no branch depends on which it is.
 */
static inline struct heap_entry smallest_child(const u64 *heap, u32 first,
					       u32 count)
{
	struct heap_entry best;
	u32 i;

	if (count - first >= HEAP_ARY)
		return smaller_entry(smaller_of_two(heap, first),
				     smaller_of_two(heap, first + 2));
	best = (struct heap_entry){ heap[first], first };
	for (i = first + 1; i < count; i++)
		best = smaller_entry(best, (struct heap_entry){ heap[i], i });
	return best;
}

#ifdef PACE_BRANCHES
static inline u64 *smaller_key(u64 *a, u64 *b)
{
	return pace_key_before(*b, *a) ? b : a;
}

/* The same as below, in fewer instructions. */
static void sift_down(u64 *heap, u32 count, u64 key)
{
	u64 first = 1, *hole = heap;

	while (first < count) {
		u64 *child = heap + first, *best = child;

		if (first + HEAP_ARY <= count) {
			best = smaller_key(best, child + 1);
			best = smaller_key(best, child + 2);
			best = smaller_key(best, child + 3);
		} else {
			while (++child < heap + count)
				best = smaller_key(best, child);
		}
		if (!pace_key_before(*best, key))
			break;
		*hole = *best;
		hole = best;
		first = (u64)(best - heap) * HEAP_ARY + 1;
	}
	*hole = key;
}
#else
/* Inserts a key that belongs at the root or farther away from it. */
static void sift_down(u64 *heap, u32 count, u64 key)
{
	u32 index = 0, first;

	while ((first = index * HEAP_ARY + 1) < count) {
		struct heap_entry child = smallest_child(heap, first, count);

		if (!pace_key_before(child.key, key))
			break;
		heap[index] = child.key;
		index = child.index;
	}
	heap[index] = key;
}
#endif

static void pace_heap_push(struct pace_queue *q, u64 key)
{
	sift_up(q->heap, q->heap_keys++, key);
}

/* Removes the root. */
static void pace_heap_pop(struct pace_queue *q)
{
	u64 last = q->heap[--q->heap_keys];

	if (q->heap_keys)
		sift_down(q->heap, q->heap_keys, last);
}

/* Removes the root and inserts a key. */
static void pace_heap_replace(struct pace_queue *q, u64 key)
{
	sift_down(q->heap, q->heap_keys, key);
}
