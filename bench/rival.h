/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The interface of a structure under test.  It consists of whole loops, so that
 * no function is called through a pointer per packet.
 */
#ifndef BENCH_RIVAL_H
#define BENCH_RIVAL_H

#include "world.h"

/* The events between decisions. */
enum traffic {
	TRAFFIC_STEADY,		/* every class always has a packet */
	TRAFFIC_COMING,		/* classes become empty and active at random */
	TRAFFIC_RATES,		/* rates change while classes are queued */
};

/* Rivals of one of these must make the same decisions. */
enum order {
	ORDER_NONE,		/* no order, or one of its own */
	ORDER_STRUCTURES,	/* smallest clock first, ties by id */
	ORDER_CORE_CLOCK,	/* the whole core: its order `clock` */
	ORDER_CORE_NEXT,	/* and `next` */
};

struct rival {
	const char *name;	/* in JSON */
	const char *title;	/* for people */
	enum order order;
	bool steady_only;	/* runs only TRAFFIC_STEADY */
	u32 node_bytes;		/* bytes it uses of a class's own cache line */

	/* Allocates the empty structure.  Returns false if memory is short. */
	bool (*open)(struct world *w);
	void (*close)(struct world *w);
	void (*insert)(struct world *w, u32 id);
	/* Prepares a run, untimed.  NULL: nothing to prepare. */
	bool (*prepare)(struct world *w, u64 decisions);
	/* Makes that many decisions and applies their effects. */
	void (*run)(struct world *w, enum traffic traffic, u64 decisions);
	/*
	 * The same with TRAFFIC_STEADY and a timestamp after each decision:
	 * lowers ticks[i] to the ticks of the i-th decision if that was faster.
	 * NULL: single decisions cannot be timed.
	 */
	void (*run_timestamped)(struct world *w, u32 decisions, u32 *ticks);
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
