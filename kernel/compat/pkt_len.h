/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sets the length that the queueing layer keeps in a frame's control block.
 * Newer kernels also keep the number of segments there and count packets by it.
 */
#ifndef PSP_COMPAT_PKT_LEN_H
#define PSP_COMPAT_PKT_LEN_H

#include <net/sch_generic.h>

/*
 * Marks `skb` as one segment of skb->len bytes.  psp calls this for every frame
 * that it builds or segments.
 */
static inline void psp_note_pkt_len(struct sk_buff *skb)
{
	qdisc_skb_cb(skb)->pkt_len = skb->len;
#ifdef PSP_HAVE_PKT_SEGS
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
}

/* The headers of `skb`, which may be a burst, have become longer by so many bytes. */
static inline void psp_change_pkt_len(struct sk_buff *skb, int bytes)
{
	qdisc_skb_cb(skb)->pkt_len += bytes * (skb_shinfo(skb)->gso_segs ?: 1);
}

#endif
