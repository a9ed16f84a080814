// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "cases.h"

#define SEED	1

/*
 * All rivals, in the order in which a round runs them.  A rival that follows
 * one with a large memory finds cold caches; the prelude of each run warms
 * them.
 */
static const struct rival *const everyone[] = {
	&rival_touch,
	&rival_replay,
	&rival_binary_heap,
	&rival_quad_heap,
	&rival_4ary_heap,
	&rival_wheel,
	&rival_red_black,
	&rival_buckets,
	&rival_core_clock_heap,
	&rival_core_clock_wheel,
	&rival_core_next_heap,
	&rival_core_next_wheel,
	NULL,
};

/*
 * All rivals but touch; of the core, only the order that needs one queue.
 */
static const struct rival *const exact[] = {
	&rival_replay,
	&rival_binary_heap,
	&rival_quad_heap,
	&rival_4ary_heap,
	&rival_wheel,
	&rival_red_black,
	&rival_buckets,
	&rival_core_clock_heap,
	&rival_core_clock_wheel,
	NULL,
};

/* Without the core, whose hundreds of gap frames would dominate its time. */
static const struct rival *const structures[] = {
	&rival_binary_heap,
	&rival_quad_heap,
	&rival_4ary_heap,
	&rival_wheel,
	&rival_red_black,
	&rival_buckets,
	NULL,
};

const struct rival *const latency_rivals[] = {
	&rival_binary_heap,
	&rival_quad_heap,
	&rival_4ary_heap,
	&rival_wheel,
	&rival_red_black,
	NULL,
};

#define LOAD(spread_, bytes, share, ...)		\
	{						\
		.spread = (spread_),			\
		.wire_bytes = (bytes),			\
		.load = (share),			\
		.seed = SEED,				\
		__VA_ARGS__				\
	}
#define STANDARD_LOAD(...)	LOAD(100, FRAME_WIRE_BYTES, 0.9, __VA_ARGS__)

const struct contest cases[] = {
	{
		.name = "standard",
		.title = "1500-byte frames, rates over 100:1, 90 % load",
		.load = STANDARD_LOAD(),
		.rivals = everyone,
	},
	{
		.name = "coincide",
		.title = "all clocks coincide",
		.load = STANDARD_LOAD(.coincide = true),
		.rivals = exact,
	},
	{
		.name = "light",
		.title = "1 % load",
		.load = LOAD(100, FRAME_WIRE_BYTES, 0.01),
		.rivals = structures,
	},
	{
		.name = "spread",
		.title = "rates over 100,000:1",
		.load = LOAD(100000, FRAME_WIRE_BYTES, 0.9),
		.rivals = exact + 1,
	},
	{
		.name = "small",
		.title = "64-byte frames",
		.load = LOAD(100, SMALL_WIRE_BYTES, 0.9),
		.rivals = exact + 1,
	},
	{
		.name = "coming",
		.title = "classes come and go at random",
		.load = STANDARD_LOAD(),
		.traffic = TRAFFIC_COMING,
		.rivals = exact + 1,
	},
	{
		.name = "rates",
		.title = "one rate change in eight frames",
		.load = STANDARD_LOAD(),
		.traffic = TRAFFIC_RATES,
		.rivals = exact + 1,
	},
};

const u32 case_count = ARRAY_SIZE(cases);
