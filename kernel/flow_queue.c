// SPDX-License-Identifier: GPL-2.0-only
/*
 * The frames of flows, and what bounds them: of one flow by number and by how
 * long they would wait (horizon), of all flows of a class by number (limit).
 *
 * Whatever goes unsent is counted by its cause.  No clock moves for it.
 */
#include <linux/math64.h>
#include <linux/rtnetlink.h>

#include "psp.h"

/* So many frames went out of the flow's queue, or into it. */
static void psp_flow_count(struct psp_flow *f, int frames, int bytes)
{
	struct psp_flows *flows = f->cl->flows;
	struct psp_user *user = f->user;

	f->backlog += bytes;
	flows->qlen += frames;
	flows->backlog += bytes;
	psp_rank_set(&flows->by_frames, &user->frames,
		     user->frames.count + frames);
}

/* It has no frames any more. */
static void psp_flow_rest(struct psp_flow *f)
{
	struct psp_flows *flows = f->cl->flows;

	f->idle_since = jiffies;
	list_add_tail(&f->idle, &flows->idle);
	list_move_tail(&f->mine, &f->user->idle);
	flows->active--;
}

static void psp_flow_rise(struct psp_qdisc *q, struct psp_flow *f)
{
	list_del_init(&f->idle);
	list_move_tail(&f->mine, &f->user->busy);
	f->cl->flows->active++;
	pace_activate(&q->pace, &f->pace, ktime_get_ns());
	if (pace_is_throttled(&q->pace, &f->pace))
		f->cl->count.throttled++;
}

/* The first frame of a flow that has frames.  core/ is told by the caller. */
struct sk_buff *psp_flow_pull(struct psp_flow *f)
{
	struct sk_buff *skb = __qdisc_dequeue_head(&f->queue);

	psp_flow_count(f, -1, -(int)qdisc_pkt_len(skb));
	if (!f->queue.qlen)
		psp_flow_rest(f);
	return skb;
}

/* A frame that waited goes unsent; it is out of the queue already. */
static void psp_flow_lose(struct psp_qdisc *q, struct sk_buff *skb,
			  u64 *of_qdisc, u64 *of_class,
			  struct sk_buff **to_free)
{
	unsigned int bytes = qdisc_pkt_len(skb);

	++*of_qdisc;
	++*of_class;
	psp_qlen_add(q->sch, -1, -(int)bytes);
	qdisc_tree_reduce_backlog(q->sch, 1, bytes);
	qdisc_drop(skb, q->sch, to_free);
}

/* All frames of a flow that goes before them. */
void psp_flow_purge(struct psp_qdisc *q, struct psp_flow *f,
		    struct sk_buff **to_free)
{
	if (!f->queue.qlen)
		return;
	while (f->queue.qlen)
		psp_flow_lose(q, psp_flow_pull(f), &q->count.drop_evicted,
			      &f->cl->count.drop_evicted, to_free);
	pace_deactivate(&q->pace, &f->pace, ktime_get_ns());
}

/* Frame bytes as rates count them; layer wire: as if all were of one length. */
static u64 psp_counted(const struct pace_config *cfg, u32 frames, u64 bytes)
{
	u64 headers = (u64)frames * cfg->link_header_bytes;

	switch (cfg->layer) {
	case PACE_LAYER_WIRE:
		return max_t(u64, bytes, (u64)frames * cfg->min_frame_bytes) +
		       (u64)frames * cfg->overhead_bytes;
	case PACE_LAYER_IP:
		return bytes - min(bytes, headers);
	default:
		return bytes;
	}
}

/* From now until the flow's clock is reached. */
static u64 psp_flow_debt_ns(const struct psp_qdisc *q, const struct psp_flow *f)
{
	u64 bytes = pace_debt_bytes(&q->pace, &f->pace, ktime_get_ns());

	return mul_u64_u64_div_u64(bytes, BITS_PER_BYTE * NSEC_PER_SEC,
				   q->port.pace.line_rate_bps);
}

/* What the flow may have before a frame for that to be within the horizon. */
static u64 psp_flow_room_bytes(const struct psp_qdisc *q,
			       const struct psp_flow *f)
{
	u64 horizon_ns = f->cl->opt.horizon_ns;
	u64 debt_ns = psp_flow_debt_ns(q, f);

	if (debt_ns > horizon_ns)
		return 0;
	return mul_u64_u64_div_u64(horizon_ns - debt_ns, f->pace.rate_bps,
				   BITS_PER_BYTE * NSEC_PER_SEC);
}

/*
 * The bytes take half a second at most, and so does the clock: then no horizon
 * is passed.  As nearly always; without a division.
 */
static bool psp_flow_is_near(const struct psp_qdisc *q,
			     const struct psp_flow *f, u64 counted_bytes)
{
	return !f->slow &&
	       counted_bytes * 2 * BITS_PER_BYTE <= f->pace.rate_bps;
}

