// SPDX-License-Identifier: GPL-2.0-only
/*
 * Flows of dynamic classes: one for each socket that sends, each with a clock
 * of its own.  All of it is under the root lock unless a comment says
 * otherwise.
 *
 * Users send as they like, so flows, frames and the wait of a frame are
 * bounded. Where a bound is reached, the user who has most gives way
 * (rank.h).
 *
 * A flow is found by the address of its socket; sk_hash and owner tell
 * whether another socket has the address now.  A flow is removed when it has
 * been idle for PSP_FLOW_IDLE and has no debt: a slow flow that were removed
 * earlier would have no rate.  Each frame looks for a few of those.  Ids of
 * core/ are reserved for as many flows as the class allows, so adding one
 * fails only without memory.
 */

/* As in fq: long enough for a request that follows a request. */
#define PSP_FLOW_IDLE		(3 * HZ)
/* Most idle flows that one frame looks at: more than it can add. */
#define PSP_FLOW_SWEEP		4
/* A change of the computed rate below 1/64 is not worth its divisions. */
#define PSP_FLOW_STEP		6
/* Flows or buckets that statistics read without releasing the lock. */
#define PSP_FLOW_CHUNK		256

/*
 * Users.  A user is a uid: a process may open any number of sockets, but not
 * as another user.  Subordinate uids count as users of their own.  No share
 * is reserved. Where a bound is reached, one of the users who have most gives
 * way: of N flows (or frames) among U users, a user who has N / 2U or less
 * loses none to another (rank.h).
 */

/* Most flows of one user that are compared at a time. */
#define PSP_USER_LOOK		8

static struct kmem_cache *psp_user_cache;

static int psp_users_init(void)
{
	psp_user_cache = KMEM_CACHE(psp_user, SLAB_ACCOUNT);
	return psp_user_cache ? 0 : -ENOMEM;
}

static void psp_users_exit(void)
{
	kmem_cache_destroy(psp_user_cache);
}

static struct hlist_head *psp_user_bucket(struct psp_flows *flows, kuid_t uid)
{
	return &flows->bucket[hash_32(__kuid_val(uid), flows->bits)].users;
}

/* Returns the user with one flow more, or NULL without memory. */
static struct psp_user *psp_user_get(struct psp_flows *flows, kuid_t uid)
{
	struct hlist_head *bucket = psp_user_bucket(flows, uid);
	struct psp_user *user;

	hlist_for_each_entry(user, bucket, node)
		if (uid_eq(user->uid, uid))
			goto found;
	user = kmem_cache_zalloc(psp_user_cache, GFP_ATOMIC | __GFP_NOWARN);
	if (!user)
		return NULL;
	user->uid = uid;
	INIT_LIST_HEAD(&user->idle);
	INIT_LIST_HEAD(&user->busy);
	psp_rank_add(&flows->by_flows, &user->flows);
	psp_rank_add(&flows->by_frames, &user->frames);
	hlist_add_head(&user->node, bucket);
	flows->users++;
found:
	psp_rank_set(&flows->by_flows, &user->flows, user->flows.count + 1);
	return user;
}

/* The user has one flow less, and is freed with the last. */
static void psp_user_put(struct psp_flows *flows, struct psp_user *user)
{
	psp_rank_set(&flows->by_flows, &user->flows, user->flows.count - 1);
	if (user->flows.count)
		return;
	psp_rank_del(&flows->by_flows, &user->flows);
	psp_rank_del(&flows->by_frames, &user->frames);
	hlist_del(&user->node);
	flows->users--;
	kmem_cache_free(psp_user_cache, user);
}

/* Moves the users to the buckets of `to`; O(users). */
static void psp_users_rehash(struct psp_flows *to, struct psp_flows *from)
{
	struct hlist_node *next;
	struct psp_user *user;
	u32 i;

	for (i = 0; i < 1u << from->bits; i++) {
		hlist_for_each_entry_safe(user, next, &from->bucket[i].users,
					  node) {
			hlist_del(&user->node);
			hlist_add_head(&user->node,
				       psp_user_bucket(to, user->uid));
		}
	}
}

