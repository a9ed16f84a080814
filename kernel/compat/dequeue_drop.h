/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A drop inside dequeue.  Newer kernels free such frames after the root lock
 * is released, for qdiscs that say so by a flag.
 */
#ifndef PSP_COMPAT_DEQUEUE_DROP_H
#define PSP_COMPAT_DEQUEUE_DROP_H

#include <net/sch_generic.h>

#ifdef TCQ_F_DEQUEUE_DROPS
#define PSP_STATIC_FLAGS	TCQ_F_DEQUEUE_DROPS

static inline void psp_dequeue_drop(struct Qdisc *sch, struct sk_buff *skb)
{
	qdisc_dequeue_drop(sch, skb, QDISC_DROP_OVERLIMIT);
}
#else
#define PSP_STATIC_FLAGS	0

static inline void psp_dequeue_drop(struct Qdisc *sch, struct sk_buff *skb)
{
	kfree_skb(skb);
}
#endif

#endif
