/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Drops frames inside dequeue.  Newer kernels free such frames after the root
 * lock is released, for qdiscs that set a flag, and distinguish drop reasons.
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
 * Detaches the list of frames that children dropped while psp called them
 * outside of a run of the root qdisc.  The caller holds the root lock here and
 * releases it before psp_free_dropped().
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

/* Returns NULL: on these kernels children free the frames that they drop. */
static inline struct sk_buff *psp_take_dropped(struct Qdisc *root)
{
	return NULL;
}

static inline void psp_free_dropped(struct Qdisc *root, struct sk_buff *dropped)
{
}
#endif

#endif
