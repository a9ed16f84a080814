// SPDX-License-Identifier: GPL-2.0-only
/*
 * psp-recv: receives, counts and discards the flows of psp-send, one per port.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "flow.h"
#include "tcp.h"

#define BATCH	64

/*
 * A port, or, if @parent is set, a TCP connection that the parent has accepted.
 */
struct port {
	void (*ready)(struct port *port);
	int fd;
	uint64_t number, received, bytes, reordered;
	uint64_t next_sequence;		/* highest sequence number seen + 1 */
	struct port *parent, *next;
};

static struct port *connections;
static int events;

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static void fail(const char *what)
{
	fprintf(stderr, "psp-recv: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void usage(void)
{
	fprintf(stderr, "usage: psp-recv --port P [--count N] [--addr ADDR] [--rcvbuf BYTES]\n"
		"                [--tcp]\n");
	exit(2);
}

static void count(struct port *port, const unsigned char *header, size_t bytes)
{
	uint64_t sequence;

	port->received++;
	port->bytes += bytes;
	if (bytes < FLOW_HEADER)
		return;
	memcpy(&sequence, header, sizeof(sequence));
	sequence = be64toh(sequence);
	if (sequence < port->next_sequence)
		port->reordered++;
	else
		port->next_sequence = sequence + 1;
}

/*
 * Receives datagrams. Copies only sequence number and timestamp; MSG_TRUNC
 * yields the full length.
 */
static void drain(struct port *port)
{
	static unsigned char headers[BATCH][FLOW_HEADER];
	struct mmsghdr messages[BATCH] = { 0 };
	struct iovec parts[BATCH];
	int i, n;

	for (i = 0; i < BATCH; i++) {
		parts[i] = (struct iovec){ headers[i], FLOW_HEADER };
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	n = recvmmsg(port->fd, messages, BATCH, MSG_TRUNC, NULL);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		fail("recvmmsg");
	for (i = 0; i < n; i++)
		count(port, headers[i], messages[i].msg_len);
}

/* ---- TCP ---- */

static void end_connection(struct port *port)
{
	struct port **at = &connections;

	while (*at != port)
		at = &(*at)->next;
	*at = port->next;
	port->parent->bytes += tcp_received(port->fd);
	close(port->fd);
	free(port);
}

static void discard(struct port *port)
{
	ssize_t n = tcp_discard(port->fd);

	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		end_connection(port);
}

static void watch(struct port *port)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = port };

	if (epoll_ctl(events, EPOLL_CTL_ADD, port->fd, &event))
		fail("epoll_ctl");
}

static void accept_one(struct port *port)
{
	int fd = accept4(port->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct port *connection;

	if (fd < 0)
		return;			/* the connection is gone again */
	connection = calloc(1, sizeof(*connection));
	if (!connection)
		fail("accept");
	*connection = (struct port){ .ready = discard, .fd = fd, .parent = port,
				     .next = connections };
	connections = connection;
	port->received++;
	watch(connection);
}

/* ---- UDP and TCP ---- */

static void open_port(struct port *port, struct in_addr addr, int rcvbuf, bool tcp)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = addr,
				       .sin_port = htons(port->number) };
	int type = tcp ? SOCK_STREAM : SOCK_DGRAM, on = 1;

	port->ready = tcp ? accept_one : drain;
	port->fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (port->fd < 0)
		fail("socket");
	if (rcvbuf &&
	    setsockopt(port->fd, SOL_SOCKET, SO_RCVBUFFORCE, &rcvbuf, sizeof(rcvbuf)) &&
	    setsockopt(port->fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof(rcvbuf)))
		fail("SO_RCVBUF");
	if (tcp && setsockopt(port->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		fail("SO_REUSEADDR");
	if (tcp && tcp_wake_seldom(port->fd))
		fail("SO_RCVLOWAT");
	if (bind(port->fd, (struct sockaddr *)&address, sizeof(address)) ||
	    (tcp && listen(port->fd, BATCH)))
		fail("bind");
	watch(port);
}

static void report(const struct port *port, bool tcp)
{
	uint64_t sent = port->next_sequence;

	printf("{\"port\":%" PRIu64 ",\"%s\":%" PRIu64 ",\"bytes\":%" PRIu64, port->number,
	       tcp ? "connections" : "received", port->received, port->bytes);
	if (!tcp)
		printf(",\"lost\":%" PRIu64 ",\"reordered\":%" PRIu64,
		       sent > port->received ? sent - port->received : 0, port->reordered);
	printf("}\n");
}

/*
 * Receives until a signal. Signals are unblocked only while it sleeps: none is
 * missed.
 */
static void receive_all(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct epoll_event found[BATCH];
	sigset_t blocked, open;
	int n;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &open);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	while (!interrupted) {
		n = epoll_pwait(events, found, BATCH, -1, &open);
		if (n < 0 && errno != EINTR)
			fail("epoll_pwait");
		while (n-- > 0)
			((struct port *)found[n].data.ptr)->ready(found[n].data.ptr);
	}
	while (connections)
		end_connection(connections);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "count", required_argument, NULL, 'n' },
		{ "addr", required_argument, NULL, 'a' },
		{ "rcvbuf", required_argument, NULL, 'b' },
		{ "tcp", no_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t first = 0, ports = 1, rcvbuf = 0, i;
	struct in_addr addr = { INADDR_ANY };
	struct port *port;
	bool ok = true, tcp = false;
	int option;

	while (ok && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'p')
			ok = parse_number(optarg, 1, 65535, &first);
		else if (option == 'n')
			ok = parse_number(optarg, 1, 65535, &ports);
		else if (option == 'b')
			ok = parse_number(optarg, 1, INT32_MAX, &rcvbuf);
		else if (option == 't')
			tcp = true;
		else
			ok = option == 'a' && inet_pton(AF_INET, optarg, &addr) == 1;
	}
	if (!ok || optind != argc || !first || first + ports > 65536)
		usage();
	port = calloc(ports, sizeof(*port));
	events = epoll_create1(EPOLL_CLOEXEC);
	if (!port || events < 0)
		fail("start");
	for (i = 0; i < ports; i++) {
		port[i].number = first + i;
		open_port(&port[i], addr, rcvbuf, tcp);
	}
	receive_all();
	for (i = 0; i < ports; i++)
		report(&port[i], tcp);
	return 0;
}
