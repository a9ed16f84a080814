/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The clock of a class that departure times come from.  It is as exact as the core's
 * class clock (core/src/clock.c), in nanoseconds.  Compiled for BPF, and for the host
 * by a test that compares it with the core.
 */
#ifndef EDT_CLOCK_H
#define EDT_CLOCK_H

#ifdef __bpf__
/* Linux 6.1 lets no function be called while a lock is held. */
static inline __attribute__((always_inline)) unsigned long long
pace_mul_div_by_parts(unsigned long long a, unsigned long long b, unsigned long long c);
#endif

#include <pace/pace_sched.h>

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-function"
#include "../core/src/clock.c"
#pragma clang diagnostic pop

/* One byte at 1 bit/s, in ns. */
#define EDT_BYTE_NS	8000000000ull
/* A burst moves the clock by less than this, 73 minutes. */
#define EDT_LEAD_NS	(1ull << 42)

/* The answer for a frame that would wait for longer than its class allows. */
#define EDT_TOO_LATE	(~0ull)

/* A class as the loader describes it. */
struct edt_class {
	u64 rate_bps;		/* above 0 */
	u64 horizon_ns;		/* frames that would wait for longer are dropped */
	u64 mark_ns;		/* those that would wait for longer are CE-marked */
	u64 minor;		/* minor number of its id; 0: no class */
	u64 fresh;		/* changes when what waits is thrown away for a rate */
};

/* The clock of a class; what has passed before.  0 is a clock that never ran. */
struct edt_time {
	u64 next_ns;		/* when the next frame may leave, rounded up */
	u64 frac;		/* next_ns is exactly next_ns - 1 + frac / rate_bps, if not 0 */
	u64 rate_bps;
	u64 fresh;		/* the class's, as the clock saw it last */
};

/* Returns how long what takes lead_ns at rate_bps takes at to_bps, rounded up. */
static inline __attribute__((always_inline)) u64
edt_lead(u64 lead_ns, u64 rate_bps, u64 to_bps)
{
	u64 ns = pace_mul_div(lead_ns, rate_bps, to_bps);

	/* Exact although each product wraps: the difference is < to_bps. */
	return ns + (lead_ns * rate_bps != ns * to_bps);
}

/*
 * Goes over to the class's rate.  The lead is what waits, and leaves as it was told.
 * A lower rate makes up for it: what comes leaves when all that waits would have gone
 * by it, if that is within the horizon.  A higher rate begins behind it, so a flow keeps
 * its order; unless what waited was thrown away: then the lead is what it takes at the
 * new rate.  O(1).
 */
static inline __attribute__((always_inline)) void
edt_change(struct edt_time *t, const struct edt_class *class, u64 now_ns)
{
	u64 had_bps = t->rate_bps, rate_bps = class->rate_bps, fresh = t->fresh, lead_ns;

	/* A fraction of the old rate means nothing at the new one. */
	t->frac = 0;
	t->rate_bps = rate_bps;
	t->fresh = class->fresh;
	if (t->next_ns <= now_ns || !had_bps)
		return;
	lead_ns = t->next_ns - now_ns;
	if (rate_bps > had_bps) {
		if (fresh != class->fresh)
			t->next_ns = now_ns + edt_lead(lead_ns, had_bps, rate_bps);
	} else if (lead_ns < class->horizon_ns) {
		if (edt_lead(class->horizon_ns, rate_bps, had_bps) <= lead_ns)
			t->next_ns = now_ns + class->horizon_ns;
		else
			t->next_ns = now_ns + edt_lead(lead_ns, had_bps, rate_bps);
	}
}

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
	if (t->rate_bps != rate_bps)
		edt_change(t, class, now_ns);
	if (t->next_ns < now_ns) {
		t->next_ns = now_ns;
		t->frac = 0;
	}
	departure = t->next_ns;
	if (departure - now_ns > class->horizon_ns)
		return EDT_TOO_LATE;
	quot = pace_div_rem(bytes * EDT_BYTE_NS, rate_bps, &rem);
	if (quot >= EDT_LEAD_NS) {
		quot = EDT_LEAD_NS - 1;
		rem = 0;
	}
	pace_exact_add(&t->next_ns, &t->frac, quot, rem, rate_bps);
	return departure;
}

#endif
