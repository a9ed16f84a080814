/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The clock of a class that departure times come from.  It is the core's class
 * clock (core/src/byte_clock.c) on a line of 8 Gbit/s: such a line carries a byte
 * in a nanosecond, so byte times are nanoseconds.  Compiled for BPF, and for the
 * host by a test that compares it with the core.
 */
#ifndef EDT_CLOCK_H
#define EDT_CLOCK_H

#include <pace/pace_sched.h>

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-function"
#include "../core/src/byte_clock.c"
#pragma clang diagnostic pop

/* Bits that the line of the clocks carries in a second. */
#define EDT_LINE_BPS	8000000000ull

/* The answer for a frame that would wait for longer than its class allows. */
#define EDT_TOO_LATE	(~0ull)

/* A class as the loader describes it. */
struct edt_class {
	u64 rate_bps;		/* above 0 */
	u64 horizon_ns;		/* frames that would wait for longer are dropped */
	u64 minor;		/* minor number of its id; 0: no class */
};

/* The clock of a class; what has passed before.  0 is a clock that never ran. */
struct edt_time {
	struct pace_clock clock;	/* when the next frame may leave, ns */
	u64 rate_bps;			/* the rate that the clock's fraction is of */
};

/*
 * Returns when a frame or burst of `bytes` leaves, in ns, and moves the clock by
 * what it takes at the rate: without any rounding from one frame to the next.  A
 * class that was idle begins at now_ns.  O(1); one division.
 */
static inline __attribute__((always_inline)) u64
edt_depart(struct edt_time *t, const struct edt_class *class, u64 now_ns, u64 bytes)
{
	u64 rate_bps = class->rate_bps;
	u64 quot, rem = 0, departure;

	if (bytes > PACE_BURST_WIRE_MAX)
		bytes = PACE_BURST_WIRE_MAX;
	if (t->rate_bps != rate_bps) {
		/* A fraction of the old rate means nothing at the new one. */
		pace_clock_round_up(&t->clock);
		t->rate_bps = rate_bps;
	}
	pace_clock_raise(&t->clock, now_ns);
	departure = t->clock.bytes;
	if (departure - now_ns > class->horizon_ns)
		return EDT_TOO_LATE;
	quot = pace_div_rem(bytes * EDT_LINE_BPS, rate_bps, &rem);
	if (quot >= PACE_LEAD_MAX) {
		quot = PACE_LEAD_MAX - 1;
		rem = 0;
	}
	pace_clock_advance(&t->clock, quot, rem, rate_bps);
	return departure;
}

#endif
