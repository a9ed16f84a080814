/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Time stamps of single operations, in ticks of the processor's own counter.
 *
 * A stamp waits until everything before it is done, loads included, and
 * nothing after it begins before it is read: otherwise a part of an operation
 * would be counted to its neighbour.  What a stamp itself costs is measured
 * by stamps with nothing between (stamp_cost()) and taken off each reading.
 */
#ifndef BENCH_STAMP_H
#define BENCH_STAMP_H

#include <pace/pace.h>

#if defined(__x86_64__)
/* rdtscp waits for what is before it, lfence holds back what is after it. */
static inline u64 stamp(void)
{
	u32 low, high;

	__asm__ volatile("rdtscp\n\tlfence"
			 : "=a"(low), "=d"(high) : : "ecx", "memory");
	return (u64)high << 32 | low;
}
#elif defined(__aarch64__)
static inline u64 stamp(void)
{
	u64 ticks;

	__asm__ volatile("dsb ish\n\tisb\n\tmrs %0, cntvct_el0\n\tisb"
			 : "=r"(ticks) : : "memory");
	return ticks;
}
#else
#include <time.h>

static inline u64 stamp(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}
#endif

/* Nanoseconds this thread has run: not counted is who else had the CPU. */
u64 thread_ns(void);

/* What two stamps with nothing between are apart. */
u32 stamp_cost(void);

/* The smallest step of the counter that shows, in ticks. */
u32 stamp_step(void);

/* Nanoseconds of a tick, measured against real time once, in 50 ms. */
double stamp_ns(void);

#endif /* BENCH_STAMP_H */
