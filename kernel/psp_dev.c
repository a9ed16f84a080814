// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device: the rate of the line, the mode, shares below mq, notifiers, and
 * what follows if the wire is no clock.
 */

static LIST_HEAD(psp_qdiscs);

/* psp_port_work_fn(): psp_notifier_init() sets it. */
static struct work_struct psp_port_work;

static void psp_port_work_schedule(void)
{
	schedule_work(&psp_port_work);
}

/*
 * The line of this qdisc.  As root of a device it has the whole line.  Below
 * mq each transmit queue has its own root, and none sees what the others
 * send: each psp treats its share as a line of its own.
 * docs/decisions/qdisc.md, "Shares of a line below mq".
 */

/*
 * Returns the number of transmit queues that share the line, including this
 * one.
 */
static u32 psp_share_queues(const struct psp_qdisc *q)
{
	if (q->sch->parent == TC_H_ROOT)
		return 1;
	return max(1u, READ_ONCE(qdisc_dev(q->sch)->real_num_tx_queues));
}

/*
 * In bit/s; 0: the device does not say, for instance because the link is
 * down.
 */
static u64 psp_device_line_rate(struct net_device *dev)
{
	struct ethtool_link_ksettings ks;

	if (psp_link_ksettings(dev, &ks) || ks.base.speed == SPEED_UNKNOWN)
		return 0;
	return (u64)(u32)ks.base.speed * 1000000;
}

/*
 * Adds up the shares of the other queues.  Queues that are not in use have
 * none, this one included.  A psp on the same queue is the one that this one
 * replaces.
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
		    other->opt.shared ||
		    other->queue >= dev->real_num_tx_queues)
			continue;
		sum_bps += other->opt.line_rate_bps ?: even_bps;
	}
	return sum_bps;
}

/*
 * Does nobody ask for this line now?  Then it is never refused.  A default
 * qdisc is made without options, maybe beside those of an mq that is about to
 * go; a change may leave the line as it is.
 */
static bool psp_share_unasked(const struct psp_qdisc *q,
			      const struct psp_options *opt)
{
	if (list_empty(&q->link))
		return psp_is_default(q->sch);
	return opt->line_rate_bps == q->opt.line_rate_bps;
}

/*
 * Gives the queue its share.  A share that is asked for must fit beside the
 * others. When the device has become slower, nobody could be refused: such
 * shares shrink to the even one.
 */
static int psp_share_of(const struct psp_qdisc *q,
			const struct psp_options *opt, struct psp_port *port,
			bool by_device, struct netlink_ext_ack *extack)
{
	u64 even_bps = div_u64(port->line.device_bps, port->line.queues);
	u64 line_bps = opt->line_rate_bps ?: even_bps;
	u64 others_bps = psp_share_others(q, even_bps);
	u64 left_bps = port->line.device_bps - min(others_bps, port->line.device_bps);

	if (line_bps <= left_bps) {
		port->pace.line_rate_bps = line_bps;
		return 0;
	}
	if (by_device || psp_share_unasked(q, opt)) {
		port->pace.line_rate_bps = min(line_bps, even_bps);
		return 0;
	}
	psp_set_extack(extack, "line %llubit: expected %llubit, left by others",
		       line_bps, left_bps);
	return -ERANGE;
}

/*
 * Fills in the rate of the line, 0 if unknown, and what belongs to it.  Keeps
 * the last known rate while the link is down.
 */
static int psp_share_line(const struct psp_qdisc *q, const struct psp_options *opt,
			  struct psp_port *port, bool by_device,
			  struct netlink_ext_ack *extack)
{
	port->line.queues = psp_share_queues(q);
	port->line.device_bps = psp_device_line_rate(qdisc_dev(q->sch)) ?:
			   q->line.device_bps;
	if (!opt->shared && port->line.queues > 1 && port->line.device_bps)
		return psp_share_of(q, opt, port, by_device, extack);
	port->pace.line_rate_bps = opt->line_rate_bps ?: port->line.device_bps;
	return 0;
}

