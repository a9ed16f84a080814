// SPDX-License-Identifier: GPL-2.0-only
/*
 * The port: what the options come to on this device, now.
 */
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/rtnetlink.h>

#include "psp.h"

/*
 * Gap frames need a wire that takes them one after the other in real time,
 * and all that is sent on it must pass here.  Where frames vanish at once,
 * filling gaps would spin.
 */
static enum tc_psp_why psp_why_no_gaps(struct net_device *dev,
				       const struct psp_options *opt,
				       const struct psp_port *port)
{
	if (dev->type != ARPHRD_ETHER || dev->flags & IFF_LOOPBACK)
		return TC_PSP_WHY_NOT_ETHERNET;
	if (dev->priv_flags & IFF_NO_QUEUE || !dev->tx_queue_len)
		return TC_PSP_WHY_NO_QUEUE;
	/* Made by `ip link add`: veth, ifb, dummy, tap, vlan, bond ... */
	if (dev->rtnl_link_ops)
		return TC_PSP_WHY_SOFTWARE;
	if (!port->line_known)
		return TC_PSP_WHY_NO_RATE;
	/* Sent bytes are no clock where others send too. */
	if (port->queues > 1)
		return TC_PSP_WHY_SHARED;
	/* A pause time of 0 would take back the device's own "stop". */
	if (opt->gap == TC_PSP_GAP_PAUSE && psp_device_pauses(dev))
		return TC_PSP_WHY_FLOW_CONTROL;
	return TC_PSP_WHY_NOTHING;
}

static int psp_refuse_mode(struct netlink_ext_ack *extack, const char *mode,
			   const struct net_device *dev, enum tc_psp_why why)
{
	switch (why) {
	case TC_PSP_WHY_NOTHING:
		return 0;
	case TC_PSP_WHY_NO_RATE:
		psp_refuse(extack, "mode %s on %s: link speed unknown, expected line RATE",
			   mode, dev->name);
		break;
	case TC_PSP_WHY_SHARED:
		psp_refuse(extack, "mode %s on %s: expected one transmit queue, not %u",
			   mode, dev->name, dev->real_num_tx_queues);
		break;
	case TC_PSP_WHY_FLOW_CONTROL:
		psp_refuse(extack, "gap pause on %s: expected tx flow control off, or gap multicast",
			   dev->name);
		break;
	default:
		psp_refuse(extack, "mode %s on %s: expected a wire, not %s",
			   mode, dev->name,
			   why == TC_PSP_WHY_SOFTWARE ? "a software device" :
			   why == TC_PSP_WHY_NO_QUEUE ? "no transmit queue" :
							"not Ethernet");
		break;
	}
	return -EOPNOTSUPP;
}

static u32 psp_link_header(const struct net_device *dev)
{
	return dev->type == ARPHRD_ETHER ? ETH_HLEN : dev->hard_header_len;
}

void psp_default_options(const struct net_device *dev, struct psp_options *opt)
{
	*opt = (struct psp_options) {
		.overhead_bytes =
			dev->type == ARPHRD_ETHER ? PACE_ETH_OVERHEAD : 0,
		.mode = TC_PSP_MODE_AUTO,
		.layer = TC_PSP_LAYER_LINK,
		.order = TC_PSP_ORDER_NEXT,
		.gap = TC_PSP_GAP_MULTICAST,
		.split_gso = TC_PSP_SPLIT_GSO_AUTO,
		/* paper 004, 2.1 and 4.3 */
		.period_ns = 10 * NSEC_PER_MSEC,
		.budget_percent = 70,
		.align_ns = TC_PSP_ALIGN_OFF,
	};
}

/* CLOCK_TAI's phase on the clock that core/ is given. */
static u64 psp_align_ns(const struct psp_options *opt)
{
	u64 tai_ns = ktime_to_ns(ktime_mono_to_any(0, TK_OFFS_TAI)), past_ns;

	div64_u64_rem(tai_ns, opt->period_ns, &past_ns);
	return opt->align_ns + opt->period_ns - past_ns;
}

