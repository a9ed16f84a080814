// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <stdlib.h>
#include <time.h>

#include "timestamp.h"

#define COST_SAMPLES	4096
#define CALIBRATION_NS	50000000u

static u64 read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

u64 thread_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

static u64 apart[COST_SAMPLES];

static void sample(void)
{
	u64 last = timestamp();
	int i;

	for (i = 0; i < COST_SAMPLES; i++) {
		u64 now = timestamp();

		apart[i] = now - last;
		last = now;
	}
	qsort(apart, COST_SAMPLES, sizeof(apart[0]), by_value);
}

/*
 * Returns the mean of the middle half, which is finer than the counter's steps.
 */
u32 timestamp_cost(void)
{
	u64 all = 0;
	int i;

	sample();
	for (i = COST_SAMPLES / 4; i < COST_SAMPLES * 3 / 4; i++)
		all += apart[i];
	return (u32)(all / (COST_SAMPLES / 2));
}

u32 timestamp_step(void)
{
	u64 step = 0;
	int i;

	sample();
	for (i = 1; i < COST_SAMPLES; i++) {
		u64 more = apart[i] - apart[i - 1];

		if (more && (!step || more < step))
			step = more;
	}
	return (u32)step;
}

double timestamp_ns(void)
{
	static double ns;
	u64 from_ns, from;

	if (ns > 0)
		return ns;
	from_ns = read_clock(CLOCK_MONOTONIC);
	from = timestamp();
	while (read_clock(CLOCK_MONOTONIC) - from_ns < CALIBRATION_NS)
		;
	ns = (double)(read_clock(CLOCK_MONOTONIC) - from_ns) / (double)(timestamp() - from);
	return ns;
}
