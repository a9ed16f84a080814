// SPDX-License-Identifier: GPL-2.0-only
/*
 * The flows of a class of kind dynamic: how they are found, appear and go.
 *
 * A flow is found by the address of its socket, and knows by sk_hash when the
 * address has been given to another.  It goes when it has had nothing to send
 * for PSP_FLOW_IDLE; a few of those are looked for with each frame.  Ids and
 * queue room of core/ have been set aside for as many flows as the class
 * allows, so none of this fails but for memory.
 */
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "psp.h"

/* As fq: long enough for a request that follows a request. */
#define PSP_FLOW_IDLE		(3 * HZ)
/* Removed with one frame at most: more than can appear with it. */
#define PSP_FLOW_SWEEP		4
/*
 * Frames of one flow.  TCP holds itself to tcp_limit_output_bytes, 4 MB, and
 * datagrams are held to the socket's send buffer; this is above either.
 */
#define PSP_FLOW_FRAMES		4096
/* A change of the formula's rate by less than 1/64 is not worth its divisions. */
#define PSP_FLOW_STEP		6
/* Flows or buckets between two breaths of the statistics. */
#define PSP_FLOW_CHUNK		256

static struct kmem_cache *psp_flow_cache;

int psp_flows_init(void)
{
	psp_flow_cache = KMEM_CACHE(psp_flow, 0);
	return psp_flow_cache ? 0 : -ENOMEM;
}

void psp_flows_exit(void)
{
	kmem_cache_destroy(psp_flow_cache);
}

/* Empty; sleeps.  To be freed by kvfree() once it is empty again. */
struct psp_flows *psp_flows_alloc(u32 max)
{
	/* hash_ptr() gives at least one bit. */
	u32 bits = max(ilog2(roundup_pow_of_two(max)), 1);
	struct psp_flows *flows;

	flows = kvzalloc(struct_size(flows, bucket, 1u << bits), GFP_KERNEL);
	if (!flows)
		return NULL;
	flows->max = max;
	flows->reserved = max;
	flows->bits = bits;
	INIT_LIST_HEAD(&flows->idle);
	return flows;
}

static struct hlist_head *psp_flow_bucket(struct psp_flows *flows,
					  const struct sock *sk)
{
	return &flows->bucket[hash_ptr(sk, flows->bits)];
}

/* All that `from` knows goes to `to`, of another size; O(flows). */
void psp_flows_move(struct psp_flows *to, struct psp_flows *from)
{
	struct hlist_node *next;
	struct psp_flow *f;
	u32 i;

	for (i = 0; i < 1u << from->bits; i++) {
		hlist_for_each_entry_safe(f, next, &from->bucket[i], node) {
			hlist_del(&f->node);
			hlist_add_head(&f->node, psp_flow_bucket(to, f->sk));
		}
	}
	list_splice_init(&from->idle, &to->idle);
	/* Ids beyond a smaller number are in use for a while yet. */
	to->reserved = max(to->max, from->reserved);
	to->count = from->count;
	to->active = from->active;
	to->qlen = from->qlen;
	to->backlog = from->backlog;
	to->seen = from->seen;
	to->refused = from->refused;
}

static struct psp_flow *psp_flow_find(struct psp_flows *flows,
				      const struct sock *sk)
{
	struct psp_flow *f;

	hlist_for_each_entry(f, psp_flow_bucket(flows, sk), node)
		if (f->sk == sk)
			return f;
	return NULL;
}

/* It has no frames. */
static void psp_flow_free(struct psp_qdisc *q, struct psp_flow *f)
{
	pace_class_del(&q->pace, &f->pace);
	hlist_del(&f->node);
	list_del(&f->idle);
	f->cl->flows->count--;
	kmem_cache_free(psp_flow_cache, f);
}

/* Removes up to `most` flows that have been idle for long; how many. */
static u32 psp_flows_sweep(struct psp_qdisc *q, struct psp_flows *flows,
			   u32 most)
{
	struct psp_flow *f, *next;
	u32 swept = 0;

	list_for_each_entry_safe(f, next, &flows->idle, idle) {
		if (swept == most ||
		    time_before(jiffies, f->idle_since + PSP_FLOW_IDLE))
			break;
		psp_flow_free(q, f);
		swept++;
	}
	return swept;
}

/*
 * Room for one more.  The flow idle for longest may go as soon as its clock
 * has been reached: then it is no different from a new one.
 */
