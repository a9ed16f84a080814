// SPDX-License-Identifier: GPL-2.0-only
/*
 * cake_mq for a tc(8) that is older than it: its options are cake's, which tc
 * itself parses and prints. tc loads this as q_cake_mq.so.
 */
#include "../../tc/compat/iproute2.h"

/* Exported by the tc program. */
extern struct qdisc_util cake_qdisc_util;

struct qdisc_util cake_mq_qdisc_util = { .id = "cake_mq" };

__attribute__((constructor))
static void take_cakes_options(void)
{
	cake_mq_qdisc_util = cake_qdisc_util;
	cake_mq_qdisc_util.next = NULL;
	cake_mq_qdisc_util.id = "cake_mq";
}