/*
 * What the driver tells, through ethtool's functions and by ethtool's rules:
 * with the RTNL and the lock of the device, the device awake, between begin()
 * and complete().
 */

/*
 * Descriptors of a transmit ring if the driver does not tell: the most that
 * usual NICs have.
 */
#define PSP_RING_FRAMES		4096

static int psp_device_begin(struct net_device *dev)
{
	int err = 0;

	ASSERT_RTNL();
	if (!dev->ethtool_ops)
		return -EOPNOTSUPP;
	if (dev->dev.parent)
		pm_runtime_get_sync(dev->dev.parent);
	if (!netif_device_present(dev) || dev->reg_state != NETREG_REGISTERED)
		err = -ENODEV;
	else if (dev->ethtool_ops->begin)
		err = dev->ethtool_ops->begin(dev);
	if (err && dev->dev.parent)
		pm_runtime_put(dev->dev.parent);
	return err;
}

static void psp_device_end(struct net_device *dev)
{
	if (dev->ethtool_ops->complete)
		dev->ethtool_ops->complete(dev);
	if (dev->dev.parent)
		pm_runtime_put(dev->dev.parent);
}

/*
 * Does the device itself send PAUSE frames when its receiver is full?  Gap frames
 * with a pause time of 0 would cancel them.
 */
static bool psp_device_pauses(struct net_device *dev)
{
	struct ethtool_pauseparam pause = { .cmd = ETHTOOL_GPAUSEPARAM };

	if (!dev->ethtool_ops || !dev->ethtool_ops->get_pauseparam)
		return false;
	if (psp_device_begin(dev))
		return false;
	dev->ethtool_ops->get_pauseparam(dev, &pause);
	psp_device_end(dev);
	return pause.tx_pause;
}

static u32 psp_device_ring_frames(struct net_device *dev)
{
	struct ethtool_ringparam ring = { .cmd = ETHTOOL_GRINGPARAM };
	struct kernel_ethtool_ringparam more = {};

	if (!dev->ethtool_ops || !dev->ethtool_ops->get_ringparam)
		return PSP_RING_FRAMES;
	if (psp_device_begin(dev))
		return PSP_RING_FRAMES;
	dev->ethtool_ops->get_ringparam(dev, &ring, &more, NULL);
	psp_device_end(dev);
	return ring.tx_pending ?: PSP_RING_FRAMES;
}

/* Fills in the most bytes that may have been handed out and not have left. */
static void psp_device_holds(struct psp_qdisc *q, struct psp_port *port)
{
	const struct pace_config *pace = &port->pace;
	u32 burst_bytes = max(pace->max_burst_bytes, pace->max_frame_bytes);
	u32 frames = DIV_ROUND_UP(burst_bytes, pace->max_frame_bytes);

	port->line.ring_bytes = psp_device_ring_frames(qdisc_dev(q->sch)) *
			   (burst_bytes + frames * (u64)pace->overhead_bytes);
	port->line.slack_bytes = psp_line_slack_bytes(port->line.ring_bytes);
}

/* Changes whenever the carrier goes or comes back. */
static u32 psp_device_link_changes(const struct net_device *dev)
{
	return atomic_read(&dev->carrier_up_count) +
	       atomic_read(&dev->carrier_down_count);
}

/* Starts the watch of the wire anew.  Tree lock. */
static void psp_watch_start(struct psp_qdisc *q)
{
	const struct pace_config *cfg = &q->pace.cfg;
	bool on = cfg->mode != PACE_MODE_TIMER || q->trial.state != PSP_TRIAL_OFF;

	psp_line_start(&q->watch, on ? cfg->line_rate_bps : 0,
		       q->line.slack_bytes,
		       pace_wire_bytes(&q->pace, cfg->max_frame_bytes));
	q->handed_bytes = psp_handed_bytes(q);
	q->link_changes = psp_device_link_changes(qdisc_dev(q->sch));
	q->suspect_ns = 0;
	q->mark_ns = 0;
	WRITE_ONCE(q->suspect, false);
}

