// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A 4-ary heap that is as fast as possible, so that a structure that beats the
 * heaps here beats a good heap: four children fill half a cache line and never
 * straddle two, and the smallest of them is found without a branch.
 */
#define HEAP_ARY	4u
/* The root at 3 puts the children of any index at a multiple of 4. */
#define HEAP_ROOT	3u
#include "heap.h"

static inline struct found smaller(struct found a, struct found b)
{
	u64 take = -(u64)before(b.key, a.key);

	a.key ^= (a.key ^ b.key) & take;
	a.index ^= (a.index ^ b.index) & (u32)take;
	return a;
}

static inline struct found smallest_child(const struct heap *h, u32 first)
{
	struct found best;
	u32 index;

	if (first + HEAP_ARY <= h->end)
		return smaller(smaller(at(h, first), at(h, first + 1)),
			       smaller(at(h, first + 2), at(h, first + 3)));
	best = at(h, first);
	for (index = first + 1; index < h->end; index++)
		best = smaller(best, at(h, index));
	return best;
}

const struct rival rival_quad_heap = {
	.name = "quad_heap",
	.title = "4-ary heap, aligned, branch-free",
	.order = ORDER_STRUCTURES,
	.open = heap_open,
	.close = heap_close,
	.insert = loops_insert,
	.run = loops_run,
	.run_timestamped = loops_run_timestamped,
};
