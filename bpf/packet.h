/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the fields of a packet that matches look at (match.h), and how long its
 * headers are.
 */
#ifndef PACKET_H
#define PACKET_H

#include "measure.h"

enum {
	ETH_IPV4 = 0x0800,
	ETH_IPV6 = 0x86dd,
	ETH_VLAN = 0x8100,
	ETH_QINQ = 0x88a8,
	ETH_PPPOE = 0x8864,
	PPP_IPV4 = 0x0021,
	PPP_IPV6 = 0x0057,
	IP_HOP_BY_HOP = 0,
	IP_TCP = 6,
	IP_UDP = 17,
	IP_ROUTING = 43,
	IP_FRAGMENT = 44,
	IP_AUTHENTICATION = 51,
	IP_NO_NEXT = 59,
	IP_OPTIONS = 60,
	IP_SCTP = 132,
};

#define EXTENSIONS_MAX	6
/* Tags of a frame that are looked at, with the one that is beside it. */
#define TAGS_MAX	3
/* PPPoE's header, and the protocol of PPP behind it. */
#define PPPOE_BYTES	8
#define PPPOE_SESSION	0x1100	/* version 1, type 1, code 0 */

/* The fields of a rule that count, and the fields that a packet has. */
enum match_field {
	MATCH_FAMILY = 1 << 0,
	MATCH_PROTOCOL = 1 << 1,
	MATCH_FROM = 1 << 2,
	MATCH_TO = 1 << 3,
	MATCH_FROM_PORT = 1 << 4,
	MATCH_TO_PORT = 1 << 5,
	MATCH_DSCP = 1 << 6,
	MATCH_VLAN = 1 << 7,
	MATCH_INTERFACE = 1 << 8,
	MATCH_MARK = 1 << 9,
	MATCH_CGROUP = 1 << 10,
};

/* What a packet is of its datagram. */
enum fragment {
	FRAGMENT_NONE,		/* all of it */
	FRAGMENT_FIRST,		/* the first of several: it has the ports */
	FRAGMENT_LATER,
};

/*
 * A packet's fields, in the host's order but for addresses.  They are as short as they can be: the
 * qdisc has it on its stack.
 */
struct packet {
	u32 fields;
	u32 from[4];		/* IPv4: the first word */
	u32 to[4];
	u32 datagram;		/* number of the datagram, if it is in fragments */
	u32 header_bytes;	/* all headers up to TCP's or UDP's; 0: not known */
	u32 jumbo_bytes;	/* of the headers, what the device removes */
	u32 len_bytes;
	u16 from_port;
	u16 to_port;
	u16 vlan;
	u8 family;		/* 4 or 6 */
	u8 protocol;
	u8 dscp;
	u8 fragment;		/* enum fragment */
	u8 datagram_protocol;	/* as each fragment of the datagram names it */
};

/*
 * Reads bytes of a packet, from its link header on and wherever they are.  Returns 0, or
 * another number if the packet is shorter.  Each program has its own.
 */
INLINE long read_bytes(const void *source, u32 offset, void *to, u32 len);

INLINE u32 be16(const u8 *bytes)
{
	return (u32)bytes[0] << 8 | bytes[1];
}

/* Reads the ports, and how long the headers are. */
INLINE void read_transport(const void *source, struct packet *p, u32 offset)
{
	u8 start[14];

	if (p->protocol != IP_TCP && p->protocol != IP_UDP && p->protocol != IP_SCTP)
		return;
	if (read_bytes(source, offset, start, 4))
		return;
	p->from_port = be16(start);
	p->to_port = be16(start + 2);
	p->fields |= MATCH_FROM_PORT | MATCH_TO_PORT;
	if (p->protocol == IP_UDP)
		p->header_bytes = offset + 8;
	else if (p->protocol == IP_TCP && !read_bytes(source, offset, start, sizeof(start)))
		p->header_bytes = offset + (start[12] >> 4) * 4;
}

