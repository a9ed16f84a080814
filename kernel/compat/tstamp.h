/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests for a frame's delivery time on the monotonic clock and on CLOCK_TAI.  Newer kernels
 * store a timestamp's clock; older ones have one bit for the monotonic one.
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

static inline bool psp_has_tai_time(const struct sk_buff *skb)
{
	return skb->tstamp && skb->tstamp_type == SKB_CLOCK_TAI;
}
#else
#define PSP_MONOTONIC	true

static inline bool psp_has_delivery_time(const struct sk_buff *skb)
{
	return skb->tstamp && skb->mono_delivery_time;
}

static inline bool psp_has_tai_time(const struct sk_buff *skb)
{
	return false;
}
#endif

#endif
