// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink: options of the qdisc and of classes, statistics, and extack texts
 * for each refusal.  The kernel keeps 79 characters of a text, which a test
 * checks: crates/lab/vmlab/tests/extack_texts.rs.
 */

/* Sets the text for an option of the whole port that core/ refused. */
static int psp_extack_port(struct netlink_ext_ack *extack, enum pace_error err,
			   const struct pace_config *cfg, u64 reserved_bytes,
			   const struct psp_class *cl)
{
	u32 id = cl ? cl->common.classid : 0;

	switch (err) {
	case PACE_ERR_LINE_RATE:
		psp_set_extack(extack, "line %llubit: expected %llubit to %llubit",
			       cfg->line_rate_bps, PACE_LINE_RATE_MIN,
			       PACE_LINE_RATE_MAX);
		return -ERANGE;
	case PACE_ERR_FRAME:
		psp_set_extack(extack, "MTU: frames of %u bytes: expected at most %u",
			       cfg->max_frame_bytes, PACE_FRAME_MAX);
		return -ERANGE;
	case PACE_ERR_OVERHEAD:
		psp_set_extack(extack, "overhead %u: expected 0 to %u",
			       cfg->overhead_bytes, TC_PSP_OVERHEAD_MAX);
		return -ERANGE;
	case PACE_ERR_CEIL:
		psp_set_extack(extack, "line %llubit: expected %llubit, the ceil of %x:%x",
			       cfg->line_rate_bps, cl ? cl->opt.ceil_bps : 0,
			       TC_H_MAJ(id) >> 16, TC_H_MIN(id));
		return -ERANGE;
	case PACE_ERR_RATE_LINE:
		psp_set_extack(extack, "line %llubit: expected class %x:%x's %llubit or more",
			       cfg->line_rate_bps, TC_H_MAJ(id) >> 16, TC_H_MIN(id),
			       cl ? cl->opt.rate_bps ?: cl->opt.ceil_bps : 0);
		return -ERANGE;
	case PACE_ERR_RATE_LOW:
		psp_set_extack(extack, "class %x:%x: rate %llubit: expected at least %llubit",
			       TC_H_MAJ(id) >> 16, TC_H_MIN(id),
			       cl ? cl->opt.rate_bps : 0, pace_least_rate_bps(cfg));
		return -ERANGE;
	case PACE_ERR_PERIOD:
		psp_set_extack(extack, "period %lluns: expected time for %u bytes at %llubit",
			       cfg->period_ns, cfg->max_frame_bytes,
			       cfg->line_rate_bps);
		return -ERANGE;
	case PACE_ERR_RESERVE:
	case PACE_ERR_RESERVED:
		psp_set_extack(extack, "budget %llu: expected the %llu bytes that classes reserve",
			       cfg->budget_bytes, reserved_bytes);
		return -ERANGE;
	case PACE_ERR_BUDGET:
		psp_set_extack(extack, "budget %llu: expected 1 to %llu bytes",
			       cfg->budget_bytes, PACE_BUDGET_MAX);
		return -ERANGE;
	default:
		psp_set_extack(extack, "configuration refused by the scheduler (%d)",
			       err);
		return -EINVAL;
	}
}

/*
 * Sets the text for an option of one class that core/ refused.  `above` is what carries
 * the class, "the line's " or "a group's ", and `cfg` has its rate.
 */
