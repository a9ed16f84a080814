// SPDX-License-Identifier: GPL-2.0-only
/*
 * Launch times: classes with the option txtime.
 *
 * The sender says when each frame is to leave (SO_TXTIME, or skb->tstamp written by
 * BPF).  The frames of such a class wait in a tree, in the order of these times, and
 * core/ is told the time of the first one.  In deadline mode a frame may leave
 * earlier, and core/ is told nothing.
 *
 * Refused when it comes is a frame without a launch time on the clock of the class,
 * of a socket in the other mode, or whose time has passed or is beyond the horizon;
 * dropped when it is served is one that would leave too late, and when CLOCK_TAI was
 * set one that would wait beyond the horizon since.  All are counted, and reported on
 * the error queue of a socket that asks for it, with the codes of etf.
 *
 * Bounds: psp_class.limit frames, psp_class_options.horizon_ns.  An operation is
 * O(log n) in the frames of the class.  docs/decisions/qdisc.md, "Launch times".
 */

/* How much later than its launch time a frame may leave, unless txtime-late says. */
#define PSP_TXTIME_LATE_DEFAULT	(1ull * NSEC_PER_MSEC)
/*
 * CLOCK_TAI may be set while psp waits, and tells nobody.  While frames wait for an
 * instant of it, its distance from CLOCK_MONOTONIC is read so often.
 */
#define PSP_TAI_LOOK_NS		(100ull * NSEC_PER_MSEC)

/* Does core/ have to know the launch times of the class? */
static inline bool psp_launches(const struct psp_class *cl)
{
	return cl->opt.txtime && !cl->opt.txtime_deadline;
}

static u64 psp_launch_late_ns(const struct psp_class *cl)
{
	if (cl->opt.txtime_late_ns || cl->opt.txtime_deadline)
		return cl->opt.txtime_late_ns;
	return PSP_TXTIME_LATE_DEFAULT;
}

/* Returns the launch time on CLOCK_MONOTONIC. */
static s64 psp_launch_ns(const struct psp_qdisc *q, const struct psp_class *cl,
			 const struct sk_buff *skb)
{
	s64 ns = ktime_to_ns(skb->tstamp);

	return cl->opt.txtime == TC_PSP_TXTIME_TAI ? ns - q->tai_ns : ns;
}

static const struct sock *psp_txtime_sock(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;

	return sk && sk_fullsock(sk) && sock_flag(sk, SOCK_TXTIME) ? sk : NULL;
}

/*
 * Returns the clock of a frame's launch time: enum tc_psp_txtime.  Older kernels mark
 * no clock in the frames of datagram sockets, but there the socket knows it.
 */
static u8 psp_txtime_clock(const struct sk_buff *skb)
{
	const struct sock *sk = psp_txtime_sock(skb);

	if (!skb->tstamp)
		return TC_PSP_TXTIME_OFF;
	if (!sk)
		return psp_has_delivery_time(skb) ? TC_PSP_TXTIME_MONOTONIC :
		       psp_has_tai_time(skb)	  ? TC_PSP_TXTIME_TAI :
						    TC_PSP_TXTIME_OFF;
	switch (sk->sk_clockid) {
	case CLOCK_MONOTONIC:
		return TC_PSP_TXTIME_MONOTONIC;
	case CLOCK_TAI:
		return TC_PSP_TXTIME_TAI;
	default:
		return TC_PSP_TXTIME_OFF;
	}
}

/* Reports a frame that will not leave to its socket, if that asks for it. */
static void psp_launch_report(struct sk_buff *skb, int error, u8 code)
{
	const struct sock *asks = psp_txtime_sock(skb);
	struct sock_extended_err *ee;
	struct sk_buff *report;

	/* Nobody reads the queue of a socket that is closed. */
	if (!asks || !asks->sk_txtime_report_errors || sock_flag(asks, SOCK_DEAD))
		return;
	report = skb_clone(skb, GFP_ATOMIC);
	if (!report)
		return;
	ee = &SKB_EXT_ERR(report)->ee;
	*ee = (struct sock_extended_err){
		.ee_errno = error,
		.ee_origin = SO_EE_ORIGIN_TXTIME,
		.ee_code = code,
		.ee_info = lower_32_bits(ktime_to_ns(skb->tstamp)),
		.ee_data = upper_32_bits(ktime_to_ns(skb->tstamp)),
	};
	if (sock_queue_err_skb(skb->sk, report))
		kfree_skb(report);
}

