// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * @proves the queue, whatever is behind its interface: after any operations from empty the minimum is that of a plain list
 * @bounds 3 ids, 5 operations of insert, remove, replace_min and growing, any keys within half a circle
 * @options --unwind 7
 */
#include "queue.h"
#include "proof.h"

#define IDS	3
#define STEPS	5

static u64 memory[2][64];
static u64 listed[IDS];
static bool there[IDS];

static bool any_there(void)
{
	return there[0] || there[1] || there[2];
}

/* The id of the smallest key from `origin` on, by looking at all. */
static u32 smallest(u64 origin)
{
	u32 best = IDS, id;

	for (id = 0; id < IDS; id++)
		if (there[id] && (best == IDS || listed[id] - origin <
						 listed[best] - origin))
			best = id;
	return best;
}

void proof(void)
{
	const u64 origin = nondet_u64();
	struct pace_queue q = { 0 };
	u32 step, grown = 0;

	PROVE(pace_queue_bytes(IDS + 1) <= sizeof(memory[0]), "room");
	pace_queue_resize(&q, memory[0], IDS);
	for (step = 0; step < STEPS; step++) {
		u32 id = any_below(IDS);
		u64 key = nondet_u64() << PACE_ID_BITS | id;

		GIVEN(key - origin < 1ull << 63);
		if (!there[id]) {
			pace_queue_insert(&q, key);
			there[id] = true;
			listed[id] = key;
		} else if (nondet_bool()) {
			pace_queue_remove(&q, id);
			there[id] = false;
		} else if (!grown && nondet_bool()) {
			pace_queue_resize(&q, memory[1], IDS + 1);
			grown = 1;
		} else if (smallest(origin) == id) {
			pace_queue_replace_min(&q, key);
			listed[id] = key;
		}
		PROVE(pace_queue_empty(&q) == !any_there(), "empty");
		if (any_there())
			PROVE(pace_queue_min(&q) == smallest(origin), "minimum");
	}
	DONE();
}
