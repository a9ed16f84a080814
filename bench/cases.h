/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The workloads to measure, and the rivals in each. */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include "contest.h"

/* Wire bytes of a frame of 1500 bytes, header included. */
#define FRAME_WIRE_BYTES	1524
#define SMALL_WIRE_BYTES	88	/* frame of 64 bytes */

/* The first case is the standard one, the others are hard cases. */
extern const struct contest cases[];
extern const u32 case_count;

/* Structures whose single operations are timed; ends with NULL. */
extern const struct rival *const latency_rivals[];

#endif /* BENCH_CASES_H */