/*
 * Gap frames are asked for, and the wire has not proved itself: mode timer
 * until it has.  "Trials" below.
 */
static inline bool psp_is_unproved(const struct psp_qdisc *q)
{
	return q->line.gaps && q->pace.cfg.mode == PACE_MODE_TIMER;
}

/* Has this kind of gap frame taken its time, on this line, since the link came up? */
static bool psp_is_proved(const struct psp_qdisc *q, const struct psp_port *port)
{
	return READ_ONCE(q->proved_bps) == port->pace.line_rate_bps &&
	       q->proved_gap == port->line.gap &&
	       q->proved_link == psp_device_link_changes(qdisc_dev(q->sch));
}

/* Ends a trial, if one runs.  Tree lock. */
static void psp_trial_stop(struct psp_qdisc *q)
{
	q->trial.state = PSP_TRIAL_OFF;
	q->trial_asked = false;
	if (q->pace.cfg.mode == PACE_MODE_TIMER)
		q->watch.line_rate_bps = 0;
}

/*
 * Makes the wire prove itself, if it has not: at once after a request by the
 * user, on another line or link, with other gap frames.  Without traffic nothing
 * else runs the root.
 */
static void psp_proof_ask(struct psp_qdisc *q, bool by_device)
{
	u32 link = psp_device_link_changes(qdisc_dev(q->sch));
	struct psp_trial *t = &q->trial;

	if (!psp_is_unproved(q))
		return;
	/* A host that was found slow may be faster now. */
	if (!by_device && READ_ONCE(q->host_is_slow))
		WRITE_ONCE(q->proved_bps, 0);
	if (by_device && t->line_bps == q->pace.cfg.line_rate_bps && t->link == link &&
	    t->gap == q->line.gap)
		return;
	t->line_bps = q->pace.cfg.line_rate_bps;
	t->link = link;
	t->gap = q->line.gap;
	t->fails = 0;
	WRITE_ONCE(q->trial_asked, true);
	WRITE_ONCE(q->proof_work, true);
	psp_port_work_schedule();
}

/* What the options come to on this device. */

/*
 * split-gso auto: the longest burst of a normal class that stays whole, as
 * time on the line.  A paced frame that becomes due meanwhile waits for all
 * of it.  10 us is less than a largest frame takes at 1 Gbit/s, which any
 * frame may have to wait, and less than timers are late.
 */
#define PSP_BURST_NS	(10 * NSEC_PER_USEC)

/*
 * Returns the length of the longest burst that may stay whole, with the
 * headers of all its frames; 0: none may.  The device's limit counts the
 * headers once.  An eighth more is enough for segments of 700 bytes; bursts
 * of shorter ones are cut a little earlier.
 */
static u32 psp_burst_max_bytes(const struct net_device *dev, const struct psp_options *opt,
			       u64 line_rate_bps, u32 max_frame_bytes)
{
	u32 size = READ_ONCE(dev->gso_max_size);
	u64 max = min_t(u64, size + size / 8, PACE_FRAME_MAX);

	switch (opt->split_gso) {
	case TC_PSP_SPLIT_GSO_ON:
		return 0;
	case TC_PSP_SPLIT_GSO_AUTO:
		/* A burst hardly ever fits before the next paced frame. */
		if (opt->guard)
			return 0;
		max = min(max, pace_mul_div(line_rate_bps, PSP_BURST_NS,
					    8ull * NSEC_PER_SEC));
		break;
	}
	return max > max_frame_bytes ? max : 0;
}

#define PSP_PAUSE_OPCODE	1
/* IEEE 802 local experimental EtherType 1: no protocol of the host uses it. */
#define PSP_ETH_P_EXPERIMENTAL	0x88b5

/*
 * frame_bytes: length of the largest gap frame with its Ethernet header.  The
 * pause time of a PAUSE frame stays 0, so nobody pauses.
 */
