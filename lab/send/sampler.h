/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Samples the state of TCP connections at fixed times. The sampling thread has
 * priority over the threads that send and receive: behind them a sample would
 * be late by a time slice.
 */
#ifndef SAMPLER_H
#define SAMPLER_H

#include <stdint.h>

/*
 * Sets the prefix of the files and the origin of their times. sampler_add()
 * opens PREFIXflow-NAME.tcp. Times in this interface are absolute; times in the
 * files count from @epoch_ns.
 */
void sampler_init(const char *prefix, int64_t epoch_ns);

/*
 * Adds a connection to sample at @begin_ns and every @every_ns after that,
 * before @stop_ns. @fd stays open until sampler_end(). Returns -1 with errno
 * set if the file cannot be opened.
 */
int sampler_add(const char *name, int fd, int64_t begin_ns, int64_t stop_ns, int64_t every_ns);

/*
 * Starts the thread, after the last sampler_add(). Returns -1 with errno set on
 * error.
 */
int sampler_start(void);

/*
 * Takes the last sample of this connection and closes its file. Does nothing
 * for a connection that is not sampled.
 */
void sampler_end(int fd, int64_t time_ns);

#endif