static void psp_launch_refuse(struct psp_qdisc *q, struct psp_class *cl, struct sk_buff *skb)
{
	psp_count_cause(q, cl, drop_txtime_invalid);
	psp_launch_report(skb, EINVAL, SO_EE_CODE_TXTIME_INVALID_PARAM);
}

/* May a frame that comes now wait in the class?  If not, counts and reports it. */
static bool psp_launch_accept(struct psp_qdisc *q, struct psp_class *cl,
			      struct sk_buff *skb, u64 now_ns)
{
	const struct sock *sk = psp_txtime_sock(skb);
	s64 ahead_ns = psp_launch_ns(q, cl, skb) - (s64)now_ns;

	if (psp_txtime_clock(skb) == cl->opt.txtime &&
	    (!sk || sk->sk_txtime_deadline_mode == cl->opt.txtime_deadline) &&
	    ahead_ns >= -(s64)psp_launch_late_ns(cl) &&
	    ahead_ns <= (s64)cl->opt.horizon_ns)
		return true;
	psp_launch_refuse(q, cl, skb);
	return false;
}

/* Would a frame that is handed out now leave too late?  Then reports it. */
static bool psp_launch_missed(const struct psp_qdisc *q, const struct psp_class *cl,
			      struct sk_buff *skb, u64 now_ns)
{
	s64 leaves_ns = pace_departure_ns(&q->pace, now_ns);

	if (leaves_ns - psp_launch_ns(q, cl, skb) <= (s64)psp_launch_late_ns(cl))
		return false;
	psp_launch_report(skb, ECANCELED, SO_EE_CODE_TXTIME_MISSED);
	return true;
}

/* Removes what neither the device nor the next host has a use for. */
static void psp_launch_clear(struct sk_buff *skb)
{
	skb_set_delivery_time(skb, 0, PSP_MONOTONIC);
}

/* Inserts a frame behind those of the same time.  Returns true if it is the first. */
static bool psp_launch_insert(struct psp_class *cl, struct sk_buff *skb)
{
	struct rb_node **link = &cl->launch.rb_root.rb_node, *parent = NULL;
	bool first = true;

	while (*link) {
		parent = *link;
		if (ktime_before(skb->tstamp, rb_to_skb(parent)->tstamp)) {
			link = &parent->rb_left;
		} else {
			link = &parent->rb_right;
			first = false;
		}
	}
	rb_link_node(&skb->rbnode, parent, link);
	rb_insert_color_cached(&skb->rbnode, &cl->launch, first);
	return first;
}

/* Takes a frame out of the tree. */
static void psp_launch_remove(struct psp_class *cl, struct sk_buff *skb)
{
	rb_erase_cached(&skb->rbnode, &cl->launch);
	cl->entity.queue.qlen--;
	/* The node lay over these. */
	skb->next = NULL;
	skb->prev = NULL;
	skb->dev = qdisc_dev(cl->sch);
}

/* Takes the first frame out of the tree.  There is one. */
static noinline struct sk_buff *psp_launch_pull(struct psp_entity *e)
{
	struct psp_class *cl = psp_class_of(e);
	struct sk_buff *skb = skb_rb_first(&cl->launch.rb_root);

	psp_launch_remove(cl, skb);
	return skb;
}

/* Makes the class active for its first frame, or changes the time of that. */
static void psp_launch_activate(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	struct rb_node *first = rb_first_cached(&cl->launch);

	if (!first)
		return;
	if (!psp_launches(cl)) {
		pace_activate(&q->pace, &cl->pace, now_ns);
		return;
	}
	pace_activate_at(&q->pace, &cl->pace,
			 max(psp_launch_ns(q, cl, rb_to_skb(first)), 0ll), now_ns);
}

/* Drops and reports frames that would wait beyond the horizon, after the clock was set. */
static void psp_launch_trim(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	struct psp_entity *e = &cl->entity;

	while (e->queue.qlen) {
		struct sk_buff *skb = skb_rb_last(&cl->launch.rb_root);
		unsigned int bytes = qdisc_pkt_len(skb);

		if (psp_launch_ns(q, cl, skb) - (s64)now_ns <= (s64)cl->opt.horizon_ns)
			return;
		psp_launch_remove(cl, skb);
		e->backlog -= bytes;
		psp_qlen_add(q->sch, -1, -(int)bytes);
		psp_count_drops(q->sch, 1);
		psp_launch_refuse(q, cl, skb);
		psp_dequeue_drop(q->sch, skb, PSP_DROP_LATE);
	}
	pace_deactivate(&q->pace, &cl->pace, now_ns);
}

