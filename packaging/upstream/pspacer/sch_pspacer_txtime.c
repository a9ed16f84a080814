// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sends UDP packets with launch times through a device, and prints what became
 * of them: how many left, the least and the most that they left behind their
 * launch times by, how many left out of order, and what the socket was told.
 *
 * usage: sch_pspacer_txtime DEVICE ADDRESS [KEY=NUMBER]...
 *   priority		SO_PRIORITY; by default class 1:1
 *   count, size	packets, and the bytes of each one's payload
 *   clock		of the launch times; -1: none are given
 *   lead_ns, step_ns	of the first launch time from now, and between two
 *   raw		one launch time for all, as it is
 *   reverse		1: the last launch time is sent first
 *   deadline		1: SOF_TXTIME_DEADLINE_MODE
 *   segment		bytes of a segment (UDP_SEGMENT)
 *   wait_ms		so long it waits for what leaves
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_TXTIME
#define SO_TXTIME	61
#define SCM_TXTIME	SO_TXTIME
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT	103
#endif
#define ROOM		(64 << 20)
#define MAGIC		0x7073706163657221ull
#define HEADERS		28	/* IPv4 and UDP */

/* What a packet carries. */
struct mark {
	uint64_t magic;
	int64_t launch_ns;	/* by CLOCK_MONOTONIC */
};

static int64_t count = 1, size = 100, clockid = CLOCK_MONOTONIC, lead_ns;
static int64_t step_ns, raw, reverse, deadline, segment, wait_ms = 100;
static int64_t priority = 0x10001;

static const struct {
	const char *name;
	int64_t *to;
} keys[] = {
	{ "count", &count }, { "size", &size }, { "clock", &clockid },
	{ "lead_ns", &lead_ns }, { "step_ns", &step_ns }, { "raw", &raw },
	{ "reverse", &reverse }, { "deadline", &deadline },
	{ "segment", &segment }, { "wait_ms", &wait_ms },
	{ "priority", &priority },
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int64_t now_ns(clockid_t clock)
{
	struct timespec at;

	if (clock_gettime(clock, &at))
		fail("clock_gettime");
	return at.tv_sec * 1000000000ll + at.tv_nsec;
}

static bool set(const char *text)
{
	const char *equals = strchr(text, '=');
	size_t i;

	for (i = 0; equals && i < sizeof(keys) / sizeof(*keys); i++) {
		char *end;

		if (strlen(keys[i].name) != (size_t)(equals - text) ||
		    strncmp(text, keys[i].name, equals - text))
			continue;
		/* A number beyond INT64_MAX is a negative one. */
		errno = 0;
		*keys[i].to = strtoull(equals + 1, &end, 10);
		return !errno && end != equals + 1 && !*end;
	}
	return false;
}

/* Listens to what leaves through the device. */
static int listens(const char *device)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = if_nametoindex(device),
	};
	int tap = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL));
	int on = 1, room = ROOM;

	if (tap < 0 || bind(tap, (struct sockaddr *)&at, sizeof(at)) ||
	    setsockopt(tap, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
	    setsockopt(tap, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		fail(device);
	return tap;
}

static int sends(const char *device, const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9) };
	int sender = socket(AF_INET, SOCK_DGRAM, 0), room = ROOM;
	struct sock_txtime txtime = {
		.clockid = clockid,
		.flags = SOF_TXTIME_REPORT_ERRORS |
			 (deadline ? SOF_TXTIME_DEADLINE_MODE : 0),
	};
	int bytes = segment, class = priority;

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
		fail(address);
	if (sender < 0 ||
	    setsockopt(sender, SOL_SOCKET, SO_BINDTODEVICE, device,
		       strlen(device)) ||
	    setsockopt(sender, SOL_SOCKET, SO_PRIORITY, &class,
		       sizeof(class)) ||
	    setsockopt(sender, SOL_SOCKET, SO_SNDBUFFORCE, &room,
		       sizeof(room)) ||
	    setsockopt(sender, SOL_SOCKET, SO_RCVBUFFORCE, &room,
		       sizeof(room)) ||
	    connect(sender, (struct sockaddr *)&to, sizeof(to)))
		fail("socket");
	if (clockid >= 0 && setsockopt(sender, SOL_SOCKET, SO_TXTIME, &txtime,
				       sizeof(txtime)))
		fail("SO_TXTIME");
	if (segment && setsockopt(sender, IPPROTO_UDP, UDP_SEGMENT, &bytes,
				  sizeof(bytes)))
		fail("UDP_SEGMENT");
	return sender;
}

