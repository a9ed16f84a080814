/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declares skb_gso_segment(), which newer kernels moved from
 * <linux/netdevice.h> to <net/gso.h>.
 */
#ifndef PSP_COMPAT_GSO_H
#define PSP_COMPAT_GSO_H

#include <linux/netdevice.h>
#ifdef PSP_HAVE_NET_GSO
#include <net/gso.h>
#endif

#endif
