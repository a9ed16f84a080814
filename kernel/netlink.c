// SPDX-License-Identifier: GPL-2.0-only
/* Options and statistics on their way from and to user space. */
#include <net/gen_stats.h>
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
};

static const struct nla_policy psp_class_policy[TCA_PSP_CLASS_MAX + 1] = {
	[TCA_PSP_CLASS_PAD]	= { .type = NLA_REJECT },
	[TCA_PSP_CLASS_KIND]	= NLA_POLICY_MAX(NLA_U8,
						 __TC_PSP_KIND_MAX - 1),
	[TCA_PSP_CLASS_RATE]	= { .type = NLA_U64 },
	[TCA_PSP_CLASS_QUANTUM]	= { .type = NLA_U32 },
};

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
	return 0;
}

/* A rate makes a class paced unless its kind is named. */
static int psp_parse_kind(struct nlattr **tb, struct pace_class_config *cfg,
			  bool is_new, struct netlink_ext_ack *extack)
{
	if (tb[TCA_PSP_CLASS_KIND]) {
		cfg->kind = nla_get_u8(tb[TCA_PSP_CLASS_KIND]) ==
			    TC_PSP_KIND_PACED ? PACE_KIND_PACED
					      : PACE_KIND_NORMAL;
		return 0;
	}
	if (tb[TCA_PSP_CLASS_RATE]) {
		cfg->kind = PACE_KIND_PACED;
		return 0;
	}
	if (!is_new)
		return 0;
	psp_refuse(extack, "class without rate: expected rate RATE or mode normal");
	return -EINVAL;
}

/* Changes in *cfg what `attr` names; a new class has to name its kind. */
int psp_parse_class(struct nlattr *attr, struct pace_class_config *cfg,
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
	err = psp_parse_kind(tb, cfg, is_new, extack);
	if (err)
		return err;

	if (cfg->kind == PACE_KIND_PACED) {
		if (tb[TCA_PSP_CLASS_QUANTUM]) {
			psp_refuse(extack, "quantum: expected only with mode normal");
			return -EINVAL;
		}
		cfg->quantum_bytes = 0;
		if (tb[TCA_PSP_CLASS_RATE])
			cfg->rate_bps = nla_get_u64(tb[TCA_PSP_CLASS_RATE]);
		return 0;
	}

	if (tb[TCA_PSP_CLASS_RATE]) {
		psp_refuse(extack, "rate: expected only with mode paced");
		return -EINVAL;
	}
	cfg->rate_bps = 0;
	if (tb[TCA_PSP_CLASS_QUANTUM])
		cfg->quantum_bytes = nla_get_u32(tb[TCA_PSP_CLASS_QUANTUM]);
	return 0;
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
	    nla_put_u8(skb, TCA_PSP_GAP, opt->gap)) {
		nla_nest_cancel(skb, nest);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, nest);
}

int psp_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct tc_psp_qdisc_stats st = { .type = TC_PSP_STATS_QDISC };
	struct psp_qdisc *q = qdisc_priv(sch);

	sch_tree_lock(sch);
	st.mode = q->port.pace.mode == PACE_MODE_GAP ? TC_PSP_MODE_GAP
						     : TC_PSP_MODE_TIMER;
	st.line_rate_bps = q->port.pace.line_rate_bps;
	st.max_frame_bytes = q->port.pace.max_frame_bytes;
	st.line_known = q->port.line_known;
	st.sent_frames = q->pace.stats.sent_frames;
	st.sent_wire_bytes = q->pace.stats.sent_wire_bytes;
	st.gap_frames = q->pace.stats.gap_frames;
	st.gap_wire_bytes = q->pace.stats.gap_wire_bytes;
	st.early_bytes_max = q->pace.stats.early_bytes_max;
	st.late_bytes_max = q->pace.stats.late_bytes_max;
	st.shifts = q->pace.stats.shifts;
	st.shifted_bytes = q->pace.stats.shifted_bytes;
	st.unclassified_frames = q->count.unclassified_frames;
	st.drop_filter = q->count.drop_filter;
	st.drop_child = q->count.drop_child;
	st.drop_segment = q->count.drop_segment;
	st.drop_long = q->count.drop_long;
	st.gap_failed = q->count.gap_failed;
	st.child_retries = q->count.child_retries;
	sch_tree_unlock(sch);

	return gnet_stats_copy_app(d, &st, sizeof(st));
}

int psp_class_dump(struct Qdisc *sch, unsigned long arg, struct sk_buff *skb,
		   struct tcmsg *t)
{
	const struct psp_class *cl = (const struct psp_class *)arg;
	const struct psp_qdisc *q = qdisc_priv(sch);
	u32 quantum_bytes = cl->given.quantum_bytes ?:
			    q->port.pace.max_frame_bytes;
	struct nlattr *nest;
	u8 kind;

	t->tcm_parent = TC_H_ROOT;
	t->tcm_handle = cl->common.classid;
	t->tcm_info = cl->child->handle;

	nest = nla_nest_start(skb, TCA_OPTIONS);
	if (!nest)
		return -EMSGSIZE;
	kind = cl->given.kind == PACE_KIND_PACED ? TC_PSP_KIND_PACED
						 : TC_PSP_KIND_NORMAL;
	if (nla_put_u8(skb, TCA_PSP_CLASS_KIND, kind))
		goto full;
	if (kind == TC_PSP_KIND_PACED &&
	    nla_put_u64_64bit(skb, TCA_PSP_CLASS_RATE, cl->given.rate_bps,
			      TCA_PSP_CLASS_PAD))
		goto full;
	if (kind == TC_PSP_KIND_NORMAL &&
	    nla_put_u32(skb, TCA_PSP_CLASS_QUANTUM, quantum_bytes))
		goto full;
	return nla_nest_end(skb, nest);

full:
	nla_nest_cancel(skb, nest);
	return -EMSGSIZE;
}

int psp_class_dump_stats(struct Qdisc *sch, unsigned long arg,
			 struct gnet_dump *d)
{
	struct tc_psp_class_stats st = { .type = TC_PSP_STATS_CLASS };
	struct psp_class *cl = (struct psp_class *)arg;
	struct gnet_stats_queue queue = {};
	u32 qlen;

	sch_tree_lock(sch);
	qdisc_qstats_qlen_backlog(cl->child, &qlen, &queue.backlog);
	queue.drops = cl->drops;
	st.active = cl->pace.active;
	st.rate_bps = cl->pace.rate_bps;
	st.sent_frames = cl->sent_frames;
	sch_tree_unlock(sch);

	if (gnet_stats_copy_basic(d, NULL, &cl->bstats, true) < 0 ||
	    gnet_stats_copy_queue(d, NULL, &queue, qlen) < 0)
		return -1;
	return gnet_stats_copy_app(d, &st, sizeof(st));
}
