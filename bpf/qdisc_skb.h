/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A packet as the qdisc sees it: what it reads of it, whose it is, and how long it is.
 */
#ifndef QDISC_SKB_H
#define QDISC_SKB_H

#include "arena.h"
#include "match.h"

#define UDP_HEADER		8
/* Of Ethernet's type in a frame. */
#define ETH_TYPE_OFFSET		12
/* linux/skbuff.h */
#define SKB_GSO_TCPV4		(1u << 0)
#define SKB_GSO_TCPV6		(1u << 4)
#define SKB_GSO_UDP_L4		(1u << 17)

#define KFUNC	extern __attribute__((section(".ksyms")))

/* Reads a packet wherever its bytes are: those of rings are not with its header. */
struct bpf_dynptr {
	u64 words[2];
} __attribute__((aligned(8)));

KFUNC void *bpf_rdonly_cast(const void *object, u32 type);
KFUNC int bpf_dynptr_from_skb(struct sk_buff *skb, u64 flags, struct bpf_dynptr *to);

INLINE long read_bytes(const void *source, u32 offset, void *to, u32 len)
{
	return bpf_dynptr_read(to, len, source, offset, 0);
}

/* Returns the packet's socket, if it is a whole one; NULL. */
INLINE struct sock *sender_of(const struct sk_buff *skb)
{
	struct sock *sk = skb->sk;
	u8 state;

	if (!sk)
		return NULL;
	state = sk->__sk_common.skc_state;
	return state == TCP_TIME_WAIT || state == TCP_NEW_SYN_RECV ? NULL : sk;
}

INLINE int is_sender_in(const struct search *s, u64 cgroup_id, u32 level)
{
	struct sock *sk = sender_of(s->skb);
	struct cgroup_subsys_state *parent;
	struct cgroup *cgroup;

	(void)level;
	if (!sk || !FIELD(sk, sk_cgrp_data, FIELD_EXISTS))
		return 0;
	cgroup = sk->sk_cgrp_data.cgroup;
	while (cgroup && CAN_LOOP) {
		if (cgroup->kn->id == cgroup_id)
			return 1;
		parent = cgroup->self.parent;
		cgroup = parent ? parent->cgroup : NULL;
	}
	return 0;
}

/* Returns net_cls.classid of the sender's cgroup; 0: none. */
INLINE u32 classid_of(const struct sk_buff *skb)
{
	struct sock *sk = sender_of(skb);

	if (!sk || !FIELD(sk, sk_cgrp_data.classid, FIELD_EXISTS))
		return 0;
	return sk->sk_cgrp_data.classid;
}

INLINE void each_rule(struct search *s)
{
	u32 number = 0;

	while (number < s->rules && CAN_LOOP)
		if (look(number++, s))
			break;
}

INLINE struct qdisc_skb_cb *control_block(const struct sk_buff *skb)
{
	return (struct qdisc_skb_cb *)skb->cb;
}

/*
 * Returns the length of the headers of each frame in a burst, link header included.
 * 0: this type of burst does not tell.
 */
INLINE u32 burst_header(const struct sk_buff *skb, u32 type)
{
	const unsigned char *head = skb->head;
	u32 transport = skb->encapsulation ? skb->inner_transport_header :
					     skb->transport_header;
	u32 offset = transport - (u32)(skb->data - head);
	u8 words = 0;

	if ((int)offset <= 0)
		return 0;
	if (type & SKB_GSO_UDP_L4)
		return offset + UDP_HEADER;
	if (!(type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6)) ||
	    bpf_probe_read_kernel(&words, sizeof(words), head + transport + 12))
		return 0;
	return offset + (words >> 4) * 4;
}

/* Has the packet the option of BIG TCP over IPv6? */
INLINE bool is_jumbo(const struct sk_buff *skb)
{
	u8 next = 0;

	if (skb->len <= LEGACY_GSO_MAX || skb->protocol != __builtin_bswap16(ETH_IPV6))
		return false;
	bpf_probe_read_kernel(&next, sizeof(next), skb->head + skb->network_header + 6);
	return next == IP_HOP_BY_HOP;
}

/* Measures a packet; `rule` is the lower half of port_frame_rule()'s. */
INLINE void measure_packet(const struct sk_buff *skb, struct burst *b, u32 rule)
{
	/* 1: the type of the running kernel. */
	const struct skb_shared_info *info =
		bpf_rdonly_cast(skb->head + skb->end,
				__builtin_btf_type_id(*(struct skb_shared_info *)0, 1));
	struct gso gso = {};

	gso.size = info->gso_size;
	if (gso.size) {
		gso.header_bytes = burst_header(skb, info->gso_type);
		gso.jumbo_bytes = is_jumbo(skb) ? JUMBO_BYTES : 0;
		gso.segs = info->gso_segs;
		gso.estimate_bytes = control_block(skb)->pkt_len;
	}
	measure(b, skb->len, skb->vlan_all ? VLAN_BYTES : 0, &gso, rule >> 16,
		rule & 0xffff);
}

/* Counts the VLAN tags of a frame. */
INLINE u32 tags_of(struct sk_buff *skb)
{
	u32 tags = skb->vlan_all ? 1 : 0, proto;
	struct bpf_dynptr bytes;
	u8 type[2];

	bpf_dynptr_from_skb(skb, 0, &bytes);
	for (u32 tag = 0; tag < 2; tag++) {
		if (read_bytes(&bytes, ETH_TYPE_OFFSET + tag * VLAN_BYTES, type, sizeof(type)))
			break;
		proto = be16(type);
		if (proto != ETH_VLAN && proto != ETH_QINQ)
			break;
		tags++;
	}
	return tags;
}

#endif
