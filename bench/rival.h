/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A structure under test, as the measurement sees it: whole loops, so that
 * nothing is called through a pointer per packet.
 */
#ifndef BENCH_RIVAL_H
#define BENCH_RIVAL_H

#include "world.h"

/* What happens around the decisions. */
enum traffic {
	TRAFFIC_STEADY,		/* every class always has a packet */
	TRAFFIC_COMING,		/* classes run empty and come back at random */
	TRAFFIC_RATES,		/* rates change while classes are queued */
};

/* Rivals of one of these must make the same decisions. */
enum order {
	ORDER_NONE,		/* its own, or none */
	ORDER_STRUCTURES,	/* smallest clock first, ties by id */
	ORDER_CORE_CLOCK,	/* the whole core: its order `clock` */
	ORDER_CORE_NEXT,	/* and `next` */
};

struct rival {
	const char *name;	/* in JSON */
	const char *title;	/* for people */
	enum order order;
	bool steady_only;	/* runs TRAFFIC_STEADY alone */
	u32 node_bytes;		/* of the class's own line, used by it */

	/* Queues nothing yet; false if memory is short. */
	bool (*open)(struct world *w);
	void (*close)(struct world *w);
	void (*insert)(struct world *w, u32 id);
	/* Before a run, untimed.  NULL: nothing to do. */
	bool (*prepare)(struct world *w, u64 decisions);
	/* So many decisions, and what follows from them. */
	void (*run)(struct world *w, enum traffic traffic, u64 decisions);
	/*
	 * The same, steady, with a stamp after each: ticks[i] is lowered to
	 * what the i-th took.  NULL: not told apart.
	 */
	void (*run_stamped)(struct world *w, u32 decisions, u32 *ticks);
};

extern const struct rival rival_touch;
extern const struct rival rival_replay;
extern const struct rival rival_binary_heap;
extern const struct rival rival_quad_heap;
extern const struct rival rival_4ary_heap;
extern const struct rival rival_wheel;
extern const struct rival rival_red_black;
extern const struct rival rival_buckets;
extern const struct rival rival_core_clock_heap;
extern const struct rival rival_core_clock_wheel;
extern const struct rival rival_core_next_heap;
extern const struct rival rival_core_next_wheel;

#endif /* BENCH_RIVAL_H */
