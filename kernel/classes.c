// SPDX-License-Identifier: GPL-2.0-only
/* The life of a class. */
#include <linux/slab.h>

#include "psp.h"

struct psp_class *psp_class_find(struct psp_qdisc *q, u32 classid)
{
	struct Qdisc_class_common *common;

	common = qdisc_class_find(&q->classes, classid);
	return common ? container_of(common, struct psp_class, common) : NULL;
}

/* A FIFO of the device's own length, or of the usual one if that is 0. */
struct Qdisc *psp_default_child(struct psp_qdisc *q, u32 classid,
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

/* What core/ is told of the class on a line of this rate. */
static struct pace_class_config
psp_class_config(const struct psp_class_options *opt, u64 line_rate_bps)
{
	if (opt->kind == TC_PSP_KIND_NORMAL)
		return (struct pace_class_config){
			.kind = PACE_KIND_NORMAL,
			.quantum_bytes = opt->quantum_bytes,
		};
	return (struct pace_class_config){
		.kind = PACE_KIND_PACED,
		.rate_bps = min(opt->rate_bps, line_rate_bps),
		.ceil_bps = min(opt->ceil_bps, line_rate_bps),
	};
}

/* `opt` is in force. */
static void psp_class_put_options(struct psp_class *cl,
				  const struct psp_class_options *opt,
				  const struct pace_class_config *cfg)
{
	cl->opt = *opt;
	cl->ceil_bps = cfg->ceil_bps ?: cfg->rate_bps;
}

/* What a class of this kind needs beside itself. */
static int psp_class_room(struct psp_class *cl,
			  const struct psp_class_options *opt)
{
	if (opt->kind == TC_PSP_KIND_NORMAL || cl->late)
		return 0;
	cl->late = kzalloc(sizeof(*cl->late), GFP_KERNEL);
	return cl->late ? 0 : -ENOMEM;
}

/* What the class has beside itself goes; its child's frames with it. */
void psp_class_clear(struct psp_class *cl)
{
	if (cl->child)
		qdisc_put(cl->child);
	cl->child = NULL;
	kfree(cl->late);
	cl->late = NULL;
}

/* A zeroed class comes to life; on failure nothing of it is left. */
int psp_class_setup(struct psp_qdisc *q, struct psp_class *cl, u32 classid,
		    const struct psp_class_options *opt,
		    struct netlink_ext_ack *extack)
{
	struct pace_class_config cfg = psp_class_config(opt, U64_MAX);
	enum pace_error refused;
	int err;

	refused = pace_class_check(&q->pace, &cfg);
	if (refused)
		return psp_refuse_class(extack, refused, &q->port, opt);
	err = psp_make_room(q) ?: psp_class_room(cl, opt);
	if (err)
		return err;
	cl->child = psp_default_child(q, classid, extack);
	if (!cl->child) {
		psp_class_clear(cl);
		return -ENOMEM;
	}

	cl->common.classid = classid;
	INIT_LIST_HEAD(&cl->stalled);
	gnet_stats_basic_sync_init(&cl->bstats);
	psp_class_put_options(cl, opt, &cfg);

	sch_tree_lock(q->sch);
	refused = pace_class_add(&q->pace, &cl->pace, &cfg);
	sch_tree_unlock(q->sch);
	if (refused) {
		psp_class_clear(cl);
		return psp_refuse_class(extack, refused, &q->port, opt);
	}
	q->class_count++;
	return 0;
}

int psp_class_new(struct psp_qdisc *q, u32 classid,
		  const struct psp_class_options *opt, struct psp_class **made,
		  struct netlink_ext_ack *extack)
{
	struct psp_class *cl = kzalloc(sizeof(*cl), GFP_KERNEL);
	int err;

	if (!cl)
		return -ENOMEM;
	err = psp_class_setup(q, cl, classid, opt, extack);
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

int psp_class_reconfigure(struct psp_qdisc *q, struct psp_class *cl,
			  const struct psp_class_options *opt,
			  struct netlink_ext_ack *extack)
{
	struct pace_class_config cfg = psp_class_config(opt, U64_MAX);
	enum pace_error refused;
	int err;

	err = psp_class_room(cl, opt);
	if (err)
		return err;
	sch_tree_lock(q->sch);
	refused = pace_class_change(&q->pace, &cl->pace, &cfg);
	if (!refused)
		psp_class_put_options(cl, opt, &cfg);
	sch_tree_unlock(q->sch);
	if (refused)
		return psp_refuse_class(extack, refused, &q->port, opt);
	psp_kick(q);
	return 0;
}

/* The class goes, and the frames it holds with it. */
void psp_class_delete(struct psp_qdisc *q, struct psp_class *cl)
{
	sch_tree_lock(q->sch);
	qdisc_purge_queue(cl->child);
	psp_drop_head(q, cl);
	psp_sleep(q, cl, ktime_get_ns());
	pace_class_del(&q->pace, &cl->pace);
	qdisc_class_hash_remove(&q->classes, &cl->common);
	q->class_count--;
	sch_tree_unlock(q->sch);

	psp_class_clear(cl);
	kfree(cl);
}

/* Every paced class gets what it was given, up to the line's rate. */
void psp_classes_cap(struct psp_qdisc *q, u64 line_rate_bps)
{
	struct psp_class *cl;
	unsigned int i;

	for (i = 0; i < q->classes.hashsize; i++) {
		hlist_for_each_entry(cl, &q->classes.hash[i], common.hnode) {
			struct pace_class_config cfg;

			cfg = psp_class_config(&cl->opt, line_rate_bps);
			if (cfg.kind == PACE_KIND_NORMAL ||
			    (cfg.rate_bps == cl->pace.rate_bps &&
			     (cfg.ceil_bps ?: cfg.rate_bps) == cl->ceil_bps))
				continue;
			if (!WARN_ON_ONCE(pace_class_change(&q->pace, &cl->pace,
							    &cfg)))
				cl->ceil_bps = cfg.ceil_bps ?: cfg.rate_bps;
		}
	}
}

void psp_class_reset(struct psp_qdisc *q, struct psp_class *cl)
{
	qdisc_reset(cl->child);
	psp_drop_head(q, cl);
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
			psp_class_clear(cl);
			kfree(cl);
		}
	}
	qdisc_class_hash_destroy(&q->classes);
}
