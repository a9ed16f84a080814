// SPDX-License-Identifier: GPL-2.0-only
/* What is counted, and how it goes to user space. */
#include <net/gen_stats.h>

#include "psp.h"

/* A day: what a single frame is averaged over at most.  pace_mul_div() < 2^48. */
#define PSP_WINDOW_NS_MAX	(86400ull * NSEC_PER_SEC)

/*
 * Adds `bytes`, sent now, to the second that runs.  It ends with the first
 * frame that comes a second or more after its own first one, which belongs to
 * the next.  A second in which the class fell silent is not one of sending:
 * the rate of the one before stays.
 */
static void psp_window_add(struct psp_window *w, u32 bytes, u64 now_ns)
{
	u64 elapsed_ns = now_ns - w->start_ns;

	if (unlikely(!w->start_ns || elapsed_ns >= NSEC_PER_SEC)) {
		bool silent = now_ns - w->last_ns >= NSEC_PER_SEC &&
			      w->last_ns != w->start_ns;

		if (w->start_ns && !silent)
			w->achieved_bps = pace_mul_div(w->bytes,
						       8ull * NSEC_PER_SEC,
						       min_t(u64, elapsed_ns,
							     PSP_WINDOW_NS_MAX));
		w->start_ns = now_ns;
		w->bytes = 0;
	}
	w->bytes += bytes;
	w->last_ns = now_ns;
}

/* A frame, or a train, went to the device. */
void psp_count_sent(struct psp_qdisc *q, struct psp_class *cl,
		    const struct psp_load *load, u64 now_ns)
{
	cl->count.sent_frames += load->train.frames;
	cl->count.sent_wire_bytes += load->train.wire_bytes;
	if (load->train.frames > 1)
		q->count.trains_whole++;
	psp_window_add(&cl->window,
		       pace_counted_bytes(&q->port.pace, &load->train), now_ns);
}

/* The buckets are those of struct tc_psp_class_stats. */
void psp_count_late(struct psp_class *cl, u32 frames, s64 late_bytes)
{
	u32 bucket;

	if (cl->pace.type != PACE_TYPE_PACED || !cl->late)
		return;
	bucket = late_bytes > 0 ? fls64(late_bytes) : 0;
	if (bucket >= TC_PSP_LATE_BUCKETS)
		bucket = TC_PSP_LATE_BUCKETS - 1;
	cl->late->frames[bucket] += frames;
}

static u32 psp_mode_in_force(enum pace_mode mode)
{
	switch (mode) {
	case PACE_MODE_GAP:
		return TC_PSP_MODE_GAP;
	case PACE_MODE_HYBRID:
		return TC_PSP_MODE_HYBRID;
	case PACE_MODE_TIMER:
	default:
		return TC_PSP_MODE_TIMER;
	}
}

static void psp_fill_port(struct tc_psp_qdisc_stats *st,
			  const struct psp_port *port)
{
	st->mode = psp_mode_in_force(port->pace.mode);
	st->line_rate_bps = port->pace.line_rate_bps;
	st->max_frame_bytes = port->pace.max_frame_bytes;
	st->line_known = port->line_known;
	st->why_not_hybrid = port->why_not_hybrid;
	st->queues = port->queues;
}

static void psp_fill_watch(struct tc_psp_qdisc_stats *st,
			   const struct psp_qdisc *q)
{
	st->no_clock = q->count.no_clock;
	st->line_measured_bps = q->watch.measured_bps;
	st->wire_stops = q->watch.stops;
	st->wire_stop_max_ns = q->watch.stop_max_ns;
}

static void psp_fill_pace(struct tc_psp_qdisc_stats *st,
			  const struct pace_stats *pace)
{
	st->sent_frames = pace->sent_frames;
	st->sent_wire_bytes = pace->sent_wire_bytes;
	st->gap_frames = pace->gap_frames;
	st->gap_wire_bytes = pace->gap_wire_bytes;
	st->early_bytes_max = pace->early_bytes_max;
	st->late_bytes_max = pace->late_bytes_max;
	st->shifts = pace->rebases;
	st->shifted_bytes = pace->rebased_bytes;
	st->spare_frames = pace->borrowed_frames;
	st->guarded = pace->guard_band_held;
	st->waits = pace->waits;
	st->wait_late_max_ns = pace->wait_late_max_ns;
	st->lead_ns = pace->lead_ns;
}

static void psp_fill_periods(struct tc_psp_qdisc_stats *st,
			     const struct pace_sched *pace)
{
	st->period_ns = pace->period.classes ? pace->cfg.period_ns : 0;
	st->budget_bytes = pace->cfg.budget_bytes;
	st->reserved_bytes = pace_reserved_bytes(pace, NULL);
	st->periods = pace->stats.periods;
	st->periods_spent = pace->stats.periods_spent;
	st->rt_over = pace->stats.rt_over;
	st->rt_deferred = pace->stats.rt_deferred;
	st->rt_overrun = pace->stats.rt_overrun;
	st->rt_late_bytes = pace->stats.rt_late_bytes;
	st->rt_excess = pace->stats.rt_excess;
	st->nrt_deferred = pace->stats.nrt_deferred;
}

