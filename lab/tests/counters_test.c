// SPDX-License-Identifier: GPL-2.0-only
/* What the qdisc counts of the frames that it sends and drops. */
#include <string.h>

#include "../../kernel/counters.h"
#include "check.h"

#define SECOND_NS	1000000000ull

static struct psp_class_counters class;
static struct psp_lateness lateness;
static struct psp_counters port;

static void start(void)
{
	memset(&class, 0, sizeof(class));
	memset(&lateness, 0, sizeof(lateness));
	memset(&port, 0, sizeof(port));
}

/* A burst of full frames leaves; the layer counts 1500 bytes of a frame. */
static void leave(u32 frames, s64 late_bytes, u64 now_ns)
{
	struct pace_burst burst = {
		.len_bytes = frames * 1514,
		.frames = frames,
		.wire_bytes = frames * 1538,
	};
	struct psp_departure d = {
		.burst = &burst,
		.counted_bytes = frames * 1500,
		.late_bytes = late_bytes,
		.now_ns = now_ns,
	};

	psp_class_count_sent(&class, &lateness, &d);
	psp_port_count_sent(&port, &d);
}

static void test_sent(void)
{
	start();
	leave(1, 0, 1);
	leave(1, 0, 2);
	leave(43, 0, 3);
	CHECK(class.sent_frames == 45, "%d", (int)class.sent_frames);
	CHECK(class.sent_wire_bytes == 45 * 1538, "%d", (int)class.sent_wire_bytes);
	CHECK(port.bursts_whole == 1, "%d", (int)port.bursts_whole);
}

/* A class that is not paced has no histogram. */
static void test_no_histogram(void)
{
	struct pace_burst burst = { .len_bytes = 60, .frames = 1, .wire_bytes = 84 };
	struct psp_departure d = { .burst = &burst, .late_bytes = 7, .now_ns = 1 };

	start();
	psp_class_count_sent(&class, NULL, &d);
	CHECK(class.sent_frames == 1, "%d", (int)class.sent_frames);
}

static void test_lateness(void)
{
	/* The bounds of each bucket, as sch_psp.h has them. */
	static const struct { s64 late_bytes; u32 bucket; } cases[] = {
		{ INT64_MIN, 0 }, { -1, 0 }, { 0, 0 }, { 1, 1 }, { 2, 2 }, { 3, 2 },
		{ 4, 3 }, { (1 << 21) - 1, 21 }, { 1 << 21, 22 },
		{ (1 << 22) - 1, 22 }, { 1 << 22, 23 }, { INT64_MAX, 23 },
	};
	u32 i, j;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		start();
		leave(3, cases[i].late_bytes, 1);
		for (j = 0; j < TC_PSP_LATE_BUCKETS; j++)
			CHECK(lateness.frames[j] == (j == cases[i].bucket ? 3 : 0),
			      "late %lld bytes, bucket %u: %d frames",
			      (long long)cases[i].late_bytes, j,
			      (int)lateness.frames[j]);
	}
}

/* A frame each millisecond is 12 Mbit/s. */
static void test_achieved(void)
{
	u64 start_ns = 5 * SECOND_NS, i;

	start();
	for (i = 0; i < 1000; i++)
		leave(1, 0, start_ns + i * 1000000);
	CHECK(!class.achieved_bps, "no whole second yet");
	/* The frame that ends a second belongs to the next one. */
	leave(1, 0, start_ns + SECOND_NS);
	CHECK(class.achieved_bps == 12000000, "%d", (int)class.achieved_bps);

	/* Half the rate in the next second. */
	for (i = 1; i < 500; i++)
		leave(1, 0, start_ns + SECOND_NS + i * 2000000);
	leave(1, 0, start_ns + 2 * SECOND_NS);
	CHECK(class.achieved_bps == 6000000, "%d", (int)class.achieved_bps);
}

/* A class that falls silent keeps the rate of its last whole second. */
static void test_silence(void)
{
	u64 i;

	start();
	for (i = 0; i <= 1000; i++)
		leave(1, 0, SECOND_NS + i * 1000000);
	leave(1, 0, 2 * SECOND_NS + 1000000);
	leave(43, 0, 10 * SECOND_NS);
	CHECK(class.achieved_bps == 12000000, "%d", (int)class.achieved_bps);
	/* One burst, then nothing: two days count as one, 43 x 12000 bits / 86400 s. */
	leave(1, 0, 10 * SECOND_NS + 2 * 86400 * SECOND_NS);
	CHECK(class.achieved_bps == 5, "%d", (int)class.achieved_bps);
}

/* Each cause of a drop counts once. */
static void test_drops(void)
{
	u64 *causes[] = {
		&class.drops.drop_child, &class.drops.drop_segment, &class.drops.drop_long,
		&class.drops.drop_late, &class.drops.drop_flow, &class.drops.drop_limit,
		&class.drops.drop_horizon, &class.drops.drop_evicted,
		&class.drops.drop_txtime_invalid, &class.drops.drop_txtime_missed,
	};
	u64 sum = 0;
	u32 i;

	start();
	for (i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		*causes[i] = 1ull << i;
		sum += 1ull << i;
		CHECK(psp_class_drops(&class) == sum, "cause %u", i);
	}
}

int main(void)
{
	test_sent();
	test_no_histogram();
	test_lateness();
	test_achieved();
	test_silence();
	test_drops();
	return check_result("counters");
}
