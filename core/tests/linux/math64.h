/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What deps/kernel takes from the kernel's header of this name.  There is no
 * mul_u64_u64_div_u64() but on x86-64, whose instruction is exact: before 6.13
 * the one for all other architectures rounds its operands.
 */
#ifndef TEST_LINUX_MATH64_H
#define TEST_LINUX_MATH64_H

#include <linux/types.h>

static inline u64 div64_u64_rem(u64 a, u64 b, u64 *rem)
{
	*rem = a % b;
	return a / b;
}

#ifdef __x86_64__
#define CONFIG_X86_64	1

static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 c)
{
	return (unsigned __int128)a * b / c;
}
#endif

#endif /* TEST_LINUX_MATH64_H */
