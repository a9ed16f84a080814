/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Describes the machine of a run. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include "json.h"

/*
 * Pins the thread to the last CPU that it may use: the first ones serve more
 * interrupts.  Returns the CPU's number, or -1.
 */
int machine_pin(void);

/* Writes an object "machine". */
void machine_json(struct json *j, int cpu);

#endif /* BENCH_MACHINE_H */
