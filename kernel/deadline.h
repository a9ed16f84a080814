/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long a frame has waited: its delivery time (skb->tstamp) says when it
 * came.  TCP and fq write and read it on the same clock; a time that is still
 * to come (EDT, SO_TXTIME) is left as it is, and the wait counts from then.
 * Times on another clock are not ours: such frames have no deadline.
 * docs/decisions/0024.
 */
#ifndef PSP_DEADLINE_H
#define PSP_DEADLINE_H

#include "compat/tstamp.h"

/* The frame comes in. */
static inline void psp_stamp(struct sk_buff *skb, u64 now_ns)
{
	if (!skb->tstamp ||
	    (psp_has_delivery_time(skb) && (u64)skb->tstamp < now_ns))
		skb_set_delivery_time(skb, now_ns, PSP_MONOTONIC);
}

/* It is the frame's turn, and it has waited for longer. */
static inline bool psp_is_late(const struct sk_buff *skb, u64 deadline_ns,
			       u64 now_ns)
{
	return psp_has_delivery_time(skb) && now_ns > (u64)skb->tstamp &&
	       now_ns - (u64)skb->tstamp > deadline_ns;
}

/* The frame goes out: a time that is over says nothing to who comes next. */
static inline void psp_unstamp(struct sk_buff *skb, u64 now_ns)
{
	if (psp_has_delivery_time(skb) && (u64)skb->tstamp <= now_ns)
		skb_set_delivery_time(skb, 0, PSP_MONOTONIC);
}

#endif
