// SPDX-License-Identifier: GPL-2.0-only
/*
 * psp, precise pacing: the life of a qdisc, and of the module.
 *
 * Papers: PSPacer (IPSJ Trans. ACS 14, 2006), PSPacer+ (2009).
 */
#include <linux/module.h>
#include <linux/rtnetlink.h>

#include "psp.h"
#include "compat/alias.h"
#include "compat/dequeue_drop.h"

/*
 * Refuses parents that count what they get from their child: a gap frame was in
 * nobody's queue, and their count would go below zero.  So psp is root, or below
 * mq, whose children are roots of one transmit queue each.  While the kernel
 * makes mq, or mqprio, it makes the default qdisc for each queue: the parent is
 * not the device's root yet, and nobody else makes default qdiscs.
 */
static int psp_check_parent(struct Qdisc *sch, struct netlink_ext_ack *extack)
{
	struct Qdisc *root = rtnl_dereference(qdisc_dev(sch)->qdisc);

	if (sch->parent == TC_H_ROOT || psp_is_default(sch))
		return 0;
	if (root && !strcmp(root->ops->id, "mq") &&
	    root->handle == TC_H_MAJ(sch->parent))
		return 0;
	psp_refuse(extack, "parent %x:%x: expected root, or a class of mq",
		   TC_H_MAJ(sch->parent) >> 16, TC_H_MIN(sch->parent));
	return -EOPNOTSUPP;
}

/* The scheduler, with room for the first classes, and the direct class. */
static int psp_start(struct psp_qdisc *q, struct netlink_ext_ack *extack)
{
	/* As long a turn as any: one largest frame. */
	const struct psp_class_options direct = { .kind = TC_PSP_KIND_NORMAL };
	enum pace_error refused;

	q->capacity = 16;
	q->storage = kvzalloc(pace_storage_bytes(q->capacity), GFP_KERNEL);
	if (!q->storage)
		return -ENOMEM;
	refused = pace_init(&q->pace, &q->port.pace, q->storage, q->capacity,
			    ktime_get_ns());
	if (refused)
		return psp_refuse_port(extack, refused, &q->port, NULL);
	return psp_class_setup(q, &q->direct, q->sch->handle, &direct, extack);
}

/* After a failure psp_destroy() is called, and psp_reset() may be. */
static int psp_init(struct Qdisc *sch, struct nlattr *attr,
		    struct netlink_ext_ack *extack)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	int err;

	q->sch = sch;
	INIT_LIST_HEAD(&q->link);
	psp_ask_init(q);
	qdisc_watchdog_init(&q->watchdog, sch);

	err = psp_check_parent(sch, extack);
	if (err)
		return err;
	/* Also on devices with more queues: see psp_dequeue(). */
	sch->flags |= TCQ_F_ONETXQUEUE;
	q->queue = sch->dev_queue - qdisc_dev(sch)->_tx;

	psp_default_options(qdisc_dev(sch), &q->opt);
	err = psp_parse_options(attr, &q->opt, extack);
	if (err)
		return err;
	err = psp_port_resolve(q, &q->opt, &q->port, false, extack);
	if (err)
		return err;
	err = psp_port_gap(q, &q->opt, &q->port, &q->gap);
	if (err)
		return err;
	err = tcf_block_get(&q->block, &q->filters, sch, extack);
	if (err)
		return err;
	err = qdisc_class_hash_init(&q->classes);
	if (err)
		return err;
	err = psp_start(q, extack);
	if (err)
		return err;
	psp_watch_start(q);
	psp_follow_start(q);
	return 0;
}

/* Everything is worked out and allocated before anything is touched. */
static int psp_change(struct Qdisc *sch, struct nlattr *attr,
		      struct netlink_ext_ack *extack)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_options opt = q->opt;
	struct psp_port port;
	int err;

	err = psp_parse_options(attr, &opt, extack);
	if (err)
		return err;
	err = psp_port_resolve(q, &opt, &port, false, extack);
	if (err)
		return err;
	err = psp_port_apply(q, &opt, &port, false, extack);
	if (!err)
		q->no_clock = false;
	return err;
}

static void psp_reset(struct Qdisc *sch)
{
	struct psp_qdisc *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	psp_line_idle(&q->watch);
	if (q->direct.child)
		psp_class_reset(q, &q->direct);
	psp_classes_reset(q);
}

static void psp_destroy(struct Qdisc *sch)
{
	struct psp_qdisc *q = qdisc_priv(sch);

	psp_follow_stop(q);
	qdisc_watchdog_cancel(&q->watchdog);
	psp_ask_stop(q);
	/* Filters let go of their classes: before those. */
	tcf_block_put(q->block);
	psp_classes_destroy(q);
	psp_class_clear(q, &q->direct);
	kvfree(q->storage);
	kfree_skb(q->gap);
}

static struct Qdisc_ops psp_qdisc_ops __read_mostly = {
	.id		= "psp",
	.priv_size	= sizeof(struct psp_qdisc),
	.static_flags	= PSP_STATIC_FLAGS,
	.cl_ops		= &psp_class_ops,
	.enqueue	= psp_enqueue,
	.dequeue	= psp_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= psp_init,
	.change		= psp_change,
	.reset		= psp_reset,
	.destroy	= psp_destroy,
	.dump		= psp_dump_options,
	.dump_stats	= psp_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init psp_module_init(void)
{
	int err = psp_flows_init();

	if (err)
		return err;
	err = psp_follow_init();
	if (err)
		goto no_follow;
	err = register_qdisc(&psp_qdisc_ops);
	if (err)
		goto no_qdisc;
	return 0;

no_qdisc:
	psp_follow_exit();
no_follow:
	psp_flows_exit();
	return err;
}

static void __exit psp_module_exit(void)
{
	unregister_qdisc(&psp_qdisc_ops);
	psp_follow_exit();
	psp_flows_exit();
}

module_init(psp_module_init)
module_exit(psp_module_exit)
MODULE_DESCRIPTION("Precise packet pacing with gap frames");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
MODULE_ALIAS_NET_SCH("psp");
