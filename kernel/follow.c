// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device changes: link speed, MTU, address, number of queues.  A byte
 * clock that kept the old line rate would pace everything wrongly by the
 * ratio.
 */
#include <linux/rtnetlink.h>
#include <linux/workqueue.h>

#include "psp.h"
#include "compat/link_speed.h"

LIST_HEAD(psp_qdiscs);

void psp_follow_start(struct psp_qdisc *q)
{
	ASSERT_RTNL();
	list_add_tail(&q->link, &psp_qdiscs);
}

void psp_follow_stop(struct psp_qdisc *q)
{
	ASSERT_RTNL();
	list_del_init(&q->link);
}

static int psp_follow_one(struct psp_qdisc *q)
{
	struct net_device *dev = qdisc_dev(q->sch);
	struct netlink_ext_ack extack = {};
	struct psp_port port;
	int err;

	err = psp_port_resolve(q, &q->opt, &port, true, &extack);
	if (!err)
		err = psp_port_apply(q, &q->opt, &port, true, &extack);
	if (err)
		netdev_warn(dev, "qdisc %x: keeps its parameters: %s\n",
			    q->sch->handle >> 16,
			    extack._msg ? extack._msg : "out of memory");
	return err;
}

/* An MTU that a class's rate forbids is refused: the kernel takes it back. */
static int psp_follow(struct notifier_block *nb, unsigned long event, void *ptr)
{
	const struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct psp_qdisc *q;
	int err = 0;

	switch (event) {
	case NETDEV_UP:
	case NETDEV_CHANGE:
	case NETDEV_CHANGEMTU:
	case NETDEV_CHANGEADDR:
		break;
	default:
		return NOTIFY_DONE;
	}

	list_for_each_entry(q, &psp_qdiscs, link) {
		if (qdisc_dev(q->sch) == dev)
			err = psp_follow_one(q) ?: err;
	}
	return event == NETDEV_CHANGEMTU ? notifier_from_errno(err)
					 : NOTIFY_DONE;
}

/*
 * A change of the number of transmit queues is told to nobody, nor that the
 * wire is no clock: dequeue sees both, but holds a lock that configuration
 * waits for.  This work is the module's, so that no qdisc waits for it, or it
 * for one, on the way out.
 */
static void psp_follow_all(struct work_struct *work)
{
	struct psp_qdisc *q;

	rtnl_lock();
	list_for_each_entry(q, &psp_qdiscs, link) {
		u32 queues = psp_share_queues(q);
		bool changed = queues != q->port.queues;

		if (!changed && !READ_ONCE(q->suspect))
			continue;
		psp_dev_lock(qdisc_dev(q->sch));
		if (changed)
			psp_follow_one(q);
		/* Still, if the port could not follow: or none would look again. */
		if (READ_ONCE(q->suspect))
			psp_watch_judge(q);
		psp_dev_unlock(qdisc_dev(q->sch));
		/* Once for each change, also if it could not be followed. */
		WRITE_ONCE(q->port.queues, queues);
	}
	rtnl_unlock();
}

static DECLARE_WORK(psp_follow_work, psp_follow_all);

void psp_follow_later(void)
{
	schedule_work(&psp_follow_work);
}

static struct notifier_block psp_notifier = {
	.notifier_call = psp_follow,
};

int psp_follow_init(void)
{
	return register_netdevice_notifier(&psp_notifier);
}

void psp_follow_exit(void)
{
	unregister_netdevice_notifier(&psp_notifier);
	cancel_work_sync(&psp_follow_work);
}
