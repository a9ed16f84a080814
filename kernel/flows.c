// SPDX-License-Identifier: GPL-2.0-only
/*
 * The flows of a class of kind dynamic: how they are found, appear and go.
 *
 * A flow is found by the address of its socket, and knows by sk_hash and owner
 * when the address has been given to another.  It goes when it has had nothing to
 * send for PSP_FLOW_IDLE and its clock has been reached: a slow flow that were
 * forgotten before that would have no rate.  A few of those are looked for with
 * each frame.  Ids and queue room of core/ have been set aside for as many flows
 * as the class allows, so none of this fails but for memory.
 */
#include <linux/cred.h>
#include <linux/hash.h>
#include <linux/jiffies.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "psp.h"

/* As fq: long enough for a request that follows a request. */
#define PSP_FLOW_IDLE		(3 * HZ)
/* Looked at with one frame at most: more than can appear with it. */
#define PSP_FLOW_SWEEP		4
/* A change of the formula's rate by less than 1/64 is not worth its divisions. */
#define PSP_FLOW_STEP		6
/* Flows or buckets between two breaths of the statistics. */
#define PSP_FLOW_CHUNK		256

static struct kmem_cache *psp_flow_cache;

int psp_flows_init(void)
{
	int err = psp_users_init();

	if (err)
		return err;
	psp_flow_cache = KMEM_CACHE(psp_flow, 0);
	if (psp_flow_cache)
		return 0;
	psp_users_exit();
	return -ENOMEM;
}

void psp_flows_exit(void)
{
	kmem_cache_destroy(psp_flow_cache);
	psp_users_exit();
}

/*
 * Empty, with buckets for `max` flows, or for the `count` that there are if those
 * are more: they live on.  Sleeps.
 */
struct psp_flows *psp_flows_alloc(u32 max, u32 count)
{
	struct psp_flows *flows = kzalloc(sizeof(*flows), GFP_KERNEL);

	if (!flows)
		return NULL;
	/* hash_ptr() and hash_32() give at least one bit. */
	flows->bits = max(ilog2(roundup_pow_of_two(max(max, count))), 1);
	flows->bucket = kvcalloc(1u << flows->bits, sizeof(*flows->bucket),
				 GFP_KERNEL);
	if (!flows->bucket) {
		kfree(flows);
		return NULL;
	}
	flows->max = max;
	flows->reserved = max;
	INIT_LIST_HEAD(&flows->idle);
	psp_rank_init(&flows->by_flows);
	psp_rank_init(&flows->by_frames);
	return flows;
}

/* It is empty (again); sleeps. */
void psp_flows_free(struct psp_flows *flows)
{
	kvfree(flows->bucket);
	kfree(flows);
}

static struct hlist_head *psp_flow_bucket(struct psp_flows *flows,
					  const struct sock *sk)
{
	return &flows->bucket[hash_ptr(sk, flows->bits)].flows;
}

/* `flows` takes over the size of `size`, which is empty; O(flows). */
void psp_flows_resize(struct psp_flows *flows, struct psp_flows *size)
{
	struct hlist_node *next;
	struct psp_flow *f;
	u32 i;

	for (i = 0; i < 1u << flows->bits; i++) {
		hlist_for_each_entry_safe(f, next, &flows->bucket[i].flows,
					  node) {
			hlist_del(&f->node);
			hlist_add_head(&f->node, psp_flow_bucket(size, f->sk));
		}
	}
	psp_users_rehash(size, flows);
	swap(flows->bucket, size->bucket);
	swap(flows->bits, size->bits);
	flows->max = size->max;
	flows->reserved = max(flows->reserved, flows->max);
}

/*
 * Ids that may be in use before the next change of `max`: more than that only as
 * many as there are, and no more of them appear.  RTNL.
 */