static struct sk_buff *psp_gap_template(struct net_device *dev, u32 frame_bytes,
					enum tc_psp_gap type)
{
	/*
	 * Address of MAC control: no bridge forwards it (IEEE 802.1D,
	 * 7.12.6).
	 */
	static const u8 control[ETH_ALEN] = {
		0x01, 0x80, 0xc2, 0x00, 0x00, 0x01
	};
	struct sk_buff *skb = alloc_skb(frame_bytes, GFP_KERNEL_ACCOUNT);
	struct ethhdr *eth;

	if (!skb)
		return NULL;

	eth = skb_put_zero(skb, frame_bytes);
	ether_addr_copy(eth->h_dest, control);
	ether_addr_copy(eth->h_source, dev->dev_addr);
	if (type == TC_PSP_GAP_PAUSE) {
		eth->h_proto = htons(ETH_P_PAUSE);
		*(__be16 *)(eth + 1) = htons(PSP_PAUSE_OPCODE);
	} else {
		eth->h_proto = htons(PSP_ETH_P_EXPERIMENTAL);
	}

	skb->dev = dev;
	skb->protocol = eth->h_proto;
	skb_reset_mac_header(skb);
	/* Packet taps require a network header inside the frame. */
	skb_set_network_header(skb, ETH_HLEN);
	skb_reset_mac_len(skb);
	return skb;
}

/* Returns which gap frames are sent: not PAUSE beside the device's own. */
static enum tc_psp_gap psp_gap_in_force(struct net_device *dev,
					const struct psp_options *opt)
{
	return opt->gap == TC_PSP_GAP_PAUSE && psp_device_pauses(dev) ?
	       TC_PSP_GAP_MULTICAST : opt->gap;
}

/*
 * Gap frames need a wire that takes frames one after the other in real time,
 * and all that is sent on it must pass here.  Where frames vanish at once,
 * filling gaps would spin.
 */
static enum tc_psp_why psp_why_no_gaps(const struct net_device *dev,
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
	if (!port->line.line_known)
		return TC_PSP_WHY_NO_RATE;
	/* Bytes sent here are no clock if others send too. */
	if (port->line.queues > 1 || opt->shared)
		return TC_PSP_WHY_SHARED;
	return TC_PSP_WHY_NOTHING;
}

static u32 psp_link_header(const struct net_device *dev)
{
	return dev->type == ARPHRD_ETHER ? ETH_HLEN : dev->hard_header_len;
}

static void psp_default_options(const struct net_device *dev, struct psp_options *opt)
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

/* Returns the phase of CLOCK_TAI on the clock that core/ is given. */
static u64 psp_align_ns(const struct psp_options *opt)
{
	u64 tai_ns = ktime_to_ns(ktime_mono_to_any(0, TK_OFFS_TAI)), past_ns;

	div64_u64_rem(tai_ns, opt->period_ns, &past_ns);
	return opt->align_ns + opt->period_ns - past_ns;
}

/* Clocks may be set, so their distance is read once a period. */
static void psp_port_align(struct psp_qdisc *q)
{
	q->aligned_at = q->pace.stats.periods;
	pace_set_align(&q->pace, psp_align_ns(&q->opt));
}

/*
 * Fills in the period and its budget.  After a change of the device what
 * classes have reserved stays; periods that are too short for it are counted.
 */
static int psp_resolve_period(const struct psp_options *opt,
			      struct psp_port *port, bool by_device,
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
	if (by_device) {
		pace->budget_bytes = min(pace->budget_bytes, most);
		pace->budget_bytes = max(pace->budget_bytes,
					 port->reserved_bytes);
	} else if (pace->budget_bytes > most) {
		psp_set_extack(extack, "budget %llu: expected at most %llu (line x period)",
			       pace->budget_bytes, most);
		return -ERANGE;
	}
	return 0;
}

