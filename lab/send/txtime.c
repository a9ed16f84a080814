// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "txtime.h"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <string.h>
#include <sys/socket.h>

#define NSEC_PER_SEC	1000000000LL
/* The reading that took least time is the nearest to both clocks. */
#define READINGS	5

static int64_t read_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * NSEC_PER_SEC + time.tv_nsec;
}

/* Returns how far a clock is ahead of CLOCK_MONOTONIC. */
static int64_t ahead_ns(clockid_t clock)
{
	int64_t best_ns = INT64_MAX, ahead = 0;

	if (clock == CLOCK_MONOTONIC)
		return 0;
	for (int i = 0; i < READINGS; i++) {
		int64_t before = read_ns(CLOCK_MONOTONIC), other = read_ns(clock);
		int64_t took = read_ns(CLOCK_MONOTONIC) - before;

		if (took < best_ns) {
			best_ns = took;
			ahead = other - before - took / 2;
		}
	}
	return ahead;
}

int txtime_open(int fd, clockid_t clock, bool deadline)
{
	struct sock_txtime txtime = {
		.clockid = clock,
		.flags = SOF_TXTIME_REPORT_ERRORS |
			 (deadline ? SOF_TXTIME_DEADLINE_MODE : 0),
	};

	return setsockopt(fd, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime));
}

ssize_t txtime_send(int fd, const void *data, size_t bytes, clockid_t clock,
		    int64_t launch_ns)
{
	union {
		char bytes[CMSG_SPACE(sizeof(uint64_t))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec part = { (void *)data, bytes };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	uint64_t at_ns = launch_ns + ahead_ns(clock);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_TXTIME;
	header->cmsg_len = CMSG_LEN(sizeof(at_ns));
	memcpy(CMSG_DATA(header), &at_ns, sizeof(at_ns));
	return sendmsg(fd, &message, 0);
}

static void count_report(struct msghdr *message, uint64_t *missed, uint64_t *refused)
{
	struct sock_extended_err error;
	struct cmsghdr *header;

	for (header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		if (header->cmsg_level != SOL_IP || header->cmsg_type != IP_RECVERR)
			continue;
		memcpy(&error, CMSG_DATA(header), sizeof(error));
		if (error.ee_origin != SO_EE_ORIGIN_TXTIME)
			continue;
		if (error.ee_code == SO_EE_CODE_TXTIME_MISSED)
			(*missed)++;
		else
			(*refused)++;
	}
}

void txtime_read_reports(int fd, uint64_t *missed, uint64_t *refused)
{
	for (;;) {
		char control[256];
		struct msghdr message = {
			.msg_control = control, .msg_controllen = sizeof(control),
		};

		if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return;
		count_report(&message, missed, refused);
	}
}
