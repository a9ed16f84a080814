/* SPDX-License-Identifier: GPL-2.0-only */
/* Sockets whose datagrams have a launch time (SO_TXTIME). */
#ifndef TXTIME_H
#define TXTIME_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Asks for launch times on a clock, or for deadlines, and for reports. */
int txtime_open(int fd, clockid_t clock, bool deadline);

/*
 * Sends a datagram that is to leave at launch_ns on CLOCK_MONOTONIC. Returns as
 * send() does.
 */
ssize_t txtime_send(int fd, const void *data, size_t bytes, clockid_t clock,
		    int64_t launch_ns);

/* Adds to the counts what the error queue reports: passed, and refused. */
void txtime_read_reports(int fd, uint64_t *missed, uint64_t *refused);

#endif
