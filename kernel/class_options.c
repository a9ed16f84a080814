// SPDX-License-Identifier: GPL-2.0-only
/* Options of a class on their way from and to user space. */
#include <net/netlink.h>

#include "psp.h"

static const struct nla_policy psp_class_policy[TCA_PSP_CLASS_MAX + 1] = {
	[TCA_PSP_CLASS_PAD]	= { .type = NLA_REJECT },
	[TCA_PSP_CLASS_KIND]	= NLA_POLICY_MAX(NLA_U8,
						 __TC_PSP_KIND_MAX - 1),
	[TCA_PSP_CLASS_RATE]	= { .type = NLA_U64 },
	[TCA_PSP_CLASS_QUANTUM]	= { .type = NLA_U32 },
	[TCA_PSP_CLASS_CEIL]	= { .type = NLA_U64 },
	[TCA_PSP_CLASS_FLOOR]	= { .type = NLA_U64 },
	[TCA_PSP_CLASS_FLOWS]	= { .type = NLA_U32 },
	[TCA_PSP_CLASS_DEADLINE] = { .type = NLA_U64 },
	[TCA_PSP_CLASS_RESERVE]	= { .type = NLA_U64 },
	[TCA_PSP_CLASS_LIMIT]	= { .type = NLA_U32 },
	[TCA_PSP_CLASS_FLOW_LIMIT] = { .type = NLA_U32 },
	[TCA_PSP_CLASS_HORIZON]	= { .type = NLA_U64 },
	[TCA_PSP_CLASS_PACING_FLOOR] = { .type = NLA_U64 },
};

/* The kinds of class that know an option; deadline: all. */
static const struct {
	int attr;
	const char *name;
	const char *with;
	u8 kinds;
} psp_class_knows[] = {
	{ TCA_PSP_CLASS_RATE, "rate", "mode paced or dynamic",
	  BIT(TC_PSP_KIND_PACED) | BIT(TC_PSP_KIND_DYNAMIC) },
	{ TCA_PSP_CLASS_CEIL, "ceil", "mode paced or dynamic",
	  BIT(TC_PSP_KIND_PACED) | BIT(TC_PSP_KIND_DYNAMIC) },
	{ TCA_PSP_CLASS_QUANTUM, "quantum", "mode normal",
	  BIT(TC_PSP_KIND_NORMAL) },
	{ TCA_PSP_CLASS_FLOOR, "floor", "mode dynamic",
	  BIT(TC_PSP_KIND_DYNAMIC) },
	{ TCA_PSP_CLASS_FLOWS, "flows", "mode dynamic",
	  BIT(TC_PSP_KIND_DYNAMIC) },
	{ TCA_PSP_CLASS_LIMIT, "limit", "mode dynamic",
	  BIT(TC_PSP_KIND_DYNAMIC) },
	{ TCA_PSP_CLASS_FLOW_LIMIT, "flow-limit", "mode dynamic",
	  BIT(TC_PSP_KIND_DYNAMIC) },
	{ TCA_PSP_CLASS_HORIZON, "horizon", "mode dynamic",
	  BIT(TC_PSP_KIND_DYNAMIC) },
	{ TCA_PSP_CLASS_PACING_FLOOR, "pacing-floor", "mode dynamic",
	  BIT(TC_PSP_KIND_DYNAMIC) },
	{ TCA_PSP_CLASS_RESERVE, "reserve", "mode rt or nrt",
	  BIT(TC_PSP_KIND_RT) | BIT(TC_PSP_KIND_NRT) },
};

/* A rate makes a class paced unless its kind is named. */
static int psp_parse_kind(struct nlattr **tb, struct psp_class_options *opt,
			  bool is_new, struct netlink_ext_ack *extack)
{
	if (tb[TCA_PSP_CLASS_KIND]) {
		opt->kind = nla_get_u8(tb[TCA_PSP_CLASS_KIND]);
		return 0;
	}
	if (tb[TCA_PSP_CLASS_RATE]) {
		if (is_new || opt->kind == TC_PSP_KIND_NORMAL)
			opt->kind = TC_PSP_KIND_PACED;
		return 0;
	}
	if (!is_new)
		return 0;
	psp_refuse(extack, "class without rate: expected rate RATE or mode normal");
	return -EINVAL;
}

static int psp_check_known(struct nlattr **tb, u8 kind,
			   struct netlink_ext_ack *extack)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(psp_class_knows); i++) {
		if (!tb[psp_class_knows[i].attr] ||
		    psp_class_knows[i].kinds & BIT(kind))
			continue;
		psp_refuse(extack, "%s: expected only with %s",
			   psp_class_knows[i].name, psp_class_knows[i].with);
		return -EINVAL;
	}
	return 0;
}