/*
 * Chooses the mode: timer until the wire has proved that it is a clock.  Two
 * reasons against gap frames appear while the qdisc runs: the wire is no clock,
 * and, but for mode gap, the host is too slow for the line.  There is no request to
 * refuse then, so the mode becomes timer.  A request by the user is a new try.
 */
static int psp_resolve_mode(struct psp_qdisc *q, const struct psp_options *opt,
			    struct psp_port *port, bool by_device,
			    struct netlink_ext_ack *extack)
{
	struct net_device *dev = qdisc_dev(q->sch);
	enum tc_psp_why why;
	bool proved;
	int err = 0;

	port->pace.mode = PACE_MODE_TIMER;
	if (opt->mode == TC_PSP_MODE_TIMER)
		return 0;
	/* First, so that no other reason refuses it. */
	if (by_device && q->no_clock) {
		port->line.why_not_hybrid = TC_PSP_WHY_NO_CLOCK;
		return 0;
	}
	why = psp_why_no_gaps(dev, opt, port);
	switch (opt->mode) {
	case TC_PSP_MODE_AUTO:
		port->line.why_not_hybrid = why;
		if (why != TC_PSP_WHY_NOTHING)
			return 0;
		break;
	case TC_PSP_MODE_GAP:
		err = psp_extack_mode(extack, "gap", dev, why);
		break;
	case TC_PSP_MODE_HYBRID:
		err = psp_extack_mode(extack, "hybrid", dev, why);
		break;
	default:
		return 0;
	}
	proved = psp_is_proved(q, port);
	if (proved && opt->mode != TC_PSP_MODE_GAP && READ_ONCE(q->host_is_slow)) {
		if (by_device) {
			port->line.why_not_hybrid = TC_PSP_WHY_HOST_SLOW;
			return 0;
		}
		proved = false;
	}
	/* A proof that lapsed ends gap frames whatever else refuses them. */
	if (err && (proved || !by_device || !q->line.gaps))
		return err;
	port->line.gaps = true;
	if (!proved)
		port->line.why_not_hybrid = TC_PSP_WHY_NOT_PROVED;
	else if (opt->mode == TC_PSP_MODE_GAP)
		port->pace.mode = PACE_MODE_GAP;
	else
		port->pace.mode = PACE_MODE_HYBRID;
	return 0;
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

/*
 * Computes `port` from `opt`.  by_device: the device has changed, not the
 * options.
 */
static int psp_port_resolve(struct psp_qdisc *q, const struct psp_options *opt,
			    struct psp_port *port, bool by_device,
			    struct netlink_ext_ack *extack)
{
	struct net_device *dev = qdisc_dev(q->sch);
	struct pace_config *pace = &port->pace;
	u32 header = psp_link_header(dev);
	enum pace_error refused;
	int err;

	/* Padding is zero, too: psp_port_is_in_force(). */
	memset(port, 0, sizeof(*port));
	pace->overhead_bytes = opt->overhead_bytes;
	pace->min_frame_bytes = dev->type == ARPHRD_ETHER ? PACE_ETH_MIN_FRAME : 0;
	pace->max_frame_bytes = READ_ONCE(dev->mtu) + header;
	pace->link_header_bytes = header;
	pace->layer = psp_layer(opt);
	pace->order = psp_order(opt);
	pace->guard_band = opt->guard;
	port->reserved_bytes = pace_reserved_bytes(&q->pace, NULL);
	port->line.gap = psp_gap_in_force(dev, opt);
	err = psp_share_line(q, opt, port, by_device, extack);
	if (err)
		return err;
	port->line.line_known = pace->line_rate_bps != 0;
	if (!port->line.line_known)
		pace->line_rate_bps = PACE_LINE_RATE_MAX;
	err = psp_resolve_period(opt, port, by_device, extack) ?:
	      psp_resolve_mode(q, opt, port, by_device, extack);
	if (err)
		return err;