static int psp_extack_class(struct netlink_ext_ack *extack, enum pace_error err,
			    const struct pace_config *cfg,
			    const struct psp_class_options *opt, const char *above)
{
	switch (err) {
	case PACE_ERR_RATE_ZERO:
		psp_set_extack(extack, "rate 0bit: expected 1bit or more");
		return -ERANGE;
	case PACE_ERR_RATE_LINE:
		psp_set_extack(extack, "rate %llubit: expected at most %s%llubit",
			       opt->rate_bps, above, cfg->line_rate_bps);
		return -ERANGE;
	case PACE_ERR_RATE_LOW:
		psp_set_extack(extack, "rate %llubit: expected at least %llubit",
			       opt->rate_bps, pace_least_rate_bps(cfg));
		return -ERANGE;
	case PACE_ERR_CEIL:
		if (opt->ceil_bps < opt->rate_bps)
			psp_set_extack(extack, "ceil %llubit: expected at least the rate's %llubit",
				       opt->ceil_bps, opt->rate_bps);
		else
			psp_set_extack(extack, "ceil %llubit: expected at most %s%llubit",
				       opt->ceil_bps, above, cfg->line_rate_bps);
		return -ERANGE;
	case PACE_ERR_QUANTUM:
		psp_set_extack(extack, "quantum %u: expected %u to %u bytes",
			       opt->quantum_bytes, TC_PSP_QUANTUM_MIN,
			       TC_PSP_QUANTUM_MAX);
		return -ERANGE;
	case PACE_ERR_PERIOD:
	case PACE_ERR_BUDGET:
		return psp_extack_port(extack, err, cfg, 0, NULL);
	case PACE_ERR_RESERVE:
		psp_set_extack(extack, "reserve %llu: expected 1 to %llu bytes (budget)",
			       opt->reserve_bytes, cfg->budget_bytes);
		return -ERANGE;
	default:
		psp_set_extack(extack, "class refused by the scheduler (%d)", err);
		return -EINVAL;
	}
}

/* Sets the text for a reservation that does not fit beside the others. */
static int psp_extack_reserve(struct netlink_ext_ack *extack,
			      const struct psp_qdisc *q, const struct psp_class *cl,
			      u64 reserve_bytes)
{
	psp_set_extack(extack, "reserve %llu: others have %llu of budget %llu",
		       reserve_bytes, pace_reserved_bytes(&q->pace, &cl->pace),
		       q->pace.cfg.budget_bytes);
	return -ERANGE;
}

static int psp_extack_mode(struct netlink_ext_ack *extack, const char *mode,
			   const struct net_device *dev, enum tc_psp_why why)
{
	switch (why) {
	case TC_PSP_WHY_NOTHING:
		return 0;
	case TC_PSP_WHY_NO_RATE:
		psp_set_extack(extack, "mode %s on %s: link speed unknown, expected line RATE",
			       mode, dev->name);
		break;
	case TC_PSP_WHY_SHARED:
		psp_set_extack(extack, "mode %s on %s: expected one transmit queue, not %u",
			       mode, dev->name, dev->real_num_tx_queues);
		break;
	case TC_PSP_WHY_SOFTWARE:
		psp_set_extack(extack, "mode %s on %s: expected a wire, not a software device",
			       mode, dev->name);
		break;
	case TC_PSP_WHY_NO_QUEUE:
		psp_set_extack(extack, "mode %s on %s: expected a wire with a transmit queue",
			       mode, dev->name);
		break;
	default:
		psp_set_extack(extack, "mode %s on %s: expected a wire with Ethernet",
			       mode, dev->name);
		break;
	}
	return -EOPNOTSUPP;
}

/* Options of the qdisc. */

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
	[TCA_PSP_SHARED]	= NLA_POLICY_MAX(NLA_U8, 1),
};

/*
 * Reads and checks the options of periods; core/ checks some of them in bytes
 * only.
 */
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
		psp_set_extack(extack, "period %lluns: expected %uns to %uns",
			       opt->period_ns, TC_PSP_PERIOD_MIN,
			       TC_PSP_PERIOD_MAX);
		return -ERANGE;
	}
	if (opt->align_ns != TC_PSP_ALIGN_OFF &&
	    opt->align_ns >= opt->period_ns) {
		psp_set_extack(extack, "align %lluns: expected less than the period, %lluns",
			       opt->align_ns, opt->period_ns);
		return -ERANGE;
	}
	return 0;
}

