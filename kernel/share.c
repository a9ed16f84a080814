// SPDX-License-Identifier: GPL-2.0-only
/*
 * The line that is psp's own.  As root of a device it is the device's whole
 * line.  Below mq every transmit queue has its root and none sees what the
 * others send: each psp takes its share of the line for a line of its own.
 * docs/decisions/0025.
 */
#include <linux/rtnetlink.h>

#include "psp.h"
#include "compat/link_speed.h"

/* Transmit queues that share the line with this one, itself included. */
u32 psp_share_queues(const struct psp_qdisc *q)
{
	if (q->sch->parent == TC_H_ROOT)
		return 1;
	return max(1u, READ_ONCE(qdisc_dev(q->sch)->real_num_tx_queues));
}

/* bit/s; 0: the device does not say, for instance because the link is down. */
static u64 psp_device_line_rate(struct net_device *dev)
{
	struct ethtool_link_ksettings ks;

	if (psp_link_ksettings(dev, &ks) || ks.base.speed == SPEED_UNKNOWN)
		return 0;
	return (u64)(u32)ks.base.speed * 1000000;
}

/*
 * Adds up what the psp of the other queues have been given, or take.  Queues
 * that are not in use take nothing, this one included.  A psp on the same queue
 * is the one that this one replaces.
 */
static u64 psp_share_others(const struct psp_qdisc *q, u64 even_bps)
{
	struct net_device *dev = qdisc_dev(q->sch);
	const struct psp_qdisc *other;
	u64 sum_bps = 0;

	if (q->queue >= dev->real_num_tx_queues)
		return 0;
	list_for_each_entry(other, &psp_qdiscs, link) {
		if (other->queue == q->queue || qdisc_dev(other->sch) != dev ||
		    other->queue >= dev->real_num_tx_queues)
			continue;
		sum_bps += other->opt.line_rate_bps ?: even_bps;
	}
	return sum_bps;
}

/*
 * Nobody asks for this line now, so it is never refused.  A default qdisc is
 * made without options, maybe beside those of an mq that is about to go; a change
 * may leave the line as it is.
 */
static bool psp_share_unasked(const struct psp_qdisc *q,
			      const struct psp_options *opt)
{
	if (list_empty(&q->link))
		return psp_is_default(q->sch);
	return opt->line_rate_bps == q->opt.line_rate_bps;
}

/*
 * Gives the queue its share.  What is configured must fit beside the other
 * queues' shares.  When the device has become slower there is nobody to refuse
 * to: shares given by hand shrink to the even ones.
 */
static int psp_share_of(const struct psp_qdisc *q,
			const struct psp_options *opt, struct psp_port *port,
			bool follow, struct netlink_ext_ack *extack)
{
	u64 even_bps = div_u64(port->device_bps, port->queues);
	u64 line_bps = opt->line_rate_bps ?: even_bps;
	u64 others_bps = psp_share_others(q, even_bps);
	u64 left_bps = port->device_bps - min(others_bps, port->device_bps);

	if (line_bps <= left_bps) {
		port->pace.line_rate_bps = line_bps;
		return 0;
	}
	if (follow || psp_share_unasked(q, opt)) {
		port->pace.line_rate_bps = min(line_bps, even_bps);
		return 0;
	}
	psp_refuse(extack, "line %llubit: expected %llubit, what other queues leave",
		   line_bps, left_bps);
	return -ERANGE;
}

/*
 * Fills in the line's rate, 0 where nobody names it, and what goes with it.
 * While the link is down the rate followed so far is kept.
 */
int psp_share_line(const struct psp_qdisc *q, const struct psp_options *opt,
		   struct psp_port *port, bool follow,
		   struct netlink_ext_ack *extack)
{
	port->queues = psp_share_queues(q);
	port->device_bps = psp_device_line_rate(qdisc_dev(q->sch)) ?:
			   q->port.device_bps;
	if (port->queues > 1 && port->device_bps)
		return psp_share_of(q, opt, port, follow, extack);
	port->pace.line_rate_bps = opt->line_rate_bps ?: port->device_bps;
	return 0;
}
