/* SPDX-License-Identifier: GPL-2.0-only */
/* The flows to send, as the command line describes them. */
#ifndef FLOW_H
#define FLOW_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define FLOW_NAME_MAX	64
#define FLOW_HEADERS	42	/* Ethernet 14, IPv4 20, UDP 8 */
#define FLOW_HEADER	16	/* bytes: sequence number, timestamp */
#define FLOW_BATCH_MAX	64	/* datagrams the kernel segments from one call */
#define FLOW_CONGESTION_MAX 16	/* TCP_CA_NAME_MAX */
#define FLOW_CLASSES_MAX 65535	/* minors of a qdisc */
#define FLOW_SOCKETS_MAX 64
#define FLOW_BYTES_MAX	65507	/* per call: the largest UDP datagram */

struct flow_spec {
	char name[FLOW_NAME_MAX];
	struct sockaddr_in to, from;
	bool tcp;			/* else UDP */
	uint64_t payload, batch;	/* UDP */
	uint32_t class;			/* UDP: SO_PRIORITY, as MAJOR:MINOR; 0: none */
	uint64_t classes, ports;	/* UDP: used in round robin from the first */
	uint64_t sockets, turn_ns;	/* UDP: one after the other sends for so long */
	uint64_t rate_bps;		/* UDP, link layer; 0: unlimited */
	uint64_t ahead;			/* UDP, with a rate: calls at the start at once */
	uint64_t slack_ns;		/* UDP: what falls due within it is sent together */
	bool txtime, deadline;		/* UDP: launch times, or deadlines */
	clockid_t clock;		/* of launch times */
	int64_t lead_ns;		/* handed over so long before its launch time */
	uint64_t jitter_ns;		/* each launch time is later by less than that */
	char congestion[FLOW_CONGESTION_MAX];	/* TCP; "": the system's default */
	uint64_t window;		/* TCP: send buffer, bytes; 0: the system's default */
	uint64_t pacing_bps;		/* SO_MAX_PACING_RATE; 0: none */
	uint64_t sample_ns;		/* TCP: sampling interval; 0: no samples */
	uint64_t message, every_ns;	/* TCP: bytes per message, interval; 0: endless */
	int64_t start_ns, stop_ns;	/* since the epoch; -1: not given */
};

/* Parses a decimal integer in @min..@max. Returns false if @text is none. */
bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *number);

/*
 * Parses `key=value,...` and modifies @text. Returns false with the reason in
 * @why.
 */
bool flow_parse(struct flow_spec *flow, size_t index, char *text, char *why, size_t why_size);

/* Returns by how much a datagram's launch time is later, the same in each run. */
int64_t flow_jitter_ns(const struct flow_spec *flow, uint64_t sequence);

#endif