/* Changes in *opt what `attr` names.  NULL names nothing. */
static int psp_parse_options(struct nlattr *attr, struct psp_options *opt,
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
			psp_set_extack(extack, "default %x: expected 0 to ffff",
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
	if (tb[TCA_PSP_SHARED])
		opt->shared = nla_get_u8(tb[TCA_PSP_SHARED]);
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

static int psp_dump_options(struct Qdisc *sch, struct sk_buff *skb)
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
	    (opt->shared && nla_put_u8(skb, TCA_PSP_SHARED, 1)) ||
	    psp_put_period(skb, opt)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

/* Options of a class. */

static const struct nla_policy psp_class_policy[TCA_PSP_CLASS_MAX + 1] = {
	[TCA_PSP_CLASS_PAD]	= { .type = NLA_REJECT },
	[TCA_PSP_CLASS_TYPE]	= NLA_POLICY_MAX(NLA_U8,
						 __TC_PSP_TYPE_MAX - 1),
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
	[TCA_PSP_CLASS_TXTIME]	= NLA_POLICY_MAX(NLA_U8,
						 __TC_PSP_TXTIME_MAX - 1),
	[TCA_PSP_CLASS_TXTIME_DEADLINE] = NLA_POLICY_MAX(NLA_U8, 1),
	[TCA_PSP_CLASS_TXTIME_LATE] = { .type = NLA_U64 },
	[TCA_PSP_CLASS_TOTAL]	= { .type = NLA_U64 },
};

/* The types of class that have an option. */
static const struct {
	int attr;
	const char *name;
	const char *with;
	u8 types;
} psp_class_knows[] = {
	{ TCA_PSP_CLASS_RATE, "rate", "mode paced, dynamic or group",
	  BIT(TC_PSP_TYPE_PACED) | BIT(TC_PSP_TYPE_DYNAMIC) | BIT(TC_PSP_TYPE_GROUP) },
	{ TCA_PSP_CLASS_CEIL, "ceil", "mode paced, dynamic or group",
	  BIT(TC_PSP_TYPE_PACED) | BIT(TC_PSP_TYPE_DYNAMIC) | BIT(TC_PSP_TYPE_GROUP) },
	{ TCA_PSP_CLASS_DEADLINE, "deadline", "a mode other than group",
	  (u8)~BIT(TC_PSP_TYPE_GROUP) },
	{ TCA_PSP_CLASS_TOTAL, "total", "mode dynamic",
	  BIT(TC_PSP_TYPE_DYNAMIC) },
	{ TCA_PSP_CLASS_QUANTUM, "quantum", "mode normal",
	  BIT(TC_PSP_TYPE_NORMAL) },
	{ TCA_PSP_CLASS_FLOOR, "floor", "mode dynamic",
	  BIT(TC_PSP_TYPE_DYNAMIC) },
	{ TCA_PSP_CLASS_FLOWS, "flows", "mode dynamic",
	  BIT(TC_PSP_TYPE_DYNAMIC) },
	{ TCA_PSP_CLASS_LIMIT, "limit", "mode dynamic",
	  BIT(TC_PSP_TYPE_DYNAMIC) },
	{ TCA_PSP_CLASS_FLOW_LIMIT, "flow-limit", "mode dynamic",
	  BIT(TC_PSP_TYPE_DYNAMIC) },
	{ TCA_PSP_CLASS_HORIZON, "horizon", "mode dynamic or txtime",
	  BIT(TC_PSP_TYPE_DYNAMIC) | BIT(TC_PSP_TYPE_PACED) },
	{ TCA_PSP_CLASS_TXTIME, "txtime", "mode paced",
	  BIT(TC_PSP_TYPE_PACED) },
	{ TCA_PSP_CLASS_TXTIME_DEADLINE, "txtime-deadline", "mode paced",
	  BIT(TC_PSP_TYPE_PACED) },
	{ TCA_PSP_CLASS_TXTIME_LATE, "txtime-late", "mode paced",
	  BIT(TC_PSP_TYPE_PACED) },
	{ TCA_PSP_CLASS_PACING_FLOOR, "pacing-floor", "mode dynamic",
	  BIT(TC_PSP_TYPE_DYNAMIC) },
	{ TCA_PSP_CLASS_RESERVE, "reserve", "mode rt or nrt",
	  BIT(TC_PSP_TYPE_RT) | BIT(TC_PSP_TYPE_NRT) },
};

/* A rate makes a class paced, unless its type is named. */
static int psp_parse_type(struct nlattr **tb, struct psp_class_options *opt,
			  bool is_new, struct netlink_ext_ack *extack)
{
	if (tb[TCA_PSP_CLASS_TYPE]) {
		opt->type = nla_get_u8(tb[TCA_PSP_CLASS_TYPE]);
		return 0;
	}
	if (tb[TCA_PSP_CLASS_RATE]) {
		if (is_new || opt->type == TC_PSP_TYPE_NORMAL)
			opt->type = TC_PSP_TYPE_PACED;
		return 0;
	}
	if (!is_new)
		return 0;
	psp_set_extack(extack, "class without rate: expected rate RATE or mode normal");
	return -EINVAL;
}

static int psp_check_known(struct nlattr **tb, u8 type,
			   struct netlink_ext_ack *extack)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(psp_class_knows); i++) {
		if (!tb[psp_class_knows[i].attr] ||
		    psp_class_knows[i].types & BIT(type))
			continue;
		psp_set_extack(extack, "%s: expected only with %s",
			       psp_class_knows[i].name, psp_class_knows[i].with);
		return -EINVAL;
	}
	return 0;
}

