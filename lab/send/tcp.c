// SPDX-License-Identifier: GPL-2.0-only
/* One end of a TCP connection: the sender of zeros, or its receiver. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/tcp.h>

#include "tcp.h"

#define CALL_BYTES	(1 << 16)
/*
 * Bytes that may wait unsent in the socket. They suffice to keep the congestion
 * window full, and spare the sender from copying a whole buffer of 25 MB before
 * the first frame is sent.
 */
#define UNSENT_BYTES	(1 << 20)
/* Received bytes from which the receiver is woken. */
#define WAKE_BYTES	(1 << 16)

static int set(int fd, int level, int option, const void *value, socklen_t size)
{
	return setsockopt(fd, level, option, value, size);
}

/*
 * Sets the send buffer. SO_SNDBUFFORCE exceeds net.core.wmem_max, if
 * privileged.
 */
static int set_window(int fd, int bytes)
{
	if (!set(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		return 0;
	return set(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

static int set_options(int fd, const struct flow_spec *spec)
{
	uint64_t pacing = spec->pacing_bps / 8;
	int unsent = UNSENT_BYTES, on = 1;

	if (set(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent)))
		return -1;
	if (*spec->congestion && set(fd, IPPROTO_TCP, TCP_CONGESTION, spec->congestion,
				     strlen(spec->congestion)))
		return -1;
	if (spec->window && set_window(fd, spec->window))
		return -1;
	if (pacing && set(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &pacing, sizeof(pacing)))
		return -1;
	return 0;
}

int tcp_open(const struct flow_spec *spec)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (!set_options(fd, spec) &&
	    (!spec->from.sin_port ||
	     !bind(fd, (const struct sockaddr *)&spec->from, sizeof(spec->from))))
		return fd;
	close(fd);
	return -1;
}

ssize_t tcp_send(int fd, uint64_t bytes)
{
	static const char zeros[CALL_BYTES];

	if (!bytes || bytes > sizeof(zeros))
		bytes = sizeof(zeros);
	return send(fd, zeros, bytes, MSG_NOSIGNAL);
}

static struct tcp_info info_of(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size))
		memset(&info, 0, sizeof(info));
	return info;
}

/*
 * Converts a kernel rate, in bytes per second, to bit/s. Returns 0 for "no
 * limit", which the kernel writes as the largest number.
 */
static uint64_t bits(uint64_t bytes_per_second)
{
	return bytes_per_second == UINT64_MAX ? 0 : bytes_per_second * 8;
}

void tcp_samples_begin(FILE *file)
{
	fputs("time_ns,cwnd_segments,ssthresh_segments,srtt_us,rttvar_us,mss_bytes,"
	      "unacked_segments,lost_segments,retrans_segments,pacing_rate_bps,"
	      "delivery_rate_bps,acked_bytes,sent_bytes\n", file);
}

void tcp_sample(FILE *file, int fd, int64_t since_epoch_ns)
{
	struct tcp_info i = info_of(fd);

	fprintf(file, "%" PRId64 ",%u,%u,%u,%u,%u,%u,%u,%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64
		",%" PRIu64 "\n", since_epoch_ns, i.tcpi_snd_cwnd, i.tcpi_snd_ssthresh,
		i.tcpi_rtt, i.tcpi_rttvar, i.tcpi_snd_mss, i.tcpi_unacked, i.tcpi_lost,
		i.tcpi_total_retrans, bits(i.tcpi_pacing_rate), bits(i.tcpi_delivery_rate),
		(uint64_t)i.tcpi_bytes_acked, (uint64_t)i.tcpi_bytes_sent);
}

/* Ends a connection by abort: a closed socket would still send its buffer. */
void tcp_end(int fd, char *summary, size_t size)
{
	struct linger abort = { .l_onoff = 1, .l_linger = 0 };
	struct tcp_info i = info_of(fd);
	char congestion[FLOW_CONGESTION_MAX] = "";
	socklen_t length = sizeof(congestion) - 1;

	getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, &length);
	snprintf(summary, size, "\"congestion\":\"%s\",\"bytes\":%" PRIu64 ",\"sent_bytes\":%"
		 PRIu64 ",\"retrans_bytes\":%" PRIu64 ",\"segments\":%u,\"retrans_segments\":%u,"
		 "\"mss_bytes\":%u,\"srtt_us\":%u,\"min_rtt_us\":%u,\"cwnd_segments\":%u",
		 congestion, (uint64_t)i.tcpi_bytes_acked, (uint64_t)i.tcpi_bytes_sent,
		 (uint64_t)i.tcpi_bytes_retrans, i.tcpi_data_segs_out, i.tcpi_total_retrans,
		 i.tcpi_snd_mss, i.tcpi_rtt, i.tcpi_min_rtt, i.tcpi_snd_cwnd);
	set(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
	close(fd);
}

int tcp_wake_seldom(int fd)
{
	int bytes = WAKE_BYTES;

	return set(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

ssize_t tcp_discard(int fd)
{
	return recv(fd, NULL, INT32_MAX, MSG_TRUNC);
}

uint64_t tcp_received(int fd)
{
	return info_of(fd).tcpi_bytes_received;
}
