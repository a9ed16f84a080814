// SPDX-License-Identifier: GPL-2.0-only
/*
 * Is the wire a clock?  Trials of gap frames prove it, and then the release of
 * frames is watched.
 */

/*
 * Returns the most bytes that the device may hold: its ring, or less with a
 * byte queue limit.
 */
static u64 psp_held_bytes(const struct psp_qdisc *q)
{
	u64 held_bytes = q->line.ring_bytes;
#ifdef CONFIG_BQL
	const struct dql *dql = &q->sch->dev_queue->dql;

	if (READ_ONCE(dql->num_queued))
		held_bytes = min_t(u64, held_bytes, READ_ONCE(dql->limit));
#endif
	return held_bytes;
}

/*
 * Trials.  In mode timer rates are right whatever the wire does.  So each mode
 * is timer until the wire has taken its time for two trials of gap frames, the
 * second three times as long as the first, handed out when no frame is due.
 * The time from the first frame of a trial to the release of the last is what
 * the line takes and some more: completions are late, the host is held up.  The
 * second trial took longer than the first by what the line takes for the
 * difference, or the wire is no clock.  A packet buffer of the device that takes
 * a trial at once makes it look so, too; then the trials get longer, up to what
 * no device holds, where psp_watch_check() gives the verdict.
 *
 * No trial begins, or goes on, where a launch time would come before it has left: then
 * it waits until there is room.
 *
 * From then on the release of frames is watched: psp_proof_check().
 * docs/decisions/qdisc.md, "Is the wire a clock?".
 */

/*
 * The first trial: 1 ms; on slow lines more, for a few frames, and because
 * packet buffers take as many bytes there.
 */
#define PSP_TRIAL_NS		NSEC_PER_MSEC
#define PSP_TRIAL_NS_SLOW	(10 * NSEC_PER_MSEC)
#define PSP_TRIAL_BYTES		16384u
#define PSP_TRIAL_FRAMES	4
/* So much longer the trials get if the first ones took no time. */
#define PSP_TRIAL_GROWTH	4
#define PSP_TRIAL_SECOND	3
/* Of the difference, in eighths: proved from here on; no time below there. */
#define PSP_TRIAL_PROVED	7
#define PSP_TRIAL_FAST		4
/* It took more than an eighth longer than on the line: is the host as slow as that? */
#define PSP_TRIAL_SLOW		9
#define PSP_TRIAL_HOST_FRAMES	16
/* So long a host may take for a frame: a line that takes less is asked about always. */
#define PSP_TRIAL_HOST_NS	(2 * NSEC_PER_USEC)
/* So much time lies between a trial and a launch time: completions are late. */
#define PSP_TRIAL_SPARE_NS	(200 * NSEC_PER_USEC)
/* Pairs of the longest trials, for the two suspicions of psp_watch_confirm(). */
#define PSP_TRIAL_LAST		4
/* More pairs of one length, if neither trial was released early. */
#define PSP_TRIAL_TRIES		4
/* How often psp looks whether the device has released a trial. */
#define PSP_TRIAL_LOOK_NS	(50 * NSEC_PER_USEC)
/* After a failure, and twice as long each time, up to 2^10 times. */
#define PSP_TRIAL_PAUSE_NS	NSEC_PER_SEC
#define PSP_TRIAL_PAUSES	10
/* After so long all failures are forgotten. */
#define PSP_PROOF_OLD_NS	(60ull * NSEC_PER_SEC)

/* Time of so many bytes on the line. */
static u64 psp_line_time_ns(const struct psp_qdisc *q, u64 bytes)
{
	return pace_mul_div(bytes, PSP_LINE_NS_BITS, q->pace.cfg.line_rate_bps);
}

/* Time of a gap frame on the line. */
static u64 psp_gap_time_ns(const struct psp_qdisc *q)
{
	return psp_line_time_ns(q, pace_wire_bytes(&q->pace, q->pace.cfg.max_frame_bytes));
}

/*
 * Has the driver released all that it had been given when it had been given
 * `queued` bytes in all?  Without byte queue limits: all gap frames, which are
 * clones that share the bytes of the template.  `own` of them are in hand.
 */
static bool psp_is_released(const struct psp_qdisc *q, unsigned int queued, int own)
{
	if (psp_driver_bytes(q))
		return (int)(psp_completed_bytes(q) - queued) >= 0;
	return (atomic_read(&skb_shinfo(q->gap)->dataref) & SKB_DATAREF_MASK) <= 1 + own;
}

static void psp_trial_start(struct psp_qdisc *q, bool second, u64 now_ns)
{
	struct psp_trial *t = &q->trial;

	t->state = PSP_TRIAL_SEND;
	t->second = second;
	t->left_bytes = t->first_bytes * (second ? PSP_TRIAL_SECOND : 1);
	t->begin_handed = psp_handed_bytes(q);
	t->begin_ns = now_ns;
}

