/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A frame's delivery time, on the monotonic clock: newer kernels name the
 * clock, older ones have one bit for this one.
 */
#ifndef PSP_COMPAT_TSTAMP_H
#define PSP_COMPAT_TSTAMP_H

#include <linux/skbuff.h>

#ifdef PSP_HAVE_TSTAMP_TYPE
#define PSP_MONOTONIC	SKB_CLOCK_MONOTONIC

static inline bool psp_has_delivery_time(const struct sk_buff *skb)
{
	return skb->tstamp && skb->tstamp_type == SKB_CLOCK_MONOTONIC;
}
#else
#define PSP_MONOTONIC	true

static inline bool psp_has_delivery_time(const struct sk_buff *skb)
{
	return skb->tstamp && skb->mono_delivery_time;
}
#endif

#endif
