// SPDX-License-Identifier: GPL-2.0-only
/* The device asks for a frame: what core/ decides is carried out. */
#include <linux/if_vlan.h>

#include "psp.h"
#include "compat/dequeue_drop.h"

/*
 * A child that holds frames but gave none sets a timer of its own and runs
 * the root when it fires; which child it was cannot be seen here.  So many of
 * them are asked again in one call ...
 */
#define PSP_RETRIES		16
/* ... and the rest so much later; also after a failed allocation. */
#define PSP_RETRY_NS		(50 * NSEC_PER_USEC)

/* The class has a frame to offer. */
void psp_wake(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	if (!list_empty(&cl->stalled)) {
		list_del_init(&cl->stalled);
		q->stalled_count--;
	}
	pace_activate(&q->pace, &cl->pace, now_ns);
}

/* The class has none. */
void psp_sleep(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	if (!list_empty(&cl->stalled)) {
		list_del_init(&cl->stalled);
		q->stalled_count--;
	}
	pace_deactivate(&q->pace, &cl->pace, now_ns);
}

/* The class has frames, but its child gives none at present. */
static void psp_stall(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	psp_sleep(q, cl, now_ns);
	list_add_tail(&cl->stalled, &q->stalled);
	q->stalled_count++;
	q->count.child_retries++;
}

/* What the device will be given: the hardware inserts the VLAN tag. */
static u32 psp_frame_bytes(const struct sk_buff *skb)
{
	return skb->len + (skb_vlan_tag_present(skb) ? VLAN_HLEN : 0);
}

/* Queued before the MTU shrank, or from a sender that ignores it. */
static bool psp_too_long(const struct psp_qdisc *q, u32 bytes)
{
	return bytes > q->port.pace.max_frame_bytes + VLAN_HLEN;
}

/*
 * The child is not peeked at: core/ needs no length before a frame is sent.
 * While it is asked it may drop frames and report that (codel), hence
 * `serving`: the class's state is settled here, once, from what came of it.
 */
static struct sk_buff *psp_take(struct Qdisc *sch, struct psp_class *cl,
				u64 now_ns)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct sk_buff *skb;
	bool more;
	u32 bytes;

	q->serving = cl;
	skb = cl->child->dequeue(cl->child);
	q->serving = NULL;
	more = cl->child->q.qlen > 0;

	if (unlikely(!skb)) {
		if (more)
			psp_stall(q, cl, now_ns);
		else
			psp_sleep(q, cl, now_ns);
		return NULL;
	}

	psp_qlen_add(sch, -1, -qdisc_pkt_len(skb));
	bytes = psp_frame_bytes(skb);
	if (unlikely(psp_too_long(q, bytes))) {
		psp_count_drop(sch);
		q->count.drop_long++;
		cl->drops++;
		if (!more)
			psp_sleep(q, cl, now_ns);
		psp_dequeue_drop(sch, skb);
		return NULL;
	}

	pace_sent(&q->pace, &cl->pace, bytes, more, now_ns);
	cl->sent_frames++;
	bstats_update(&cl->bstats, skb);
	qdisc_bstats_update(sch, skb);
	return skb;
}

static struct sk_buff *psp_fill_gap(struct psp_qdisc *q, u32 gap_bytes,
				    u64 now_ns)
{
	struct sk_buff *skb = psp_gap_frame(q, gap_bytes);

	if (unlikely(!skb)) {
		/* The clock stands still: nothing is lost but time. */
		q->count.gap_failed++;
		qdisc_watchdog_schedule_ns(&q->watchdog, now_ns + PSP_RETRY_NS);
		return NULL;
	}
	pace_gap_sent(&q->pace, gap_bytes);
	return skb;
}

static struct sk_buff *psp_next_frame(struct Qdisc *sch, u64 now_ns)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	u32 tries = min_t(u32, q->stalled_count, PSP_RETRIES);

	for (;;) {
		struct pace_decision d = pace_next(&q->pace, now_ns);
		struct sk_buff *skb;

		if (d.verdict == PACE_SEND) {
			skb = psp_take(sch, psp_class_of(d.cls), now_ns);
			if (likely(skb))
				return skb;
			continue;
		}
		if (tries && !list_empty(&q->stalled)) {
			tries--;
			psp_wake(q, list_first_entry(&q->stalled,
						     struct psp_class, stalled),
				 now_ns);
			continue;
		}
		if (d.verdict == PACE_GAP)
			return psp_fill_gap(q, d.gap_bytes, now_ns);
		if (d.verdict == PACE_WAIT)
			qdisc_watchdog_schedule_ns(&q->watchdog, d.until_ns);
		else if (q->stalled_count > PSP_RETRIES)
			qdisc_watchdog_schedule_ns(&q->watchdog,
						   now_ns + PSP_RETRY_NS);
		return NULL;
	}
}

struct sk_buff *psp_dequeue(struct Qdisc *sch)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct sk_buff *skb;

	/* The stack asks once more after the last frame of each run. */
	if (!sch->q.qlen)
		return NULL;
	skb = psp_next_frame(sch, ktime_get_ns());

	/*
	 * On several transmit queues the order on the wire would be the
	 * device's choice, not ours.
	 */
	if (skb)
		skb_set_queue_mapping(skb, q->queue);
	return skb;
}
