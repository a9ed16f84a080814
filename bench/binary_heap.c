// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A textbook binary heap. */
#define HEAP_ARY	2u
#define HEAP_ROOT	0u
#include "heap.h"

/*
 * Adds the comparison's result instead of branching: which child is smaller is
 * random.
 */
static inline struct found smallest_child(const struct heap *h, u32 first)
{
	if (first + 1 < h->end)
		first += before(h->key[first + 1], h->key[first]);
	return at(h, first);
}

const struct rival rival_binary_heap = {
	.name = "binary_heap",
	.title = "binary heap",
	.order = ORDER_STRUCTURES,
	.open = heap_open,
	.close = heap_close,
	.insert = loops_insert,
	.run = loops_run,
	.run_timestamped = loops_run_timestamped,
};
