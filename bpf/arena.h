/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An arena (Linux 6.9): memory that a BPF program and the processes that map it
 * see at the same addresses, so that both run the core on the same pointers.
 *
 * The arena lies below 4 GiB, so a pointer into it is the same number for both
 * (ARENA_START).  The verifier wants every access to follow an instruction that
 * says of a number that it is such a pointer, and every loop to count.  The
 * compiler cannot write either for code that knows neither; crates/base/bpf-build
 * writes both into what is compiled to .text (arena.rs).  So .text holds the functions
 * that use the arena and nothing else: programs, which see packets, call them.
 */
#ifndef BPF_ARENA_H
#define BPF_ARENA_H

#include "helpers.h"

#define ARENA_START		0x40000000ull
/* linux/bpf.h */
#define BPF_MAP_TYPE_ARENA	33
#define BPF_F_MMAPABLE		(1u << 10)

/* Global: the verifier looks at each function once. */
#define ARENA_CODE	__attribute__((noinline))

/* True until the program has gone round its loops 2^23 times. */
#define CAN_LOOP							\
	({								\
		__label__ over_, on_;					\
		bool can_ = true;					\
									\
		__asm__ goto("may_goto %l[over_]" : : : : over_);	\
		goto on_;						\
over_:		can_ = false;						\
on_:		;							\
		can_;							\
	})

#endif
