/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What deps/kernel takes from the kernel's header of this name. */
#ifndef TEST_LINUX_BITOPS_H
#define TEST_LINUX_BITOPS_H

#define __ffs(word)	((unsigned long)__builtin_ctzl(word))

#define fls64(word)	((word) ? 64 - __builtin_clzll(word) : 0)

#endif /* TEST_LINUX_BITOPS_H */
