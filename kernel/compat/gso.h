/* SPDX-License-Identifier: GPL-2.0-only */
/* skb_gso_segment() moved from <linux/netdevice.h> into a header of its own. */
#ifndef PSP_COMPAT_GSO_H
#define PSP_COMPAT_GSO_H

#include <linux/netdevice.h>
#ifdef PSP_HAVE_NET_GSO
#include <net/gso.h>
#endif

#endif
