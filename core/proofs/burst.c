// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * @proves no class bursts by more than 2 MTU (and 84 bytes of rounding) where rates are within the line, through the whole API from pace_init() on
 * @bounds ORDER_NEXT, GAP, queues of queue_model.h; 3 classes of 1/2, 1/4, 1/4 of 1 Gbit/s, always backlogged; the first 24 answers; every pattern of 3 frames of 60 and 1514 bytes, repeated
 * @options --unwind 25
 * @each LENGTHS=0..7
 */
#include "proof.h"

#define STEPS	24
#define LINE	1000000000ull
#define LINE_BYTE_PS	8000
#define CLASSES	3

static struct pace_sched s;
static struct pace_class class0, class1, class2;
static u64 storage[64];

#include "above_queue.h"

/* A bottleneck at the class's own rate: what waits in it, by line / rate. */
struct bottleneck {
	s64 waits;
	u64 since;
};

static void add(struct pace_class *c, u64 rate_bps)
{
	const struct pace_class_config cfg = {
		.type = PACE_TYPE_PACED, .rate_bps = rate_bps,
	};

	PROVE(pace_class_add(&s, c, &cfg) == PACE_OK, "added");
	pace_activate(&s, c, 0);
}

/* A frame of that class goes: it waits, in units of 1 / share of a byte of the line. */
static void arrive(struct bottleneck *b, u32 wire_bytes, u32 share)
{
	b->waits -= (s64)(s.global_ps - b->since) / LINE_BYTE_PS;
	if (b->waits < 0)
		b->waits = 0;
	b->waits += (s64)wire_bytes * share;
	b->since = s.global_ps;
	PROVE(b->waits <= (s64)share * (2 * 1538) + 84 + share,
	      "2 MTU and the rounding");
}

void proof(void)
{
	const struct pace_config cfg = {
		.line_rate_bps = LINE, .overhead_bytes = PACE_ETH_OVERHEAD,
		.min_frame_bytes = PACE_ETH_MIN_FRAME, .max_frame_bytes = 1514,
		.link_header_bytes = PACE_ETH_HEADER, .layer = PACE_LAYER_WIRE,
		.order = PACE_ORDER_NEXT, .mode = PACE_MODE_GAP,
	};
	struct bottleneck b0 = { 0 }, b1 = { 0 }, b2 = { 0 };
	u32 step, frame = 0;

	PROVE(pace_storage_bytes(3) <= sizeof(storage), "room");
	PROVE(pace_init(&s, &cfg, storage, 3, 0) == PACE_OK, "configured");
	add(&class0, LINE / 2);
	add(&class1, LINE / 4);
	add(&class2, LINE / 4);
	for (step = 0; step < STEPS; step++) {
		struct pace_decision d = pace_next(&s, 0);
		u32 len = LENGTHS >> frame % 3 & 1 ? 60 : 1514;

		if (d.verdict == PACE_GAP) {
			pace_gap_sent(&s, d.gap_bytes);
			continue;
		}
		PROVE(d.verdict == PACE_SEND, "gap or send");
		frame++;
		if (d.cls == &class0) {
			arrive(&b0, len + 24, 2);
			pace_sent(&s, &class0, len, true, 0);
		} else if (d.cls == &class1) {
			arrive(&b1, len + 24, 4);
			pace_sent(&s, &class1, len, true, 0);
		} else {
			arrive(&b2, len + 24, 4);
			pace_sent(&s, &class2, len, true, 0);
		}
	}
	DONE();
}
