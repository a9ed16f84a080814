/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The whole core for a BPF program, as one translation unit.  BPF returns no
 * structure from a function and passes at most five arguments, so the functions of
 * the API are part of their callers: core/src/sched.c declares and calls those
 * with structures.
 */
#ifndef BPF_CORE_H
#define BPF_CORE_H

#define PACE_API	static inline __attribute__((always_inline))

#include <pace/pace_sched.h>

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-function"
#include "../core/src/byte_clock.c"
#include "../core/src/heap.c"
#include "../core/src/sort.c"
#include "../core/src/chunk.c"
#include "../core/src/wheel.c"
#include "../core/src/queue.c"
#include "../core/src/storage.c"
#include "../core/src/class.c"
#include "../core/src/key.c"
#include "../core/src/stale.c"
#include "../core/src/paced.c"
#include "../core/src/borrow.c"
#include "../core/src/launch.c"
#include "../core/src/ring.c"
#include "../core/src/best_effort.c"
#include "../core/src/reservation.c"
#include "../core/src/select.c"
#include "../core/src/waiting.c"
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#include "../core/src/sched.c"
#pragma clang attribute pop
#include "../core/src/configure.c"
#pragma clang diagnostic pop

#endif