/* Reads how far CLOCK_TAI is ahead.  If it was set, all times on it have moved. */
static void psp_launch_follow(struct psp_qdisc *q, u64 now_ns)
{
	s64 tai_ns = ktime_to_ns(ktime_mono_to_any(0, TK_OFFS_TAI));
	struct psp_class *cl;
	unsigned int i;

	if (tai_ns == q->tai_ns)
		return;
	q->tai_ns = tai_ns;
	for (i = 0; i < q->classes.hashsize; i++) {
		hlist_for_each_entry(cl, &q->classes.hash[i], common.hnode) {
			if (cl->opt.txtime != TC_PSP_TXTIME_TAI || !psp_launches(cl))
				continue;
			psp_launch_trim(q, cl, now_ns);
			psp_launch_activate(q, cl, now_ns);
		}
	}
}

/* Returns when to look at the clocks again, if psp would wait until until_ns. */
static inline u64 psp_launch_wait_ns(const struct psp_qdisc *q, u64 until_ns, u64 now_ns)
{
	return q->tai_classes ? min(until_ns, now_ns + PSP_TAI_LOOK_NS) : until_ns;
}

/* Queues a frame that psp_launch_accept() accepted. */
static int psp_launch_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			      struct psp_class *cl, struct sk_buff **to_free)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	unsigned int bytes = qdisc_pkt_len(skb);
	struct psp_entity *e = &cl->entity;

	if (unlikely(e->queue.qlen >= e->limit)) {
		psp_count_drops(sch, 1);
		psp_count_cause(q, cl, drop_child);
		__qdisc_drop(skb, to_free);
		return NET_XMIT_DROP;
	}
	e->queue.qlen++;
	psp_count_waiting(sch, e, false, bytes);
	if (psp_launch_insert(cl, skb))
		psp_launch_activate(q, cl, ktime_get_ns());
	return NET_XMIT_SUCCESS;
}

/* Frees all frames of the class.  RTNL. */
static void psp_launch_purge(struct psp_class *cl)
{
	while (rb_first_cached(&cl->launch)) {
		struct sk_buff *skb = psp_launch_pull(&cl->entity);

		rtnl_kfree_skbs(skb, skb);
	}
}

/*
 * When does a frame that is handed out begin to leave?  When the driver gets it, or when
 * the wire has carried what was handed out before.  The driver gets it after psp has
 * read the clock, and later still if the stack collects more frames for the driver
 * first.  That takes microseconds, by which launch times would be missed.
 *
 * A batch is what the driver gets at once.  psp gives the stack nothing more when a quarter
 * of the time is over that the driver's frames last, because the driver takes each
 * frame for as long again: so the wire does not run dry meanwhile, and psp knows that it
 * has not.  If the wire is dry already, each frame goes alone.  The driver gets the first
 * frame of a batch between two instants that psp knows: psp hands out the last frame,
 * or nothing more, and the stack asks again: pace_started().
 *
 * The stack asks again later if the host was held up, or if the queue was stopped: then
 * the driver has completed frames meanwhile.  If the wire may have waited for that frame,
 * nobody knows for how long.  In mode gap all launch times after it would be missed by
 * as long, until the port is idle.  So psp hands out nothing until all has left for
 * certain, if frames wait for their launch times, and measures again.
 */

/*
 * The driver has the frame after half of the time, but no later than this, because all
 * that is later in it comes after the frame: the driver's records and timers.
 */
#define PSP_HANDOVER_HALF_NS	400ull
/*
 * The least time, where the wire waits, grows by this part each time, so that it follows
 * the host.
 */
#define PSP_HANDOVER_GROWTH	256
/* So often at most psp lets the wire run dry: a host may take longer each time. */
#define PSP_DRAINS_APART_NS	(1 * NSEC_PER_MSEC)
/*
 * So long before a launch time it does not, because an interrupt may come then, unless it
 * has waited for so long.
 */
#define PSP_DRAIN_BEFORE_NS	(100 * NSEC_PER_USEC)
#define PSP_DRAIN_WAIT_NS	(10 * NSEC_PER_MSEC)

/* Return the bytes that the driver was ever given and has completed, if it counts them. */
static unsigned int psp_driver_bytes(const struct psp_qdisc *q)
{
#ifdef CONFIG_BQL
	return READ_ONCE(q->sch->dev_queue->dql.num_queued);
#else
	return 0;
#endif
}