	/* On an MTU below the smallest frame smallest frames are sent. */
	if (pace->max_frame_bytes < pace->min_frame_bytes)
		pace->max_frame_bytes = pace->min_frame_bytes;
	pace->max_burst_bytes = psp_burst_max_bytes(dev, opt, pace->line_rate_bps,
						    pace->max_frame_bytes);
	if (port->line.gaps)
		psp_device_holds(q, port);
	refused = pace_check_config(pace);
	return refused ? psp_extack_port(extack, refused, pace,
					 port->reserved_bytes, NULL)
		       : 0;
}

/* Makes the template for gap frames; *gap is NULL if `port` sends none. */
static int psp_port_gap(struct psp_qdisc *q, const struct psp_port *port,
			struct sk_buff **gap)
{
	*gap = NULL;
	if (!port->line.gaps)
		return 0;
	*gap = psp_gap_template(qdisc_dev(q->sch), port->pace.max_frame_bytes,
				port->line.gap);
	return *gap ? 0 : -ENOMEM;
}

/*
 * Puts `pace` in force, or changes nothing.  by_device: a class that asks for
 * more than a line that became slower gets the rate of the line until the line
 * is faster again.  Tree lock.
 */
static enum pace_error psp_port_step(struct psp_qdisc *q, const struct pace_config *pace,
				     bool by_device, struct pace_class **culprit)
{
	u64 before_bps = q->pace.cfg.line_rate_bps;
	u64 after_bps = pace->line_rate_bps;
	enum pace_error refused;

	if (by_device && after_bps < before_bps)
		psp_classes_cap(q, after_bps);
	psp_classes_fit_flows(q, pace);
	refused = psp_groups_check_line(q, pace, culprit) ?:
		  pace_reconfigure(&q->pace, pace, ktime_get_ns(), culprit);
	psp_classes_cap(q, refused ? before_bps : after_bps);
	return refused;
}

/*
 * Does the same for lines that are far apart, too.  Whoever has the rate of
 * the line needs one that core/ accepts before and after.  Between 1 Tbit/s
 * and some kbit/s there is none, so the port changes to a line between first.
 */
static enum pace_error psp_port_reconfigure(struct psp_qdisc *q,
					    const struct pace_config *pace,
					    bool by_device, struct pace_class **culprit)
{
	const struct pace_config before = q->pace.cfg;
	struct pace_config between = before;
	enum pace_error refused;

	between.line_rate_bps = max(pace_least_rate_bps(&before),
				    pace_least_rate_bps(pace));
	if (between.line_rate_bps <= min(before.line_rate_bps, pace->line_rate_bps))
		return psp_port_step(q, pace, by_device, culprit);
	refused = psp_port_step(q, &between, by_device, culprit);
	if (refused)
		return refused;
	refused = psp_port_step(q, pace, by_device, culprit);
	if (refused)
		psp_port_step(q, &before, true, NULL);
	return refused;
}

/*
 * Puts `opt` and `port` in force, or changes nothing.  by_device: there is no
 * request to refuse.
 */
static int psp_port_apply(struct psp_qdisc *q, const struct psp_options *opt,
			  const struct psp_port *port, bool by_device,
			  struct netlink_ext_ack *extack)
{
	struct pace_class *culprit = NULL;
	enum pace_error refused;
	struct sk_buff *gap;
	int err;

	err = psp_port_gap(q, port, &gap);
	if (err)
		return err;

	sch_tree_lock(q->sch);
	refused = psp_port_reconfigure(q, &port->pace, by_device, &culprit);
	if (!refused) {
		q->line = port->line;
		q->opt = *opt;
		if (q->device)
			pace_set_step(&q->pace, psp_step_ps(q));
		swap(q->gap, gap);
		q->ahead = false;
		psp_trial_stop(q);
		psp_watch_start(q);
	}
	sch_tree_unlock(q->sch);

