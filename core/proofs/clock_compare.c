// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * @proves comparisons across the wrap: ahead, later, earlier and raise are those of clocks that never wrap
 * @bounds none: all clocks less than 480 s ahead of, and up to 2^64 ps less 480 s behind, one another
 * @options
 */
#include "clock.c"
#include "proof.h"

void proof(void)
{
	/* Clocks that never wrap, the second near the first. */
	const s128 b = (s128)any_below(1ull << 63) + ((s128)nondet_u32() << 64);
	const s128 a = b + (s128)nondet_s64() + (s128)nondet_s64();
	const u64 wa = (u64)a, wb = (u64)b;
	struct pace_clock k = { .ps = wa, .frac = nondet_u64() };
	const u64 frac = k.frac;

	GIVEN(a - b < (s128)PACE_LEAD_WINDOW_PS);
	GIVEN(b - a <= ((s128)1 << 64) - (s128)PACE_LEAD_WINDOW_PS);

	PROVE(pace_clock_ahead(wa, wb) == (a > b), "ahead");
	PROVE(pace_clock_later(wa, wb) == (a > b ? wa : wb), "later");
	PROVE(pace_clock_earlier(wa, wb) == (a > b ? wb : wa), "earlier");

	pace_clock_raise(&k, wb);
	PROVE(k.ps == (a > b ? wa : wb), "raise moves up to the floor");
	PROVE(a >= b ? k.frac == frac : k.frac == 0,
	      "and leaves a clock alone that is there");
	DONE();
}