static void psp_fill_counters(struct tc_psp_qdisc_stats *st,
			      const struct psp_counters *count)
{
	st->unclassified_frames = count->unclassified_frames;
	st->drop_filter = count->drop_filter;
	st->drop_child = count->drop_child;
	st->drop_segment = count->drop_segment;
	st->drop_long = count->drop_long;
	st->drop_late = count->drop_late;
	st->drop_flow = count->drop_flow;
	st->drop_limit = count->drop_limit;
	st->drop_horizon = count->drop_horizon;
	st->drop_evicted = count->drop_evicted;
	st->gap_failed = count->gap_failed;
	st->child_retries = count->child_retries;
	st->trains_cut = count->trains_cut;
	st->trains_whole = count->trains_whole;
}

int psp_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct tc_psp_qdisc_stats st = { .type = TC_PSP_STATS_QDISC };
	struct psp_qdisc *q = qdisc_priv(sch);

	sch_tree_lock(sch);
	psp_fill_port(&st, &q->port);
	psp_fill_pace(&st, &q->pace.stats);
	psp_fill_periods(&st, &q->pace);
	psp_fill_counters(&st, &q->count);
	psp_fill_watch(&st, q);
	sch_tree_unlock(sch);

	return gnet_stats_copy_app(d, &st, sizeof(st));
}

static void psp_fill_class(struct tc_psp_class_stats *st,
			   const struct psp_qdisc *q,
			   const struct psp_class *cl)
{
	st->active = cl->pace.active || (cl->flows && cl->flows->active);
	if (cl->pace.type == PACE_TYPE_PACED) {
		st->rate_bps = cl->pace.rate_bps;
		st->ceil_bps = psp_class_ceil_bps(q, cl);
	}
	st->achieved_bps = cl->window.achieved_bps;
	st->sent_frames = cl->count.sent_frames;
	st->sent_wire_bytes = cl->count.sent_wire_bytes;
	st->spare_frames = cl->count.spare_frames;
	st->throttled = cl->count.throttled;
	st->drop_child = cl->count.drop_child;
	st->drop_segment = cl->count.drop_segment;
	st->drop_long = cl->count.drop_long;
	st->drop_late = cl->count.drop_late;
	st->drop_flow = cl->count.drop_flow;
	st->drop_limit = cl->count.drop_limit;
	st->drop_horizon = cl->count.drop_horizon;
	st->drop_evicted = cl->count.drop_evicted;
	if (cl->pace.reservation) {
		st->reserve_bytes = cl->stream->reserve_bytes;
		st->over = cl->stream->over;
		st->deferred = cl->stream->deferred;
		st->overrun = cl->stream->overrun;
		st->rt_late_bytes = cl->stream->late_bytes;
		st->excess = cl->stream->excess;
	}
	if (cl->late)
		memcpy(st->late_frames, cl->late->frames,
		       sizeof(st->late_frames));
}

int psp_class_dump_stats(struct Qdisc *sch, unsigned long arg,
			 struct gnet_dump *d)
{
	struct tc_psp_class_stats st = { .type = TC_PSP_STATS_CLASS };
	struct psp_class *cl = (struct psp_class *)arg;
	struct psp_qdisc *q = qdisc_priv(sch);
	struct gnet_stats_queue queue = {};
	struct gnet_stats_basic_sync sent;
	u32 qlen;

	/* At one instant: what is sent waits no more. */
	gnet_stats_basic_sync_init(&sent);
	sch_tree_lock(sch);
	gnet_stats_add_basic(&sent, NULL, &cl->bstats, true);
	qdisc_qstats_qlen_backlog(cl->child, &qlen, &queue.backlog);
	if (cl->head) {
		qlen++;
		queue.backlog += qdisc_pkt_len(cl->head);
	}
	if (cl->flows) {
		qlen += cl->flows->qlen;
		queue.backlog += cl->flows->backlog;
	}
	psp_fill_class(&st, q, cl);
	queue.drops = st.drop_child + st.drop_segment + st.drop_long +
		      st.drop_late + st.drop_flow + st.drop_limit +
		      st.drop_horizon + st.drop_evicted;
	sch_tree_unlock(sch);
	if (cl->flows)
		psp_flows_stats(q, cl, &st);

	if (gnet_stats_copy_basic(d, NULL, &sent, true) < 0 ||
	    gnet_stats_copy_queue(d, NULL, &queue, qlen) < 0)
		return -1;
	return gnet_stats_copy_app(d, &st, sizeof(st));
}