u32 psp_flows_ids(const struct psp_flows *flows)
{
	return max(flows->max, READ_ONCE(flows->count));
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
	struct psp_flows *flows = f->cl->flows;

	pace_class_del(&q->pace, &f->pace);
	hlist_del(&f->node);
	list_del(&f->idle);
	list_del(&f->mine);
	psp_user_put(flows, f->user);
	WRITE_ONCE(flows->count, flows->count - 1);
	kmem_cache_free(psp_flow_cache, f);
}

static bool psp_flow_owes(const struct psp_qdisc *q, const struct psp_flow *f)
{
	return pace_debt_bytes(&q->pace, &f->pace, ktime_get_ns()) != 0;
}

/*
 * Looks at up to `most` flows that have been idle for long, and removes those
 * that owe nothing; the others are looked at again as much later.  How many it
 * has looked at.
 */
static u32 psp_flows_sweep(struct psp_qdisc *q, struct psp_flows *flows,
			   u32 most)
{
	struct psp_flow *f, *next;
	u32 looked = 0;

	list_for_each_entry_safe(f, next, &flows->idle, idle) {
		if (looked == most ||
		    time_before(jiffies, f->idle_since + PSP_FLOW_IDLE))
			break;
		looked++;
		if (psp_flow_owes(q, f)) {
			f->idle_since = jiffies;
			list_move_tail(&f->idle, &flows->idle);
		} else {
			psp_flow_free(q, f);
		}
	}
	return looked;
}

/*
 * A flow that is no different from a new one, among those idle for longest: it
 * has been idle for as long as its clock takes for a largest frame, or a table of
 * flows that take turns would change hands with each frame.
 */
static struct psp_flow *psp_flow_without_claim(struct psp_qdisc *q,
					       struct psp_flows *flows)
{
	struct psp_flow *f;
	u32 looked = 0;
	u64 clock_ms;

	list_for_each_entry(f, &flows->idle, idle) {
		clock_ms = div64_u64((u64)q->port.pace.max_frame_bytes *
				     BITS_PER_BYTE * MSEC_PER_SEC,
				     f->pace.rate_bps);
		clock_ms = min_t(u64, clock_ms, 3 * MSEC_PER_SEC);
		if (time_after(jiffies, f->idle_since + 1 +
			       msecs_to_jiffies(clock_ms)) &&
		    !psp_flow_owes(q, f))
			return f;
		if (++looked == PSP_FLOW_SWEEP)
			break;
	}
	return NULL;
}

/* Room for one more, of `user`, who is counted with it. */
static bool psp_flows_room(struct psp_qdisc *q, struct psp_flows *flows,
			   const struct psp_user *user,
			   struct sk_buff **to_free)
{
	u32 tries = PSP_FLOW_SWEEP;
	struct psp_flow *f;

	while (unlikely(flows->count >= flows->max)) {
		if (!tries--)
			return false;
		f = psp_flow_without_claim(q, flows);
		if (!f) {
			f = psp_flow_to_evict(flows, user);
			if (!f)
				return false;
			flows->evicted++;
		}
		psp_flow_purge(q, f, to_free);
		psp_flow_free(q, f);
	}
	return true;
}

/* A clock of so low a rate may be far away. */
static void psp_flow_note_rate(const struct psp_qdisc *q, struct psp_flow *f,
			       u64 rate_bps)
{
	u32 bytes = max(q->port.pace.max_frame_bytes,
			q->port.pace.max_burst_bytes);

	/* Half a second. */
	f->slow |= rate_bps < 2ull * BITS_PER_BYTE * bytes;
}

static struct psp_flow *psp_flow_new(struct psp_qdisc *q, struct psp_class *cl,
				     const struct sock *sk, u64 rate_bps,
				     struct sk_buff **to_free)
{
	const struct pace_class_config cfg = {
		.type = PACE_TYPE_PACED,
		.rate_bps = rate_bps,
	};
	struct psp_flows *flows = cl->flows;
	struct psp_user *user;
	struct psp_flow *f;

