// SPDX-License-Identifier: GPL-2.0-only
/*
 * The port: what the options come to on this device, now.
 */
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/rtnetlink.h>

#include "psp.h"
#include "compat/link_speed.h"

/*
 * Gap frames need a wire that takes them one after the other in real time.
 * Where frames vanish at once, filling gaps would spin.  Says why not, or
 * NULL.
 */
static const char *psp_no_wire_clock(const struct net_device *dev)
{
	if (dev->type != ARPHRD_ETHER || dev->flags & IFF_LOOPBACK)
		return "not Ethernet";
	if (dev->priv_flags & IFF_NO_QUEUE || !dev->tx_queue_len)
		return "no transmit queue";
	/* Made by `ip link add`: veth, ifb, dummy, tap, vlan, bond ... */
	if (dev->rtnl_link_ops)
		return "a software device";
	return NULL;
}

/* bit/s; 0: the device does not say, for instance because the link is down. */
static u64 psp_device_line_rate(struct net_device *dev)
{
	struct ethtool_link_ksettings ks;

	if (psp_link_ksettings(dev, &ks) || ks.base.speed == SPEED_UNKNOWN)
		return 0;
	return (u64)(u32)ks.base.speed * 1000000;
}

/* The rate followed so far, kept while the link is down. */
static u64 psp_last_line_rate(const struct psp_qdisc *q)
{
	if (q->opt.line_rate_bps || !q->port.line_known)
		return 0;
	return q->port.pace.line_rate_bps;
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
		.gap = TC_PSP_GAP_PAUSE,
	};
}

/*
 * Several qdiscs below mq share one wire, and none sees what the others send:
 * sent bytes are no clock there.
 */
static bool psp_has_wire_alone(const struct psp_qdisc *q)
{
	return q->sch->parent == TC_H_ROOT ||
	       qdisc_dev(q->sch)->real_num_tx_queues == 1;
}

static int psp_resolve_mode(struct psp_qdisc *q, const struct psp_options *opt,
			    u64 line_rate_bps, enum pace_mode *mode,
			    struct netlink_ext_ack *extack)
{
	const struct net_device *dev = qdisc_dev(q->sch);
	const char *why = psp_no_wire_clock(dev);

	*mode = PACE_MODE_TIMER;
	switch (opt->mode) {
	case TC_PSP_MODE_TIMER:
		return 0;
	case TC_PSP_MODE_AUTO:
		if (!why && line_rate_bps && psp_has_wire_alone(q))
			*mode = PACE_MODE_GAP;
		return 0;
	}

	if (why) {
		psp_refuse(extack, "mode gap on %s: expected a wire, not %s",
			   dev->name, why);
		return -EOPNOTSUPP;
	}
	if (!line_rate_bps) {
		psp_refuse(extack, "mode gap on %s: link speed unknown, expected line RATE",
			   dev->name);
		return -EOPNOTSUPP;
	}
	*mode = PACE_MODE_GAP;
	return 0;
}

int psp_port_resolve(struct psp_qdisc *q, const struct psp_options *opt,
		     struct psp_port *port, struct netlink_ext_ack *extack)
{
	struct net_device *dev = qdisc_dev(q->sch);
	u32 header = psp_link_header(dev);
	u64 line = opt->line_rate_bps;
	enum pace_error refused;
	enum pace_mode mode;
	int err;

	if (!line)
		line = psp_device_line_rate(dev);
	if (!line && !opt->line_rate_bps)
		line = psp_last_line_rate(q);

	err = psp_resolve_mode(q, opt, line, &mode, extack);
	if (err)
		return err;

	*port = (struct psp_port) {
		.line_known = line != 0,
		.pace = {
			.line_rate_bps = line ?: PACE_LINE_RATE_MAX,
			.overhead_bytes = opt->overhead_bytes,
			.min_frame_bytes = dev->type == ARPHRD_ETHER ?
					   PACE_ETH_MIN_FRAME : 0,
			.max_frame_bytes = READ_ONCE(dev->mtu) + header,
			.link_header_bytes = header,
			.layer = opt->layer == TC_PSP_LAYER_WIRE ?
					PACE_LAYER_WIRE :
				 opt->layer == TC_PSP_LAYER_IP ?
					PACE_LAYER_IP : PACE_LAYER_LINK,
			.order = opt->order == TC_PSP_ORDER_RATE ?
					PACE_ORDER_RATE :
				 opt->order == TC_PSP_ORDER_CLOCK ?
					PACE_ORDER_CLOCK : PACE_ORDER_NEXT,
			.mode = mode,
		},
	};
	/* An MTU below the smallest frame still sends smallest frames. */
	if (port->pace.max_frame_bytes < port->pace.min_frame_bytes)
		port->pace.max_frame_bytes = port->pace.min_frame_bytes;

	refused = pace_check_config(&port->pace);
	return refused ? psp_refuse_port(extack, refused, port, NULL) : 0;
}

/* The template that `port` needs; NULL where no gap frames are sent. */
int psp_port_gap(struct psp_qdisc *q, const struct psp_port *port,
		 struct sk_buff **gap)
{
	*gap = NULL;
	if (port->pace.mode != PACE_MODE_GAP)
		return 0;
	*gap = psp_gap_template(qdisc_dev(q->sch), port->pace.max_frame_bytes);
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

	err = psp_port_gap(q, port, &gap);
	if (err)
		return err;

	sch_tree_lock(q->sch);
	if (follow && after_bps < before_bps)
		psp_classes_cap(q, after_bps);
	refused = pace_reconfigure(&q->pace, &port->pace, ktime_get_ns(),
				   &culprit);
	psp_classes_cap(q, refused ? before_bps : after_bps);
	if (!refused) {
		q->port = *port;
		q->opt = *opt;
		swap(q->gap, gap);
	}
	sch_tree_unlock(q->sch);

	kfree_skb(gap);
	if (refused)
		return psp_refuse_port(extack, refused, port,
				       culprit ? psp_class_of(culprit) : NULL);
	psp_kick(q);
	return 0;
}