/*
 * Returns the flow that makes room for one of `newcomer`, whose count
 * includes it; NULL if no user has more.  Of the user who has most: the flow
 * idle for longest, else the one with the fewest frames among PSP_USER_LOOK.
 */
static struct psp_flow *psp_flow_to_evict(struct psp_flows *flows,
					  const struct psp_user *newcomer)
{
	struct psp_flow *f, *least = NULL;
	struct psp_user *user;
	u32 looked = 0;

	if (psp_rank_is_top(&flows->by_flows, newcomer->flows.count))
		return NULL;
	user = container_of(psp_rank_top(&flows->by_flows), struct psp_user,
			    flows);
	if (!list_empty(&user->idle))
		return list_first_entry(&user->idle, struct psp_flow, mine);
	list_for_each_entry(f, &user->busy, mine) {
		if (!least || f->entity.queue.qlen < least->entity.queue.qlen)
			least = f;
		if (++looked == PSP_USER_LOOK)
			break;
	}
	return least;
}

/*
 * Returns the longest among PSP_USER_LOOK flows of the user; the next call
 * compares others.
 */
static struct psp_flow *psp_user_longest(struct psp_user *user)
{
	struct psp_flow *f, *longest = NULL;
	u32 looked = 0;

	list_for_each_entry(f, &user->busy, mine) {
		if (!longest || f->entity.queue.qlen > longest->entity.queue.qlen)
			longest = f;
		if (++looked == PSP_USER_LOOK)
			break;
	}
	if (longest)
		list_rotate_left(&user->busy);
	return longest;
}

/*
 * Returns the flow that loses a frame to one of `arriving`, or NULL if that
 * frame is dropped.
 */
static struct psp_flow *psp_flow_to_shorten(struct psp_flows *flows,
					    struct psp_flow *arriving)
{
	struct psp_user *user = arriving->user;
	struct psp_flow *f;

	if (!psp_rank_is_top(&flows->by_frames, user->frames.count + 1))
		return psp_user_longest(container_of(psp_rank_top(&flows->by_frames),
						     struct psp_user, frames));
	f = psp_user_longest(user);
	return f && f->entity.queue.qlen > arriving->entity.queue.qlen ? f : NULL;
}

static struct kmem_cache *psp_flow_cache;

static int psp_flows_init(void)
{
	int err = psp_users_init();

	if (err)
		return err;
	psp_flow_cache = KMEM_CACHE(psp_flow, SLAB_ACCOUNT);
	if (psp_flow_cache)
		return 0;
	psp_users_exit();
	return -ENOMEM;
}

static void psp_flows_exit(void)
{
	kmem_cache_destroy(psp_flow_cache);
	psp_users_exit();
}

/*
 * Allocates an empty table with buckets for `max` flows, or for the `count`
 * that exist if those are more.  Sleeps.
 */
static struct psp_flows *psp_flows_alloc(u32 max, u32 count)
{
	struct psp_flows *flows = kzalloc(sizeof(*flows), GFP_KERNEL_ACCOUNT);
	u32 size = max(max, count);

