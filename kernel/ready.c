// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which classes have a frame to offer, and which frame.
 *
 * A class is active in core/ while it can be asked for a frame.  Children are
 * not peeked at (docs/decisions/0022).  A frame is taken out of the child and
 * waits in psp_class.head where core/ has to know its length before its turn,
 * guard on and a normal or nrt class, and where only asking told that there
 * is one (throttled.c).  Until it is sent or dropped it counts in qlen and
 * backlog of the qdisc, and no more in the child's.
 */
#include "psp.h"

/*
 * The next frame, or NULL.  While the child is asked it may drop frames and
 * report that (codel): psp_qlen_notify() leaves the class alone, what came of
 * it is settled by whoever asks.
 */
struct sk_buff *psp_pull(struct psp_qdisc *q, struct psp_class *cl)
{
	struct sk_buff *skb = cl->head;

	if (skb) {
		cl->head = NULL;
		return skb;
	}
	q->serving = cl;
	skb = cl->child->dequeue(cl->child);
	q->serving = NULL;
	return skb;
}

/* Has the class another frame?  With guard that frame is taken out. */
bool psp_more(struct psp_qdisc *q, struct psp_class *cl)
{
	if (cl->head)
		return true;
	if (!q->port.pace.guard_band || (cl->pace.type != PACE_TYPE_NORMAL &&
				    cl->pace.type != PACE_TYPE_NRT))
		return cl->child->q.qlen > 0;
	if (cl->child->q.qlen)
		cl->head = psp_pull(q, cl);
	return cl->head;
}

/* Tells core/ how long the frame is that was taken out, if one was. */
void psp_announce(struct psp_qdisc *q, struct psp_class *cl)
{
	struct psp_load load;

	if (!cl->head)
		return;
	if (psp_load_of(q, cl->head, &load))
		pace_set_head(&q->pace, &cl->pace, load.train.wire_bytes);
}

/* Reports to core/ all frames of a class of kind rt: it knows of none yet. */
void psp_report_backlog(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	u64 bytes = cl->child->qstats.backlog;
	u64 frames = cl->child->q.qlen;

	if (cl->head) {
		bytes += qdisc_pkt_len(cl->head);
		frames++;
	}
	bytes += frames * q->port.pace.overhead_bytes;
	if (frames)
		pace_arrived(&q->pace, &cl->pace, min_t(u64, bytes, U32_MAX),
			     now_ns);
}

/* The class has frames, and is not throttled: it becomes active. */
void psp_wake(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	if (!psp_more(q, cl)) {
		if (cl->child->q.qlen)
			psp_throttle(q, cl);
		return;
	}
	pace_activate(&q->pace, &cl->pace, now_ns);
	psp_announce(q, cl);
	if (pace_is_throttled(&q->pace, &cl->pace))
		cl->count.throttled++;
}

/* The class has none. */
void psp_sleep(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	psp_unthrottle(q, cl);
	pace_deactivate(&q->pace, &cl->pace, now_ns);
}

/* The class has no frame to offer now, but its child may have one later. */
void psp_run_out(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	psp_sleep(q, cl, now_ns);
	if (cl->child->q.qlen)
		psp_throttle(q, cl);
}

/* The frame that was taken out goes the way of those in the child. */
void psp_drop_head(struct psp_qdisc *q, struct psp_class *cl)
{
	struct sk_buff *skb = cl->head;

	if (!skb)
		return;
	cl->head = NULL;
	psp_qlen_add(q->sch, -1, -qdisc_pkt_len(skb));
	psp_count_drop(q->sch);
	rtnl_kfree_skbs(skb, skb);
}