	user = psp_user_hold(flows, READ_ONCE(sk->sk_uid));
	if (!user)
		return NULL;
	if (!psp_flows_room(q, flows, user, to_free))
		goto no_room;
	f = kmem_cache_zalloc(psp_flow_cache, GFP_ATOMIC | __GFP_NOWARN);
	if (!f)
		goto no_room;
	if (pace_class_add(&q->pace, &f->pace, &cfg))
		goto no_id;
	f->turn.is_flow = true;
	f->cl = cl;
	f->sk = sk;
	f->hash = sk->sk_hash;
	f->user = user;
	f->idle_since = jiffies;
	psp_flow_note_rate(q, f, rate_bps);
	list_add_tail(&f->idle, &flows->idle);
	list_add_tail(&f->mine, &user->idle);
	hlist_add_head(&f->node, psp_flow_bucket(flows, sk));
	WRITE_ONCE(flows->count, flows->count + 1);
	flows->seen++;
	return f;

no_id:
	kmem_cache_free(psp_flow_cache, f);
no_room:
	psp_user_put(flows, user);
	return NULL;
}

static void psp_flow_set_rate(struct psp_qdisc *q, struct psp_flow *f,
			      u64 rate_bps)
{
	const struct pace_class_config cfg = {
		.type = PACE_TYPE_PACED,
		.rate_bps = rate_bps,
	};

	/* psp_flow_rate() gives what core/ takes. */
	WARN_ON_ONCE(pace_class_change(&q->pace, &f->pace, &cfg));
	psp_flow_note_rate(q, f, rate_bps);
}

/*
 * Another socket has the address: it owes nothing.  With frames waiting it is
 * the same socket under another name: those frames hold it.
 */
static bool psp_flow_is_of(struct psp_flow *f, const struct sock *sk)
{
	if (likely(f->hash == sk->sk_hash &&
		   uid_eq(f->user->uid, READ_ONCE(sk->sk_uid))))
		return true;
	f->hash = sk->sk_hash;
	return f->queue.qlen;
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
			     struct sk_buff *skb, struct sk_buff **to_free)
{
	struct sock *sk = psp_flow_socket(skb);
	struct psp_flows *flows = cl->flows;
	struct psp_flow *f;
	bool exact, lowered;
	u64 rate_bps;

	psp_flows_sweep(q, flows, PSP_FLOW_SWEEP);
	if (!sk)
		return NULL;
	rate_bps = psp_flow_rate(q, cl, sk, &exact);
	f = psp_flow_find(flows, sk);
	if (f && unlikely(!psp_flow_is_of(f, sk))) {
		psp_flow_free(q, f);
		f = NULL;
	}
	if (unlikely(!f)) {
		f = psp_flow_new(q, cl, sk, rate_bps, to_free);
		if (!f)
			flows->refused++;
		return f;
	}
	if (psp_flow_moved(f->pace.rate_bps, rate_bps, exact)) {
		lowered = rate_bps < f->pace.rate_bps;
		psp_flow_set_rate(q, f, rate_bps);
		if (lowered)
			psp_flow_fit(q, f, to_free);
	}
	return f;
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
		hlist_for_each_entry_safe(f, next, &flows->bucket[i].flows,
					  node) {
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
		hlist_for_each_entry(f, &cl->flows->bucket[i].flows, node) {
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
	u32 i = 0, end, looked;

	do {
		sch_tree_lock(q->sch);
		looked = psp_flows_sweep(q, flows, PSP_FLOW_CHUNK);
		sch_tree_unlock(q->sch);
	} while (looked == PSP_FLOW_CHUNK);

	while (i < buckets) {
		sch_tree_lock(q->sch);
		for (end = min(i + PSP_FLOW_CHUNK, buckets); i < end; i++) {
			hlist_for_each_entry(f, &flows->bucket[i].flows, node) {
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
		st->flows_evicted = flows->evicted;
		st->flow_users = flows->users;
		sch_tree_unlock(q->sch);
	}
	if (st->flow_rate_max_bps)
		st->flow_rate_min_bps = least;
}
