// SPDX-License-Identifier: GPL-2.0-only
/* Options of the qdisc on their way from and to user space. */
#include <net/netlink.h>

#include "psp.h"

static const struct nla_policy psp_policy[TCA_PSP_MAX + 1] = {
	[TCA_PSP_PAD]		= { .type = NLA_REJECT },
	[TCA_PSP_DEFAULT]	= { .type = NLA_U32 },
	[TCA_PSP_LINE_RATE]	= { .type = NLA_U64 },
	[TCA_PSP_MODE]		= NLA_POLICY_MAX(NLA_U8,
						 __TC_PSP_MODE_MAX - 1),
	[TCA_PSP_OVERHEAD]	= NLA_POLICY_MAX(NLA_U32, TC_PSP_OVERHEAD_MAX),
	[TCA_PSP_LAYER]		= NLA_POLICY_MAX(NLA_U8,
						 __TC_PSP_LAYER_MAX - 1),
	[TCA_PSP_ORDER]		= NLA_POLICY_MAX(NLA_U8,
						 __TC_PSP_ORDER_MAX - 1),
	[TCA_PSP_GAP]		= NLA_POLICY_MAX(NLA_U8, __TC_PSP_GAP_MAX - 1),
	[TCA_PSP_GUARD]		= NLA_POLICY_MAX(NLA_U8, 1),
	[TCA_PSP_SPLIT_GSO]	= NLA_POLICY_MAX(NLA_U8,
						 __TC_PSP_SPLIT_GSO_MAX - 1),
	[TCA_PSP_PERIOD]	= { .type = NLA_U64 },
	[TCA_PSP_BUDGET]	= { .type = NLA_U64 },
	[TCA_PSP_BUDGET_PERCENT] = NLA_POLICY_RANGE(NLA_U32, 1, 100),
	[TCA_PSP_ALIGN]		= { .type = NLA_U64 },
};

/* Periods: what core/ does not check, or not in these terms. */
static int psp_parse_period(struct nlattr **tb, struct psp_options *opt,
			    struct netlink_ext_ack *extack)
{
	if (tb[TCA_PSP_PERIOD])
		opt->period_ns = nla_get_u64(tb[TCA_PSP_PERIOD]);
	if (tb[TCA_PSP_BUDGET])
		opt->budget_bytes = nla_get_u64(tb[TCA_PSP_BUDGET]);
	if (tb[TCA_PSP_BUDGET_PERCENT])
		opt->budget_percent = nla_get_u32(tb[TCA_PSP_BUDGET_PERCENT]);
	if (tb[TCA_PSP_ALIGN])
		opt->align_ns = nla_get_u64(tb[TCA_PSP_ALIGN]);

	if (opt->period_ns < TC_PSP_PERIOD_MIN ||
	    opt->period_ns > TC_PSP_PERIOD_MAX) {
		psp_refuse(extack, "period %lluns: expected %uns to %uns",
			   opt->period_ns, TC_PSP_PERIOD_MIN,
			   TC_PSP_PERIOD_MAX);
		return -ERANGE;
	}
	if (opt->align_ns != TC_PSP_ALIGN_OFF &&
	    opt->align_ns >= opt->period_ns) {
		psp_refuse(extack, "align %lluns: expected less than the period, %lluns",
			   opt->align_ns, opt->period_ns);
		return -ERANGE;
	}
	return 0;
}

/* Changes in *opt what `attr` names; NULL names nothing. */
int psp_parse_options(struct nlattr *attr, struct psp_options *opt,
		      struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_PSP_MAX + 1];
	int err;

	if (!attr)
		return 0;
	err = nla_parse_nested(tb, TCA_PSP_MAX, attr, psp_policy, extack);
	if (err)
		return err;

	if (tb[TCA_PSP_DEFAULT]) {
		opt->default_minor = nla_get_u32(tb[TCA_PSP_DEFAULT]);
		if (opt->default_minor > TC_H_MIN_MASK) {
			psp_refuse(extack, "default %x: expected 0 to ffff",
				   opt->default_minor);
			return -ERANGE;
		}
	}
	if (tb[TCA_PSP_LINE_RATE])
		opt->line_rate_bps = nla_get_u64(tb[TCA_PSP_LINE_RATE]);
	if (tb[TCA_PSP_MODE])
		opt->mode = nla_get_u8(tb[TCA_PSP_MODE]);
	if (tb[TCA_PSP_OVERHEAD])
		opt->overhead_bytes = nla_get_u32(tb[TCA_PSP_OVERHEAD]);
	if (tb[TCA_PSP_LAYER])
		opt->layer = nla_get_u8(tb[TCA_PSP_LAYER]);
	if (tb[TCA_PSP_ORDER])
		opt->order = nla_get_u8(tb[TCA_PSP_ORDER]);
	if (tb[TCA_PSP_GAP])
		opt->gap = nla_get_u8(tb[TCA_PSP_GAP]);
	if (tb[TCA_PSP_GUARD])
		opt->guard = nla_get_u8(tb[TCA_PSP_GUARD]);
	if (tb[TCA_PSP_SPLIT_GSO])
		opt->split_gso = nla_get_u8(tb[TCA_PSP_SPLIT_GSO]);
	return psp_parse_period(tb, opt, extack);
}

static int psp_put_period(struct sk_buff *skb, const struct psp_options *opt)
{
	if (nla_put_u64_64bit(skb, TCA_PSP_PERIOD, opt->period_ns,
			      TCA_PSP_PAD))
		return -EMSGSIZE;
	if (opt->align_ns != TC_PSP_ALIGN_OFF &&
	    nla_put_u64_64bit(skb, TCA_PSP_ALIGN, opt->align_ns, TCA_PSP_PAD))
		return -EMSGSIZE;
	if (opt->budget_bytes)
		return nla_put_u64_64bit(skb, TCA_PSP_BUDGET,
					 opt->budget_bytes, TCA_PSP_PAD);
	return nla_put_u32(skb, TCA_PSP_BUDGET_PERCENT, opt->budget_percent);
}

int psp_dump_options(struct Qdisc *sch, struct sk_buff *skb)
{
	const struct psp_qdisc *q = qdisc_priv(sch);
	const struct psp_options *opt = &q->opt;
	struct nlattr *nest = nla_nest_start(skb, TCA_OPTIONS);

	if (!nest)
		return -EMSGSIZE;
	if (nla_put_u32(skb, TCA_PSP_DEFAULT, opt->default_minor) ||
	    nla_put_u64_64bit(skb, TCA_PSP_LINE_RATE, opt->line_rate_bps,
			      TCA_PSP_PAD) ||
	    nla_put_u8(skb, TCA_PSP_MODE, opt->mode) ||
	    nla_put_u32(skb, TCA_PSP_OVERHEAD, opt->overhead_bytes) ||
	    nla_put_u8(skb, TCA_PSP_LAYER, opt->layer) ||
	    nla_put_u8(skb, TCA_PSP_ORDER, opt->order) ||
	    nla_put_u8(skb, TCA_PSP_GAP, opt->gap) ||
	    nla_put_u8(skb, TCA_PSP_GUARD, opt->guard) ||
	    nla_put_u8(skb, TCA_PSP_SPLIT_GSO, opt->split_gso) ||
	    psp_put_period(skb, opt)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}
