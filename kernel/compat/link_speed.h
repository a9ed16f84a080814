/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads a device's speed while the locks of a qdisc operation are held.  On
 * kernels with a lock per device that includes the device's lock, which
 * __ethtool_get_link_ksettings() would take a second time.
 */
#ifndef PSP_COMPAT_LINK_SPEED_H
#define PSP_COMPAT_LINK_SPEED_H

#include <linux/ethtool.h>
#include <linux/netdevice.h>
#ifdef PSP_HAVE_NETIF_LINK_KSETTINGS
#include <net/netdev_lock.h>
#endif

static inline int psp_link_ksettings(struct net_device *dev,
				     struct ethtool_link_ksettings *ks)
{
#ifdef PSP_HAVE_NETIF_LINK_KSETTINGS
	return netif_get_link_ksettings(dev, ks);
#else
	return __ethtool_get_link_ksettings(dev, ks);
#endif
}

/* Takes the device's lock, for callers that do not hold it yet. */
static inline void psp_dev_lock(struct net_device *dev)
{
#ifdef PSP_HAVE_NETIF_LINK_KSETTINGS
	netdev_lock_ops(dev);
#endif
}

static inline void psp_dev_unlock(struct net_device *dev)
{
#ifdef PSP_HAVE_NETIF_LINK_KSETTINGS
	netdev_unlock_ops(dev);
#endif
}

#endif
