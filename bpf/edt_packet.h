/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the classifier reads of a packet: the fields that rules look at, and what
 * the packet is on the wire.
 */
#ifndef EDT_PACKET_H
#define EDT_PACKET_H

#include "helpers.h"

/* linux/bpf.h; the kernel rewrites accesses to it, so the order counts. */
struct __sk_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
	u32 queue_mapping;
	u32 protocol;
	u32 vlan_present;
	u32 vlan_tci;
	u32 vlan_proto;
	u32 priority;
	u32 ingress_ifindex;
	u32 ifindex;
	u32 tc_index;
	u32 cb[5];
	u32 hash;
	u32 tc_classid;
	u32 data;
	u32 data_end;
	u32 napi_id;
	u32 family;
	u32 remote_ip4;
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 local_ip6[4];
	u32 remote_port;
	u32 local_port;
	u32 data_meta;
	u64 flow_keys;
	u64 tstamp;
	u32 wire_len;
	u32 gso_segs;
	u64 sk;
	u32 gso_size;
};

enum {
	ETH_IPV4 = 0x0800,
	ETH_IPV6 = 0x86dd,
	ETH_VLAN = 0x8100,
	ETH_QINQ = 0x88a8,
	IP_HOP_BY_HOP = 0,
	IP_TCP = 6,
	IP_UDP = 17,
	IP_ROUTING = 43,
	IP_FRAGMENT = 44,
	IP_NO_NEXT = 59,
	IP_OPTIONS = 60,
	IP_SCTP = 132,
};

#define VLAN_BYTES		4
#define EXTENSIONS_MAX		6
/* Up to this length a packet is no burst of BIG TCP. */
#define LEGACY_GSO_MAX		65536
#define JUMBO_BYTES		8

/* Which fields of a rule count; of a packet, which fields it has. */
enum edt_field {
	EDT_FAMILY = 1 << 0,
	EDT_PROTOCOL = 1 << 1,
	EDT_FROM = 1 << 2,
	EDT_TO = 1 << 3,
	EDT_FROM_PORT = 1 << 4,
	EDT_TO_PORT = 1 << 5,
	EDT_DSCP = 1 << 6,
	EDT_VLAN = 1 << 7,
	EDT_INTERFACE = 1 << 8,
	EDT_MARK = 1 << 9,
};

/* A packet's fields, in the host's order but for addresses. */
struct edt_packet {
	u32 fields;
	u32 family;		/* 4 or 6 */
	u32 protocol;
	u32 from[4];		/* IPv4: the first word */
	u32 to[4];
	u32 from_port;
	u32 to_port;
	u32 dscp;
	u32 vlan;
	u32 header_bytes;	/* all headers up to TCP's or UDP's; 0: not known */
	u32 jumbo_bytes;	/* of the headers, what the device removes */
};

INLINE u32 be16(const u8 *bytes)
{
	return (u32)bytes[0] << 8 | bytes[1];
}

/* Reads the ports, and how long the headers are. */
INLINE void read_transport(struct __sk_buff *skb, struct edt_packet *p, u32 offset)
{
	u8 start[14];

	if (p->protocol != IP_TCP && p->protocol != IP_UDP && p->protocol != IP_SCTP)
		return;
	if (bpf_skb_load_bytes(skb, offset, start, 4))
		return;
	p->from_port = be16(start);
	p->to_port = be16(start + 2);
	p->fields |= EDT_FROM_PORT | EDT_TO_PORT;
	if (p->protocol == IP_UDP)
		p->header_bytes = offset + 8;
	else if (p->protocol == IP_TCP && !bpf_skb_load_bytes(skb, offset, start, sizeof(start)))
		p->header_bytes = offset + (start[12] >> 4) * 4;
}

INLINE void read_ipv4(struct __sk_buff *skb, struct edt_packet *p, u32 offset)
{
	u8 start[20];

	if (bpf_skb_load_bytes(skb, offset, start, sizeof(start)))
		return;
	p->fields |= EDT_FAMILY | EDT_PROTOCOL | EDT_FROM | EDT_TO | EDT_DSCP;
	p->family = 4;
	p->protocol = start[9];
	p->dscp = start[1] >> 2;
	__builtin_memcpy(p->from, start + 12, 4);
	__builtin_memcpy(p->to, start + 16, 4);
	/* Only the first fragment has ports. */
	if (be16(start + 6) & 0x1fff)
		return;
	read_transport(skb, p, offset + (start[0] & 0xf) * 4);
}