	if (!flows)
		return NULL;
	/* hash_ptr() and hash_32() need at least one bit. */
	flows->bits = max(ilog2(roundup_pow_of_two(size)), 1);
	flows->bucket = kvcalloc(1u << flows->bits, sizeof(*flows->bucket),
				 GFP_KERNEL_ACCOUNT);
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

/* Frees an empty table.  Sleeps. */
static void psp_flows_free(struct psp_flows *flows)
{
	kvfree(flows->bucket);
	kfree(flows);
}

static struct hlist_head *psp_flow_bucket(struct psp_flows *flows,
					  const struct sock *sk)
{
	return &flows->bucket[hash_ptr(sk, flows->bits)].flows;
}

/* Gives `flows` the size of `size`, which is empty; O(flows). */
static void psp_flows_resize(struct psp_flows *flows, struct psp_flows *size)
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
 * Returns the ids that may be in use until `max` changes again: the existing
 * flows if those are more, because none is added then.  RTNL.
 */
static u32 psp_flows_ids(const struct psp_flows *flows)
{
	return max(flows->max, READ_ONCE(flows->count));
}

/*
 * The rate of a flow.
 *
 * Paper 003: target rate = packet size x cwnd / RTT.  Packet size is that of
 * a full packet, MSS and headers, in bytes as rates count them.  Where the
 * window may double within the RTT (slow start, cwnd < ssthresh / 2) it
 * counts twice, after that an eighth more than once.  RTT is the smoothed RTT
 * of TCP (each sample moves it by 1/8); there is no other smoothing.
 *
 * Reading a socket.  psp reads a socket only with one of its frames in hand
 * that holds a reference by its destructor.  It reads the fields without the
 * socket lock: each is one word, and a value of one ACK ago is as good.
 *
 * What the stack does.  SK_PACING_FQ tells TCP that a qdisc paces: TCP sets
 * no timers of its own, and stamps frames with the time at which they would
 * leave at sk_pacing_rate.  It measures RTT from that time, so the wait for
 * pacing does not count as a queue on the path.  A flow must then never be
 * faster than sk_pacing_rate: its RTT would be too short, its rate too high,
 * and so on.  For most congestion controls sk_pacing_rate is 1.2 (slow start:
 * 2) times the formula, and at most SO_MAX_PACING_RATE.
 *
 * docs/decisions/qdisc.md, "The rate of a flow in a dynamic class", "Flows and
 * their sockets".
 */

/*
 * By default a largest frame waits at most this long for the clock of its
 * flow: the shortest retransmission timeout of TCP (TCP_RTO_MIN).
 */
#define PSP_FLOOR_MS		200

/* Most bits in a window, 128 GiB: products stay within 64 bits. */
#define PSP_WINDOW_BITS_MAX	(1ull << 40)

/*
 * Returns the socket whose flow paces `skb`, or NULL if the class itself
 * does.
 */
static struct sock *psp_flow_socket(const struct sk_buff *skb)
{
	struct sock *sk = skb->sk;

