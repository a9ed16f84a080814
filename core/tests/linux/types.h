/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What deps/kernel takes from the kernel's header of this name. */
#ifndef TEST_LINUX_TYPES_H
#define TEST_LINUX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

/* Of linux/compiler.h, which they all include. */
#define noinline	__attribute__((noinline))
#ifndef __always_inline
#define __always_inline	inline __attribute__((always_inline))
#endif

#endif /* TEST_LINUX_TYPES_H */