/* Sends one packet. An error of an earlier one may come first. */
static void send_at(int sender, int64_t launch_ns, int64_t by_clock)
{
	static char payload[1 << 16];
	struct mark mark = {
		.magic = MAGIC + getpid(),
		.launch_ns = launch_ns,
	};
	union {
		char bytes[CMSG_SPACE(sizeof(int64_t))];
		struct cmsghdr align;
	} control = {};
	struct iovec data = { .iov_base = payload, .iov_len = size };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };

	memcpy(payload, &mark, sizeof(mark));
	if (clockid >= 0) {
		struct cmsghdr *cmsg;

		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		cmsg = CMSG_FIRSTHDR(&message);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_TXTIME;
		cmsg->cmsg_len = CMSG_LEN(sizeof(by_clock));
		memcpy(CMSG_DATA(cmsg), &by_clock, sizeof(by_clock));
	}
	if (sendmsg(sender, &message, 0) < 0)
		sendmsg(sender, &message, 0);
}

/* Returns the part of a message's control data. */
static void *part_of(struct msghdr *message, int level, int type)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(message);

	while (cmsg && (cmsg->cmsg_level != level || cmsg->cmsg_type != type))
		cmsg = CMSG_NXTHDR(message, cmsg);
	return cmsg ? CMSG_DATA(cmsg) : NULL;
}

static void print_left(int tap, int64_t real_ns)
{
	int64_t least = INT64_MAX, most = INT64_MIN, last = INT64_MIN;
	unsigned int left = 0, disorder = 0;

	for (;;) {
		char bytes[1 << 16], control[512];
		struct iovec data = { bytes, sizeof(bytes) };
		struct sockaddr_ll from;
		struct msghdr message = {
			.msg_name = &from, .msg_namelen = sizeof(from),
			.msg_iov = &data, .msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};
		ssize_t got = recvmsg(tap, &message, MSG_DONTWAIT);
		struct timespec *stamp, at;
		struct mark mark;
		int64_t late;

		if (got < 0)
			break;
		stamp = part_of(&message, SOL_SOCKET, SCM_TIMESTAMPNS);
		if (!stamp || from.sll_pkttype != PACKET_OUTGOING ||
		    got < (ssize_t)(HEADERS + sizeof(mark)))
			continue;
		memcpy(&at, stamp, sizeof(at));
		memcpy(&mark, bytes + HEADERS, sizeof(mark));
		if (mark.magic != MAGIC + getpid())
			continue;
		late = at.tv_sec * 1000000000ll + at.tv_nsec - real_ns -
		       mark.launch_ns;
		left++;
		disorder += mark.launch_ns < last;
		last = mark.launch_ns;
		least = late < least ? late : least;
		most = late > most ? late : most;
	}
	printf("left=%u disorder=%u least_ns=%lld most_ns=%lld ", left,
	       disorder, left ? (long long)least : 0,
	       left ? (long long)most : 0);
}

static void print_told(int sender)
{
	unsigned int invalid = 0, missed = 0;

	for (;;) {
		char bytes[64], control[512];
		struct iovec data = { bytes, sizeof(bytes) };
		struct msghdr message = {
			.msg_iov = &data, .msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};
		struct sock_extended_err *ee, told;

		if (recvmsg(sender, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			break;
		ee = part_of(&message, IPPROTO_IP, IP_RECVERR);
		if (!ee)
			continue;
		memcpy(&told, ee, sizeof(told));
		if (told.ee_origin != SO_EE_ORIGIN_TXTIME)
			continue;
		invalid += told.ee_code == SO_EE_CODE_TXTIME_INVALID_PARAM &&
			   told.ee_errno == EINVAL;
		missed += told.ee_code == SO_EE_CODE_TXTIME_MISSED &&
			  told.ee_errno == ECANCELED;
	}
	printf("invalid=%u missed=%u\n", invalid, missed);
}

int main(int argc, char **argv)
{
	int64_t i, from_ns, ahead_ns, real_ns;
	int tap, sender;

	if (argc < 3)
		return 2;
	for (i = 3; i < argc; i++) {
		if (!set(argv[i])) {
			fprintf(stderr, "%s: no such key\n", argv[i]);
			return 2;
		}
	}
	if (size < (int64_t)sizeof(struct mark) || size > 65000)
		return 2;
	tap = listens(argv[1]);
	sender = sends(argv[1], argv[2]);
	real_ns = now_ns(CLOCK_REALTIME) - now_ns(CLOCK_MONOTONIC);
	from_ns = now_ns(CLOCK_MONOTONIC) + lead_ns;
	ahead_ns = clockid > 0 ?
		   now_ns(clockid) - now_ns(CLOCK_MONOTONIC) : real_ns;
	for (i = 0; i < count; i++) {
		int64_t launch_ns = from_ns +
				    step_ns * (reverse ? count - 1 - i : i);

		send_at(sender, launch_ns, raw ? raw : launch_ns + ahead_ns);
	}
	usleep(wait_ms * 1000);
	print_left(tap, real_ns);
	print_told(sender);
	return 0;
}
