/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Autoloading: the kernel asks for "net-sch-psp" where this macro exists and
 * for the module's own name, "sch_psp", where it does not.
 */
#ifndef PSP_COMPAT_ALIAS_H
#define PSP_COMPAT_ALIAS_H

#include <net/pkt_sched.h>

#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(type)	/* not needed */
#endif

#endif
