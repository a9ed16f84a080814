/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What deps/kernel takes from the kernel's header of this name. */
#ifndef TEST_LINUX_BUG_H
#define TEST_LINUX_BUG_H

#define WARN_ON_ONCE(broken)	((broken) ? (__builtin_trap(), true) : false)

#endif /* TEST_LINUX_BUG_H */