/*
 * Will the line have carried so many bytes, and an eighth more, before the next launch time?
 * A frame that launches would have to wait for them.
 */
static bool psp_trial_has_room(const struct psp_qdisc *q, u64 bytes, u64 now_ns)
{
	u64 launch_ns = pace_launch_ns(&q->pace), until_ns;

	until_ns = now_ns + psp_line_time_ns(q, bytes + bytes / 8) + PSP_TRIAL_SPARE_NS;
	return launch_ns == U64_MAX || (s64)(launch_ns - until_ns) > 0;
}

/* There is no room for the rest of the trial: another pair begins when there is. */
static void psp_trial_abandon(struct psp_qdisc *q)
{
	psp_trial_stop(q);
	WRITE_ONCE(q->trial_asked, true);
}

/* Begins a pair of trials if one is asked for, or due.  Root lock. */
static noinline void psp_trial_begin(struct psp_qdisc *q, u64 now_ns)
{
	const struct net_device *dev = qdisc_dev(q->sch);
	u64 line_rate_bps = q->pace.cfg.line_rate_bps;
	u32 max_bytes = q->pace.cfg.max_frame_bytes;
	struct psp_trial *t = &q->trial;
	u64 first_bytes;

	if (t->state != PSP_TRIAL_OFF || (!q->trial_asked && now_ns < t->next_ns))
		return;
	first_bytes = max(pace_mul_div(PSP_TRIAL_NS, line_rate_bps, PSP_LINE_NS_BITS),
			  min_t(u64, PSP_TRIAL_BYTES,
				pace_mul_div(PSP_TRIAL_NS_SLOW, line_rate_bps,
					     PSP_LINE_NS_BITS)));
	first_bytes = max_t(u64, first_bytes,
			    PSP_TRIAL_FRAMES * pace_wire_bytes(&q->pace, max_bytes));
	if (!psp_trial_has_room(q, (1 + PSP_TRIAL_SECOND) * first_bytes, now_ns))
		return;
	WRITE_ONCE(q->trial_asked, false);
	/* A link that comes up asks again. */
	if (!netif_carrier_ok(dev))
		return;
	t->first_bytes = first_bytes;
	t->longest = 0;
	t->tries = 0;
	t->early_ns = 0;
	psp_trial_start(q, false, now_ns);
	psp_watch_start(q);
}

/* Returns true if the device has released the whole trial. */
static bool psp_trial_drained(struct psp_qdisc *q, u64 now_ns)
{
	struct psp_trial *t = &q->trial;

	if (t->state == PSP_TRIAL_FLUSH) {
		t->state = PSP_TRIAL_DRAIN;
		t->line_ns = psp_line_time_ns(q, psp_handed_bytes(q) - t->begin_handed);
		q->mark_ns = q->watch.fast_ns;
		q->mark_queued = psp_driver_bytes(q);
	}
	return psp_is_released(q, q->mark_queued, 0);
}

/* After each failure the next try comes later. */
static void psp_trial_put_off(struct psp_qdisc *q, u64 now_ns)
{
	struct psp_trial *t = &q->trial;

	t->next_ns = now_ns + (PSP_TRIAL_PAUSE_NS << min_t(u32, t->fails, PSP_TRIAL_PAUSES));
	t->fails += t->fails < PSP_TRIAL_PAUSES;
}

static void psp_trial_proved(struct psp_qdisc *q, u64 now_ns)
{
	struct psp_trial *t = &q->trial;

	q->early_max_ns = 2 * t->early_ns + t->first_line_ns / 4;
	q->proved_gap = q->line.gap;
	q->proved_link = q->link_changes;
	q->proved_ns = now_ns;
	WRITE_ONCE(q->proved_bps, q->pace.cfg.line_rate_bps);
	WRITE_ONCE(q->proof_work, true);
	psp_port_work_schedule();
	/* The work puts gap frames in force. */
	t->next_ns = now_ns + PSP_TRIAL_PAUSE_NS;
}

/*
 * Hands out single frames: the stack asks again when the driver has got one, and
 * may ask late, so the least time of several is what the host takes.  Returns
 * true if there is one to hand out; after the last one the trials have ended.
 *
 * The host is slow if it needs more than half the time of the line: it makes the
 * frames of classes, too.  Then sent bytes are no clock, as time goes on while
 * the wire waits, and mode hybrid is timer.
 */
static bool psp_trial_host(struct psp_qdisc *q, u64 now_ns)
{
	struct psp_trial *t = &q->trial;

	if (t->host_ns)
		t->host_least_ns = min(t->host_least_ns, now_ns - t->host_ns);
	t->host_ns = now_ns;
	if (t->host_left--) {
		t->state = PSP_TRIAL_HOST_FLUSH;
		return true;
	}
	WRITE_ONCE(q->host_is_slow, 2 * t->host_least_ns > psp_gap_time_ns(q));
	psp_trial_stop(q);
	psp_trial_proved(q, now_ns);
	return false;
}

