// SPDX-License-Identifier: GPL-2.0-only
/* A frame comes from the stack: which class, in which pieces, queued where. */
#include "psp.h"
#include "compat/gso.h"
#include "compat/pkt_len.h"
#include "deadline.h"

enum psp_claim {
	PSP_CLAIM_CLASS,	/* goes to a class */
	PSP_CLAIM_DROP,		/* a filter's action says drop */
	PSP_CLAIM_TAKEN,	/* an action took the frame: free our reference */
	PSP_CLAIM_CONSUMED,	/* an action took the frame with our reference */
};

/* The class of frames that nothing else claims. */
static struct psp_class *psp_unclaimed(struct Qdisc *sch, struct psp_qdisc *q)
{
	struct psp_class *cl;

	cl = psp_class_find(q, TC_H_MAKE(sch->handle, q->opt.default_minor));
	if (cl)
		return cl;
	q->count.unclassified_frames++;
	return &q->direct;
}

/*
 * One hop: classes have no filters of their own, so there is nothing to loop
 * through.  A class id in skb->priority (SO_PRIORITY, cgroups) goes first, as
 * in the other qdiscs with classes.
 */
static enum psp_claim psp_classify(struct sk_buff *skb, struct Qdisc *sch,
				   struct psp_qdisc *q, struct psp_class **cl)
{
	struct tcf_proto *filters = rcu_dereference_bh(q->filters);
	struct tcf_result res = {};

	*cl = NULL;
	if (TC_H_MAJ(skb->priority) == sch->handle)
		*cl = psp_class_find(q, skb->priority);
	if (*cl)
		return PSP_CLAIM_CLASS;

	switch (filters ? tcf_classify(skb, NULL, filters, &res, false)
			: TC_ACT_UNSPEC) {
	case TC_ACT_SHOT:
		return PSP_CLAIM_DROP;
	case TC_ACT_STOLEN:
	case TC_ACT_QUEUED:
	case TC_ACT_TRAP:
		return PSP_CLAIM_TAKEN;
	case TC_ACT_CONSUMED:
		return PSP_CLAIM_CONSUMED;
	case TC_ACT_UNSPEC:
		break;
	default:
		/* The class may be younger than the filter: go by the id. */
		*cl = res.class ? (struct psp_class *)res.class
				: psp_class_find(q, res.classid);
	}
	if (!*cl)
		*cl = psp_unclaimed(sch, q);
	return PSP_CLAIM_CLASS;
}

/* What core/ is to know of, when the frame is queued; 0 of other kinds. */
static u32 psp_gated_bytes(const struct psp_qdisc *q,
			   const struct psp_class *cl,
			   const struct sk_buff *skb)
{
	struct psp_load load;

	if (cl->pace.type != PACE_TYPE_RT || !psp_load_of(q, skb, &load))
		return 0;
	return load.train.wire_bytes;
}

/*
 * Gives one frame to the child of `cl`.  The child may call back into
 * psp_enqueue() (netem's duplicates) or drop frames it holds: whether the
 * class is active is asked afterwards, and asked of core/.
 */
static int psp_enqueue_child(struct sk_buff *skb, struct Qdisc *sch,
			     struct psp_class *cl, struct sk_buff **to_free)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	unsigned int bytes = qdisc_pkt_len(skb);
	u32 wire_bytes = psp_gated_bytes(q, cl, skb);
	int ret = qdisc_enqueue(skb, cl->child, to_free);

	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret)) {
			psp_count_drop(sch);
			q->count.drop_child++;
			cl->count.drop_child++;
		}
		return ret;
	}

	psp_qlen_add(sch, 1, bytes);
	/* Dequeue asks the child again, and reports all its frames then. */
	if (psp_child_is_throttled(cl))
		return NET_XMIT_SUCCESS;
	if (wire_bytes)
		pace_arrived(&q->pace, &cl->pace, wire_bytes, ktime_get_ns());
	if (!cl->pace.active && cl->child->q.qlen)
		psp_wake(q, cl, ktime_get_ns());
	return NET_XMIT_SUCCESS;
}

static int psp_enqueue_frame(struct sk_buff *skb, struct Qdisc *sch,
			     struct psp_class *cl, struct psp_flow *f,
			     struct sk_buff **to_free)
{
	return f ? psp_flow_enqueue(skb, sch, f, to_free) :
		   psp_enqueue_child(skb, sch, cl, to_free);
}

/*
 * A train is cut into frames.  Those that the class's queue refuses are
 * counted one by one; the sender hears of it if that is all of them.
 */
static int psp_enqueue_train(struct sk_buff *skb, struct Qdisc *sch,
			     struct psp_class *cl, struct psp_flow *f,
			     struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb);
	unsigned int train_bytes = qdisc_pkt_len(skb);
	struct psp_qdisc *q = qdisc_priv(sch);
	unsigned int frames = 0, bytes = 0;
	struct sk_buff *segs, *next;

	segs = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs)) {
		q->count.drop_segment++;
		cl->count.drop_segment++;
		return qdisc_drop(skb, sch, to_free);
	}
	q->count.trains_cut++;

	skb_list_walk_safe(segs, segs, next) {
		unsigned int seg_bytes = segs->len;

		skb_mark_not_on_list(segs);
		psp_note_pkt_len(segs);
		if (psp_enqueue_frame(segs, sch, cl, f, to_free) ==
		    NET_XMIT_SUCCESS) {
			frames++;
			bytes += seg_bytes;
		}
	}

	if (!frames) {
		kfree_skb(skb);
		return NET_XMIT_DROP;
	}
	/* Whoever is above counted one frame, of the train's length. */
	qdisc_tree_reduce_backlog(sch, 1 - frames, train_bytes - bytes);
	consume_skb(skb);
	return NET_XMIT_SUCCESS;
}

int psp_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		struct sk_buff **to_free)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_flow *f = NULL;
	struct psp_class *cl;

	switch (psp_classify(skb, sch, q, &cl)) {
	case PSP_CLAIM_CLASS:
		break;
	case PSP_CLAIM_DROP:
		q->count.drop_filter++;
		psp_count_drop(sch);
		__qdisc_drop(skb, to_free);
		return NET_XMIT_SUCCESS | __NET_XMIT_BYPASS;
	case PSP_CLAIM_TAKEN:
		__qdisc_drop(skb, to_free);
		return NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
	case PSP_CLAIM_CONSUMED:
		return NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
	}

	if (cl->opt.deadline_ns)
		psp_stamp(skb, ktime_get_ns());
	/* Of a train before it is cut: its frames may have no socket. */
	if (cl->flows)
		f = psp_flow_of(q, cl, skb, to_free);
	if (skb_is_gso(skb) && !psp_train_whole(q, cl, skb))
		return psp_enqueue_train(skb, sch, cl, f, to_free);
	return psp_enqueue_frame(skb, sch, cl, f, to_free);
}
