/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What deps/kernel takes from the kernel's header of this name. */
#ifndef TEST_LINUX_PREFETCH_H
#define TEST_LINUX_PREFETCH_H

#define prefetch(line)	__builtin_prefetch(line)

#endif /* TEST_LINUX_PREFETCH_H */