/* The device has released the trial.  Returns true if no other one follows at once. */
static bool psp_trial_ended(struct psp_qdisc *q, u64 now_ns)
{
	struct psp_trial *t = &q->trial;
	u64 took_ns = now_ns - t->begin_ns;
	u32 eighths;

	t->early_ns = max(t->early_ns, psp_line_early_ns(q->mark_ns, now_ns));
	if (!t->second) {
		t->first_ns = took_ns;
		t->first_line_ns = t->line_ns;
		psp_trial_start(q, true, now_ns);
		return false;
	}
	eighths = psp_line_eighths(t->first_ns, t->first_line_ns, took_ns, t->line_ns);
	/* The first took longer: a byte queue limit grows while it is in use. */
	if (eighths < PSP_TRIAL_PROVED && !t->early_ns && t->tries < PSP_TRIAL_TRIES) {
		t->tries++;
		psp_trial_start(q, false, now_ns);
		return false;
	}
	if (eighths < PSP_TRIAL_FAST && t->longest < PSP_TRIAL_LAST) {
		t->first_bytes = min(t->first_bytes * PSP_TRIAL_GROWTH,
				     q->line.slack_bytes);
		t->longest += t->first_bytes == q->line.slack_bytes;
		t->early_ns = 0;
		psp_trial_start(q, false, now_ns);
		return false;
	}
	WRITE_ONCE(q->host_is_slow, false);
	/* A host as slow as a fast line takes the time of frames that the device drops, too. */
	if (eighths > PSP_TRIAL_SLOW ||
	    (eighths >= PSP_TRIAL_PROVED && psp_gap_time_ns(q) < PSP_TRIAL_HOST_NS)) {
		t->state = PSP_TRIAL_HOST;
		t->host_left = PSP_TRIAL_HOST_FRAMES;
		t->host_least_ns = U64_MAX;
		t->host_ns = 0;
		return false;
	}
	psp_trial_stop(q);
	if (eighths >= PSP_TRIAL_PROVED)
		psp_trial_proved(q, now_ns);
	else
		psp_trial_put_off(q, now_ns);
	return true;
}

/* Frames were released before a wire could have sent them: mode timer, and a new proof. */
static noinline void psp_proof_lapse(struct psp_qdisc *q, u64 now_ns)
{
	struct psp_trial *t = &q->trial;

	if (now_ns - q->proved_ns > PSP_PROOF_OLD_NS)
		t->fails = 0;
	if (t->fails)
		psp_trial_put_off(q, now_ns);
	else
		t->next_ns = now_ns;
	t->fails += !t->fails;
	WRITE_ONCE(q->proved_bps, 0);
	WRITE_ONCE(q->proof_work, true);
	psp_port_work_schedule();
}

/*
 * Has the driver released frames earlier than any wire sends them?  psp looks
 * at one frame at a time, before it hands out `skb`.  If the driver has got
 * something since psp handed out the last frame, it has got all: the stack
 * gives it all that it has collected.
 */
static void psp_proof_check(struct psp_qdisc *q, bool is_gap, u64 now_ns)
{
	unsigned int queued = psp_driver_bytes(q);

	if (q->mark_ns) {
		if (!psp_is_released(q, q->mark_queued, is_gap))
			return;
		if (unlikely(psp_line_early_ns(q->mark_ns, now_ns) > q->early_max_ns) &&
		    !q->proof_work)
			psp_proof_lapse(q, now_ns);
		q->mark_ns = 0;
	}
	if (queued != q->seen_queued) {
		q->mark_queued = queued;
		q->mark_ns = q->watch.fast_ns;
	}
	q->seen_queued = queued;
}

/* Counts a frame or gap frame that the device has taken, while the watch is on. */
static void psp_watch_handed(struct psp_qdisc *q, const struct sk_buff *skb,
			     u64 now_ns)
{
	bool is_gap = skb_end_pointer(skb) == skb_end_pointer(q->gap);
	u64 handed = psp_handed_bytes(q), silence_ns;
	u32 bytes = handed - q->handed_bytes;

	q->handed_bytes = handed;
	if (q->pace.cfg.mode != PACE_MODE_TIMER)
		psp_proof_check(q, is_gap, now_ns);
	silence_ns = psp_line_silence(&q->watch, now_ns);
	if (unlikely(silence_ns > q->watch.stop_ns) &&
	    q->pace.cfg.mode != PACE_MODE_TIMER &&
	    psp_line_dry(&q->watch, now_ns, psp_held_bytes(q)))
		psp_line_stopped(&q->watch, silence_ns);
	if (unlikely(psp_line_handed(&q->watch, bytes, now_ns)) &&
	    !q->suspect) {
		WRITE_ONCE(q->suspect, true);
		psp_port_work_schedule();
	}
	/* Without byte queue limits: gap frames alone are seen. */
	if (is_gap && !q->seen_queued)
		q->mark_ns = q->watch.fast_ns;
}
