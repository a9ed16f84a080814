// SPDX-License-Identifier: GPL-2.0-only
/* Classifies frames as data or gap, and finds the flow of a data frame. */
#include <linux/etherdevice.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>

#include "wire.h"

#define ETH_P_EXPERIMENT	0x88B5	/* IEEE 802 local experimental 1 */
#define MAC_CONTROL_PAUSE	1	/* opcode, IEEE 802.3 annex 31B */

/* Returns the kind of a frame, whose Ethernet header must be linear. */
enum wire_kind wire_frame_kind(const struct sk_buff *skb)
{
	const struct ethhdr *eth = (const void *)skb->data;
	const __be16 *opcode;
	__be16 space;

	switch (eth->h_proto) {
	case cpu_to_be16(ETH_P_PAUSE):
		opcode = skb_header_pointer(skb, ETH_HLEN, sizeof(space), &space);
		return opcode && *opcode == cpu_to_be16(MAC_CONTROL_PAUSE) ? WIRE_PAUSE : WIRE_GAP;
	case cpu_to_be16(ETH_P_EXPERIMENT):
		return WIRE_GAP;
	}
	/*
	 * A learning switch filters a frame that is addressed to its own
	 * sender.
	 */
	return ether_addr_equal(eth->h_dest, eth->h_source) ? WIRE_GAP : WIRE_DATA;
}

/*
 * Fills in the flow key of a frame. All fragments count as one flow without
 * ports, because only the first fragment has ports.
 */
void wire_frame_key(const struct sk_buff *skb, struct wire_flow_key *key)
{
	const struct ethhdr *eth = (const void *)skb->data;
	const struct iphdr *ip;
	const __be16 *ports;
	__be16 ports_space[2];
	struct iphdr ip_space;

	*key = (struct wire_flow_key){ .ethertype = eth->h_proto };
	if (eth->h_proto != cpu_to_be16(ETH_P_IP))
		return;
	ip = skb_header_pointer(skb, ETH_HLEN, sizeof(ip_space), &ip_space);
	if (!ip || ip->ihl < 5 || (ip->protocol != IPPROTO_TCP && ip->protocol != IPPROTO_UDP))
		return;
	key->proto = ip->protocol;
	key->saddr = ip->saddr;
	key->daddr = ip->daddr;
	if (ip->frag_off & cpu_to_be16(0x3fff))	/* MF or an offset */
		return;
	ports = skb_header_pointer(skb, ETH_HLEN + ip->ihl * 4, sizeof(ports_space), ports_space);
	if (!ports)
		return;
	key->sport = ports[0];
	key->dport = ports[1];
}

static bool same_flow(const struct wire_flow_key *x, const struct wire_flow_key *y)
{
	const u64 *p = (const u64 *)x, *q = (const u64 *)y;

	BUILD_BUG_ON(sizeof(*x) != 2 * sizeof(u64));
	return ((p[0] ^ q[0]) | (p[1] ^ q[1])) == 0;
}

static u32 flow_hash(const struct wire_flow_key *key)
{
	const u64 *p = (const u64 *)key;
	u64 h = (p[0] ^ p[1] * 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;

	return h >> 32;
}

/*
 * Returns the index of the flow with this key, and adds the flow if it is new.
 * The caller holds the end's lock. At least half of the table is empty, so
 * probing is short.
 */
u32 wire_flow_index(struct wire_flows *flows, const struct wire_flow_key *key)
{
	u32 at = flow_hash(key) % WIRE_FLOW_HASH, index;

	while (flows->bucket[at]) {
		index = flows->bucket[at] - 1;
		if (same_flow(&flows->key[index], key))
			return index;
		at = (at + 1) % WIRE_FLOW_HASH;
	}
	index = flows->count;
	if (index == WIRE_FLOWS_MAX)
		return WIRE_FLOW_LOST;
	flows->key[index] = *key;
	flows->bucket[at] = index + 1;
	/*
	 * Pairs with the acquire in flows_show(): the key precedes the count.
	 */
	smp_store_release(&flows->count, index + 1);
	return index;
}