	/*
	 * Without a destructor there is no reference.  Request and TIME_WAIT
	 * sockets have no rate.
	 */
	if (!sk || !skb->destructor || !sk_fullsock(sk))
		return NULL;
	if (!sk_is_tcp(sk))
		return READ_ONCE(sk->sk_max_pacing_rate) != ~0UL ? sk : NULL;
	/*
	 * A SYN-ACK belongs to no flow yet.  The window limits data: the
	 * receiver of a fast flow has a small window, and ACKs to send.
	 */
	if (READ_ONCE(sk->sk_state) == TCP_LISTEN || skb_is_tcp_pure_ack(skb))
		return NULL;
	return sk;
}

/*
 * Converts a packet length from the IP header on to bytes as rates count
 * them.
 */
static u32 psp_packet_bytes(const struct psp_qdisc *q, u32 ip_bytes)
{
	u32 bytes = ip_bytes + q->pace.cfg.link_header_bytes;
	const struct pace_burst packet = {
		.len_bytes = bytes,
		.frames = 1,
		.wire_bytes = pace_wire_bytes(&q->pace, bytes),
	};

	return pace_counted_bytes(&q->pace.cfg, &packet);
}

/*
 * Returns the least rate of a flow, whatever its socket asks for.  By default
 * its clock takes one horizon for a largest frame, so no idle flow keeps its
 * id for longer.
 */
static u64 psp_flow_least(const struct psp_qdisc *q, const struct psp_class *cl)
{
	const struct pace_config *cfg = &q->pace.cfg;
	u64 least_bps = cl->opt.pacing_floor_bps;

	if (!least_bps)
		least_bps = div64_u64(cfg->max_frame_bytes *
				      (u64)BITS_PER_BYTE * NSEC_PER_SEC,
				      cl->opt.horizon_ns);
	return max(least_bps, pace_least_rate_bps(cfg));
}

static u64 psp_flow_floor(const struct psp_qdisc *q, const struct psp_class *cl)
{
	const struct pace_config *cfg = &q->pace.cfg;
	u64 floor_bps = cl->opt.floor_bps;

	if (!floor_bps)
		floor_bps = div_u64((u64)cfg->max_frame_bytes * BITS_PER_BYTE *
				    MSEC_PER_SEC, PSP_FLOOR_MS);
	return floor_bps;
}

/*
 * TCP counts payload.  Returns the rate of full packets that carry
 * `payload_Bps`.
 */
static u64 psp_rate_of_payload(unsigned long payload_Bps, u32 packet_bytes,
			       u32 mss_bytes, u64 ceil_bps)
{
	/* ~0UL: without a limit; on 32 bits that is less than some lines. */
	if (payload_Bps == ~0UL || payload_Bps > ceil_bps / BITS_PER_BYTE)
		return ceil_bps;
	return div_u64((u64)payload_Bps * BITS_PER_BYTE * packet_bytes,
		       mss_bytes);
}

/*
 * A congestion control with cong_control() sets sk_pacing_rate itself; for
 * the others TCP computes it.
 *
 * RCU: a congestion control is unregistered before its memory is freed.
 */
static bool psp_has_own_rate(const struct sock *sk)
{
	return READ_ONCE(inet_csk(sk)->icsk_ca_ops)->cong_control;
}

/*
 * Returns the window at the start of the next RTT, in bits.  After slow start
 * it is an eighth more: at a rate of exactly the window the data in flight
 * never reaches it, and TCP lets a window grow only if it was the limit
 * (docs/decisions/qdisc.md, "The rate of a flow in a dynamic class").
 */
static u64 psp_window_bits(const struct tcp_sock *tp, u32 packet_bytes)
{
	u64 packets = READ_ONCE(tp->snd_cwnd);

	if (packets < READ_ONCE(tp->snd_ssthresh) / 2)
		packets *= 2;
	else
		packets += packets / 8;
	return min(packets * packet_bytes * BITS_PER_BYTE, PSP_WINDOW_BITS_MAX);
}

static u64 psp_tcp_rate(const struct psp_qdisc *q, const struct psp_class *cl,
			struct sock *sk, u64 ceil_bps, bool *exact)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 mss_bytes = READ_ONCE(tp->mss_cache);
	u32 srtt_us8 = READ_ONCE(tp->srtt_us);		/* in units of 1/8 us */
	u64 rate_bps = cl->pace.rate_bps, own_bps;
	u32 packet_bytes;

	if (unlikely(!mss_bytes))
		return rate_bps;
	packet_bytes = psp_packet_bytes(q, mss_bytes +
		READ_ONCE(tp->tcp_header_len) + icsk->icsk_ext_hdr_len +
		READ_ONCE(icsk->icsk_af_ops)->net_header_len);

	if (srtt_us8) {
		rate_bps = div_u64(psp_window_bits(tp, packet_bytes) *
				   USEC_PER_SEC * 8, srtt_us8);
		rate_bps = max(rate_bps, psp_flow_floor(q, cl));
	}

	if (READ_ONCE(sk->sk_pacing_status) != SK_PACING_FQ) {
		/* Pairs with the acquire of tcp_needs_internal_pacing(). */
		smp_store_release(&sk->sk_pacing_status, SK_PACING_FQ);
	}
	own_bps = psp_rate_of_payload(READ_ONCE(sk->sk_pacing_rate),
				      packet_bytes, mss_bytes, ceil_bps);
	if (own_bps > rate_bps && !psp_has_own_rate(sk))
		return rate_bps;
	*exact = true;
	return own_bps;
}

/*
 * Returns the current rate of a flow, in bit/s as the layer counts.  *exact:
 * the rate is a limit that must not be exceeded at all.
 */