/* What another kind of class knew is forgotten. */
static void psp_forget_unknown(struct psp_class_options *opt)
{
	if (opt->kind != TC_PSP_KIND_NORMAL)
		opt->quantum_bytes = 0;
	if (opt->kind != TC_PSP_KIND_PACED &&
	    opt->kind != TC_PSP_KIND_DYNAMIC) {
		opt->rate_bps = 0;
		opt->ceil_bps = 0;
	}
	if (!psp_kind_has_stream(opt->kind))
		opt->reserve_bytes = 0;
	if (opt->kind != TC_PSP_KIND_DYNAMIC) {
		opt->floor_bps = 0;
		opt->flows = 0;
		opt->limit = 0;
		opt->flow_limit = 0;
		opt->horizon_ns = 0;
		opt->pacing_floor_bps = 0;
	}
}

static int psp_check_limit(const char *name, u32 limit,
			   struct netlink_ext_ack *extack)
{
	if (limit <= TC_PSP_LIMIT_MAX)
		return 0;
	psp_refuse(extack, "%s %u: expected 1 to %u frames", name, limit,
		   TC_PSP_LIMIT_MAX);
	return -ERANGE;
}

/* What bounds the frames of flows. */
static int psp_check_bounds(struct psp_class_options *opt,
			    struct netlink_ext_ack *extack)
{
	opt->limit = opt->limit ?: PSP_LIMIT_DEFAULT;
	opt->flow_limit = opt->flow_limit ?: PSP_FLOW_LIMIT_DEFAULT;
	opt->horizon_ns = opt->horizon_ns ?: PSP_HORIZON_DEFAULT;
	if (opt->horizon_ns < TC_PSP_HORIZON_MIN ||
	    opt->horizon_ns > TC_PSP_HORIZON_MAX) {
		psp_refuse(extack, "horizon %lluns: expected %lluns to %lluns",
			   opt->horizon_ns, TC_PSP_HORIZON_MIN,
			   TC_PSP_HORIZON_MAX);
		return -ERANGE;
	}
	if (opt->ceil_bps && opt->pacing_floor_bps > opt->ceil_bps) {
		psp_refuse(extack, "pacing-floor %llubit: expected at most the ceil's %llubit",
			   opt->pacing_floor_bps, opt->ceil_bps);
		return -ERANGE;
	}
	return psp_check_limit("limit", opt->limit, extack) ?:
	       psp_check_limit("flow-limit", opt->flow_limit, extack);
}

static int psp_check_dynamic(struct psp_class_options *opt,
			     struct netlink_ext_ack *extack)
{
	if (!opt->flows)
		opt->flows = PSP_FLOWS_DEFAULT;
	if (opt->flows > PSP_FLOWS_MAX) {
		psp_refuse(extack, "flows %u: expected 1 to %u", opt->flows,
			   PSP_FLOWS_MAX);
		return -ERANGE;
	}
	if (opt->ceil_bps && opt->floor_bps > opt->ceil_bps) {
		psp_refuse(extack, "floor %llubit: expected at most the ceil's %llubit",
			   opt->floor_bps, opt->ceil_bps);
		return -ERANGE;
	}
	return psp_check_bounds(opt, extack);
}

/* Of flows. */
static void psp_parse_bounds(struct nlattr **tb, struct psp_class_options *opt)
{
	if (tb[TCA_PSP_CLASS_LIMIT])
		opt->limit = nla_get_u32(tb[TCA_PSP_CLASS_LIMIT]);
	if (tb[TCA_PSP_CLASS_FLOW_LIMIT])
		opt->flow_limit = nla_get_u32(tb[TCA_PSP_CLASS_FLOW_LIMIT]);
	if (tb[TCA_PSP_CLASS_HORIZON])
		opt->horizon_ns = nla_get_u64(tb[TCA_PSP_CLASS_HORIZON]);
	if (tb[TCA_PSP_CLASS_PACING_FLOOR])
		opt->pacing_floor_bps =
			nla_get_u64(tb[TCA_PSP_CLASS_PACING_FLOOR]);
}