	kfree_skb(gap);
	if (refused)
		return psp_extack_port(extack, refused, &port->pace,
				       port->reserved_bytes,
				       psp_culprit(culprit));
	psp_proof_ask(q, by_device);
	psp_run_root(q);
	return 0;
}

/*
 * Is the wire a clock?  Gap frames that a NIC drops, or that a virtual device
 * takes as fast as they are made, take no time; then bytes handed out are no
 * clock.  Dequeue notices (line_watch.h).  A work item, which may wait for
 * the RTNL, checks what may have changed, and changes the mode to timer.
 * docs/decisions/qdisc.md, "Is the wire a clock?".
 */

static void psp_watch_restart(struct psp_qdisc *q)
{
	sch_tree_lock(q->sch);
	psp_watch_start(q);
	sch_tree_unlock(q->sch);
}

/*
 * Returns true if this suspicion confirms the previous one
 * (psp_line_confirmed()). Else it only notes the time: one suspicion proves
 * nothing.
 */
static bool psp_watch_confirm(struct psp_qdisc *q)
{
	u64 now_ns = ktime_get_ns(), raw_ns = ktime_get_raw_ns();
	u64 before_ns = q->suspect_ns, raw_before_ns = q->suspect_raw_ns;

	if (before_ns && psp_line_confirmed(&q->watch, now_ns - before_ns,
					    raw_ns - raw_before_ns))
		return true;
	psp_watch_restart(q);
	q->suspect_ns = now_ns;
	q->suspect_raw_ns = raw_ns;
	return false;
}

/* The verdict cannot take force: stops watching until the port is another. */
static void psp_watch_stop(struct psp_qdisc *q)
{
	sch_tree_lock(q->sch);
	q->watch.line_rate_bps = 0;
	WRITE_ONCE(q->suspect, false);
	sch_tree_unlock(q->sch);
}

/* Does a change of the device explain the suspicion? */
static bool psp_watch_is_explained(const struct psp_qdisc *q,
				   const struct psp_port *port)
{
	return !port->line.gaps ||
	       port->pace.line_rate_bps != q->pace.cfg.line_rate_bps ||
	       port->line.slack_bytes > q->line.slack_bytes;
}

/*
 * More bytes were handed out than the line carries.  That proves nothing if
 * the link was down, because drivers drop frames then, or if the device has a
 * new speed or a longer ring that it has not reported yet.
 */
static void psp_watch_check(struct psp_qdisc *q)
{
	struct net_device *dev = qdisc_dev(q->sch);
	struct psp_port port;
	u64 taken_bps;
	int err;

	ASSERT_RTNL();
	if (!netif_running(dev) || !netif_carrier_ok(dev) ||
	    q->link_changes != psp_device_link_changes(dev)) {
		psp_watch_restart(q);
		return;
	}
	err = psp_port_resolve(q, &q->opt, &port, true, NULL);
	if (!err && psp_watch_is_explained(q, &port) &&
	    !psp_port_apply(q, &q->opt, &port, true, NULL))
		return;
	/*
	 * Also if the new port cannot take force: the verdict does not depend
	 * on it.
	 */
	if (!psp_watch_confirm(q))
		return;

	sch_tree_lock(q->sch);
	taken_bps = psp_line_taken_bps(&q->watch, ktime_get_ns());
	q->no_clock = true;
	q->count.no_clock++;
	sch_tree_unlock(q->sch);
	netdev_warn(dev, "qdisc %x: no wire clock, took %llu Mbit/s at a line of %llu: mode timer, no gap frames\n",
		    q->sch->handle >> 16, div_u64(taken_bps, 1000000),
		    div_u64(q->pace.cfg.line_rate_bps, 1000000));
	if (psp_port_resolve(q, &q->opt, &port, true, NULL) ||
	    psp_port_apply(q, &q->opt, &port, true, NULL))
		psp_watch_stop(q);
}

/*
 * Notifications of the device: link speed, MTU, address, number of queues.  Sent
 * bytes at the old line rate would be a clock wrong by the ratio.
 */

static void psp_list_add(struct psp_qdisc *q)
{
	ASSERT_RTNL();
	list_add_tail(&q->link, &psp_qdiscs);
}

static void psp_list_del(struct psp_qdisc *q)
{
	ASSERT_RTNL();
	list_del_init(&q->link);
}

/* Is `port` what is in force, and do gap frames have the device's address? */
static bool psp_port_is_in_force(const struct psp_qdisc *q, const struct psp_port *port)
{
	return !memcmp(&port->pace, &q->pace.cfg, sizeof(port->pace)) &&
	       !memcmp(&port->line, &q->line, sizeof(port->line)) &&
	       (!q->gap || ether_addr_equal(eth_hdr(q->gap)->h_source,
					    qdisc_dev(q->sch)->dev_addr));
}

/* The device may have changed.  If it has not, the watch of the wire goes on. */
static int psp_port_update(struct psp_qdisc *q)
{
	struct net_device *dev = qdisc_dev(q->sch);
	struct netlink_ext_ack extack = {};
	struct psp_port port;
	int err;

	err = psp_port_resolve(q, &q->opt, &port, true, &extack);
	if (!err && psp_port_is_in_force(q, &port)) {
		psp_proof_ask(q, true);
		return 0;
	}
	if (!err)
		err = psp_port_apply(q, &q->opt, &port, true, &extack);
	if (err)
		netdev_warn(dev, "qdisc %x: keeps its parameters: %s\n",
			    q->sch->handle >> 16,
			    extack._msg ? extack._msg : "out of memory");
	return err;
}

/*
 * An MTU that the rate of a class forbids is refused, and the kernel restores
 * the old one.
 */
static int psp_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	const struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct psp_qdisc *q;
	int err = 0;

