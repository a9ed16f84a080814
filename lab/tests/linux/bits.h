/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEST_LINUX_BITS_H
#define TEST_LINUX_BITS_H

#define BIT(n)	(1u << (n))

#endif
