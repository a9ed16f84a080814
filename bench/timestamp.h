/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Timestamps of single operations, in ticks of the processor's own counter.
 *
 * A timestamp waits until all instructions before it have completed, loads
 * included, and no instruction after it begins before it is read: otherwise
 * part of an operation would be counted as its neighbour's.  The cost of a
 * timestamp itself is measured with no operation between two (timestamp_cost()) and
 * subtracted from each reading.
 */
#ifndef BENCH_TIMESTAMP_H
#define BENCH_TIMESTAMP_H

#include <pace/pace.h>

#if defined(__x86_64__)
/* rdtscp waits for instructions before it, lfence delays those after it. */
static inline u64 timestamp(void)
{
	u32 low, high;

	__asm__ volatile("rdtscp\n\tlfence"
			 : "=a"(low), "=d"(high) : : "ecx", "memory");
	return (u64)high << 32 | low;
}
#elif defined(__aarch64__)
static inline u64 timestamp(void)
{
	u64 ticks;

	__asm__ volatile("dsb ish\n\tisb\n\tmrs %0, cntvct_el0\n\tisb"
			 : "=r"(ticks) : : "memory");
	return ticks;
}
#else
#include <time.h>

static inline u64 timestamp(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}
#endif

/* Returns the CPU time of this thread in ns, without that of other threads. */
u64 thread_ns(void);

/* Returns the ticks between two timestamps with no operation between them. */
u32 timestamp_cost(void);

/* Returns the smallest observed step of the counter, in ticks. */
u32 timestamp_step(void);

/* Returns the ns per tick, measured once against real time, in 50 ms. */
double timestamp_ns(void);

#endif /* BENCH_TIMESTAMP_H */
