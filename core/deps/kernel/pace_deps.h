/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * All that core/ needs from the Linux kernel (6.1 and newer).  The user-space
 * answer to the same contract is deps/host/pace_deps.h; the include path
 * chooses.
 */
#ifndef PACE_DEPS_H
#define PACE_DEPS_H

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/bug.h>
#include <linux/math64.h>
#include <linux/prefetch.h>
#include <linux/string.h>
#include <linux/types.h>

/* a / b, and the remainder in *rem.  b is not 0. */
static inline u64 pace_div_rem(u64 a, u64 b, u64 *rem)
{
	return div64_u64_rem(a, b, rem);
}

#include "../mul_div.h"

/*
 * a * b / c, rounded down.  0 < c < 2^48 and the result fits 64 bits: x86
 * raises a divide error otherwise.
 *
 * The kernel's function is one instruction on x86-64.  On other architectures
 * it is exact only since 6.13: before, it rounds c where the product is long,
 * and clocks would drift.
 */
static inline u64 pace_mul_div(u64 a, u64 b, u64 c)
{
#ifdef CONFIG_X86_64
	return mul_u64_u64_div_u64(a, b, c);
#else
	return pace_mul_div_by_parts(a, b, c);
#endif
}

/* What several processors share. */
#define pace_atomic	atomic64_t

static inline u64 pace_atomic_read(const pace_atomic *a)
{
	return atomic64_read_acquire(a);
}

static inline u64 pace_atomic_xchg(pace_atomic *a, u64 to)
{
	return atomic64_xchg(a, to);
}

static inline void pace_atomic_add(pace_atomic *a, u64 by)
{
	atomic64_add(by, a);
}

/* Sets it if it is *seen, else sets *seen to what it is. */
static inline bool pace_atomic_cmpxchg(pace_atomic *a, u64 *seen, u64 to)
{
	s64 was = *seen;
	bool done = atomic64_try_cmpxchg(a, &was, to);

	*seen = was;
	return done;
}

#define pace_read_once(place)		READ_ONCE(place)
#define pace_write_once(place, to)	WRITE_ONCE(place, to)

/* The number of the lowest bit set in a u32 that is not 0. */
#define pace_lowest_bit(word)		((u32)__ffs(word))

/* The number of the highest bit set in a u64 that is not 0. */
#define pace_highest_bit(word)		((u32)fls64(word) - 1)

/* A hint: the cache line there is about to be used. */
#define pace_prefetch(line)		prefetch(line)

#define pace_memset(dst, byte, n)	memset((dst), (byte), (n))
#define pace_memmove(dst, src, n)	memmove((dst), (src), (n))

/* True if the caller kept the contract; reported once and refused if not. */
#define PACE_ASSERT(kept)	(!WARN_ON_ONCE(!(kept)))

#endif /* PACE_DEPS_H */
