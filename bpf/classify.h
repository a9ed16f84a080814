/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the class of a packet as the kernel's filters see it: of edt.bpf.c and of
 * classify.bpf.c.
 */
#ifndef CLASSIFY_H
#define CLASSIFY_H

#include "edt_skb.h"
#include "match.h"

/* Major number of the ids of classes at a root: minor.rs of crates/host/host-config. */
#define ROOT_MAJOR	0x7073u

INLINE long read_bytes(const void *source, u32 offset, void *to, u32 len)
{
	return bpf_skb_load_bytes(source, offset, to, len);
}

INLINE int is_sender_in(const struct search *s, u64 cgroup_id, u32 level)
{
	return bpf_skb_ancestor_cgroup_id(s->skb, level) == cgroup_id;
}

static long look_at(u32 number, void *context)
{
	return look(number, context);
}

INLINE void each_rule(struct search *s)
{
	bpf_loop(s->rules, look_at, s, 0);
}

/* Reads a packet.  What the caller has set: all of `s` is 0. */
INLINE void begin_search(struct search *s, struct __sk_buff *skb, u32 link_bytes)
{
	s->skb = skb;
	s->mark = skb->mark;
	s->interface = skb->ingress_ifindex;
	s->packet.len_bytes = skb->len;
	if (skb->vlan_present) {
		s->packet.fields = MATCH_VLAN;
		s->packet.vlan = skb->vlan_tci & 0xfff;
	}
	read_packet(skb, &s->packet, __builtin_bswap16(skb->protocol), link_bytes);
}

#endif
