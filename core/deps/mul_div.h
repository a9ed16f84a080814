/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * a * b / c with a 128-bit product, for hosts that have no instruction or
 * exact function for it.  pace_deps.h includes it after pace_div_rem().
 */
#ifndef PACE_MUL_DIV_H
#define PACE_MUL_DIV_H

/*
 * Returns a * b / c, rounded down and exact.  0 < c < 2^48 and the result fits
 * 64 bits.
 *
 * The product is divided 16 bits at a time, because compilers call a library
 * for 128 bits: (remainder < c < 2^48) x 2^16 fits 64 bits.
 */
static inline u64 pace_mul_div_by_parts(u64 a, u64 b, u64 c)
{
	u64 a0 = (u32)a, a1 = a >> 32, b0 = (u32)b, b1 = b >> 32;
	u64 mid = a1 * b0 + (a0 * b0 >> 32);
	u64 hi = a1 * b1 + (mid >> 32) + ((a0 * b1 + (u32)mid) >> 32);
	u64 lo = a * b;
	u64 quot = 0;
	u64 rem;
	int shift;

	pace_div_rem(hi, c, &rem);	/* the quotient is 0: the result fits */
	for (shift = 48; shift >= 0; shift -= 16)
		quot = quot << 16 |
		       pace_div_rem(rem << 16 | (lo >> shift & 0xffff), c,
				    &rem);
	return quot;
}

#endif /* PACE_MUL_DIV_H */
