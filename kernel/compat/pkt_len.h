/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the queueing layer notes about a frame.  Newer kernels also note of
 * how many segments it consists and count packets by that.
 */
#ifndef PSP_COMPAT_PKT_LEN_H
#define PSP_COMPAT_PKT_LEN_H

#include <net/sch_generic.h>

/* For every frame made or cut here: `skb` is one segment of its own length. */
static inline void psp_note_pkt_len(struct sk_buff *skb)
{
	qdisc_skb_cb(skb)->pkt_len = skb->len;
#ifdef PSP_HAVE_PKT_SEGS
	qdisc_skb_cb(skb)->pkt_segs = 1;
#endif
}

#endif
