// SPDX-License-Identifier: GPL-2.0-only
/* The device asks for a frame: what core/ decides is carried out. */
#include "psp.h"
#include "compat/dequeue_drop.h"
#include "deadline.h"

/* So long after a failed allocation the next attempt is made. */
#define PSP_RETRY_NS		(50 * NSEC_PER_USEC)
/*
 * Classes that had no frame after all, and frames dropped at their turn, in
 * one call; the others' turn comes in the next one.
 */
#define PSP_MISSES		64

/*
 * May the frame go?  Or else why not; counted.  Longer than the device's
 * frames are those queued before the MTU shrank, or of a sender that ignores
 * it.
 */
static bool psp_may_go(struct psp_qdisc *q, struct psp_class *cl,
		       const struct sk_buff *skb, const struct psp_load *load,
		       u64 now_ns, enum psp_drop_reason *reason)
{
	if (unlikely(psp_is_long(q, skb, load->frame_bytes))) {
		q->count.drop_long++;
		cl->count.drop_long++;
		*reason = PSP_DROP_LONG;
		return false;
	}
	if (cl->opt.deadline_ns &&
	    psp_is_late(skb, cl->opt.deadline_ns, now_ns)) {
		q->count.drop_late++;
		cl->count.drop_late++;
		*reason = PSP_DROP_LATE;
		return false;
	}
	return true;
}

/* Dropped when its turn came.  No clock moves: the next frame has the turn. */
static void psp_drop_due(struct Qdisc *sch, struct pace_class *c,
			 struct sk_buff *skb, u32 wire_bytes, u64 now_ns,
			 enum psp_drop_reason reason)
{
	struct psp_class *cl = psp_class_of(c);
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_flow *f = psp_flow_at(c);

	psp_count_drop(sch);
	psp_dequeue_drop(sch, skb, reason);
	if (f) {
		if (!f->queue.qlen)
			pace_deactivate(&q->pace, c, now_ns);
		return;
	}
	if (psp_more(q, cl)) {
		pace_dropped(&q->pace, c, wire_bytes, now_ns);
		psp_announce(q, cl);
		return;
	}
	psp_run_out(q, cl, now_ns);
}

/* Tells core/ that the frame, or train, goes. */
static void psp_sent(struct psp_qdisc *q, struct pace_class *c,
		     const struct psp_load *load, u64 now_ns)
{
	u64 spare = q->pace.stats.borrowed_frames;
	struct psp_class *cl = psp_class_of(c);
	struct psp_flow *f = psp_flow_at(c);
	bool more = f ? f->queue.qlen : psp_more(q, cl);

	pace_sent_burst(&q->pace, c, load->train.len_bytes,
			load->train.wire_bytes, load->train.frames, more,
			now_ns);
	cl->count.spare_frames += q->pace.stats.borrowed_frames - spare;

	if (more) {
		if (!f)
			psp_announce(q, cl);
		if (pace_is_throttled(&q->pace, c))
			cl->count.throttled++;
	} else if (!f) {
		psp_run_out(q, cl, now_ns);
	}
}

/*
 * The frame of the class or flow `c` whose turn it is; NULL: it had none that
 * may go.
 */
static struct sk_buff *psp_take(struct Qdisc *sch, struct pace_class *c,
				s64 late_bytes, u64 now_ns)
{
	struct psp_class *cl = psp_class_of(c);
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_flow *f = psp_flow_at(c);
	enum psp_drop_reason reason;
	struct psp_load load;
	struct sk_buff *skb;

	skb = f ? psp_flow_pull(f) : psp_pull(q, cl);
	if (unlikely(!skb)) {
		psp_run_out(q, cl, now_ns);
		return NULL;
	}

	psp_qlen_add(sch, -1, -qdisc_pkt_len(skb));
	if (unlikely(!psp_load_of(q, skb, &load))) {
		q->count.drop_segment++;
		cl->count.drop_segment++;
		/* Nothing was said of it when it came either. */
		psp_drop_due(sch, c, skb, 0, now_ns, PSP_DROP_SEGMENT);
		return NULL;
	}
	if (unlikely(!psp_may_go(q, cl, skb, &load, now_ns, &reason))) {
		psp_drop_due(sch, c, skb, load.train.wire_bytes, now_ns,
			     reason);
		return NULL;
	}

	psp_sent(q, c, &load, now_ns);
	psp_count_late(cl, load.train.frames, late_bytes);
	psp_count_sent(q, cl, &load, now_ns);
	if (cl->opt.deadline_ns)
		psp_unstamp(skb, now_ns);
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
	bool asked = false;
	u32 misses = 0;

	psp_ask_busy(q, now_ns);
	for (;;) {
		struct pace_decision d = pace_next(&q->pace, now_ns);
		struct sk_buff *skb;

		if (d.verdict == PACE_SEND) {
			skb = psp_take(sch, d.cls, d.late_bytes, now_ns);
			if (likely(skb))
				return skb;
			if (++misses < PSP_MISSES)
				continue;
			qdisc_watchdog_schedule_ns(&q->watchdog, now_ns);
			return NULL;
		}
		/* A gap frame keeps the wire busy: psp_ask_busy() is enough. */
		if (d.verdict == PACE_GAP)
			return psp_fill_gap(q, d.gap_bytes, now_ns);
		if (!asked) {
			asked = true;
			if (psp_ask_idle(q, now_ns))
				continue;
		}
		if (d.verdict == PACE_WAIT) {
			qdisc_watchdog_schedule_ns(&q->watchdog, d.until_ns);
			psp_line_wait(&q->watch,
				      d.until_ns + q->pace.stats.lead_ns);
		} else {
			psp_line_idle(&q->watch);
		}
		psp_ask_others(q);
		return NULL;
	}
}

struct sk_buff *psp_dequeue(struct Qdisc *sch)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 now_ns;

	/* The stack asks once more after the last frame of each run. */
	if (!sch->q.qlen) {
		psp_line_idle(&q->watch);
		return NULL;
	}
	if (unlikely(psp_share_queues(q) != q->port.queues))
		psp_follow_later();
	if (q->port.pace.aligned && q->aligned_at != q->pace.stats.periods)
		psp_port_align(q);
	now_ns = ktime_get_ns();
	skb = psp_next_frame(sch, now_ns);

	/*
	 * On several transmit queues the order on the wire would be the
	 * device's choice, not ours.
	 */
	if (skb) {
		skb_set_queue_mapping(skb, q->queue);
		psp_watch_handed(q, now_ns);
	}
	return skb;
}