/* Clears the options that the new type of the class does not have. */
static void psp_forget_unknown(struct psp_class_options *opt)
{
	if (opt->type != TC_PSP_TYPE_NORMAL)
		opt->quantum_bytes = 0;
	if (opt->type != TC_PSP_TYPE_PACED && opt->type != TC_PSP_TYPE_DYNAMIC &&
	    opt->type != TC_PSP_TYPE_GROUP) {
		opt->rate_bps = 0;
		opt->ceil_bps = 0;
	}
	if (!psp_type_reserves(opt->type))
		opt->reserve_bytes = 0;
	if (opt->type != TC_PSP_TYPE_DYNAMIC) {
		opt->floor_bps = 0;
		opt->total_bps = 0;
		opt->flows = 0;
		opt->limit = 0;
		opt->flow_limit = 0;
		opt->pacing_floor_bps = 0;
	}
	if (opt->type != TC_PSP_TYPE_PACED) {
		opt->txtime = TC_PSP_TXTIME_OFF;
		opt->txtime_deadline = false;
		opt->txtime_late_ns = 0;
	}
	if (opt->type != TC_PSP_TYPE_DYNAMIC && !opt->txtime)
		opt->horizon_ns = 0;
}

static int psp_check_limit(const char *name, u32 limit,
			   struct netlink_ext_ack *extack)
{
	if (limit <= TC_PSP_LIMIT_MAX)
		return 0;
	psp_set_extack(extack, "%s %u: expected 1 to %u frames", name, limit,
		       TC_PSP_LIMIT_MAX);
	return -ERANGE;
}

static int psp_check_horizon(struct psp_class_options *opt,
			     struct netlink_ext_ack *extack)
{
	opt->horizon_ns = opt->horizon_ns ?: PSP_HORIZON_DEFAULT;
	if (opt->horizon_ns >= TC_PSP_HORIZON_MIN &&
	    opt->horizon_ns <= TC_PSP_HORIZON_MAX)
		return 0;
	psp_set_extack(extack, "horizon %lluns: expected %lluns to %lluns",
		       opt->horizon_ns, TC_PSP_HORIZON_MIN, TC_PSP_HORIZON_MAX);
	return -ERANGE;
}

/* Fills in and checks the bounds of flows. */
static int psp_check_bounds(struct psp_class_options *opt,
			    struct netlink_ext_ack *extack)
{
	int err = psp_check_horizon(opt, extack);

