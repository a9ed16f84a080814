// SPDX-License-Identifier: GPL-2.0-only
/*
 * The option `shared`: psp below mq whose classes are the device's.  The psp of all
 * its transmit queues share one line, and those of their classes that have the same
 * minor number one rate and one ceil.  core/src/part.c says how; here is the memory.
 *
 *   psp_device		of a net_device: its line, its classes; as long as a psp uses it
 *   psp_device_class	the clocks of a class; as long as a queue has the class
 *   psp_parts		what one queue has of them
 *
 * All of it changes with the RTNL held.  Queues look at each other's parts with BH off
 * and no common lock, so parts are freed after a grace period.
 * docs/decisions/qdisc.md, "Classes of a device".
 */

/* How long a queue that others wait for keeps a clock, all queues together. */
#define PSP_ROUND_NS		(500 * NSEC_PER_USEC)
#define PSP_STEP_NS_MIN		(10 * NSEC_PER_USEC)
#define PSP_STEP_NS_MAX		(100 * NSEC_PER_USEC)

struct psp_parts {
	struct pace_part rate ____cacheline_aligned;
	struct pace_part ceil ____cacheline_aligned;
	struct psp_device_class *dc;
	struct rcu_head rcu;
};

struct psp_device_class {
	u32 users;
	struct pace_common *rate;
	struct pace_common *ceil;
};

struct psp_device {
	struct list_head link;		/* in psp_devices */
	const struct net_device *dev;
	u32 users;
	struct xarray classes;		/* by minor number */
	struct pace_device pace;	/* the last: its slots follow */
};

static LIST_HEAD(psp_devices);

/*
 * A psp that takes the place of another has a slot of its own, so there may be two of
 * each queue.
 */
static u32 psp_device_slots(const struct net_device *dev)
{
	return 2 * dev->num_tx_queues;
}

static struct pace_common *psp_common_alloc(u32 slots)
{
	struct pace_common *k;

	k = kvzalloc(struct_size(k, part, slots), GFP_KERNEL_ACCOUNT);
	if (k)
		k->slots = slots;
	return k;
}

static struct psp_device *psp_device_get(const struct net_device *dev)
{
	u32 slots = psp_device_slots(dev);
	struct psp_device *d;

	ASSERT_RTNL();
	list_for_each_entry(d, &psp_devices, link) {
		if (d->dev != dev)
			continue;
		d->users++;
		return d;
	}
	d = kvzalloc(struct_size(d, pace.line.part, slots), GFP_KERNEL_ACCOUNT);
	if (!d)
		return NULL;
	d->dev = dev;
	d->users = 1;
	d->pace.line.slots = slots;
	xa_init_flags(&d->classes, XA_FLAGS_ACCOUNT);
	list_add_tail(&d->link, &psp_devices);
	return d;
}

static void psp_device_put(struct psp_device *d)
{
	ASSERT_RTNL();
	if (--d->users)
		return;
	list_del(&d->link);
	xa_destroy(&d->classes);
	kvfree(d);
}

/* Returns how long a queue keeps a clock for which others wait. */
static u64 psp_step_ps(const struct psp_qdisc *q)
{
	u32 queues = max(1u, READ_ONCE(qdisc_dev(q->sch)->real_num_tx_queues));

	return 1000ull * clamp_t(u64, PSP_ROUND_NS / queues, PSP_STEP_NS_MIN,
				 PSP_STEP_NS_MAX);
}

/* Joins the other queues of the device, before there is a class. */
static int psp_queue_join(struct psp_qdisc *q, struct netlink_ext_ack *extack)
{
	struct psp_device *d = psp_device_get(qdisc_dev(q->sch));
	struct psp_parts *parts;
	u32 slot;

	if (!d)
		return -ENOMEM;
	for (slot = 0; slot < d->pace.line.slots; slot++)
		if (!d->pace.line.part[slot])
			break;
	parts = kzalloc(sizeof(*parts), GFP_KERNEL_ACCOUNT);
	if (!parts || slot == d->pace.line.slots) {
		kfree(parts);
		psp_device_put(d);
		return -ENOMEM;
	}
	parts->rate.common = &d->pace.line;
	q->device = d;
	q->slot = slot;
	q->line_parts = parts;
	d->pace.queues++;
	pace_join(&q->pace, &d->pace, &parts->rate, psp_step_ps(q));
	WRITE_ONCE(d->pace.line.part[slot], &parts->rate);
	return 0;
}

