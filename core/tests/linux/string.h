/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What deps/kernel takes from the kernel's header of this name. */
#ifndef TEST_LINUX_STRING_H
#define TEST_LINUX_STRING_H

#include <string.h>

#endif /* TEST_LINUX_STRING_H */
