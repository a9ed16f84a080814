// SPDX-License-Identifier: GPL-2.0-only
/*
 * psp-launched: compares when datagrams of psp-send left with their launch times.
 *
 * It reads a cable's timeline and snaps (lab/wire/README.md): of each datagram to the
 * port its departure, and from its payload the launch time.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flow.h"

#define PORT_AT		36	/* of the UDP destination, without VLAN tag or IP options */
#define WORDS_AT	42
#define SNAP_MIN	(WORDS_AT + FLOW_HEADER)

/* A record of the timeline: lab/wire/wire.h. */
struct record {
	uint64_t start_ps, arrive_ps;
	uint32_t frame_bytes, wire_bytes, flow;
	uint8_t kind, fate;
	uint16_t queue;
};

static int64_t *errors_ns;
static size_t count;

static void fail(const char *what)
{
	fprintf(stderr, "psp-launched: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void add(int64_t error_ns)
{
	if (!(count & (count - 1))) {
		errors_ns = reallocarray(errors_ns, count ? 2 * count : 1, sizeof(*errors_ns));
		if (!errors_ns)
			fail("memory");
	}
	errors_ns[count++] = error_ns;
}

static void read_frame(const struct record *record, const unsigned char *snap, uint16_t port)
{
	uint64_t launch_ns;
	uint16_t to;

	memcpy(&to, snap + PORT_AT, sizeof(to));
	if (snap[12] != 0x08 || snap[13] != 0 || snap[23] != IPPROTO_UDP || ntohs(to) != port)
		return;
	memcpy(&launch_ns, snap + WORDS_AT + sizeof(uint64_t), sizeof(launch_ns));
	add((int64_t)(le64toh(record->start_ps) / 1000) - (int64_t)be64toh(launch_ns));
}

static int by_size(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

/* Returns the smallest error that so many of a thousand do not exceed. */
static int64_t quantile(unsigned int permille)
{
	return errors_ns[(count - 1) * permille / 1000];
}

static void report(void)
{
	printf("{\"frames\":%zu", count);
	if (count) {
		qsort(errors_ns, count, sizeof(*errors_ns), by_size);
		printf(",\"least_ns\":%" PRId64 ",\"p1_ns\":%" PRId64 ",\"p10_ns\":%" PRId64 ",\"p50_ns\":%" PRId64
		       ",\"p99_ns\":%" PRId64 ",\"most_ns\":%" PRId64,
		       quantile(0), quantile(10), quantile(100), quantile(500), quantile(990), quantile(1000));
	}
	printf("}\n");
}

int main(int argc, char **argv)
{
	uint64_t port = 0, snap_bytes = 0;
	unsigned char snap[1024];
	struct record record;
	FILE *records, *snaps;

	if (argc != 5 || !parse_number(argv[3], 1, 65535, &port) ||
	    !parse_number(argv[4], SNAP_MIN, sizeof(snap), &snap_bytes)) {
		fprintf(stderr, "usage: psp-launched TIMELINE SNAPS PORT SNAP-BYTES\n"
			"SNAP-BYTES: %d to %zu, as the cable was made\n", SNAP_MIN,
			sizeof(snap));
		return 2;
	}
	records = fopen(argv[1], "re");
	if (!records)
		fail(argv[1]);
	snaps = fopen(argv[2], "re");
	if (!snaps)
		fail(argv[2]);
	while (fread(&record, sizeof(record), 1, records) == 1) {
		if (record.kind)
			continue;
		if (fread(snap, snap_bytes, 1, snaps) != 1)
			fail("a snap is missing");
		read_frame(&record, snap, port);
	}
	report();
	return 0;
}
