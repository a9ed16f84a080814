/* SPDX-License-Identifier: GPL-2.0-only */
/* skb_gso_segment() moved from <linux/netdevice.h> into a header of its own. */
#ifndef PSP_COMPAT_GSO_H
#define PSP_COMPAT_GSO_H

#include <linux/netdevice.h>
#if __has_include(<net/gso.h>)
#include <net/gso.h>
#endif

#endif
