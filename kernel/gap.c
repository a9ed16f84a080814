// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gap frames: IEEE 802.3x PAUSE frames with pause time 0, padded to the size
 * of the gap (paper 000, 3.2).  The port at the far end of the cable discards
 * them: they are MAC control frames and no bridge forwards their address.
 *
 * One template of the largest size is made when memory may be waited for;
 * what goes out are clones trimmed to size, which share its bytes.
 */
#include <linux/etherdevice.h>
#include <linux/if_ether.h>

#include "psp.h"
#include "compat/pkt_len.h"

#define PSP_PAUSE_OPCODE	1

/* frame_bytes: of the largest gap frame, Ethernet header included. */
struct sk_buff *psp_gap_template(struct net_device *dev, u32 frame_bytes)
{
	static const u8 pause_address[ETH_ALEN] = {
		0x01, 0x80, 0xc2, 0x00, 0x00, 0x01
	};
	struct sk_buff *skb = alloc_skb(frame_bytes, GFP_KERNEL);
	struct ethhdr *eth;
	__be16 *control;

	if (!skb)
		return NULL;

	eth = skb_put_zero(skb, frame_bytes);
	ether_addr_copy(eth->h_dest, pause_address);
	ether_addr_copy(eth->h_source, dev->dev_addr);
	eth->h_proto = htons(ETH_P_PAUSE);
	control = (__be16 *)(eth + 1);
	control[0] = htons(PSP_PAUSE_OPCODE);
	control[1] = 0;			/* pause time: none */

	skb->dev = dev;
	skb->protocol = htons(ETH_P_PAUSE);
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