/* Changes in *opt what `attr` names; a new class has to name its kind. */
int psp_parse_class(struct nlattr *attr, struct psp_class_options *opt,
		    bool is_new, struct netlink_ext_ack *extack)
{
	struct nlattr *tb[TCA_PSP_CLASS_MAX + 1] = {};
	int err;

	if (attr) {
		err = nla_parse_nested(tb, TCA_PSP_CLASS_MAX, attr,
				       psp_class_policy, extack);
		if (err)
			return err;
	}
	err = psp_parse_kind(tb, opt, is_new, extack);
	if (err)
		return err;
	err = psp_check_known(tb, opt->kind, extack);
	if (err)
		return err;

	psp_forget_unknown(opt);
	if (tb[TCA_PSP_CLASS_RATE])
		opt->rate_bps = nla_get_u64(tb[TCA_PSP_CLASS_RATE]);
	if (tb[TCA_PSP_CLASS_CEIL])
		opt->ceil_bps = nla_get_u64(tb[TCA_PSP_CLASS_CEIL]);
	if (tb[TCA_PSP_CLASS_FLOOR])
		opt->floor_bps = nla_get_u64(tb[TCA_PSP_CLASS_FLOOR]);
	if (tb[TCA_PSP_CLASS_FLOWS])
		opt->flows = nla_get_u32(tb[TCA_PSP_CLASS_FLOWS]);
	if (tb[TCA_PSP_CLASS_QUANTUM])
		opt->quantum_bytes = nla_get_u32(tb[TCA_PSP_CLASS_QUANTUM]);
	if (tb[TCA_PSP_CLASS_DEADLINE])
		opt->deadline_ns = nla_get_u64(tb[TCA_PSP_CLASS_DEADLINE]);
	if (tb[TCA_PSP_CLASS_RESERVE])
		opt->reserve_bytes = nla_get_u64(tb[TCA_PSP_CLASS_RESERVE]);
	psp_parse_bounds(tb, opt);
	return opt->kind == TC_PSP_KIND_DYNAMIC ? psp_check_dynamic(opt, extack)
						: 0;
}

static int psp_put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, TCA_PSP_CLASS_PAD);
}

static int psp_put_bounds(struct sk_buff *skb,
			  const struct psp_class_options *opt)
{
	if (nla_put_u32(skb, TCA_PSP_CLASS_LIMIT, opt->limit) ||
	    nla_put_u32(skb, TCA_PSP_CLASS_FLOW_LIMIT, opt->flow_limit) ||
	    psp_put_u64(skb, TCA_PSP_CLASS_HORIZON, opt->horizon_ns) ||
	    (opt->pacing_floor_bps &&
	     psp_put_u64(skb, TCA_PSP_CLASS_PACING_FLOOR,
			 opt->pacing_floor_bps)))
		return -EMSGSIZE;
	return 0;
}

/* What was not given is not shown, but for quantum, horizon and limits. */
static int psp_put_class(struct sk_buff *skb, const struct psp_qdisc *q,
			 const struct psp_class_options *opt)
{
	u32 quantum_bytes = opt->quantum_bytes ?: q->port.pace.max_frame_bytes;

	if (nla_put_u8(skb, TCA_PSP_CLASS_KIND, opt->kind))
		return -EMSGSIZE;
	if (opt->kind == TC_PSP_KIND_NORMAL &&
	    nla_put_u32(skb, TCA_PSP_CLASS_QUANTUM, quantum_bytes))
		return -EMSGSIZE;
	if ((opt->rate_bps &&
	     psp_put_u64(skb, TCA_PSP_CLASS_RATE, opt->rate_bps)) ||
	    (opt->ceil_bps &&
	     psp_put_u64(skb, TCA_PSP_CLASS_CEIL, opt->ceil_bps)) ||
	    (opt->floor_bps &&
	     psp_put_u64(skb, TCA_PSP_CLASS_FLOOR, opt->floor_bps)) ||
	    (opt->flows &&
	     nla_put_u32(skb, TCA_PSP_CLASS_FLOWS, opt->flows)) ||
	    (opt->deadline_ns &&
	     psp_put_u64(skb, TCA_PSP_CLASS_DEADLINE, opt->deadline_ns)) ||
	    (opt->reserve_bytes &&
	     psp_put_u64(skb, TCA_PSP_CLASS_RESERVE, opt->reserve_bytes)))
		return -EMSGSIZE;
	return opt->kind == TC_PSP_KIND_DYNAMIC ? psp_put_bounds(skb, opt) : 0;
}

int psp_class_dump(struct Qdisc *sch, unsigned long arg, struct sk_buff *skb,
		   struct tcmsg *t)
{
	const struct psp_class *cl = (const struct psp_class *)arg;
	struct nlattr *nest;

	t->tcm_parent = TC_H_ROOT;
	t->tcm_handle = cl->common.classid;
	t->tcm_info = cl->child->handle;

	nest = nla_nest_start(skb, TCA_OPTIONS);
	if (!nest)
		return -EMSGSIZE;
	if (psp_put_class(skb, qdisc_priv(sch), &cl->opt)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}
