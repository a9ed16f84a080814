/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What is measured: the workloads, and who takes part. */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include "contest.h"

/* 1500-byte frames, header included, on the wire. */
#define FRAME_WIRE_BYTES	1524
#define SMALL_WIRE_BYTES	88	/* 64 bytes */

/* The first case is the standard one, the others are weak spots. */
extern const struct contest cases[];
extern const u32 case_count;

/* Structures that tell what one operation takes; ends with NULL. */
extern const struct rival *const latency_rivals[];

#endif /* BENCH_CASES_H */
