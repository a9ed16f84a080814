// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * @proves a class clock advances exactly: whole ps and fraction are quotient and remainder; it never goes back
 * @bounds none: every clock, advance and rate below 2^40
 * @options
 */
#include "clock.c"
#include "proof.h"

/* The whole ps below the exact clock. */
static u64 whole(const struct pace_clock *k)
{
	return k->ps - (k->frac != 0);
}

void proof(void)
{
	const u64 rate = any_within(1, PACE_LINE_RATE_MAX);
	const u64 quot = any_below(PACE_LEAD_MAX_PS), rem = any_below(rate);
	const struct pace_clock from = {
		.ps = nondet_u64(), .frac = any_below(rate),
	};
	const bool carry = from.frac + rem >= rate;
	struct pace_clock k = from, advanced;

	pace_clock_advance(&k, quot, rem, rate);
	PROVE(k.frac < rate, "the fraction is a proper one");
	PROVE(k.frac == from.frac + rem - (carry ? rate : 0),
	      "the fraction is exact");
	PROVE(whole(&k) == whole(&from) + quot + carry,
	      "the whole ps are exact");
	PROVE(k.ps - from.ps <= quot + 1, "rounded up by less than one");
	PROVE(k.ps - from.ps >= quot, "never goes back");


	advanced = k;
	pace_clock_rescale(&k, k.ps, rate, rate + 1);
	PROVE(k.frac == 0 && k.ps == advanced.ps,
	      "another rate, when the clock is reached, moves no start");
	PROVE(k.ps - whole(&advanced) <= 1, "and costs less than a ps");
	DONE();
}