INLINE void read_ipv6(struct __sk_buff *skb, struct edt_packet *p, u32 offset)
{
	u8 start[40], next, type;

	if (bpf_skb_load_bytes(skb, offset, start, sizeof(start)))
		return;
	p->fields |= EDT_FAMILY | EDT_PROTOCOL | EDT_FROM | EDT_TO | EDT_DSCP;
	p->family = 6;
	p->dscp = (be16(start) >> 6) & 0x3f;
	__builtin_memcpy(p->from, start + 8, 16);
	__builtin_memcpy(p->to, start + 24, 16);
	next = start[6];
	offset += sizeof(start);
	for (int i = 0; i < EXTENSIONS_MAX; i++) {
		u8 head[8];

		if (next != IP_HOP_BY_HOP && next != IP_ROUTING && next != IP_OPTIONS &&
		    next != IP_FRAGMENT)
			break;
		if (bpf_skb_load_bytes(skb, offset, head, sizeof(head)))
			return;
		if (next == IP_HOP_BY_HOP && skb->len > LEGACY_GSO_MAX)
			p->jumbo_bytes = JUMBO_BYTES;
		type = next;
		p->protocol = next = head[0];
		/* The second byte of a fragment's header is reserved, and its length is 8. */
		offset += type == IP_FRAGMENT ? 8 : head[1] * 8 + 8;
		/* Only the first fragment has ports. */
		if (type == IP_FRAGMENT && (be16(head + 2) & 0xfff8))
			return;
	}
	p->protocol = next;
	read_transport(skb, p, offset);
}

/* Reads what rules may look at; link_bytes are those of the link header. */
INLINE void read_packet(struct __sk_buff *skb, struct edt_packet *p, u32 link_bytes)
{
	u32 proto = __builtin_bswap16(skb->protocol), offset = link_bytes;
	u8 tag[VLAN_BYTES];

	__builtin_memset(p, 0, sizeof(*p));
	if (skb->vlan_present) {
		p->fields |= EDT_VLAN;
		p->vlan = skb->vlan_tci & 0xfff;
	}
	for (int i = 0; i < 2; i++) {
		if (proto != ETH_VLAN && proto != ETH_QINQ)
			break;
		if (bpf_skb_load_bytes(skb, offset, tag, sizeof(tag)))
			return;
		if (!(p->fields & EDT_VLAN)) {
			p->fields |= EDT_VLAN;
			p->vlan = be16(tag) & 0xfff;
		}
		proto = be16(tag + 2);
		offset += VLAN_BYTES;
	}
	if (proto == ETH_IPV4)
		read_ipv4(skb, p, offset);
	else if (proto == ETH_IPV6)
		read_ipv6(skb, p, offset);
}

/* What a packet is on the wire: how many frames, of how many bytes. */
struct edt_burst {
	u32 frames;
	u32 len_bytes;		/* with the headers of each frame */
	u32 wire_bytes;		/* padded, plus overhead */
};

INLINE u32 on_wire(u32 bytes, u32 min_bytes, u32 overhead_bytes)
{
	return (bytes < min_bytes ? min_bytes : bytes) + overhead_bytes;
}

/*
 * Measures a packet as the device sends it: a GSO packet as the frames that it
 * becomes, each with its headers; a VLAN tag that the device inserts counts.  Of a
 * burst whose headers are not known (a tunnel's) the kernel's own estimate counts.
 */
INLINE void measure(struct __sk_buff *skb, const struct edt_packet *p,
		    struct edt_burst *b, u32 min_bytes, u32 overhead_bytes)
{
	u32 tag_bytes = skb->vlan_present ? VLAN_BYTES : 0;
	u32 size = skb->gso_size, len = skb->len, header = p->header_bytes;
	u32 payload, last, frames;

	b->frames = 1;
	b->len_bytes = len + tag_bytes;
	b->wire_bytes = on_wire(b->len_bytes, min_bytes, overhead_bytes);
	if (!size)
		return;
	if (header && header < len) {
		payload = len - header;
		header += tag_bytes - p->jumbo_bytes;
		frames = (payload + size - 1) / size;
		last = payload - (frames - 1) * size;
		b->frames = frames;
		b->len_bytes = payload + frames * header;
		b->wire_bytes = (frames - 1) *
				on_wire(header + size, min_bytes, overhead_bytes) +
				on_wire(header + last, min_bytes, overhead_bytes);
		return;
	}
	frames = skb->gso_segs;
	b->frames = frames ? frames : 1;
	b->len_bytes = skb->wire_len + b->frames * tag_bytes;
	b->wire_bytes = b->len_bytes + b->frames * overhead_bytes;
}

#endif
