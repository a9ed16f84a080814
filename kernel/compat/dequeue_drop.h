/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A drop inside dequeue.  Newer kernels free such frames after the root lock
 * is released, for qdiscs that say so by a flag, and tell reasons apart.
 */
#ifndef PSP_COMPAT_DEQUEUE_DROP_H
#define PSP_COMPAT_DEQUEUE_DROP_H

#include <net/sch_generic.h>

#ifdef TCQ_F_DEQUEUE_DROPS
#define PSP_STATIC_FLAGS	TCQ_F_DEQUEUE_DROPS

enum psp_drop_reason {
	PSP_DROP_LATE		= QDISC_DROP_CONGESTED,
	PSP_DROP_LONG		= QDISC_DROP_OVERLIMIT,
	PSP_DROP_SEGMENT	= QDISC_DROP_GENERIC,
};

static inline void psp_dequeue_drop(struct Qdisc *sch, struct sk_buff *skb,
				    enum psp_drop_reason reason)
{
	qdisc_dequeue_drop(sch, skb, (enum qdisc_drop_reason)reason);
}

/*
 * Takes the frames that children dropped while psp asked them outside of a run of
 * the root.  Root lock; they are freed without it.
 */
static inline struct sk_buff *psp_take_dropped(struct Qdisc *root)
{
	struct sk_buff *dropped = root->to_free;

	root->to_free = NULL;
	return dropped;
}

static inline void psp_free_dropped(struct Qdisc *root, struct sk_buff *dropped)
{
	tcf_kfree_skb_list(dropped, root, root->dev_queue, qdisc_dev(root));
}
#else
#define PSP_STATIC_FLAGS	0

enum psp_drop_reason {
	PSP_DROP_LATE,
	PSP_DROP_LONG,
	PSP_DROP_SEGMENT,
};

static inline void psp_dequeue_drop(struct Qdisc *sch, struct sk_buff *skb,
				    enum psp_drop_reason reason)
{
	kfree_skb_reason(skb, SKB_DROP_REASON_QDISC_DROP);
}

/* Children free what they drop themselves. */
static inline struct sk_buff *psp_take_dropped(struct Qdisc *root)
{
	return NULL;
}

static inline void psp_free_dropped(struct Qdisc *root, struct sk_buff *dropped)
{
}
#endif

#endif
