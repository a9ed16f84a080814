// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the driver says of its device, by the functions that ethtool asks.  As
 * ethtool does: with the RTNL and the device's own lock held, the device
 * awake, and between begin() and complete().
 */
#include <linux/ethtool.h>
#include <linux/pm_runtime.h>
#include <linux/rtnetlink.h>

#include "psp.h"

/*
 * Descriptors of a transmit ring where the driver does not tell: what most
 * NICs have at most.
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

/* Does the device send PAUSE frames of its own, when its receiver is full? */
bool psp_device_pauses(struct net_device *dev)
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

/* Most bytes that were handed to the device and have not left yet. */
void psp_device_holds(struct psp_qdisc *q, struct psp_port *port)
{
	const struct pace_config *pace = &port->pace;
	u32 train_bytes = max(pace->max_burst_bytes, pace->max_frame_bytes);
	u32 frames = DIV_ROUND_UP(train_bytes, pace->max_frame_bytes);

	port->ring_bytes = psp_device_ring_frames(qdisc_dev(q->sch)) *
			   (train_bytes + frames * (u64)pace->overhead_bytes);
	port->slack_bytes = psp_line_slack_bytes(port->ring_bytes);
}

/* Changes whenever the link went, or came back. */
u32 psp_device_link_changes(const struct net_device *dev)
{
	return atomic_read(&dev->carrier_up_count) +
	       atomic_read(&dev->carrier_down_count);
}