/* Clocks may be set apart: they are read once a period. */
void psp_port_align(struct psp_qdisc *q)
{
	q->aligned_at = q->pace.stats.periods;
	pace_set_align(&q->pace, psp_align_ns(&q->opt));
}

/*
 * Periods, and what of the line they may take.  Following the device, what
 * classes have reserved is not taken away: a slower line is counted.
 */
static int psp_resolve_period(const struct psp_options *opt,
			      struct psp_port *port, bool follow,
			      struct netlink_ext_ack *extack)
{
	struct pace_config *pace = &port->pace;
	u64 most = pace_budget_bytes(pace->line_rate_bps, opt->period_ns, 100);

	pace->period_ns = opt->period_ns;
	pace->budget_bytes = opt->budget_bytes ?:
			     pace_budget_bytes(pace->line_rate_bps,
					       opt->period_ns,
					       opt->budget_percent);
	pace->aligned = opt->align_ns != TC_PSP_ALIGN_OFF;
	if (pace->aligned)
		pace->align_ns = psp_align_ns(opt);
	if (follow) {
		pace->budget_bytes = min(pace->budget_bytes, most);
		pace->budget_bytes = max(pace->budget_bytes,
					 port->reserved_bytes);
	} else if (pace->budget_bytes > most) {
		psp_refuse(extack, "budget %llu: expected at most %llu bytes (line x period)",
			   pace->budget_bytes, most);
		return -ERANGE;
	}
	return 0;
}

/*
 * Two reasons come up while the qdisc runs: the wire is no clock, and the device
 * sends PAUSE itself.  Then nobody asks who could be refused, so any mode becomes
 * timer.  A request by hand is a new try.
 */
static int psp_resolve_mode(struct psp_qdisc *q, const struct psp_options *opt,
			    struct psp_port *port, bool follow,
			    struct netlink_ext_ack *extack)
{
	struct net_device *dev = qdisc_dev(q->sch);
	enum tc_psp_why why;

	port->pace.mode = PACE_MODE_TIMER;
	if (opt->mode == TC_PSP_MODE_TIMER)
		return 0;
	/* Before any other reason: it must not be refused for one of those. */
	if (follow && q->no_clock) {
		port->why_not_hybrid = TC_PSP_WHY_NO_CLOCK;
		return 0;
	}
	why = psp_why_no_gaps(dev, opt, port);
	if (follow && why == TC_PSP_WHY_FLOW_CONTROL) {
		port->why_not_hybrid = why;
		return 0;
	}
	switch (opt->mode) {
	case TC_PSP_MODE_AUTO:
		if (why == TC_PSP_WHY_FLOW_CONTROL)
			return psp_refuse_mode(extack, "auto", dev, why);
		port->why_not_hybrid = why;
		if (why == TC_PSP_WHY_NOTHING)
			port->pace.mode = PACE_MODE_HYBRID;
		return 0;
	case TC_PSP_MODE_GAP:
		port->pace.mode = PACE_MODE_GAP;
		return psp_refuse_mode(extack, "gap", dev, why);
	case TC_PSP_MODE_HYBRID:
		port->pace.mode = PACE_MODE_HYBRID;
		return psp_refuse_mode(extack, "hybrid", dev, why);
	default:
		return 0;
	}
}

static enum pace_layer psp_layer(const struct psp_options *opt)
{
	switch (opt->layer) {
	case TC_PSP_LAYER_WIRE:
		return PACE_LAYER_WIRE;
	case TC_PSP_LAYER_IP:
		return PACE_LAYER_IP;
	default:
		return PACE_LAYER_LINK;
	}
}

static enum pace_order psp_order(const struct psp_options *opt)
{
	switch (opt->order) {
	case TC_PSP_ORDER_CLOCK:
		return PACE_ORDER_CLOCK;
	case TC_PSP_ORDER_RATE:
		return PACE_ORDER_RATE;
	default:
		return PACE_ORDER_NEXT;
	}
}

