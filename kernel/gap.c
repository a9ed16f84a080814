// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gap frames (paper 000, 3.2), padded to the size of the gap: what nobody
 * takes in.  Kinds: see docs/man/tc-psp.8, "gap".
 *
 * One template of the largest size is made when memory may be waited for;
 * what goes out are clones trimmed to size, which share its bytes.
 */
#include <linux/etherdevice.h>
#include <linux/if_ether.h>

#include "psp.h"
#include "compat/pkt_len.h"

#define PSP_PAUSE_OPCODE	1
/* IEEE 802 "local experimental EtherType 1": no protocol of the host. */
#define PSP_ETH_P_EXPERIMENTAL	0x88b5

/*
 * frame_bytes: of the largest gap frame, Ethernet header included.  The pause
 * time of a PAUSE frame stays 0: nobody pauses.
 */
struct sk_buff *psp_gap_template(struct net_device *dev, u32 frame_bytes,
				 enum tc_psp_gap kind)
{
	/* Of MAC control: no bridge forwards it (IEEE 802.1D, 7.12.6). */
	static const u8 control[ETH_ALEN] = {
		0x01, 0x80, 0xc2, 0x00, 0x00, 0x01
	};
	struct sk_buff *skb = alloc_skb(frame_bytes, GFP_KERNEL);
	struct ethhdr *eth;

	if (!skb)
		return NULL;

	eth = skb_put_zero(skb, frame_bytes);
	ether_addr_copy(eth->h_dest,
			kind == TC_PSP_GAP_SELF ? dev->dev_addr : control);
	ether_addr_copy(eth->h_source, dev->dev_addr);
	if (kind == TC_PSP_GAP_PAUSE) {
		eth->h_proto = htons(ETH_P_PAUSE);
		*(__be16 *)(eth + 1) = htons(PSP_PAUSE_OPCODE);
	} else {
		eth->h_proto = htons(PSP_ETH_P_EXPERIMENTAL);
	}

	skb->dev = dev;
	skb->protocol = eth->h_proto;
	skb_reset_mac_header(skb);
	/* Taps insist on a network header inside the frame. */
	skb_set_network_header(skb, ETH_HLEN);
	skb_reset_mac_len(skb);
	return skb;
}

/*
 * A frame that takes gap_bytes on the wire, or NULL without memory.  core/
 * asks for no gap shorter than a smallest frame nor longer than a largest.
 */
struct sk_buff *psp_gap_frame(struct psp_qdisc *q, u32 gap_bytes)
{
	struct sk_buff *skb = skb_clone(q->gap, GFP_ATOMIC);

	if (unlikely(!skb))
		return NULL;

	skb_trim(skb, gap_bytes - q->port.pace.overhead_bytes);
	psp_note_pkt_len(skb);
	return skb;
}
