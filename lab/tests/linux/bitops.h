/* SPDX-License-Identifier: GPL-2.0-only */
/* The number of the highest bit, from 1 on; 0: none. */
#ifndef TEST_LINUX_BITOPS_H
#define TEST_LINUX_BITOPS_H

static inline int fls(unsigned int x)
{
	return x ? 32 - __builtin_clz(x) : 0;
}

static inline int fls64(unsigned long long x)
{
	return x ? 64 - __builtin_clzll(x) : 0;
}

#endif
