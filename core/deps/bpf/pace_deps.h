/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * All that core/ needs from a BPF program.  The answers of the kernel and of user
 * space to the same contract are in deps/kernel and deps/host; the include path
 * chooses.  Needs clang's BPF back end, no library.
 */
#ifndef PACE_DEPS_H
#define PACE_DEPS_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;
typedef __SIZE_TYPE__ size_t;

#ifndef bool
#define bool	_Bool
#define true	1
#define false	0
#endif

#ifndef NULL
#define NULL	((void *)0)
#endif

/* a / b, and the remainder in *rem.  b is not 0. */
static inline __attribute__((always_inline)) u64 pace_div_rem(u64 a, u64 b, u64 *rem)
{
	*rem = a % b;
	return a / b;
}

#include "../mul_div.h"

/*
 * a * b / c, rounded down.  0 < c < 2^48 and the result fits 64 bits.  BPF has no
 * product of 128 bits.
 */
static inline __attribute__((always_inline)) u64 pace_mul_div(u64 a, u64 b, u64 c)
{
	return pace_mul_div_by_parts(a, b, c);
}

/*
 * The number of the lowest bit set in a u32 that is not 0.  The back end of
 * clang 14 has no instruction for it.
 */
static inline u32 pace_lowest_bit(u32 word)
{
	u32 number = 0;

	if (!(word & 0xffff)) {
		number += 16;
		word >>= 16;
	}
	if (!(word & 0xff)) {
		number += 8;
		word >>= 8;
	}
	if (!(word & 0xf)) {
		number += 4;
		word >>= 4;
	}
	if (!(word & 0x3)) {
		number += 2;
		word >>= 2;
	}
	return number + !(word & 1);
}

/* BPF has no hint for the cache. */
#define pace_prefetch(line)		((void)(line))

/*
 * BPF has no library: the compiler refuses the built-in functions for a length that
 * it does not know.  The empty statements keep it from making them of the loops.
 */
static inline void pace_memset(void *dst, int byte, size_t n)
{
	u8 *to = dst;

	for (size_t i = 0; i < n; i++) {
		to[i] = (u8)byte;
		__asm__ __volatile__("" ::: "memory");
	}
}

static inline void pace_memmove(void *dst, const void *src, size_t n)
{
	const u8 *from = src;
	u8 *to = dst;
	bool up = (u64)dst <= (u64)src;

	for (size_t i = 0; i < n; i++) {
		size_t at = up ? i : n - 1 - i;

		to[at] = from[at];
		__asm__ __volatile__("" ::: "memory");
	}
}

/* True if the caller kept the contract; a breach refuses the call. */
#define PACE_ASSERT(kept)	(kept)

#endif /* PACE_DEPS_H */
