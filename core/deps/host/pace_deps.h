/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * All that core/ needs from a user-space host.  The kernel's answer to the
 * same contract is deps/kernel/pace_deps.h; the include path chooses.
 * Needs a compiler, not a C library.
 */
#ifndef PACE_DEPS_H
#define PACE_DEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

/* Parts of their caller for certain, and never. */
#ifndef __always_inline
#define __always_inline	inline __attribute__((__always_inline__))
#endif
#ifndef noinline
#define noinline	__attribute__((__noinline__))
#endif

/* a / b, and the remainder in *rem.  b is not 0. */
static inline u64 pace_div_rem(u64 a, u64 b, u64 *rem)
{
	*rem = a % b;
	return a / b;
}

#include "../mul_div.h"

/* a * b / c, rounded down.  0 < c < 2^48 and the result fits 64 bits. */
static inline u64 pace_mul_div(u64 a, u64 b, u64 c)
{
	return pace_mul_div_by_parts(a, b, c);
}

/* What several threads share. */
typedef u64 pace_atomic;

static inline u64 pace_atomic_read(const pace_atomic *a)
{
	return __atomic_load_n(a, __ATOMIC_ACQUIRE);
}

static inline u64 pace_atomic_xchg(pace_atomic *a, u64 to)
{
	return __atomic_exchange_n(a, to, __ATOMIC_ACQ_REL);
}

static inline void pace_atomic_add(pace_atomic *a, u64 by)
{
	__atomic_fetch_add(a, by, __ATOMIC_ACQ_REL);
}

/* Sets it if it is *seen, else sets *seen to what it is. */
static inline bool pace_atomic_cmpxchg(pace_atomic *a, u64 *seen, u64 to)
{
	return __atomic_compare_exchange_n(a, seen, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

#define pace_read_once(place)		__atomic_load_n(&(place), __ATOMIC_RELAXED)
#define pace_write_once(place, to)	__atomic_store_n(&(place), (to), __ATOMIC_RELAXED)

/* The number of the lowest bit set in a u32 that is not 0. */
#define pace_lowest_bit(word)		((u32)__builtin_ctz(word))

/* The number of the highest bit set in a u64 that is not 0. */
#define pace_highest_bit(word)		(63 - (u32)__builtin_clzll(word))

/* A hint: the cache line there is about to be used. */
#define pace_prefetch(line)		__builtin_prefetch(line)

#define pace_memset(dst, byte, n)	__builtin_memset((dst), (byte), (n))
#define pace_memmove(dst, src, n)	__builtin_memmove((dst), (src), (n))

/*
 * True if the caller kept the contract.  In user space a breach ends the
 * program; in the kernel it is reported once and the call refused.
 */
#define PACE_ASSERT(kept)	((kept) ? true : (__builtin_trap(), false))

#endif /* PACE_DEPS_H */
