// SPDX-License-Identifier: GPL-2.0-only
/*
 * psp-hostile: attacks a qdisc by the means of a user without privileges.
 *
 * Opens as many sockets as it may, requests all kinds of rates, fills every
 * socket, then lowers the rate of queued frames to the least possible, connects
 * sockets elsewhere, and closes them with all frames that they hold.  The seed
 * determines the order.
 *
 * With --lower it does only this: fills one socket at 10 Mbit/s, lowers its
 * rate to the given bytes per second, sends once more and exits.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include "../send/user.h"
#include "fuzz.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT	103
#endif

#define SOCKETS_MAX	4096
#define PAYLOAD_MAX	1472
#define SEGMENT		1000
#define SHORT		200
#define LONG		6
#define BURST_BYTES	(40 * SEGMENT)
/* A full socket holds about 90 of the longest frames. */
#define SENDS		128

static int sockets[SOCKETS_MAX];
static struct sockaddr_in target;
static uint32_t ports = 1;
static uint64_t opened, sent, refused;
static char payload[BURST_BYTES];

static void fail(const char *what)
{
	fprintf(stderr, "psp-hostile: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void usage(void)
{
	fputs("usage: psp-hostile --uid N --seconds N --to ADDR --port N [--ports N]\n"
	      "                   [--sockets N] [--seed N]\n"
	      "  or:  psp-hostile --uid N --lower BYTES [--mixed] --to ADDR --port N\n", stderr);
	exit(2);
}

static int64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

/*
 * Sets the socket's pacing rate, in bytes/s, which may exceed that of any line.
 */
static void set_rate(int fd, uint64_t rate_Bps)
{
	setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate_Bps, sizeof(rate_Bps));
}

static uint64_t some_rate(struct random *r)
{
	return random_percent(r, 40) ? 1 + random_below(r, 200) :
				       1 + random_value(r, 40);
}

static struct sockaddr_in some_target(struct random *r)
{
	struct sockaddr_in to = target;

	to.sin_port = htons(ntohs(to.sin_port) + random_below(r, ports));
	return to;
}

static void open_one(struct random *r, int *fd)
{
	int room = 1 << 30, segment = SEGMENT;
	struct sockaddr_in to = some_target(r);

	*fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return;
	opened++;
	setsockopt(*fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (random_percent(r, 20))
		setsockopt(*fd, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	if (random_percent(r, 95))
		set_rate(*fd, some_rate(r));
	connect(*fd, (struct sockaddr *)&to, sizeof(to));
}

static void fill(struct random *r, int fd)
{
	uint32_t bytes = random_percent(r, 30) ? 1 : 1 + random_below(r, PAYLOAD_MAX);
	uint32_t i;

	if (random_percent(r, 10))
		bytes = BURST_BYTES;
	for (i = 0; i < SENDS; i++) {
		if (send(fd, payload, bytes, 0) >= 0)
			sent++;
		else if (errno == EAGAIN)
			break;
		else
			refused++;
	}
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void act(struct random *r, uint32_t count)
{
	int *fd = &sockets[random_below(r, count)];
	struct sockaddr_in to = some_target(r);
	uint32_t what = random_below(r, 100), i;

	if (*fd < 0) {
		open_one(r, fd);
		if (*fd >= 0)
			fill(r, *fd);
	} else if (what < 35) {
		fill(r, *fd);
	} else if (what < 60) {
		set_rate(*fd, some_rate(r));
		fill(r, *fd);
	} else if (what < 70) {
		connect(*fd, (struct sockaddr *)&to, sizeof(to));
		fill(r, *fd);
	} else if (what < 99) {
		close_one(fd);
	} else {
		for (i = 0; i < count; i++)
			close_one(&sockets[i]);
	}
}

static void lower(uint64_t rate_Bps, bool mixed)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int i;

	set_rate(fd, mixed ? 12500 : 1250000);
	if (fd < 0 || connect(fd, (struct sockaddr *)&target, sizeof(target)))
		fail("a socket");
	/*
	 * No socket receives: the error that answers the first frame may arrive
	 * meanwhile.
	 */
	for (i = 0; mixed && i < SHORT + LONG; i++, sent++)
		while (send(fd, payload, i < SHORT ? 1 : PAYLOAD_MAX, 0) < 0)
			if (errno != ECONNREFUSED)
				fail("filling the socket");
	while (!mixed) {
		if (send(fd, payload, PAYLOAD_MAX, 0) >= 0)
			sent++;
		else if (errno == EAGAIN)
			break;
		else if (errno != ECONNREFUSED)
			fail("filling the socket");
	}
	set_rate(fd, rate_Bps);
	/* The socket accepts one more frame as soon as one has been sent. */
	while (send(fd, payload, 1, 0) < 0)
		if (errno != EAGAIN && errno != ECONNREFUSED)
			fail("sending");
	printf("{\"sent\":%" PRIu64 "}\n", sent);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "uid", required_argument, NULL, 'u' },
		{ "seconds", required_argument, NULL, 's' },
		{ "to", required_argument, NULL, 't' },
		{ "port", required_argument, NULL, 'p' },
		{ "ports", required_argument, NULL, 'n' },
		{ "sockets", required_argument, NULL, 'm' },
		{ "seed", required_argument, NULL, 'x' },
		{ "lower", required_argument, NULL, 'l' },
		{ "mixed", no_argument, NULL, 'i' },
		{ NULL, 0, NULL, 0 },
	};
	const struct timespec pause = { .tv_nsec = 4000000 };
	uint32_t uid = 0, count = 512, i;
	int64_t seconds = 0, end_ns;
	struct random r;
	uint64_t seed = 1, lower_to = 0;
	bool mixed = false;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'u')
			uid = strtoul(optarg, NULL, 10);
		else if (option == 's')
			seconds = strtol(optarg, NULL, 10);
		else if (option == 't' && inet_pton(AF_INET, optarg, &target.sin_addr) != 1)
			usage();
		else if (option == 'p')
			target.sin_port = htons(strtoul(optarg, NULL, 10));
		else if (option == 'n')
			ports = strtoul(optarg, NULL, 10);
		else if (option == 'm')
			count = strtoul(optarg, NULL, 10);
		else if (option == 'x')
			seed = strtoull(optarg, NULL, 10);
		else if (option == 'l')
			lower_to = strtoull(optarg, NULL, 10);
		else if (option == 'i')
			mixed = true;
		else if (option == '?')
			usage();
	}
	target.sin_family = AF_INET;
	if (!uid || (!lower_to && (seconds <= 0 || seconds > 3600)) || !target.sin_port || !ports ||
	    !count || count > SOCKETS_MAX || optind != argc)
		usage();
	if (!become_user(uid))
		fail("another user");
	if (lower_to) {
		lower(lower_to, mixed);
		return 0;
	}
	r.state = seed;
	for (i = 0; i < count; i++)
		sockets[i] = -1;

	end_ns = now_ns() + seconds * 1000000000;
	while (now_ns() < end_ns) {
		for (i = 0; i < 4; i++)
			act(&r, count);
		nanosleep(&pause, NULL);
	}
	printf("{\"opened\":%" PRIu64 ",\"sent\":%" PRIu64 ",\"refused\":%" PRIu64 "}\n",
	       opened, sent, refused);
	return 0;
}
