// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Counts what a packet socket on a device sees, as tcpdump's does, until SIGTERM: gap frames, by
 * their EtherType (0x8808 or 0x88b5), and others.
 *
 * usage: tap DEVICE
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = end };
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	unsigned long gaps = 0, others = 0;
	int bytes = 16 << 20;
	int tap;

	if (argc != 2)
		return 2;
	sigaction(SIGTERM, &action, NULL);
	address.sll_ifindex = (int)if_nametoindex(argv[1]);
	tap = socket(AF_PACKET, SOCK_RAW, 0);
	if (!address.sll_ifindex || tap < 0 ||
	    setsockopt(tap, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) ||
	    bind(tap, (struct sockaddr *)&address, sizeof(address))) {
		perror(argv[1]);
		return 1;
	}
	while (!ended) {
		struct sockaddr_ll from;
		socklen_t length = sizeof(from);
		char frame[64];

		if (recvfrom(tap, frame, sizeof(frame), 0, (struct sockaddr *)&from, &length) < 0)
			continue;
		if (from.sll_protocol == htons(0x8808) || from.sll_protocol == htons(0x88b5))
			gaps++;
		else
			others++;
	}
	printf("gaps %lu\nothers %lu\n", gaps, others);
	return 0;
}