	if (err)
		return err;
	opt->limit = opt->limit ?: PSP_LIMIT_DEFAULT;
	opt->flow_limit = opt->flow_limit ?: PSP_FLOW_LIMIT_DEFAULT;
	if (opt->ceil_bps && opt->pacing_floor_bps > opt->ceil_bps) {
		psp_set_extack(extack, "pacing-floor %llubit: expected at most the ceil",
			       opt->pacing_floor_bps);
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
		psp_set_extack(extack, "flows %u: expected 1 to %u", opt->flows,
			       PSP_FLOWS_MAX);
		return -ERANGE;
	}
	if (opt->total_bps && opt->rate_bps > opt->total_bps) {
		psp_set_extack(extack, "rate %llubit: expected at most the total",
			       opt->rate_bps);
		return -ERANGE;
	}
	if (opt->total_bps && opt->total_bps < PACE_LINE_RATE_MIN) {
		psp_set_extack(extack, "total %llubit: expected at least %llubit",
			       opt->total_bps, PACE_LINE_RATE_MIN);
		return -ERANGE;
	}
	if (opt->ceil_bps && opt->floor_bps > opt->ceil_bps) {
		psp_set_extack(extack, "floor %llubit: expected at most the ceil",
			       opt->floor_bps);
		return -ERANGE;
	}
	return psp_check_bounds(opt, extack);
}

/* Reads the bounds of flows. */
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

/* Reads and checks the options of launch times. */
static int psp_parse_txtime(struct nlattr **tb, struct psp_class_options *opt,
			    struct netlink_ext_ack *extack)
{
	if (tb[TCA_PSP_CLASS_TXTIME])
		opt->txtime = nla_get_u8(tb[TCA_PSP_CLASS_TXTIME]);
	if (!opt->txtime) {
		const char *alone = tb[TCA_PSP_CLASS_TXTIME_DEADLINE] ? "txtime-deadline" :
				    tb[TCA_PSP_CLASS_TXTIME_LATE] ? "txtime-late" :
				    tb[TCA_PSP_CLASS_HORIZON] ? "horizon" : NULL;

		opt->txtime_deadline = false;
		opt->txtime_late_ns = 0;
		opt->horizon_ns = 0;
		if (!alone)
			return 0;
		psp_set_extack(extack, "%s: expected only with txtime, in mode paced",
			       alone);
		return -EINVAL;
	}
	if (tb[TCA_PSP_CLASS_TXTIME_DEADLINE])
		opt->txtime_deadline =
			nla_get_u8(tb[TCA_PSP_CLASS_TXTIME_DEADLINE]);
	if (tb[TCA_PSP_CLASS_TXTIME_LATE])
		opt->txtime_late_ns = nla_get_u64(tb[TCA_PSP_CLASS_TXTIME_LATE]);
	if (opt->txtime_late_ns > TC_PSP_TXTIME_LATE_MAX) {
		psp_set_extack(extack, "txtime-late %lluns: expected at most %lluns",
			       opt->txtime_late_ns, TC_PSP_TXTIME_LATE_MAX);
		return -ERANGE;
	}
	if (opt->deadline_ns) {
		psp_set_extack(extack, "deadline: expected none with txtime, but txtime-late");
		return -EINVAL;
	}
	return psp_check_horizon(opt, extack);
}

/*
 * Changes in *opt what `attr` names.  A new class has to name its type or a
 * rate.
 */
