/* SPDX-License-Identifier: GPL-2.0-only */
/* What the arithmetic needs from outside: types and one division. */
#ifndef WIRE_TYPES_H
#define WIRE_TYPES_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/math64.h>

static inline u64 wire_div_rem(u64 value, u64 by, u64 *rest)
{
	return div64_u64_rem(value, by, rest);
}
#else
#include <stdbool.h>
#include <stdint.h>

typedef uint32_t u32;
typedef uint64_t u64;

static inline u64 wire_div_rem(u64 value, u64 by, u64 *rest)
{
	*rest = value % by;
	return value / by;
}
#endif

#endif
