// SPDX-License-Identifier: GPL-2.0-only
/* Sends frames and GSO bursts to the device's qdisc by a packet socket. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>

#include "fuzz.h"

#define HEADERS		(ETH_HLEN + 20 + 20)	/* IPv4, TCP */
#define FRAME_MAX	562			/* 576 less 14: fits every MTU from 576 on */
#define BURST_MAX	30000
#define PROTOCOL_NONE	253			/* experimental: has no offload */

bool traffic_open(const struct port *port, int *fd)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_ifindex = port->ifindex,
	};
	int on = 1, room = 8 << 20;

	/*
	 * Protocol 0: the socket receives nothing; sent frames carry their own.
	 */
	*fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return false;
	setsockopt(*fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	return !setsockopt(*fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) &&
	       !bind(*fd, (struct sockaddr *)&address, sizeof(address));
}

struct packet {
	struct virtio_net_hdr offload;
	uint8_t bytes[BURST_MAX];
} __attribute__((packed));

static void headers(struct packet *p, uint32_t bytes, uint8_t last)
{
	static const uint8_t ethernet[ETH_HLEN] = {
		0x02, 0, 0, 0, 0, 0x02, 0x02, 0, 0, 0, 0, 0x01, 0x08, 0x00,
	};
	uint8_t *ip = p->bytes + ETH_HLEN, *tcp = ip + 20;

	memset(p, 0, sizeof(p->offload) + HEADERS);
	memcpy(p->bytes, ethernet, sizeof(ethernet));
	ip[0] = 0x45;
	ip[2] = (bytes - ETH_HLEN) >> 8;
	ip[3] = bytes - ETH_HLEN;
	ip[8] = 64;
	ip[9] = 6;
	ip[12] = 10;
	ip[16] = 10;
	ip[19] = last;		/* the u32 filter matches its lowest bit */
	tcp[12] = 5 << 4;
	tcp[13] = 0x10;		/* ACK */
}

static int give(int fd, const struct packet *p, uint32_t bytes, uint32_t priority)
{
	setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority));
	return send(fd, p, sizeof(p->offload) + bytes, 0) < 0 ? errno : 0;
}

/* Sends one frame.  ENOBUFS means that the qdisc received and dropped it. */
bool traffic_frame(int fd, struct random *r, uint32_t priority)
{
	uint32_t bytes = HEADERS + random_below(r, FRAME_MAX - HEADERS);
	static struct packet p;
	int err;

	headers(&p, bytes, random_next(r));
	err = give(fd, &p, bytes, priority);
	return !err || err == ENOBUFS;
}

static void make_burst(struct packet *p, uint32_t bytes, uint32_t segment, uint8_t last)
{
	headers(p, bytes, last);
	p->offload.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	p->offload.csum_start = ETH_HLEN + 20;
	p->offload.csum_offset = 16;
	p->offload.hdr_len = HEADERS;
	p->offload.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	p->offload.gso_size = segment;
}

void traffic_uncut(int fd)
{
	static struct packet p;

	make_burst(&p, BURST_MAX, 1000, 0);
	p.bytes[ETH_HLEN + 9] = PROTOCOL_NONE;
	give(fd, &p, BURST_MAX, 0);
}

void traffic_wild(int fd, struct random *r, uint32_t priority)
{
	uint32_t bytes = HEADERS + random_below(r, BURST_MAX - HEADERS);
	uint8_t last = random_next(r);
	static struct packet p;

	make_burst(&p, bytes, 100 + random_below(r, 1400), last);
	/* Occasionally the header contradicts the frame. */
	if (random_percent(r, 5))
		p.bytes[ETH_HLEN + random_below(r, 40)] = random_next(r);
	give(fd, &p, bytes, priority);
}
