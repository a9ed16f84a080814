/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of TCP connections at fixed times, by a thread that comes before
 * those who send and receive: behind them a sample is late by a time slice.
 */
#ifndef SAMPLER_H
#define SAMPLER_H

#include <stdint.h>

/*
 * Files that sampler_add() opens are PREFIXflow-NAME.tcp. Times are absolute;
 * in the files they count from @epoch_ns.
 */
void sampler_init(const char *prefix, int64_t epoch_ns);

/*
 * At @begin_ns and every @every_ns from there to @stop_ns, without it. @fd stays
 * open until sampler_end(). -1: errno, of this file.
 */
int sampler_add(const char *name, int fd, int64_t begin_ns, int64_t stop_ns, int64_t every_ns);

/* After the last sampler_add(). -1: errno. */
int sampler_start(void);

/* One sample more, and no further of this connection; nothing if it has none. */
void sampler_end(int fd, int64_t time_ns);

#endif