/* When nothing is sent any more, and there is no class. */
static void psp_queue_leave(struct psp_qdisc *q)
{
	struct psp_device *d = q->device;

	if (!d)
		return;
	pace_leave(&q->pace);
	WRITE_ONCE(d->pace.line.part[q->slot], NULL);
	d->pace.queues--;
	kfree_rcu(q->line_parts, rcu);
	q->line_parts = NULL;
	q->device = NULL;
	psp_device_put(d);
}

static void psp_device_class_put(struct psp_device *d, struct psp_device_class *dc,
				 u32 minor)
{
	ASSERT_RTNL();
	if (--dc->users)
		return;
	xa_erase(&d->classes, minor);
	kvfree(dc->rate);
	kvfree(dc->ceil);
	kfree(dc);
}

static struct psp_device_class *psp_device_class_get(struct psp_device *d, u32 minor)
{
	struct psp_device_class *dc = xa_load(&d->classes, minor);

	ASSERT_RTNL();
	if (dc) {
		dc->users++;
		return dc;
	}
	dc = kzalloc(sizeof(*dc), GFP_KERNEL_ACCOUNT);
	if (!dc)
		return NULL;
	dc->users = 1;
	dc->rate = psp_common_alloc(d->pace.line.slots);
	dc->ceil = psp_common_alloc(d->pace.line.slots);
	if (dc->rate && dc->ceil &&
	    !xa_err(xa_store(&d->classes, minor, dc, GFP_KERNEL_ACCOUNT)))
		return dc;
	kvfree(dc->rate);
	kvfree(dc->ceil);
	kfree(dc);
	return NULL;
}

/* Makes this queue's parts of a class of the device. */
static struct psp_parts *psp_parts_alloc(struct psp_qdisc *q, u32 minor)
{
	struct psp_parts *parts = kzalloc(sizeof(*parts), GFP_KERNEL_ACCOUNT);

	if (!parts)
		return NULL;
	parts->dc = psp_device_class_get(q->device, minor);
	if (!parts->dc) {
		kfree(parts);
		return NULL;
	}
	parts->rate.common = parts->dc->rate;
	parts->ceil.common = parts->dc->ceil;
	return parts;
}

/* Lets the other queues find the parts. */
static void psp_parts_show(const struct psp_qdisc *q, struct psp_parts *parts)
{
	WRITE_ONCE(parts->rate.common->part[q->slot], &parts->rate);
	WRITE_ONCE(parts->ceil.common->part[q->slot], &parts->ceil);
}

/* Makes the class the device's.  Tree lock. */
static void psp_parts_join(struct psp_qdisc *q, struct pace_sched *s,
			   struct pace_class *c, struct psp_parts *parts)
{
	pace_class_join(s, c, &parts->rate, &parts->ceil);
	psp_parts_show(q, parts);
}

static void psp_parts_join_group(struct psp_qdisc *q, struct psp_group *g,
				 struct psp_parts *parts)
{
	pace_group_join(&q->pace, &g->pace, &parts->rate, &parts->ceil);
	psp_parts_show(q, parts);
}

/* The class has left already, or nothing is sent any more. */
static void psp_parts_free(struct psp_qdisc *q, struct psp_parts *parts, u32 minor)
{
	if (!parts)
		return;
	if (READ_ONCE(parts->rate.common->part[q->slot]) == &parts->rate) {
		WRITE_ONCE(parts->rate.common->part[q->slot], NULL);
		WRITE_ONCE(parts->ceil.common->part[q->slot], NULL);
	}
	psp_device_class_put(q->device, parts->dc, minor);
	kfree_rcu(parts, rcu);
}

/* Says what waits in a class of the device: core/ takes no more for it. */
static inline void psp_report_waiting(struct psp_class *cl)
{
	cl->parts->rate.backlog_bytes = psp_class_backlog(cl);
}
