// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The whole core around a queue: a packet arrives (pace_activate()), the core
 * selects the next class (pace_next()) and accounts the gap before its frame
 * (pace_gap_sent()) and the frame (pace_sent()).  Gap frames are the clock
 * here, so time is virtual and the core runs as fast as it can.
 *
 * The core is part of this file, and its API static, as in the kernel module.
 */
#define PACE_API	static __attribute__((unused))
#include "pace.c"

#include "rival.h"

#define RATE_CHANGE_EVERY	8

struct path {
	struct pace_sched sched;
	struct pace_class *cls;
	void *storage;
	size_t storage_bytes;
	u32 len_bytes;		/* of each frame, as the core counts it */
};

static bool add_classes(struct world *w, struct path *p)
{
	u32 id;

	for (id = 0; id < w->classes; id++) {
		const struct pace_class_config cfg = {
			.type = PACE_TYPE_PACED,
			.rate_bps = w->flow[id].rate_bps,
		};

		if (pace_class_add(&p->sched, &p->cls[id], &cfg))
			return false;
	}
	return true;
}

static void path_close(struct world *w)
{
	struct path *p = w->queue;

	give_memory(p->cls, w->classes * sizeof(*p->cls));
	give_memory(p->storage, p->storage_bytes);
	give_memory(p, sizeof(*p));
	w->queue = NULL;
}

static bool path_open(struct world *w, enum pace_order order, u32 wheel_from)
{
	const struct pace_config cfg = {
		.line_rate_bps = LINE_BPS,
		.overhead_bytes = PACE_ETH_OVERHEAD,
		.min_frame_bytes = PACE_ETH_MIN_FRAME,
		.max_frame_bytes = 1500,
		.link_header_bytes = PACE_ETH_HEADER,
		.layer = PACE_LAYER_WIRE,
		.order = order,
		.mode = PACE_MODE_GAP,
	};
	/* A storage that is too small has no wheel to measure. */
	u32 capacity = !wheel_from && w->classes < PACE_WHEEL_FROM ?
		       PACE_WHEEL_FROM : w->classes;
	struct path *p = take_memory(&w->memory, sizeof(*p));

	if (!p)
		return false;
	w->queue = p;
	p->len_bytes = w->wire_bytes - PACE_ETH_OVERHEAD;
	p->storage_bytes = pace_storage_bytes(capacity);
	p->storage = take_memory(&w->memory, p->storage_bytes);
	p->cls = take_memory(&w->memory, w->classes * sizeof(*p->cls));
	if (p->storage && p->cls &&
	    !pace_init(&p->sched, &cfg, p->storage, capacity, 0)) {
		pace_set_wheel_from(&p->sched, wheel_from);
		pace_set_global(&p->sched, w->port.global);
		if (add_classes(w, p))
			return true;
	}
	path_close(w);
	return false;
}

static bool open_clock_heap(struct world *w)
{
	return path_open(w, PACE_ORDER_CLOCK, ~0u);
}

static bool open_clock_wheel(struct world *w)
{
	return path_open(w, PACE_ORDER_CLOCK, 0);
}

static bool open_next_heap(struct world *w)
{
	return path_open(w, PACE_ORDER_NEXT, ~0u);
}

static bool open_next_wheel(struct world *w)
{
	return path_open(w, PACE_ORDER_NEXT, 0);
}

static void path_insert(struct world *w, u32 id)
{
	struct path *p = w->queue;

	pace_activate(&p->sched, &p->cls[id], 0);
}

/* Returns the next class that may send; sends the gaps before it. */
static inline struct pace_class *next_frame(struct world *w, struct path *p)
{
	for (;;) {
		struct pace_decision d = pace_next(&p->sched, 0);

		if (d.verdict == PACE_SEND) {
			w->port.sum = checksum(w->port.sum, clock_key(p->sched.global_ps,
								  d.cls->id));
			return d.cls;
		}
		if (d.verdict != PACE_GAP)
			__builtin_trap();	/* some class always waits */
		w->port.idle_bytes += d.gap_bytes;
		pace_gap_sent(&p->sched, d.gap_bytes);
	}
}

/* Accounts the frame that the class sent; its next packet is there at once. */
static inline void sent(struct path *p, struct pace_class *c)
{
	pace_sent(&p->sched, c, p->len_bytes, true, 0);
	pace_activate(&p->sched, c, 0);
}

static void come_back(struct world *w, struct path *p)
{
	u32 at = random_below(&w->random, w->away_count);
	u32 id = w->away[at];

	w->away[at] = w->away[--w->away_count];
	pace_activate(&p->sched, &p->cls[id], 0);
}

static void run_coming(struct world *w, struct path *p, u64 decisions)
{
	while (w->away_count < w->classes / 2) {
		struct pace_class *c = next_frame(w, p);

		pace_sent(&p->sched, c, p->len_bytes, false, 0);
		w->away[w->away_count++] = c->id;
	}
	while (decisions--) {
		struct pace_class *c = next_frame(w, p);

		if (!w->away_count || random_next(&w->random) >> 63) {
			sent(p, c);
			continue;
		}
		pace_sent(&p->sched, c, p->len_bytes, false, 0);
		w->away[w->away_count++] = c->id;
		come_back(w, p);
	}
}

static void swap_rates(struct world *w, struct path *p)
{
	struct pace_class *a = &p->cls[random_below(&w->random, w->classes)];
	struct pace_class *b = &p->cls[random_below(&w->random, w->classes)];
	const struct pace_class_config of_a = {
		.type = PACE_TYPE_PACED,
		.rate_bps = a->rate_bps,
	};
	const struct pace_class_config of_b = {
		.type = PACE_TYPE_PACED,
		.rate_bps = b->rate_bps,
	};

	pace_class_change(&p->sched, a, &of_b, 0);
	pace_class_change(&p->sched, b, &of_a, 0);
}

static void path_run(struct world *w, enum traffic traffic, u64 decisions)
{
	struct path *p = w->queue;

	if (traffic == TRAFFIC_COMING) {
		run_coming(w, p, decisions);
	} else {
		while (decisions--) {
			sent(p, next_frame(w, p));
			if (traffic == TRAFFIC_RATES &&
			    !(decisions % RATE_CHANGE_EVERY))
				swap_rates(w, p);
		}
	}
	w->port.global = p->sched.global_ps;
}

const struct rival rival_core_clock_heap = {
	.name = "core_clock_heap",
	.title = "core, order clock, heap",
	.order = ORDER_CORE_CLOCK,
	.open = open_clock_heap,
	.close = path_close,
	.insert = path_insert,
	.run = path_run,
};

const struct rival rival_core_clock_wheel = {
	.name = "core_clock_wheel",
	.title = "core, order clock, wheel",
	.order = ORDER_CORE_CLOCK,
	.open = open_clock_wheel,
	.close = path_close,
	.insert = path_insert,
	.run = path_run,
};

const struct rival rival_core_next_heap = {
	.name = "core_next_heap",
	.title = "core, order next, heap",
	.order = ORDER_CORE_NEXT,
	.open = open_next_heap,
	.close = path_close,
	.insert = path_insert,
	.run = path_run,
};

const struct rival rival_core_next_wheel = {
	.name = "core_next_wheel",
	.title = "core, order next, wheel",
	.order = ORDER_CORE_NEXT,
	.open = open_next_wheel,
	.close = path_close,
	.insert = path_insert,
	.run = path_run,
};
