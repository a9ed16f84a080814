// SPDX-License-Identifier: GPL-2.0-only
/* What tc asks of classes: they are flat, each with one child qdisc. */
#include <linux/rtnetlink.h>

#include "psp.h"

static int psp_change_class(struct Qdisc *sch, u32 classid, u32 parentid,
			    struct nlattr **tca, unsigned long *arg,
			    struct netlink_ext_ack *extack)
{
	struct psp_class *cl = (struct psp_class *)*arg;
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_class_options opt = {};
	int err;

	if (parentid != TC_H_ROOT && parentid != sch->handle) {
		psp_refuse(extack, "parent %x:%x: expected %x:, classes are flat",
			   TC_H_MAJ(parentid) >> 16, TC_H_MIN(parentid),
			   sch->handle >> 16);
		return -EINVAL;
	}
	if (!TC_H_MIN(classid)) {
		psp_refuse(extack, "classid %x:0: expected %x:1 to %x:ffff",
			   sch->handle >> 16, sch->handle >> 16,
			   sch->handle >> 16);
		return -EINVAL;
	}
	if (tca[TCA_RATE]) {
		psp_refuse(extack, "estimator: expected none on a class");
		return -EOPNOTSUPP;
	}

	if (cl)
		opt = cl->opt;
	err = psp_parse_class(tca[TCA_OPTIONS], &opt, !cl, extack);
	if (err)
		return err;
	if (cl)
		return psp_class_reconfigure(q, cl, &opt, extack);
	err = psp_class_new(q, classid, &opt, &cl, extack);
	if (!err)
		*arg = (unsigned long)cl;
	return err;
}

/*
 * A class with frames waiting may go, and they with it, as in the other
 * qdiscs; one that filters name may not.
 */
static int psp_delete_class(struct Qdisc *sch, unsigned long arg,
			    struct netlink_ext_ack *extack)
{
	struct psp_class *cl = (struct psp_class *)arg;
	struct psp_qdisc *q = qdisc_priv(sch);

	if (cl->filters) {
		psp_refuse(extack, "class %x:%x: %u filters name it, expected none",
			   TC_H_MAJ(cl->common.classid) >> 16,
			   TC_H_MIN(cl->common.classid), cl->filters);
		return -EBUSY;
	}

	psp_class_delete(q, cl);
	return 0;
}

static int psp_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
		     struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct psp_class *cl = (struct psp_class *)arg;
	struct psp_qdisc *q = qdisc_priv(sch);

	if (!new) {
		new = psp_default_child(q, cl->common.classid, extack);
		if (!new)
			return -ENOMEM;
	}
	*old = qdisc_replace(sch, new, &cl->child);

	sch_tree_lock(sch);
	psp_drop_head(q, cl);
	if (!cl->child->q.qlen)
		psp_sleep(q, cl, ktime_get_ns());
	sch_tree_unlock(sch);
	return 0;
}

static struct Qdisc *psp_leaf(struct Qdisc *sch, unsigned long arg)
{
	return ((struct psp_class *)arg)->child;
}

/*
 * A child has become empty by dropping.  May come more than once and for a
 * class that is not active.  While a child is being asked for a frame whoever
 * asks settles the class's state; and a frame may have been taken out already.
 */
static void psp_qlen_notify(struct Qdisc *sch, unsigned long arg)
{
	struct psp_class *cl = (struct psp_class *)arg;
	struct psp_qdisc *q = qdisc_priv(sch);

	if (cl && cl != q->serving && !cl->head)
		psp_sleep(q, cl, ktime_get_ns());
}

static unsigned long psp_find(struct Qdisc *sch, u32 classid)
{
	return (unsigned long)psp_class_find(qdisc_priv(sch), classid);
}

/* Filters hang on the qdisc; classes have none. */
static struct tcf_block *psp_tcf_block(struct Qdisc *sch, unsigned long arg,
				       struct netlink_ext_ack *extack)
{
	struct psp_qdisc *q = qdisc_priv(sch);

	if (arg) {
		psp_refuse(extack, "filter on a class: expected parent %x:",
			   sch->handle >> 16);
		return NULL;
	}
	return q->block;
}

static unsigned long psp_bind_filter(struct Qdisc *sch, unsigned long parent,
				     u32 classid)
{
	struct psp_class *cl = psp_class_find(qdisc_priv(sch), classid);

	if (cl)
		cl->filters++;
	return (unsigned long)cl;
}

static void psp_unbind_filter(struct Qdisc *sch, unsigned long arg)
{
	struct psp_class *cl = (struct psp_class *)arg;

	cl->filters--;
}

static void psp_walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_class *cl;
	unsigned int i;

	if (arg->stop)
		return;
	for (i = 0; i < q->classes.hashsize; i++) {
		hlist_for_each_entry(cl, &q->classes.hash[i], common.hnode) {
			if (!tc_qdisc_stats_dump(sch, (unsigned long)cl, arg))
				return;
		}
	}
}

const struct Qdisc_class_ops psp_class_ops = {
	.graft		= psp_graft,
	.leaf		= psp_leaf,
	.qlen_notify	= psp_qlen_notify,
	.find		= psp_find,
	.change		= psp_change_class,
	.delete		= psp_delete_class,
	.walk		= psp_walk,
	.tcf_block	= psp_tcf_block,
	.bind_tcf	= psp_bind_filter,
	.unbind_tcf	= psp_unbind_filter,
	.dump		= psp_class_dump,
	.dump_stats	= psp_class_dump_stats,
};
