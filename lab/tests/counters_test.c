// SPDX-License-Identifier: GPL-2.0-only
/* What the qdisc counts of the frames that it sends and drops. */
#include <string.h>

#include "../../kernel/counters.h"
#include "check.h"

static struct psp_class_counters class;
static struct psp_lateness lateness, *histogram = &lateness;
static struct psp_counters port;

static void start(void)
{
	memset(&class, 0, sizeof(class));
	memset(&lateness, 0, sizeof(lateness));
	memset(&port, 0, sizeof(port));
}

/* A burst of full frames leaves. */
static void leave(u32 frames, s64 late_bytes)
{
	struct pace_burst burst = {
		.len_bytes = frames * 1514,
		.frames = frames,
		.wire_bytes = frames * 1538,
	};

	psp_class_count_sent(&class, &histogram, &burst, late_bytes);
	psp_port_count_sent(&port, &burst);
}

static void test_sent(void)
{
	start();
	leave(1, 0);
	leave(1, 0);
	leave(43, 0);
	CHECK(class.sent_frames == 45, "%d", (int)class.sent_frames);
	CHECK(class.sent_wire_bytes == 45 * 1538, "%d", (int)class.sent_wire_bytes);
	CHECK(port.bursts_whole == 1, "%d", (int)port.bursts_whole);
}

/* A class that is not paced has no histogram. */
static void test_no_histogram(void)
{
	struct pace_burst burst = { .len_bytes = 60, .frames = 1, .wire_bytes = 84 };

	start();
	psp_class_count_sent(&class, NULL, &burst, 7);
	CHECK(class.sent_frames == 1, "%d", (int)class.sent_frames);
}

static u64 in_bucket(u32 bucket)
{
	return psp_lateness_frames(&class, &lateness, bucket);
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
		leave(3, cases[i].late_bytes);
		for (j = 0; j < TC_PSP_LATE_BUCKETS; j++)
			CHECK(in_bucket(j) == (j == cases[i].bucket ? 3 : 0),
			      "late %lld bytes, bucket %u: %d frames",
			      (long long)cases[i].late_bytes, j, (int)in_bucket(j));
	}
}

/* A byte of late_recent holds 255 frames; none is lost where it is full. */
static void test_full_byte(void)
{
	static const u32 bursts[] = { 1, 254, 1, 255, 256, 65535, 3 };
	u64 sum = 0;
	u32 i;

	start();
	for (i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++) {
		leave(bursts[i], 5);
		sum += bursts[i];
		CHECK(in_bucket(3) == sum, "burst %u: %d frames", i, (int)in_bucket(3));
	}
	CHECK(in_bucket(2) == 0 && in_bucket(4) == 0, "the buckets beside");
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
	test_full_byte();
	test_drops();
	return check_result("counters");
}