static u64 psp_flow_rate(const struct psp_qdisc *q, const struct psp_class *cl,
			 struct sock *sk, bool *exact)
{
	u64 ceil_bps = psp_class_ceil_bps(q, cl);
	unsigned long max_Bps;
	u64 rate_bps;

	*exact = false;
	if (sk_is_tcp(sk)) {
		rate_bps = psp_tcp_rate(q, cl, sk, ceil_bps, exact);
	} else {
		max_Bps = READ_ONCE(sk->sk_max_pacing_rate);
		*exact = true;
		rate_bps = max_Bps > ceil_bps / BITS_PER_BYTE ?
			   ceil_bps : (u64)max_Bps * BITS_PER_BYTE;
	}
	rate_bps = max(rate_bps, psp_flow_least(q, cl));
	if (rate_bps >= ceil_bps) {
		*exact = true;
		return ceil_bps;
	}
	return rate_bps;
}

/*
 * Queues of flows and their bounds: frames of one flow (flow-limit), their
 * wait (horizon), frames of all flows of a class (limit).  Each drop has a
 * counter for its cause, and moves no clock.
 */

/* Counts frames of the flow into its class and its user, or out of them. */
static void psp_flow_count(struct psp_flow *f, int frames, int bytes)
{
	struct psp_flows *flows = f->cl->flows;
	struct psp_user *user = f->user;

	flows->qlen += frames;
	flows->backlog += bytes;
	psp_rank_set(&flows->by_frames, &user->frames,
		     user->frames.count + frames);
}

/* The queue has become empty. */
static void psp_flow_set_idle(struct psp_flow *f)
{
	struct psp_flows *flows = f->cl->flows;

	f->idle_since = jiffies;
	list_add_tail(&f->idle, &flows->idle);
	list_move_tail(&f->mine, &f->user->idle);
	flows->active--;
}

static void psp_flow_set_active(struct psp_qdisc *q, struct psp_flow *f)
{
	list_del_init(&f->idle);
	list_move_tail(&f->mine, &f->user->busy);
	f->cl->flows->active++;
	psp_entity_activate(q, &f->entity, ktime_get_ns());
	psp_count_throttled(q, f->cl, &f->entity);
}

/*
 * Takes the first frame out of a queue that is not empty.  The caller reports
 * it to core/.
 */
static struct sk_buff *psp_flow_pull(struct psp_flow *f)
{
	struct sk_buff *skb = __qdisc_dequeue_head(&f->entity.queue);

	f->entity.backlog -= qdisc_pkt_len(skb);
	psp_flow_count(f, -1, -(int)qdisc_pkt_len(skb));
	if (!f->entity.queue.qlen)
		psp_flow_set_idle(f);
	return skb;
}

/* Drops a frame that is out of its queue already. */
static void psp_flow_drop(struct psp_qdisc *q, struct sk_buff *skb,
			  struct sk_buff **to_free)
{
	unsigned int bytes = qdisc_pkt_len(skb);

	psp_qlen_add(q->sch, -1, -(int)bytes);
	qdisc_tree_reduce_backlog(q->sch, 1, bytes);
	qdisc_drop(skb, q->sch, to_free);
}

/* Drops all frames of a flow that is to be removed. */
static void psp_flow_purge(struct psp_qdisc *q, struct psp_flow *f,
			   struct sk_buff **to_free)
{
	if (!f->entity.queue.qlen)
		return;
	while (f->entity.queue.qlen) {
		psp_count_cause(q, f->cl, drop_evicted);
		psp_flow_drop(q, psp_flow_pull(f), to_free);
	}
	psp_entity_deactivate(q, &f->entity, ktime_get_ns());
}

/*
 * Returns bytes of frames as rates count them; layer wire: as if all had one
 * length.
 */
static u64 psp_counted_bytes(const struct pace_config *cfg, u32 frames, u64 bytes)
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