	switch (event) {
	case NETDEV_UP:
	case NETDEV_CHANGE:
	case NETDEV_CHANGEMTU:
	case NETDEV_CHANGEADDR:
		break;
	default:
		return NOTIFY_DONE;
	}

	list_for_each_entry(q, &psp_qdiscs, link) {
		if (qdisc_dev(q->sch) == dev)
			err = psp_port_update(q) ?: err;
	}
	return event == NETDEV_CHANGEMTU ? notifier_from_errno(err)
					 : NOTIFY_DONE;
}

/* A trial has ended, or a wait for one: the mode may be another. */
static void psp_proof_update(struct psp_qdisc *q)
{
	WRITE_ONCE(q->proof_work, false);
	if (!psp_port_update(q) && READ_ONCE(q->trial_asked))
		psp_run_root(q);
}

/*
 * No notification reports a change of the number of transmit queues, nor that
 * the wire is no clock.  Dequeue sees both, but holds a lock that
 * configuration waits for.  This work belongs to the module, so no qdisc
 * waits for it, or it for a qdisc, at its end.
 */
static void psp_port_work_fn(struct work_struct *work)
{
	struct psp_qdisc *q;

	rtnl_lock();
	list_for_each_entry(q, &psp_qdiscs, link) {
		u32 queues = psp_share_queues(q);
		bool changed = queues != q->line.queues;

		if (!changed && !READ_ONCE(q->suspect) && !READ_ONCE(q->proof_work))
			continue;
		psp_dev_lock(qdisc_dev(q->sch));
		if (changed)
			psp_port_update(q);
		/*
		 * Also if the port could not change: otherwise no check would
		 * come again.
		 */
		if (READ_ONCE(q->suspect))
			psp_watch_check(q);
		if (READ_ONCE(q->proof_work))
			psp_proof_update(q);
		psp_dev_unlock(qdisc_dev(q->sch));
		/* Once for each change, also if it could not take force. */
		WRITE_ONCE(q->line.queues, queues);
	}
	rtnl_unlock();
}

static struct notifier_block psp_notifier = {
	.notifier_call = psp_netdev_event,
};

static int psp_notifier_init(void)
{
	INIT_WORK(&psp_port_work, psp_port_work_fn);
	return register_netdevice_notifier(&psp_notifier);
}

static void psp_notifier_exit(void)
{
	unregister_netdevice_notifier(&psp_notifier);
	cancel_work_sync(&psp_port_work);
}