static bool psp_flows_room(struct psp_qdisc *q, struct psp_flows *flows)
{
	struct psp_flow *f;
	u64 clock_ms;

	if (flows->count < flows->max)
		return true;
	f = list_first_entry_or_null(&flows->idle, struct psp_flow, idle);
	if (!f)
		return false;
	clock_ms = div64_u64((u64)q->port.pace.max_frame_bytes *
			     BITS_PER_BYTE * MSEC_PER_SEC, f->pace.rate_bps);
	/* Beyond PSP_FLOW_IDLE it is swept anyway. */
	clock_ms = min_t(u64, clock_ms, 3 * MSEC_PER_SEC);
	if (time_before_eq(jiffies, f->idle_since + 1 +
			   msecs_to_jiffies(clock_ms)))
		return false;
	psp_flow_free(q, f);
	return flows->count < flows->max;
}

static struct psp_flow *psp_flow_new(struct psp_qdisc *q, struct psp_class *cl,
				     const struct sock *sk, u64 rate_bps)
{
	const struct pace_class_config cfg = {
		.kind = PACE_KIND_PACED,
		.rate_bps = rate_bps,
	};
	struct psp_flows *flows = cl->flows;
	struct psp_flow *f;

	if (!psp_flows_room(q, flows))
		return NULL;
	f = kmem_cache_zalloc(psp_flow_cache, GFP_ATOMIC | __GFP_NOWARN);
	if (!f)
		return NULL;
	if (pace_class_add(&q->pace, &f->pace, &cfg)) {
		kmem_cache_free(psp_flow_cache, f);
		return NULL;
	}
	f->turn.is_flow = true;
	f->cl = cl;
	f->sk = sk;
	f->hash = sk->sk_hash;
	f->idle_since = jiffies;
	list_add_tail(&f->idle, &flows->idle);
	hlist_add_head(&f->node, psp_flow_bucket(flows, sk));
	flows->count++;
	flows->seen++;
	return f;
}

static void psp_flow_set_rate(struct psp_qdisc *q, struct psp_flow *f,
			      u64 rate_bps)
{
	const struct pace_class_config cfg = {
		.kind = PACE_KIND_PACED,
		.rate_bps = rate_bps,
	};

	/* psp_flow_rate() gives what core/ takes. */
	WARN_ON_ONCE(pace_class_change(&q->pace, &f->pace, &cfg));
}

/*
 * Another socket has the address: it owes nothing.  With frames waiting it is
 * the same socket under another name: those frames hold it.
 */
static void psp_flow_recognise(struct psp_qdisc *q, struct psp_flow *f,
			       const struct sock *sk)
{
	const struct pace_class_config cfg = {
		.kind = PACE_KIND_PACED,
		.rate_bps = f->pace.rate_bps,
	};

	if (likely(f->hash == sk->sk_hash))
		return;
	f->hash = sk->sk_hash;
	if (f->queue.qlen)
		return;
	pace_class_del(&q->pace, &f->pace);
	WARN_ON_ONCE(pace_class_add(&q->pace, &f->pace, &cfg));
	f->cl->flows->seen++;
}

static bool psp_flow_moved(u64 from_bps, u64 to_bps, bool exact)
{
	u64 step_bps = exact ? 0 : from_bps >> PSP_FLOW_STEP;

	return to_bps > from_bps + step_bps || to_bps + step_bps < from_bps;
}

/*
 * The flow that `skb`, not cut yet, belongs to, at the rate of this moment;
 * NULL: none, it goes the way of frames without a socket.
 */
struct psp_flow *psp_flow_of(struct psp_qdisc *q, struct psp_class *cl,
			     struct sk_buff *skb)
{
	struct sock *sk = psp_flow_socket(skb);
	struct psp_flows *flows = cl->flows;
	struct psp_flow *f;
	u64 rate_bps;
	bool exact;

	psp_flows_sweep(q, flows, PSP_FLOW_SWEEP);
	if (!sk)
		return NULL;
	rate_bps = psp_flow_rate(q, cl, sk, &exact);
	f = psp_flow_find(flows, sk);
	if (unlikely(!f)) {
		f = psp_flow_new(q, cl, sk, rate_bps);
		if (!f)
			flows->refused++;
		return f;
	}
	psp_flow_recognise(q, f, sk);
	if (psp_flow_moved(f->pace.rate_bps, rate_bps, exact))
		psp_flow_set_rate(q, f, rate_bps);
	return f;
}