INLINE void read_ipv4(const void *source, struct packet *p, u32 offset)
{
	u8 start[20];
	u32 place;

	if (read_bytes(source, offset, start, sizeof(start)))
		return;
	p->fields |= MATCH_FAMILY | MATCH_PROTOCOL | MATCH_FROM | MATCH_TO | MATCH_DSCP;
	p->family = 4;
	p->protocol = start[9];
	p->dscp = start[1] >> 2;
	__builtin_memcpy(p->from, start + 12, 4);
	__builtin_memcpy(p->to, start + 16, 4);
	/* The flag of more fragments, and where this one begins. */
	place = be16(start + 6) & 0x3fff;
	if (place) {
		p->fragment = place & 0x1fff ? FRAGMENT_LATER : FRAGMENT_FIRST;
		p->datagram = be16(start + 4);
		p->datagram_protocol = p->protocol;
	}
	if (p->fragment == FRAGMENT_LATER)
		return;
	read_transport(source, p, offset + (start[0] & 0xf) * 4);
}

INLINE void read_ipv6(const void *source, struct packet *p, u32 offset)
{
	u8 start[40], next, type;

	if (read_bytes(source, offset, start, sizeof(start)))
		return;
	p->fields |= MATCH_FAMILY | MATCH_PROTOCOL | MATCH_FROM | MATCH_TO | MATCH_DSCP;
	p->family = 6;
	p->dscp = (be16(start) >> 6) & 0x3f;
	__builtin_memcpy(p->from, start + 8, 16);
	__builtin_memcpy(p->to, start + 24, 16);
	next = start[6];
	offset += sizeof(start);
	for (int i = 0; i < EXTENSIONS_MAX; i++) {
		u8 head[8];
		u32 place;

		if (next != IP_HOP_BY_HOP && next != IP_ROUTING && next != IP_OPTIONS &&
		    next != IP_FRAGMENT && next != IP_AUTHENTICATION)
			break;
		if (read_bytes(source, offset, head, sizeof(head)))
			return;
		if (next == IP_HOP_BY_HOP && p->len_bytes > LEGACY_GSO_MAX)
			p->jumbo_bytes = JUMBO_BYTES;
		type = next;
		p->protocol = next = head[0];
		/* The second byte of a fragment's header is reserved, and its length is 8. */
		if (type == IP_FRAGMENT)
			offset += 8;
		else
			offset += type == IP_AUTHENTICATION ? head[1] * 4 + 8 : head[1] * 8 + 8;
		/* A whole datagram may have the header, too. */
		place = type == IP_FRAGMENT ? be16(head + 2) & 0xfff9 : 0;
		if (place) {
			p->fragment = place & 0xfff8 ? FRAGMENT_LATER : FRAGMENT_FIRST;
			p->datagram = be16(head + 4) << 16 | be16(head + 6);
			p->datagram_protocol = next;
		}
		if (p->fragment == FRAGMENT_LATER)
			return;
	}
	p->protocol = next;
	read_transport(source, p, offset);
}

/*
 * Reads what rules may look at.  The caller has set p->len_bytes, and the tag that is
 * beside the packet: p->vlan with MATCH_VLAN in p->fields; all else is 0.  `proto` is
 * what is behind the link header of link_bytes.
 */
INLINE void read_packet(const void *source, struct packet *p, u32 proto, u32 link_bytes)
{
	int tags_max = p->fields & MATCH_VLAN ? TAGS_MAX - 1 : TAGS_MAX;
	u32 offset = link_bytes;
	u8 tag[VLAN_BYTES], pppoe[PPPOE_BYTES];

	for (int i = 0; i < TAGS_MAX; i++) {
		if (i == tags_max || (proto != ETH_VLAN && proto != ETH_QINQ))
			break;
		if (read_bytes(source, offset, tag, sizeof(tag)))
			return;
		if (!(p->fields & MATCH_VLAN)) {
			p->fields |= MATCH_VLAN;
			p->vlan = be16(tag) & 0xfff;
		}
		proto = be16(tag + 2);
		offset += VLAN_BYTES;
	}
	if (proto == ETH_PPPOE) {
		if (read_bytes(source, offset, pppoe, sizeof(pppoe)) ||
		    be16(pppoe) != PPPOE_SESSION)
			return;
		proto = be16(pppoe + 6);
		proto = proto == PPP_IPV4 ? ETH_IPV4 : proto == PPP_IPV6 ? ETH_IPV6 : 0;
		offset += PPPOE_BYTES;
	}
	if (proto == ETH_IPV4)
		read_ipv4(source, p, offset);
	else if (proto == ETH_IPV6)
		read_ipv6(source, p, offset);
}

#endif