static int psp_parse_class(struct nlattr *attr, struct psp_class_options *opt,
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
	err = psp_parse_type(tb, opt, is_new, extack);
	if (err)
		return err;
	err = psp_check_known(tb, opt->type, extack);
	if (err)
		return err;

	psp_forget_unknown(opt);
	if (tb[TCA_PSP_CLASS_RATE])
		opt->rate_bps = nla_get_u64(tb[TCA_PSP_CLASS_RATE]);
	if (tb[TCA_PSP_CLASS_CEIL])
		opt->ceil_bps = nla_get_u64(tb[TCA_PSP_CLASS_CEIL]);
	if (tb[TCA_PSP_CLASS_TOTAL])
		opt->total_bps = nla_get_u64(tb[TCA_PSP_CLASS_TOTAL]);
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
	if (opt->type == TC_PSP_TYPE_DYNAMIC)
		return psp_check_dynamic(opt, extack);
	if (opt->type == TC_PSP_TYPE_PACED)
		return psp_parse_txtime(tb, opt, extack);
	return 0;
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

static int psp_put_txtime(struct sk_buff *skb,
			  const struct psp_class_options *opt)
{
	if (nla_put_u8(skb, TCA_PSP_CLASS_TXTIME, opt->txtime) ||
	    nla_put_u8(skb, TCA_PSP_CLASS_TXTIME_DEADLINE,
		       opt->txtime_deadline) ||
	    psp_put_u64(skb, TCA_PSP_CLASS_HORIZON, opt->horizon_ns) ||
	    (opt->txtime_late_ns &&
	     psp_put_u64(skb, TCA_PSP_CLASS_TXTIME_LATE, opt->txtime_late_ns)))
		return -EMSGSIZE;
	return 0;
}

/*
 * Dumps the options that were given, and the defaults of quantum, horizon and
 * limits.
 */
static int psp_put_class(struct sk_buff *skb, const struct psp_qdisc *q,
			 const struct psp_class_options *opt)
{
	u32 quantum_bytes = opt->quantum_bytes ?: q->pace.cfg.max_frame_bytes;

	if (nla_put_u8(skb, TCA_PSP_CLASS_TYPE, opt->type))
		return -EMSGSIZE;
	if (opt->type == TC_PSP_TYPE_NORMAL &&
	    nla_put_u32(skb, TCA_PSP_CLASS_QUANTUM, quantum_bytes))
		return -EMSGSIZE;
	if ((opt->rate_bps &&
	     psp_put_u64(skb, TCA_PSP_CLASS_RATE, opt->rate_bps)) ||
	    (opt->ceil_bps &&
	     psp_put_u64(skb, TCA_PSP_CLASS_CEIL, opt->ceil_bps)) ||
	    (opt->total_bps &&
	     psp_put_u64(skb, TCA_PSP_CLASS_TOTAL, opt->total_bps)) ||
	    (opt->floor_bps &&
	     psp_put_u64(skb, TCA_PSP_CLASS_FLOOR, opt->floor_bps)) ||
	    (opt->flows &&
	     nla_put_u32(skb, TCA_PSP_CLASS_FLOWS, opt->flows)) ||
	    (opt->deadline_ns &&
	     psp_put_u64(skb, TCA_PSP_CLASS_DEADLINE, opt->deadline_ns)) ||
	    (opt->reserve_bytes &&
	     psp_put_u64(skb, TCA_PSP_CLASS_RESERVE, opt->reserve_bytes)))
		return -EMSGSIZE;
	if (opt->txtime)
		return psp_put_txtime(skb, opt);
	return opt->type == TC_PSP_TYPE_DYNAMIC ? psp_put_bounds(skb, opt) : 0;
}

static int psp_class_dump(struct Qdisc *sch, unsigned long arg, struct sk_buff *skb,
			  struct tcmsg *t)
{
	const struct psp_class *cl = (const struct psp_class *)arg;
	struct nlattr *nest;

	t->tcm_parent = cl->group && !psp_owns_group(cl) ?
			cl->group->owner->common.classid : TC_H_ROOT;
	t->tcm_handle = cl->common.classid;
	t->tcm_info = cl->child ? cl->child->handle : 0;

	nest = nla_nest_start(skb, TCA_OPTIONS);
	if (!nest)
		return -EMSGSIZE;
	if (psp_put_class(skb, qdisc_priv(sch), &cl->opt)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

/* Statistics. */

static u32 psp_mode_in_force(enum pace_mode mode)
{
	switch (mode) {
	case PACE_MODE_GAP:
		return TC_PSP_MODE_GAP;
	case PACE_MODE_HYBRID:
		return TC_PSP_MODE_HYBRID;
	case PACE_MODE_TIMER:
	default:
		return TC_PSP_MODE_TIMER;
	}
}

/* What the table of statistics says where a member is copied from. */
#define PSP_COPY_count(member)	.member = count->member,
#define PSP_COPY_drops(member)	.member = count->drops.member,
#define PSP_COPY_pace(member)	.member = pace->member,
#define PSP_COPY_other(member)

static struct tc_psp_qdisc_stats
psp_copy_qdisc_stats(const struct psp_counters *count,
		     const struct pace_stats *pace)
{
	return (struct tc_psp_qdisc_stats){
		.type = TC_PSP_STATS_QDISC,
#define PSP_QDISC_STAT(member, key, unit, metric, total, shown, source, meaning) \
		PSP_COPY_##source(member)
#include "../uapi/sch_psp_stats.h"
	};
}

static struct tc_psp_class_stats
psp_copy_class_stats(const struct psp_class_counters *count)
{
	return (struct tc_psp_class_stats){
		.type = TC_PSP_STATS_CLASS,
#define PSP_CLASS_STAT(member, key, unit, metric, total, shown, source, meaning) \
		PSP_COPY_##source(member)
#include "../uapi/sch_psp_stats.h"
	};
}

static void psp_fill_line(struct tc_psp_qdisc_stats *st,
			  const struct psp_qdisc *q)
{
	st->mode = psp_mode_in_force(q->pace.cfg.mode);
	st->line_rate_bps = q->pace.cfg.line_rate_bps;
	st->max_frame_bytes = q->pace.cfg.max_frame_bytes;
	st->line_known = q->line.line_known;
	st->why_not_hybrid = q->line.why_not_hybrid;
	st->queues = q->line.queues;
}

/* What the core counts in time, in bytes of the line. */
static void psp_fill_clocks(struct tc_psp_qdisc_stats *st,
			    const struct psp_qdisc *q)
{
	const struct pace_stats *pace = &q->pace.stats;

	st->early_bytes_max = psp_line_bytes(q, pace->early_max_ps);
	st->late_bytes_max = psp_line_bytes(q, pace->late_max_ps);
	st->rebased_bytes = psp_line_bytes(q, pace->rebased_ps);
}

static void psp_fill_watch(struct tc_psp_qdisc_stats *st,
			   const struct psp_line_watch *watch)
{
	st->line_measured_bps = watch->measured_bps;
	st->wire_stops = watch->stops;
	st->wire_stop_max_ns = watch->stop_max_ns;
}

static void psp_fill_periods(struct tc_psp_qdisc_stats *st,
			     const struct pace_sched *pace)
{
	st->period_ns = pace->period.classes ? pace->cfg.period_ns : 0;
	st->budget_bytes = pace->cfg.budget_bytes;
	st->reserved_bytes = pace_reserved_bytes(pace, NULL);
}

/* Not inlined: two copies of the statistics are too much of a 32-bit stack. */
static noinline void psp_fill_qdisc(struct tc_psp_qdisc_stats *st,
				    struct psp_qdisc *q)
{
	*st = psp_copy_qdisc_stats(&q->count, &q->pace.stats);
	psp_fill_line(st, q);
	psp_fill_clocks(st, q);
	psp_fill_periods(st, &q->pace);
	psp_fill_watch(st, &q->watch);
}

static int psp_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct tc_psp_qdisc_stats st;

	sch_tree_lock(sch);
	psp_fill_qdisc(&st, q);
	sch_tree_unlock(sch);

	return gnet_stats_copy_app(d, &st, sizeof(st));
}

/* Not inlined, as above. */
static noinline void psp_fill_class(struct tc_psp_class_stats *st,
				    const struct psp_qdisc *q,
				    const struct psp_class *cl)
{
	unsigned int i;

	*st = psp_copy_class_stats(&cl->count);
	st->active = cl->pace.active || (cl->flows && cl->flows->active);
	if (cl->pace.type == PACE_TYPE_PACED) {
		st->rate_bps = cl->pace.rate_bps;
		st->ceil_bps = psp_class_ceil_bps(q, cl);
	}
	if (cl->opt.type == TC_PSP_TYPE_GROUP) {
		st->active = cl->group->node.pace.active;
		st->rate_bps = cl->group->node.pace.rate_bps;
		st->ceil_bps = cl->group->node.pace.ceil_bps ?: st->rate_bps;
	}
	if (cl->pace.reservation) {
		st->reserve_bytes = cl->reservation->reserve_bytes;
		st->over = cl->reservation->over;
		st->deferred = cl->reservation->deferred;
		st->overrun = cl->reservation->overrun;
		st->rt_catchup_bytes = cl->reservation->catchup_bytes;
		st->excess = cl->reservation->excess;
	}
	for (i = 0; cl->lateness && i < TC_PSP_LATE_BUCKETS; i++)
		st->late_frames[i] =
			psp_lateness_frames(&cl->count, cl->lateness, i);
}
