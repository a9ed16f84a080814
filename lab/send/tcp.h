/* SPDX-License-Identifier: GPL-2.0-only */
/* One TCP connection with zeros to send, and its far end. */
#ifndef TCP_H
#define TCP_H

#include <stdio.h>

#include "flow.h"

/* A socket with the flow's address and options, not connected. -1: errno says why. */
int tcp_open(const struct flow_spec *spec);

/* As many of @bytes (0: no end of them) as the socket takes now; -1: errno. */
ssize_t tcp_send(int fd, uint64_t bytes);

/* The first line of a file of samples, and one line of the state now. */
void tcp_samples_begin(FILE *file);
void tcp_sample(FILE *file, int fd, int64_t since_epoch_ns);

/* The end: "key":value pairs of the connection's whole life, then it is aborted. */
void tcp_end(int fd, char *summary, size_t size);

/* Receiving: wakes only for a good deal of data; 0, or -1: errno. */
int tcp_wake_seldom(int fd);

/* What has arrived is thrown away without a copy; as recv(). */
ssize_t tcp_discard(int fd);

/* Payload bytes that the connection ever received. */
uint64_t tcp_received(int fd);

#endif