int psp_flow_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		     struct psp_flow *f, struct sk_buff **to_free)
{
	struct psp_flows *flows = f->cl->flows;
	struct psp_qdisc *q = qdisc_priv(sch);
	unsigned int bytes = qdisc_pkt_len(skb);

	if (unlikely(f->queue.qlen >= PSP_FLOW_FRAMES)) {
		q->count.drop_flow++;
		f->cl->count.drop_flow++;
		return qdisc_drop(skb, sch, to_free);
	}
	__qdisc_enqueue_tail(skb, &f->queue);
	flows->qlen++;
	flows->backlog += bytes;
	psp_qlen_add(sch, 1, bytes);
	if (f->queue.qlen == 1) {
		list_del_init(&f->idle);
		flows->active++;
		pace_activate(&q->pace, &f->pace, ktime_get_ns());
		if (pace_is_throttled(&q->pace, &f->pace))
			f->cl->count.throttled++;
	}
	return NET_XMIT_SUCCESS;
}

/* It has no frames any more. */
static void psp_flow_rest(struct psp_flow *f)
{
	f->idle_since = jiffies;
	list_add_tail(&f->idle, &f->cl->flows->idle);
	f->cl->flows->active--;
}

/* The first frame of a flow that has frames.  core/ is told by the caller. */
struct sk_buff *psp_flow_pull(struct psp_flow *f)
{
	struct sk_buff *skb = __qdisc_dequeue_head(&f->queue);

	f->cl->flows->qlen--;
	f->cl->flows->backlog -= qdisc_pkt_len(skb);
	if (!f->queue.qlen)
		psp_flow_rest(f);
	return skb;
}

/* No flow is left, nor a frame of one; the qdisc counts them no more. */
void psp_flows_clear(struct psp_qdisc *q, struct psp_class *cl)
{
	struct psp_flows *flows = cl->flows;
	u64 now_ns = ktime_get_ns();
	struct hlist_node *next;
	struct psp_flow *f;
	u32 i;

	psp_qlen_add(q->sch, -flows->qlen, -flows->backlog);
	for (i = 0; i < 1u << flows->bits; i++) {
		hlist_for_each_entry_safe(f, next, &flows->bucket[i], node) {
			if (f->queue.qlen) {
				rtnl_kfree_skbs(f->queue.head, f->queue.tail);
				pace_deactivate(&q->pace, &f->pace, now_ns);
			}
			psp_flow_free(q, f);
		}
	}
	flows->qlen = 0;
	flows->backlog = 0;
	flows->active = 0;
}

/*
 * Brings all rates between the two, before a line takes force that would
 * refuse others.  The next frame of each flow finds its rate again. O(flows).
 */
void psp_flows_clamp(struct psp_qdisc *q, struct psp_class *cl, u64 least_bps,
		     u64 most_bps)
{
	struct psp_flow *f;
	u64 rate_bps;
	u32 i;

	for (i = 0; i < 1u << cl->flows->bits; i++) {
		hlist_for_each_entry(f, &cl->flows->bucket[i], node) {
			rate_bps = clamp(f->pace.rate_bps, least_bps, most_bps);
			if (rate_bps != f->pace.rate_bps)
				psp_flow_set_rate(q, f, rate_bps);
		}
	}
}

/*
 * Looks at every flow, a chunk at a time under the lock: at 65536 flows it
 * would otherwise hold up the wire.  RTNL; takes the tree lock.
 */
void psp_flows_stats(struct psp_qdisc *q, struct psp_class *cl,
		     struct tc_psp_class_stats *st)
{
	struct psp_flows *flows = cl->flows;
	u32 buckets = 1u << flows->bits;
	struct psp_flow *f;
	u64 least = U64_MAX;
	u32 i = 0, end, swept;

	do {
		sch_tree_lock(q->sch);
		swept = psp_flows_sweep(q, flows, PSP_FLOW_CHUNK);
		sch_tree_unlock(q->sch);
	} while (swept == PSP_FLOW_CHUNK);

	while (i < buckets) {
		sch_tree_lock(q->sch);
		for (end = min(i + PSP_FLOW_CHUNK, buckets); i < end; i++) {
			hlist_for_each_entry(f, &flows->bucket[i], node) {
				u64 rate_bps = f->pace.rate_bps;

				least = min(least, rate_bps);
				st->flow_rate_max_bps =
					max(st->flow_rate_max_bps, rate_bps);
				st->flow_rate_sum_bps += rate_bps;
			}
		}
		st->flows = flows->count;
		st->flows_active = flows->active;
		st->flows_seen = flows->seen;
		st->flows_refused = flows->refused;
		sch_tree_unlock(q->sch);
	}
	if (st->flow_rate_max_bps)
		st->flow_rate_min_bps = least;
}
