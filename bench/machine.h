/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The machine a run was made on. */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include "json.h"

/* Stays on the last CPU it may use: the first ones serve more interrupts.
 * Returns its number, or -1.
 */
int machine_pin(void);

/* An object "machine". */
void machine_json(struct json *j, int cpu);

#endif /* BENCH_MACHINE_H */