/* Returns the time until the clock of the flow is reached. */
static u64 psp_flow_debt_ns(const struct psp_qdisc *q, const struct psp_flow *f)
{
	const struct psp_group *g = f->cl->group;
	u64 now_ns = ktime_get_ns();

	return g ? pace_group_debt_ns(&q->pace, &g->pace, &f->pace, now_ns) :
		   pace_debt_ns(&q->pace, &f->pace, now_ns);
}

/*
 * Returns the bytes that the flow may hold before a frame for that frame to
 * leave within the horizon.
 */
static u64 psp_flow_room_bytes(const struct psp_qdisc *q,
			       const struct psp_flow *f)
{
	u64 horizon_ns = f->cl->opt.horizon_ns;
	u64 debt_ns = psp_flow_debt_ns(q, f);

	if (debt_ns > horizon_ns)
		return 0;
	return pace_mul_div(horizon_ns - debt_ns, f->pace.rate_bps,
			    PSP_LINE_NS_BITS);
}

/*
 * The usual case, without a division: the bytes take at most half a second,
 * and so does the clock, so the horizon is not reached.
 */
static bool psp_flow_is_near(const struct psp_qdisc *q,
			     const struct psp_flow *f, u64 counted_bytes)
{
	return !f->slow &&
	       counted_bytes * 2 * BITS_PER_BYTE <= f->pace.rate_bps;
}

/* Would a frame that arrives now wait beyond the horizon of the class? */
static bool psp_flow_is_beyond(const struct psp_qdisc *q,
			       const struct psp_flow *f)
{
	u64 bytes = psp_counted_bytes(&q->pace.cfg, f->entity.queue.qlen, f->entity.backlog);

	if (likely(psp_flow_is_near(q, f, bytes)))
		return false;
	if (!f->entity.queue.qlen)
		return psp_flow_debt_ns(q, f) > f->cl->opt.horizon_ns;
	return bytes > psp_flow_room_bytes(q, f);
}

/*
 * The rate was lowered: drops frames that would wait beyond the horizon, from
 * the end; keeps the first.  It walks through all frames.  So it drops at
 * least an eighth, of the bytes that there is room for and of the frames:
 * otherwise a user could cause such a walk with each frame sent.
 */
static void psp_flow_trim(struct psp_qdisc *q, struct psp_flow *f,
			  struct sk_buff **to_free)
{
	const struct pace_config *cfg = &q->pace.cfg;
	struct qdisc_skb_head *queue = &f->entity.queue;
	struct sk_buff *skb = queue->head, *next;
	u64 room, bytes;
	u32 frames = 1, most;

	if (queue->qlen < 2 ||
	    psp_flow_is_near(q, f, psp_counted_bytes(cfg, queue->qlen, f->entity.backlog)))
		return;
	room = psp_flow_room_bytes(q, f);
	bytes = f->entity.backlog - qdisc_pkt_len(queue->tail);
	if (psp_counted_bytes(cfg, queue->qlen - 1, bytes) <= room)
		return;
	room -= room / 8;
	most = queue->qlen - DIV_ROUND_UP(queue->qlen, 8);
	bytes = qdisc_pkt_len(skb);
	while (frames < most && psp_counted_bytes(cfg, frames, bytes) <= room) {
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
		f->entity.backlog -= qdisc_pkt_len(skb);
		psp_flow_count(f, -1, -(int)qdisc_pkt_len(skb));
		psp_count_cause(q, f->cl, drop_horizon);
		psp_flow_drop(q, skb, to_free);
	}
}

/*
 * The class is full: drops the first frame of some flow, whose next frame
 * takes its place.  Returns false if the arriving frame is to be dropped.
 */
static bool psp_flows_shorten(struct psp_qdisc *q, struct psp_flow *arriving,
			      struct sk_buff **to_free)
{
	struct psp_class *cl = arriving->cl;
	struct psp_flow *f = psp_flow_to_shorten(cl->flows, arriving);