/* A frame that comes now would wait for longer than the class's horizon. */
static bool psp_flow_is_beyond(const struct psp_qdisc *q,
			       const struct psp_flow *f)
{
	u64 bytes = psp_counted(&q->port.pace, f->queue.qlen, f->backlog);

	if (likely(psp_flow_is_near(q, f, bytes)))
		return false;
	if (!f->queue.qlen)
		return psp_flow_debt_ns(q, f) > f->cl->opt.horizon_ns;
	return bytes > psp_flow_room_bytes(q, f);
}

/*
 * The rate has been lowered: drops what waits beyond the horizon now, last frames
 * first; the first stays.  O(frames), so it drops at least an eighth, of the bytes
 * that there is room for and of the frames: else a user could have all frames
 * walked through for each that it sends.
 */
void psp_flow_fit(struct psp_qdisc *q, struct psp_flow *f,
		  struct sk_buff **to_free)
{
	const struct pace_config *cfg = &q->port.pace;
	struct qdisc_skb_head *queue = &f->queue;
	struct sk_buff *skb = queue->head, *next;
	u64 room, bytes;
	u32 frames = 1, most;

	if (queue->qlen < 2 ||
	    psp_flow_is_near(q, f, psp_counted(cfg, queue->qlen, f->backlog)))
		return;
	room = psp_flow_room_bytes(q, f);
	bytes = f->backlog - qdisc_pkt_len(queue->tail);
	if (psp_counted(cfg, queue->qlen - 1, bytes) <= room)
		return;
	room -= room / 8;
	most = queue->qlen - DIV_ROUND_UP(queue->qlen, 8);
	bytes = qdisc_pkt_len(skb);
	while (frames < most && psp_counted(cfg, frames, bytes) <= room) {
		skb = skb->next;
		bytes += qdisc_pkt_len(skb);
		frames++;
	}
	next = skb->next;
	skb->next = NULL;
	queue->tail = skb;
	queue->qlen = frames;
	for (skb = next; skb; skb = next) {
		next = skb->next;
		skb_mark_not_on_list(skb);
		psp_flow_count(f, -1, -(int)qdisc_pkt_len(skb));
		psp_flow_lose(q, skb, &q->count.drop_horizon,
			      &f->cl->count.drop_horizon, to_free);
	}
}

/*
 * One frame less in a class that is full; false: the one that `arriving` gets
 * is to go.  It is the first that goes, and the next one has its turn.
 */
static bool psp_flows_shorten(struct psp_qdisc *q, struct psp_flow *arriving,
			      struct sk_buff **to_free)
{
	struct psp_class *cl = arriving->cl;
	struct psp_flow *f = psp_flow_to_shorten(cl->flows, arriving);

	if (!f)
		return false;
	psp_flow_lose(q, psp_flow_pull(f), &q->count.drop_limit,
		      &cl->count.drop_limit, to_free);
	if (!f->queue.qlen)
		pace_deactivate(&q->pace, &f->pace, ktime_get_ns());
	return true;
}

/* Twice, so that a limit that was lowered is reached some time. */
static bool psp_flows_fit(struct psp_qdisc *q, struct psp_flow *arriving,
			  struct sk_buff **to_free)
{
	const struct psp_class *cl = arriving->cl;
	int tries = 2;

	while (cl->flows->qlen >= cl->opt.limit)
		if (!tries-- || !psp_flows_shorten(q, arriving, to_free))
			return false;
	return true;
}

static int psp_flow_refuse(struct sk_buff *skb, struct psp_qdisc *q,
			   u64 *of_qdisc, u64 *of_class,
			   struct sk_buff **to_free)
{
	++*of_qdisc;
	++*of_class;
	return qdisc_drop(skb, q->sch, to_free);
}

int psp_flow_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		     struct psp_flow *f, struct sk_buff **to_free)
{
	struct psp_class_counters *count = &f->cl->count;
	struct psp_qdisc *q = qdisc_priv(sch);
	unsigned int bytes = qdisc_pkt_len(skb);

	if (unlikely(f->queue.qlen >= f->cl->opt.flow_limit))
		return psp_flow_refuse(skb, q, &q->count.drop_flow,
				       &count->drop_flow, to_free);
	if (unlikely(psp_flow_is_beyond(q, f)))
		return psp_flow_refuse(skb, q, &q->count.drop_horizon,
				       &count->drop_horizon, to_free);
	if (unlikely(f->cl->flows->qlen >= f->cl->opt.limit) &&
	    !psp_flows_fit(q, f, to_free))
		return psp_flow_refuse(skb, q, &q->count.drop_limit,
				       &count->drop_limit, to_free);

	__qdisc_enqueue_tail(skb, &f->queue);
	psp_flow_count(f, 1, bytes);
	psp_qlen_add(sch, 1, bytes);
	if (f->queue.qlen == 1)
		psp_flow_rise(q, f);
	return NET_XMIT_SUCCESS;
}
