/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The contract of core/deps/ with every need left open, so that what the core
 * itself asks of its surroundings shows as undefined symbols: also on 32-bit
 * machines, where a 64-bit division written as `/` becomes a library call.
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

u64 pace_div_rem(u64 a, u64 b, u64 *rem);
u64 pace_mul_div(u64 a, u64 b, u64 c);

typedef struct {
	u64 opaque;
} pace_atomic;

u64 pace_atomic_read(const pace_atomic *a);
u64 pace_atomic_xchg(pace_atomic *a, u64 to);
void pace_atomic_add(pace_atomic *a, u64 by);
bool pace_atomic_cmpxchg(pace_atomic *a, u64 *seen, u64 to);
#define pace_read_once(place)		(place)
#define pace_write_once(place, to)	((void)((place) = (to)))

#define pace_lowest_bit(word)		((u32)__builtin_ctz(word))
#define pace_highest_bit(word)		(63 - (u32)__builtin_clzll(word))
#define pace_prefetch(line)		__builtin_prefetch(line)
#define pace_memset(dst, byte, n)	__builtin_memset((dst), (byte), (n))
#define pace_memmove(dst, src, n)	__builtin_memmove((dst), (src), (n))
#define PACE_ASSERT(kept)	((kept) ? true : (__builtin_trap(), false))

#endif /* PACE_DEPS_H */