	if (!f)
		return false;
	psp_count_cause(q, cl, drop_limit);
	psp_flow_drop(q, psp_flow_pull(f), to_free);
	if (!f->entity.queue.qlen)
		psp_entity_deactivate(q, &f->entity, ktime_get_ns());
	return true;
}

/* Two at a time, so that a limit that was lowered is reached. */
static bool psp_flows_trim(struct psp_qdisc *q, struct psp_flow *arriving,
			   struct sk_buff **to_free)
{
	const struct psp_class *cl = arriving->cl;
	int tries = 2;

	while (cl->flows->qlen >= cl->opt.limit)
		if (!tries-- || !psp_flows_shorten(q, arriving, to_free))
			return false;
	return true;
}

static int psp_flow_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			    struct psp_flow *f, struct sk_buff **to_free)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_class *cl = f->cl;
	unsigned int bytes = qdisc_pkt_len(skb);

	if (unlikely(f->entity.queue.qlen >= cl->opt.flow_limit)) {
		psp_count_cause(q, cl, drop_flow);
		return qdisc_drop(skb, sch, to_free);
	}
	if (unlikely(psp_flow_is_beyond(q, f))) {
		psp_count_cause(q, cl, drop_horizon);
		return qdisc_drop(skb, sch, to_free);
	}
	if (unlikely(cl->flows->qlen >= cl->opt.limit) &&
	    !psp_flows_trim(q, f, to_free)) {
		psp_count_cause(q, cl, drop_limit);
		return qdisc_drop(skb, sch, to_free);
	}

	__qdisc_enqueue_tail(skb, &f->entity.queue);
	psp_flow_count(f, 1, bytes);
	psp_count_waiting(sch, &f->entity, false, bytes);
	if (f->entity.queue.qlen == 1)
		psp_flow_set_active(q, f);
	return NET_XMIT_SUCCESS;
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

/* Removes a flow whose queue is empty. */
static void psp_flow_free(struct psp_qdisc *q, struct psp_flow *f)
{
	struct psp_flows *flows = f->cl->flows;

	psp_entity_del(q, &f->entity);
	hlist_del(&f->node);
	list_del(&f->idle);
	list_del(&f->mine);
	psp_user_put(flows, f->user);
	WRITE_ONCE(flows->count, flows->count - 1);
	kmem_cache_free(psp_flow_cache, f);
}

static bool psp_flow_has_debt(const struct psp_qdisc *q, const struct psp_flow *f)
{
	return psp_flow_debt_ns(q, f) != 0;
}

/*
 * Looks at up to `most` flows that have been idle for PSP_FLOW_IDLE.  Removes
 * those without a debt, and looks at the others as much later again.  Returns
 * how many it looked at.
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
		if (psp_flow_has_debt(q, f)) {
			f->idle_since = jiffies;
			list_move_tail(&f->idle, &flows->idle);
		} else {
			psp_flow_free(q, f);
		}
	}
	return looked;
}

/*
 * Returns an idle flow that can be removed for a new one, because nothing
 * tells it from a new one: it has no debt, and has been idle for as long as
 * its clock takes for a largest frame.  Otherwise flows that send alternately
 * would replace each other with each frame.
 */
static struct psp_flow *psp_flow_replaceable(struct psp_qdisc *q,
					     struct psp_flows *flows)
{
	struct psp_flow *f;
	u32 looked = 0;
	u64 clock_ms;

	list_for_each_entry(f, &flows->idle, idle) {
		clock_ms = div64_u64((u64)q->pace.cfg.max_frame_bytes *
				     BITS_PER_BYTE * MSEC_PER_SEC,
				     f->pace.rate_bps);
		clock_ms = min_t(u64, clock_ms, 3 * MSEC_PER_SEC);
		if (time_after(jiffies, f->idle_since + 1 +
			       msecs_to_jiffies(clock_ms)) &&
		    !psp_flow_has_debt(q, f))
			return f;
		if (++looked == PSP_FLOW_SWEEP)
			break;
	}
	return NULL;
}

