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

/* Parts of their caller for certain, and never. */
#ifndef __always_inline
#define __always_inline	inline __attribute__((__always_inline__))
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

/* No programs share a clock: bpf/no_parts.h. */
typedef u64 pace_atomic;
#define pace_atomic_read(a)	(*(a))

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

/* The number of the highest bit set in a u64 that is not 0. */
static inline u32 pace_highest_bit(u64 word)
{
	u32 number = 0, step;

	for (step = 32; step; step /= 2)
		if (word >> step) {
			number += step;
			word >>= step;
		}
	return number;
}

/* BPF has no hint for the cache. */
#define pace_prefetch(line)		((void)(line))

/*
 * BPF has no library: the compiler refuses the built-in functions for a length that
 * it does not know.  The empty statements keep it from making them of the loops.  The
 * verifier goes round a loop whose length it knows, so these are functions of their own,
 * which it looks at once.
 */
#define PACE_GLOBAL	__attribute__((noinline, weak))

PACE_GLOBAL void pace_memset(void *dst, int byte, size_t n)
{
	u8 *to = dst;

	for (size_t i = 0; i < n; i++) {
		to[i] = (u8)byte;
		__asm__ __volatile__("" ::: "memory");
	}
}

PACE_GLOBAL void pace_copy_up(u8 *to, const u8 *from, size_t n)
{
	size_t i = 0;

	for (; i + sizeof(u64) <= n; i += sizeof(u64)) {
		*(u64 *)(to + i) = *(const u64 *)(from + i);
		__asm__ __volatile__("" ::: "memory");
	}
	for (; i < n; i++) {
		to[i] = from[i];
		__asm__ __volatile__("" ::: "memory");
	}
}

PACE_GLOBAL void pace_copy_down(u8 *to, const u8 *from, size_t n)
{
	for (; n % sizeof(u64); n--) {
		to[n - 1] = from[n - 1];
		__asm__ __volatile__("" ::: "memory");
	}
	for (; n; n -= sizeof(u64)) {
		*(u64 *)(to + n - sizeof(u64)) = *(const u64 *)(from + n - sizeof(u64));
		__asm__ __volatile__("" ::: "memory");
	}
}

static inline __attribute__((always_inline)) void
pace_memmove(void *dst, const void *src, size_t n)
{
	if ((u64)dst <= (u64)src)
		pace_copy_up(dst, src, n);
	else
		pace_copy_down(dst, src, n);
}

/* True if the caller kept the contract; a breach refuses the call. */
#define PACE_ASSERT(kept)	(kept)

#endif /* PACE_DEPS_H */