/* follow: the device has changed, not what was asked for. */
int psp_port_resolve(struct psp_qdisc *q, const struct psp_options *opt,
		     struct psp_port *port, bool follow,
		     struct netlink_ext_ack *extack)
{
	struct net_device *dev = qdisc_dev(q->sch);
	struct pace_config *pace = &port->pace;
	u32 header = psp_link_header(dev);
	enum pace_error refused;
	int err;

	*port = (struct psp_port) {
		.pace = {
			.overhead_bytes = opt->overhead_bytes,
			.min_frame_bytes = dev->type == ARPHRD_ETHER ?
					   PACE_ETH_MIN_FRAME : 0,
			.max_frame_bytes = READ_ONCE(dev->mtu) + header,
			.link_header_bytes = header,
			.layer = psp_layer(opt),
			.order = psp_order(opt),
			.guard_band = opt->guard,
		},
		.reserved_bytes = pace_reserved_bytes(&q->pace, NULL),
	};
	err = psp_share_line(q, opt, port, follow, extack);
	if (err)
		return err;
	port->line_known = pace->line_rate_bps != 0;
	if (!port->line_known)
		pace->line_rate_bps = PACE_LINE_RATE_MAX;
	err = psp_resolve_period(opt, port, follow, extack) ?:
	      psp_resolve_mode(q, opt, port, follow, extack);
	if (err)
		return err;

	/* An MTU below the smallest frame still sends smallest frames. */
	if (pace->max_frame_bytes < pace->min_frame_bytes)
		pace->max_frame_bytes = pace->min_frame_bytes;
	pace->max_burst_bytes = psp_train_max(dev, opt, pace->line_rate_bps,
					      pace->max_frame_bytes);
	if (pace->mode != PACE_MODE_TIMER)
		psp_device_holds(q, port);
	refused = pace_check_config(pace);
	return refused ? psp_refuse_port(extack, refused, port, NULL) : 0;
}

/* The template that `port` needs; NULL where no gap frames are sent. */
int psp_port_gap(struct psp_qdisc *q, const struct psp_options *opt,
		 const struct psp_port *port, struct sk_buff **gap)
{
	*gap = NULL;
	if (port->pace.mode == PACE_MODE_TIMER)
		return 0;
	*gap = psp_gap_template(qdisc_dev(q->sch), port->pace.max_frame_bytes,
				opt->gap);
	return *gap ? 0 : -ENOMEM;
}

/*
 * Puts `opt` and `port` in force, or nothing.  When following the device
 * (`follow`) there is nobody to refuse to: a class that asks for more than a
 * line that became slower gets the line's rate until the line is faster
 * again.
 */
int psp_port_apply(struct psp_qdisc *q, const struct psp_options *opt,
		   const struct psp_port *port, bool follow,
		   struct netlink_ext_ack *extack)
{
	u64 before_bps = q->port.pace.line_rate_bps;
	u64 after_bps = port->pace.line_rate_bps;
	struct pace_class *culprit = NULL;
	enum pace_error refused;
	struct sk_buff *gap;
	int err;

	err = psp_port_gap(q, opt, port, &gap);
	if (err)
		return err;

	sch_tree_lock(q->sch);
	if (follow && after_bps < before_bps)
		psp_classes_cap(q, after_bps);
	psp_classes_fit_flows(q, &port->pace);
	refused = pace_reconfigure(&q->pace, &port->pace, ktime_get_ns(),
				   &culprit);
	psp_classes_cap(q, refused ? before_bps : after_bps);
	if (!refused) {
		q->port = *port;
		q->opt = *opt;
		swap(q->gap, gap);
		psp_watch_start(q);
	}
	sch_tree_unlock(q->sch);

	kfree_skb(gap);
	if (refused)
		return psp_refuse_port(extack, refused, port,
				       culprit ? psp_class_of(culprit) : NULL);
	psp_kick(q);
	return 0;
}
