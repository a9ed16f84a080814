// SPDX-License-Identifier: GPL-2.0-only
/* Classes: flat, each with one child qdisc. */
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "psp.h"

struct psp_class *psp_class_find(struct psp_qdisc *q, u32 classid)
{
	struct Qdisc_class_common *common;

	common = qdisc_class_find(&q->classes, classid);
	return common ? container_of(common, struct psp_class, common) : NULL;
}

/* A FIFO of the device's own length, or of the usual one if that is 0. */
static struct Qdisc *psp_default_child(struct psp_qdisc *q, u32 classid,
				       struct netlink_ext_ack *extack)
{
	struct Qdisc *child;

	child = qdisc_create_dflt(q->sch->dev_queue, &pfifo_qdisc_ops, classid,
				  extack);
	if (child && !child->limit)
		child->limit = DEFAULT_TX_QUEUE_LEN;
	return child;
}

/* Room for one more class.  As many again each time: O(1) a class. */
static int psp_make_room(struct psp_qdisc *q)
{
	u32 capacity = q->capacity * 2;
	void *storage;

	if (q->class_count < q->capacity)
		return 0;

	storage = kvzalloc(pace_storage_bytes(capacity), GFP_KERNEL);
	if (!storage)
		return -ENOMEM;
	sch_tree_lock(q->sch);
	swap(q->storage, storage);
	pace_set_storage(&q->pace, q->storage, capacity);
	sch_tree_unlock(q->sch);
	q->capacity = capacity;
	kvfree(storage);
	return 0;
}

/* A zeroed class comes to life; on failure nothing of it is left. */
int psp_class_setup(struct psp_qdisc *q, struct psp_class *cl, u32 classid,
		    const struct pace_class_config *cfg,
		    struct netlink_ext_ack *extack)
{
	enum pace_error refused;
	int err;

	refused = pace_class_check(&q->pace, cfg);
	if (refused)
		return psp_refuse_class(extack, refused, &q->port, cfg);
	err = psp_make_room(q);
	if (err)
		return err;
	cl->child = psp_default_child(q, classid, extack);
	if (!cl->child)
		return -ENOMEM;

	cl->common.classid = classid;
	cl->given = *cfg;
	INIT_LIST_HEAD(&cl->stalled);
	gnet_stats_basic_sync_init(&cl->bstats);

	sch_tree_lock(q->sch);
	refused = pace_class_add(&q->pace, &cl->pace, cfg);
	sch_tree_unlock(q->sch);
	if (refused) {
		qdisc_put(cl->child);
		cl->child = NULL;
		return psp_refuse_class(extack, refused, &q->port, cfg);
	}
	q->class_count++;
	return 0;
}

static int psp_class_new(struct psp_qdisc *q, u32 classid,
			 const struct pace_class_config *cfg,
			 struct psp_class **made, struct netlink_ext_ack *extack)
{
	struct psp_class *cl = kzalloc(sizeof(*cl), GFP_KERNEL);
	int err;

	if (!cl)
		return -ENOMEM;
	err = psp_class_setup(q, cl, classid, cfg, extack);
	if (err) {
		kfree(cl);
		return err;
	}

	sch_tree_lock(q->sch);
	qdisc_class_hash_insert(&q->classes, &cl->common);
	sch_tree_unlock(q->sch);
	qdisc_class_hash_grow(q->sch, &q->classes);
	qdisc_hash_add(cl->child, true);
	*made = cl;
	return 0;
}

static int psp_class_reconfigure(struct psp_qdisc *q, struct psp_class *cl,
				 const struct pace_class_config *cfg,
				 struct netlink_ext_ack *extack)
{
	enum pace_error refused;

	sch_tree_lock(q->sch);
	refused = pace_class_change(&q->pace, &cl->pace, cfg);
	if (!refused)
		cl->given = *cfg;
	sch_tree_unlock(q->sch);
	if (refused)
		return psp_refuse_class(extack, refused, &q->port, cfg);
	psp_kick(q);
	return 0;
}

static int psp_change_class(struct Qdisc *sch, u32 classid, u32 parentid,
			    struct nlattr **tca, unsigned long *arg,
			    struct netlink_ext_ack *extack)
{
	struct psp_class *cl = (struct psp_class *)*arg;
	struct psp_qdisc *q = qdisc_priv(sch);
	struct pace_class_config cfg = {};
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
		cfg = cl->given;
	err = psp_parse_class(tca[TCA_OPTIONS], &cfg, !cl, extack);
	if (err)
		return err;
	if (cl)
		return psp_class_reconfigure(q, cl, &cfg, extack);
	err = psp_class_new(q, classid, &cfg, &cl, extack);
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

	sch_tree_lock(sch);
	qdisc_purge_queue(cl->child);
	psp_sleep(q, cl, ktime_get_ns());
	pace_class_del(&q->pace, &cl->pace);
	qdisc_class_hash_remove(&q->classes, &cl->common);
	q->class_count--;
	sch_tree_unlock(sch);

	qdisc_put(cl->child);
	kfree(cl);
	return 0;
}

/* Every paced class gets what it was given, up to the line's rate. */
void psp_classes_cap(struct psp_qdisc *q, u64 line_rate_bps)
{
	struct psp_class *cl;
	unsigned int i;

	for (i = 0; i < q->classes.hashsize; i++) {
		hlist_for_each_entry(cl, &q->classes.hash[i], common.hnode) {
			struct pace_class_config cfg = cl->given;

			if (cfg.kind != PACE_KIND_PACED)
				continue;
			cfg.rate_bps = min(cfg.rate_bps, line_rate_bps);
			if (cfg.rate_bps == cl->pace.rate_bps)
				continue;
			WARN_ON_ONCE(pace_class_change(&q->pace, &cl->pace,
						       &cfg));
		}
	}
}

void psp_class_reset(struct psp_qdisc *q, struct psp_class *cl)
{
	qdisc_reset(cl->child);
	psp_sleep(q, cl, ktime_get_ns());
}

void psp_classes_reset(struct psp_qdisc *q)
{
	struct psp_class *cl;
	unsigned int i;

	for (i = 0; i < q->classes.hashsize; i++)
		hlist_for_each_entry(cl, &q->classes.hash[i], common.hnode)
			psp_class_reset(q, cl);
}

/* Nobody sends any more, and no filter names a class. */
void psp_classes_destroy(struct psp_qdisc *q)
{
	struct hlist_node *next;
	struct psp_class *cl;
	unsigned int i;

	for (i = 0; i < q->classes.hashsize; i++) {
		hlist_for_each_entry_safe(cl, next, &q->classes.hash[i],
					  common.hnode) {
			qdisc_put(cl->child);
			kfree(cl);
		}
	}
	qdisc_class_hash_destroy(&q->classes);
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
 * class that is not active; while a child is being asked for a frame,
 * psp_take() settles the class's state itself.
 */
static void psp_qlen_notify(struct Qdisc *sch, unsigned long arg)
{
	struct psp_class *cl = (struct psp_class *)arg;
	struct psp_qdisc *q = qdisc_priv(sch);

	if (cl && cl != q->serving)
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
