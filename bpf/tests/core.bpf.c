// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls the core's API from a BPF program: what a qdisc of BPF would call.  A test
 * compiles it; no kernel loads it (docs/decisions/host.md, "Departure times without
 * a module").
 */
#include "../core.h"

struct pace_sched sched;
struct pace_class classes[16];
u64 storage[8192];

struct call {
	u64 now_ns;
	u64 rate_bps;
	u32 class;
	u32 len_bytes;
	u32 verdict;
	u32 more;
};

#define ENTRY(name)	__attribute__((section("syscall"), used)) int name(struct call *call)

ENTRY(begin)
{
	struct pace_config config = {
		.line_rate_bps = call->rate_bps,
		.overhead_bytes = PACE_ETH_OVERHEAD,
		.min_frame_bytes = PACE_ETH_MIN_FRAME,
		.max_frame_bytes = 1514,
		.mode = PACE_MODE_TIMER,
		.order = PACE_ORDER_NEXT,
	};

	return pace_init(&sched, &config, storage, 16, call->now_ns);
}

ENTRY(add)
{
	struct pace_class_config config = {
		.type = PACE_TYPE_PACED,
		.rate_bps = call->rate_bps,
	};

	return pace_class_add(&sched, &classes[call->class & 15], &config);
}

ENTRY(arrive)
{
	pace_activate(&sched, &classes[call->class & 15], call->now_ns);
	return 0;
}

ENTRY(ask)
{
	struct pace_decision d = pace_next(&sched, call->now_ns);

	call->verdict = d.verdict;
	if (d.verdict == PACE_SEND && d.cls)
		pace_sent(&sched, d.cls, call->len_bytes, call->more, call->now_ns);
	return 0;
}
