// SPDX-License-Identifier: GPL-2.0-only
/*
 * A wire that is no clock.  Gap frames that a NIC drops, or that a virtual
 * device takes as fast as they are made, take no time, and bytes handed out
 * are no clock then.  dequeue sees it (line_watch.h); a work item, which may
 * wait for the RTNL, looks again at what may have changed and goes over to the
 * timer.  docs/decisions/0180.
 */
#include <linux/rtnetlink.h>

#include "psp.h"

/* What the device may hold: its ring, or less where byte queue limits count. */
static u64 psp_held_bytes(const struct psp_qdisc *q)
{
	u64 held_bytes = q->port.ring_bytes;
#ifdef CONFIG_BQL
	const struct dql *dql = &q->sch->dev_queue->dql;

	if (READ_ONCE(dql->num_queued))
		held_bytes = min_t(u64, held_bytes, READ_ONCE(dql->limit));
#endif
	return held_bytes;
}

/* A frame, or a gap frame, was taken from psp. */
void psp_watch_handed(struct psp_qdisc *q, u64 now_ns)
{
	const struct pace_stats *stats = &q->pace.stats;
	u64 handed = stats->sent_wire_bytes + stats->gap_wire_bytes;
	u32 bytes = handed - q->handed_bytes;
	u64 silence_ns;

	q->handed_bytes = handed;
	if (!q->watch.line_rate_bps)
		return;
	silence_ns = psp_line_silence(&q->watch, now_ns);
	if (unlikely(silence_ns > q->watch.stop_ns) &&
	    psp_line_dry(&q->watch, now_ns, psp_held_bytes(q)))
		psp_line_stopped(&q->watch, silence_ns);
	if (unlikely(psp_line_handed(&q->watch, bytes, now_ns)) &&
	    !q->suspect) {
		WRITE_ONCE(q->suspect, true);
		psp_follow_later();
	}
}

/* The port is another, or what was seen counts no more.  Tree lock. */
void psp_watch_start(struct psp_qdisc *q)
{
	const struct pace_config *cfg = &q->port.pace;
	bool gaps = cfg->mode != PACE_MODE_TIMER;

	psp_line_start(&q->watch, gaps ? cfg->line_rate_bps : 0,
		       q->port.slack_bytes,
		       pace_wire_bytes(&q->pace, cfg->max_frame_bytes));
	q->link_changes = psp_device_link_changes(qdisc_dev(q->sch));
	q->suspect_ns = 0;
	WRITE_ONCE(q->suspect, false);
}

static void psp_watch_forgive(struct psp_qdisc *q)
{
	sch_tree_lock(q->sch);
	psp_watch_start(q);
	sch_tree_unlock(q->sch);
}

/*
 * The first suspicion proves nothing: it is only noted when it came.  A second
 * one that comes soon enough (psp_line_confirmed()) is the verdict.
 */
static bool psp_watch_again(struct psp_qdisc *q)
{
	u64 now_ns = ktime_get_ns(), raw_ns = ktime_get_raw_ns();
	u64 before_ns = q->suspect_ns, raw_before_ns = q->suspect_raw_ns;

	if (before_ns && psp_line_confirmed(&q->watch, now_ns - before_ns,
					    raw_ns - raw_before_ns))
		return true;
	psp_watch_forgive(q);
	q->suspect_ns = now_ns;
	q->suspect_raw_ns = raw_ns;
	return false;
}

/* The verdict cannot take force: it is not looked for again on this port. */
static void psp_watch_end(struct psp_qdisc *q)
{
	sch_tree_lock(q->sch);
	q->watch.line_rate_bps = 0;
	WRITE_ONCE(q->suspect, false);
	sch_tree_unlock(q->sch);
}

/* Does `port` explain what was seen?  The one in force was another. */
static bool psp_watch_is_other(const struct psp_qdisc *q,
			       const struct psp_port *port)
{
	return port->pace.mode == PACE_MODE_TIMER ||
	       port->pace.line_rate_bps != q->port.pace.line_rate_bps ||
	       port->slack_bytes > q->port.slack_bytes;
}

/*
 * More bytes were handed out than the line carries.  Drivers drop what they
 * are given while the link is down, and a new speed or a longer ring may not
 * have been told yet: none of them says anything about the wire.
 */
void psp_watch_judge(struct psp_qdisc *q)
{
	struct net_device *dev = qdisc_dev(q->sch);
	struct psp_port port;
	u64 taken_bps;
	int err;

	ASSERT_RTNL();
	if (!netif_running(dev) || !netif_carrier_ok(dev) ||
	    q->link_changes != psp_device_link_changes(dev)) {
		psp_watch_forgive(q);
		return;
	}
	err = psp_port_resolve(q, &q->opt, &port, true, NULL);
	if (!err && psp_watch_is_other(q, &port) &&
	    !psp_port_apply(q, &q->opt, &port, true, NULL))
		return;
	/* Also where the device cannot be followed: the verdict needs no port. */
	if (!psp_watch_again(q))
		return;

	sch_tree_lock(q->sch);
	taken_bps = psp_line_taken_bps(&q->watch, ktime_get_ns());
	q->no_clock = true;
	q->count.no_clock++;
	sch_tree_unlock(q->sch);
	netdev_warn(dev, "qdisc %x: no wire clock, took %llu Mbit/s at a line of %llu: mode timer, no gap frames\n",
		    q->sch->handle >> 16, div_u64(taken_bps, 1000000),
		    div_u64(q->port.pace.line_rate_bps, 1000000));
	if (psp_port_resolve(q, &q->opt, &port, true, NULL) ||
	    psp_port_apply(q, &q->opt, &port, true, NULL))
		psp_watch_end(q);
}
