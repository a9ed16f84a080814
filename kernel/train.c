// SPDX-License-Identifier: GPL-2.0-only
/*
 * GSO trains: TCP and UDP hand over up to 64 KB (BIG TCP: more) as one,
 * whatever the device can do itself.  Between the frames of a train that is
 * not cut there is no room for a gap: it leaves as one burst.
 */
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/ipv6.h>

#include "psp.h"

/*
 * split-gso auto: the longest train of a normal class that stays whole, as
 * time on the line.  A paced frame that falls due meanwhile waits for all of
 * it.  10 us is less than one largest frame takes at 1 Gbit/s, a wait that
 * every frame may meet anyway, and less than timers are late.
 */
#define PSP_TRAIN_NS	(10 * NSEC_PER_USEC)

/* Most tags in a frame that the stack itself looks past. */
#define PSP_TAGS_MAX	8

/*
 * Bytes that every frame of the train starts with, link header included; 0
 * if it is of a kind whose frames cannot be told from here.
 */
static u32 psp_train_header(const struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	struct tcphdr buffer;
	const struct tcphdr *tcp;
	int offset;

	offset = skb->encapsulation ? skb_inner_transport_offset(skb)
				    : skb_transport_offset(skb);
	if (offset <= 0)
		return 0;
	if (info->gso_type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6)) {
		tcp = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);
		return tcp ? offset + __tcp_hdrlen(tcp) : 0;
	}
	if (info->gso_type & SKB_GSO_UDP_L4)
		return offset + sizeof(struct udphdr);
	return 0;
}

/* BIG TCP over IPv6 carries an option that is taken away before the wire. */
static bool psp_train_jumbo(const struct sk_buff *skb)
{
	return skb->len > GSO_LEGACY_MAX_SIZE &&
	       skb->protocol == htons(ETH_P_IPV6) &&
	       ipv6_hdr(skb)->nexthdr == NEXTHDR_HOP;
}

static bool psp_train_load(const struct psp_qdisc *q,
			   const struct sk_buff *skb, u32 tag_bytes,
			   struct psp_load *load)
{
	u32 header = psp_train_header(skb), size = skb_shinfo(skb)->gso_size;
	u32 payload, last;

	if (!header || !size || header >= skb->len || psp_train_jumbo(skb))
		return false;
	payload = skb->len - header;
	header += tag_bytes;
	load->train.frames = DIV_ROUND_UP(payload, size);
	last = payload - (load->train.frames - 1) * size;
	load->train.len_bytes = payload + load->train.frames * header;
	load->frame_bytes = header + min(size, payload);
	load->train.wire_bytes = (load->train.frames - 1) *
			   pace_wire_bytes(&q->pace, header + size) +
			   pace_wire_bytes(&q->pace, header + last);
	return true;
}

/*
 * What the device will be given: it inserts the VLAN tag.  False for a train
 * that does not say what its frames will be.
 */
bool psp_load_of(const struct psp_qdisc *q, const struct sk_buff *skb,
		 struct psp_load *load)
{
	u32 tag_bytes = skb_vlan_tag_present(skb) ? VLAN_HLEN : 0;

	if (unlikely(skb_is_gso(skb)))
		return psp_train_load(q, skb, tag_bytes, load);
	load->train.frames = 1;
	load->train.len_bytes = skb->len + tag_bytes;
	load->frame_bytes = load->train.len_bytes;
	load->train.wire_bytes = pace_wire_bytes(&q->pace, load->train.len_bytes);
	return true;
}

/* Tags that the frame itself carries, the stack's own limit at most. */
static u32 psp_tags_within(const struct sk_buff *skb)
{
	const u32 offset = offsetof(struct ethhdr, h_proto);
	__be16 buffer;
	const __be16 *proto;
	u32 tags;

	for (tags = 0; tags < PSP_TAGS_MAX; tags++) {
		proto = skb_header_pointer(skb, offset + tags * VLAN_HLEN,
					   sizeof(buffer), &buffer);
		if (!proto || !eth_type_vlan(*proto))
			break;
	}
	return tags;
}

/*
 * Is a frame of frame_bytes, or the largest of a train, longer than the device
 * takes?  The MTU does not count the link header, nor VLAN tags: not the one
 * that the device inserts, nor those in the frame, for a VLAN device has its
 * lower device's MTU.  One tag's bytes are everybody's, as where bridges
 * forward (is_skb_forwardable()).
 */
bool psp_is_long(const struct psp_qdisc *q, const struct sk_buff *skb,
		 u32 frame_bytes)
{
	u32 max = q->port.pace.max_frame_bytes + VLAN_HLEN;
	u32 tags;

	if (likely(frame_bytes <= max))
		return false;
	if (qdisc_dev(q->sch)->type != ARPHRD_ETHER)
		return true;
	tags = psp_tags_within(skb) + !!skb_vlan_tag_present(skb);
	return !tags || frame_bytes > max + (tags - 1) * VLAN_HLEN;
}

/* May the train stay whole? */
bool psp_train_whole(const struct psp_qdisc *q, const struct psp_class *cl,
		     const struct sk_buff *skb)
{
	struct psp_load load;

	switch (q->opt.split_gso) {
	case TC_PSP_SPLIT_GSO_ON:
		return false;
	case TC_PSP_SPLIT_GSO_AUTO:
		if (cl->opt.kind != TC_PSP_KIND_NORMAL)
			return false;
		break;
	}
	return psp_load_of(q, skb, &load) &&
	       load.train.len_bytes <= q->port.pace.max_burst_bytes;
}

/*
 * The longest train that may stay whole, headers of every frame counted; 0:
 * none.  The device's limit counts headers once: an eighth more is enough for
 * segments of 700 bytes, and trains of shorter ones are cut a little earlier.
 */
u32 psp_train_max(const struct net_device *dev, const struct psp_options *opt,
		  u64 line_rate_bps, u32 max_frame_bytes)
{
	u32 size = READ_ONCE(dev->gso_max_size);
	u64 max = min_t(u64, size + size / 8, PACE_FRAME_MAX);

	switch (opt->split_gso) {
	case TC_PSP_SPLIT_GSO_ON:
		return 0;
	case TC_PSP_SPLIT_GSO_AUTO:
		/* A train hardly ever fits before the next paced frame. */
		if (opt->guard)
			return 0;
		max = min(max, pace_mul_div(line_rate_bps, PSP_TRAIN_NS,
					    8ull * NSEC_PER_SEC));
		break;
	}
	return max > max_frame_bytes ? max : 0;
}