static unsigned int psp_completed_bytes(const struct psp_qdisc *q)
{
#ifdef CONFIG_BQL
	return READ_ONCE(q->sch->dev_queue->dql.num_completed);
#else
	return 0;
#endif
}

/* A frame is on its way to the driver. */
static noinline void psp_handed_over(struct psp_qdisc *q)
{
	q->batch_frames++;
	q->batch_completed = psp_completed_bytes(q);
	q->batch_handed_ns = ktime_get_ns();
}

/* The driver has the batch. */
static void psp_batch_ends(struct psp_qdisc *q, u64 now_ns)
{
	bool alone = q->batch_frames == 1 && psp_completed_bytes(q) == q->batch_completed;
	u64 took_ns = now_ns - q->batch_handed_ns;
	u64 least_ns = q->handover_ns + q->handover_ns / PSP_HANDOVER_GROWTH + 1;
	u64 got_ns = q->batch_handed_ns + min(took_ns / 2, PSP_HANDOVER_HALF_NS);

	if (!pace_started(&q->pace, got_ns, now_ns))
		return;
	q->doubt_ns = took_ns;
	q->doubt_since_ns = now_ns;
	if (alone)
		q->handover_ns = q->handover_ns ? min(took_ns, least_ns) : took_ns;
}

/*
 * Should the wire run dry, because nobody knows how far it is?  Frames wait for
 * their launch times, and none of these comes meanwhile.
 */
static void psp_drain(struct psp_qdisc *q, u64 now_ns)
{
	u64 drained_ns;

	if (q->drained_ns || q->doubt_ns <= 2 * q->handover_ns)
		return;
	drained_ns = pace_departure_ns(&q->pace, now_ns) + q->doubt_ns;
	if (drained_ns + PSP_DRAIN_BEFORE_NS > pace_launch_ns(&q->pace) &&
	    now_ns - q->doubt_since_ns < PSP_DRAIN_WAIT_NS)
		return;
	if (now_ns - q->drained_last_ns < PSP_DRAINS_APART_NS)
		return;
	q->drained_last_ns = now_ns;
	q->drained_ns = drained_ns;
}

/*
 * Another mode or line: what the driver has takes another time, at most half more than its
 * bytes do, because they do not count what is between frames.
 */
static void psp_launch_line(struct psp_qdisc *q)
{
	const struct pace_config *cfg = &q->pace.cfg;
	u32 held = psp_driver_bytes(q) - psp_completed_bytes(q);

	if (q->batch_mode == cfg->mode && q->batch_line_bps == cfg->line_rate_bps)
		return;
	q->batch_mode = cfg->mode;
	q->batch_line_bps = cfg->line_rate_bps;
	q->doubt_since_ns = 0;
	q->doubt_ns = div64_u64(held * 12ull * NSEC_PER_SEC, cfg->line_rate_bps);
}

/* Returns true if the stack is to get nothing for now. */
static noinline bool psp_handover(struct psp_qdisc *q)
{
	unsigned int queued = psp_driver_bytes(q);
	u64 now_ns;

	psp_launch_line(q);
	if (q->pace.cfg.mode == PACE_MODE_TIMER)
		return false;
	now_ns = ktime_get_ns();
	if (q->batch_frames && (queued != q->batch_queued || (q->batch_ended && !queued))) {
		psp_batch_ends(q, now_ns);
		q->batch_frames = 0;
	}
	if (!q->sch->q.qlen)
		return false;
	if (q->batch_frames) {
		if (now_ns < q->batch_until_ns || q->batch_ended)
			return false;
		q->batch_ended = true;
		__netif_schedule(q->sch);
		q->batch_handed_ns = ktime_get_ns();
		return true;
	}
	if (q->pace.cfg.mode == PACE_MODE_GAP && q->pace.launching.count)
		psp_drain(q, now_ns);
	if (q->drained_ns) {
		if (now_ns < q->drained_ns) {
			psp_timer_set(q, q->drained_ns);
			return true;
		}
		q->drained_ns = 0;
		q->doubt_ns = 0;
	}
	q->batch_queued = queued;
	q->batch_ended = false;
	q->batch_until_ns = now_ns + (pace_departure_ns(&q->pace, now_ns) - now_ns) / 4;
	return false;
}

/* The frames that the driver had are gone, so what was noted of them says nothing more. */
static void psp_launch_reset(struct psp_qdisc *q)
{
	pace_handover_forget(&q->pace);
	q->batch_frames = 0;
	q->doubt_ns = 0;
	q->drained_ns = 0;
}
