/* SPDX-License-Identifier: GPL-2.0-only */
/* One end of a TCP connection: the sender of zeros, or its receiver. */
#ifndef TCP_H
#define TCP_H

#include <stdio.h>

#include "flow.h"

/*
 * Returns a socket with the flow's address and options, not connected; -1:
 * errno.
 */
int tcp_open(const struct flow_spec *spec);

/*
 * Sends as many of @bytes (0: endless) as the socket accepts now. Returns their
 * number; -1: errno.
 */
ssize_t tcp_send(int fd, uint64_t bytes);

/*
 * Write the header line of a file of samples, and one line of the present
 * state.
 */
void tcp_samples_begin(FILE *file);
void tcp_sample(FILE *file, int fd, int64_t since_epoch_ns);

/*
 * Writes "key":value pairs about the whole connection to @summary, then aborts
 * it.
 */
void tcp_end(int fd, char *summary, size_t size);

/*
 * Lets the socket wake its receiver only for much data. Returns 0, or -1:
 * errno.
 */
int tcp_wake_seldom(int fd);

/* Discards received data without a copy. Returns as recv() does. */
ssize_t tcp_discard(int fd);

/* Returns the payload bytes that the connection has ever received. */
uint64_t tcp_received(int fd);

#endif