/* Makes room for one flow of `user`, whose count includes it. */
static bool psp_flows_make_room(struct psp_qdisc *q, struct psp_flows *flows,
				const struct psp_user *user,
				struct sk_buff **to_free)
{
	u32 tries = PSP_FLOW_SWEEP;
	struct psp_flow *f;

	while (unlikely(flows->count >= flows->max)) {
		if (!tries--)
			return false;
		f = psp_flow_replaceable(q, flows);
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

/* At a low rate the clock may be far ahead. */
static void psp_flow_note_rate(const struct psp_qdisc *q, struct psp_flow *f,
			       u64 rate_bps)
{
	u32 bytes = max(q->pace.cfg.max_frame_bytes,
			q->pace.cfg.max_burst_bytes);

	/* half a second */
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

	user = psp_user_get(flows, READ_ONCE(sk->sk_uid));
	if (!user)
		return NULL;
	if (!psp_flows_make_room(q, flows, user, to_free))
		goto no_room;
	f = kmem_cache_zalloc(psp_flow_cache, GFP_ATOMIC | __GFP_NOWARN);
	if (!f)
		goto no_room;
	if (pace_class_add(psp_sched_of(q, cl), &f->pace, &cfg))
		goto no_id;
	f->entity.is_flow = true;
	f->entity.in_group = !!cl->group;
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

	/* psp_flow_rate() returns only rates that core/ accepts. */
	WARN_ON_ONCE(psp_entity_change(q, &f->entity, &cfg));
	psp_flow_note_rate(q, f, rate_bps);
}

/*
 * Is the flow still that of `sk`?  If another socket has the address now, the
 * flow has no debt.  With frames queued it is the same socket after
 * connect(): those frames hold it.
 */
static bool psp_flow_is_of(struct psp_flow *f, const struct sock *sk)
{
	if (likely(f->hash == sk->sk_hash &&
		   uid_eq(f->user->uid, READ_ONCE(sk->sk_uid))))
		return true;
	f->hash = sk->sk_hash;
	return f->entity.queue.qlen;
}

static bool psp_flow_rate_changed(u64 from_bps, u64 to_bps, bool exact)
{
	u64 step_bps = exact ? 0 : from_bps >> PSP_FLOW_STEP;

	return to_bps > from_bps + step_bps || to_bps + step_bps < from_bps;
}

/*
 * Returns the flow of `skb`, which has not been cut, with its current rate.
 * NULL: it has none, and is queued like frames without a socket.
 */
static struct psp_flow *psp_flow_of(struct psp_qdisc *q, struct psp_class *cl,
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
	if (psp_flow_rate_changed(f->pace.rate_bps, rate_bps, exact)) {
		lowered = rate_bps < f->pace.rate_bps;
		psp_flow_set_rate(q, f, rate_bps);
		if (lowered)
			psp_flow_trim(q, f, to_free);
	}
	return f;
}

/* Removes all flows and their frames, in the counters of the qdisc, too. */
static void psp_flows_clear(struct psp_qdisc *q, struct psp_class *cl)
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
			if (f->entity.queue.qlen) {
				rtnl_kfree_skbs(f->entity.queue.head, f->entity.queue.tail);
				psp_entity_deactivate(q, &f->entity, now_ns);
			}
			psp_flow_free(q, f);
		}
	}
	flows->qlen = 0;
	flows->backlog = 0;
	flows->active = 0;
}

/*
 * Brings all rates into this range, before a line that would refuse others
 * takes force.  The next frame of each flow sets its rate again.  O(flows).
 */
static void psp_flows_clamp(struct psp_qdisc *q, struct psp_class *cl, u64 least_bps,
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
 * Reads all flows, a chunk at a time under the lock: 65536 at once would hold
 * up the wire.  RTNL; takes the tree lock.
 */
static void psp_flows_stats(struct psp_qdisc *q, struct psp_class *cl,
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
