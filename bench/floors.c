// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lower bounds of the cost of any structure.  They decide nothing themselves,
 * so only their cost is compared, not their order.
 *
 * Touch: reads and writes the cache line of a random class.  Each access is
 * independent of the one before, so the processor may have many in flight.  A
 * scheduler that knew the order for free, but not in advance, would cost this.
 *
 * Replay: follows the true order, recorded before the run, and prefetches the
 * lines.  This cost remains when knowing the order costs nothing at all.
 */
#include "rival.h"

/* Classes prefetched ahead; more made nothing faster on the machines tried. */
#define REPLAY_AHEAD	24

static bool nothing_to_open(struct world *w)
{
	(void)w;
	return true;
}

static void nothing_to_close(struct world *w)
{
	(void)w;
}

static void nothing_to_insert(struct world *w, u32 id)
{
	(void)w;
	(void)id;
}

static void touch(struct world *w, enum traffic traffic, u64 decisions)
{
	u64 random = w->random, sum = w->port.sum;

	(void)traffic;
	while (decisions--) {
		u32 id = random_below(&random, w->classes);

		sum = checksum(sum, flow_key(w, id));
		flow_advance(&w->flow[id]);
	}
	w->random = random;
	w->port.sum = sum;
}

const struct rival rival_touch = {
	.name = "touch",
	.title = "floor: touch one random class",
	.steady_only = true,
	.open = nothing_to_open,
	.close = nothing_to_close,
	.insert = nothing_to_insert,
	.run = touch,
};

/* The recorded order, and the heap with a world of its own that produces it. */
struct replay {
	struct world source;
	u32 *id;
	u64 ids;
	u64 at;
};

static void replay_close(struct world *w)
{
	struct replay *r = w->queue;

	if (r->source.queue)
		rival_binary_heap.close(&r->source);
	world_close(&r->source);
	give_memory(r->id, r->ids * sizeof(*r->id));
	give_memory(r, sizeof(*r));
	w->queue = NULL;
}

static bool replay_open(struct world *w)
{
	struct memory uncounted = { 0 };
	struct replay *r = take_memory(&uncounted, sizeof(*r));

	if (!r)
		return false;
	w->queue = r;
	if (world_open(&r->source, w->load, w->memory.huge) &&
	    rival_binary_heap.open(&r->source))
		return true;
	replay_close(w);
	return false;
}

static void replay_insert(struct world *w, u32 id)
{
	struct replay *r = w->queue;

	rival_binary_heap.insert(&r->source, id);
}

/*
 * Returns the id last folded into a checksum, from its values before and after.
 */
static u32 id_decided(u64 before, u64 after)
{
	return (after ^ checksum(before, 0)) & (PACE_CLASSES_MAX - 1);
}

static bool replay_prepare(struct world *w, u64 decisions)
{
	struct replay *r = w->queue;
	struct memory uncounted = { 0 };
	u64 i, ids = decisions + REPLAY_AHEAD;

	if (ids > r->ids) {
		give_memory(r->id, r->ids * sizeof(*r->id));
		r->ids = 0;
		r->id = take_memory(&uncounted, ids * sizeof(*r->id));
		if (!r->id)
			return false;
		r->ids = ids;
	}
	for (i = 0; i < decisions; i++) {
		u64 before = r->source.port.sum;

		rival_binary_heap.run(&r->source, TRAFFIC_STEADY, 1);
		r->id[i] = id_decided(before, r->source.port.sum);
	}
	for (; i < ids; i++)
		r->id[i] = 0;
	r->at = 0;
	return true;
}

static void replay(struct world *w, enum traffic traffic, u64 decisions)
{
	struct replay *r = w->queue;
	const u32 *id = r->id + r->at;
	struct port port = w->port;

	(void)traffic;
	r->at += decisions;
	while (decisions--) {
		__builtin_prefetch(&w->flow[id[REPLAY_AHEAD]], 1);
		world_send(w, &port, *id++);
	}
	w->port = port;
}

const struct rival rival_replay = {
	.name = "replay",
	.title = "floor: replay a known order",
	.order = ORDER_STRUCTURES,
	.steady_only = true,
	.open = replay_open,
	.close = replay_close,
	.insert = replay_insert,
	.prepare = replay_prepare,
	.run = replay,
};
