// SPDX-License-Identifier: GPL-2.0-only
/*
 * Classes: life, options and operations.  A class is below the qdisc or below a class
 * of type group.  Each has a FIFO of its own, which a child qdisc may replace.
 */

static struct psp_class *psp_class_find(struct psp_qdisc *q, u32 classid)
{
	struct Qdisc_class_common *common;

	common = qdisc_class_find(&q->classes, classid);
	return common ? container_of(common, struct psp_class, common) : NULL;
}

/*
 * Returns how many frames the FIFO of a new class holds: as many as the queue
 * of the device, or the usual number if that is 0.
 */
static u32 psp_default_limit(const struct psp_qdisc *q)
{
	return READ_ONCE(qdisc_dev(q->sch)->tx_queue_len) ?: DEFAULT_TX_QUEUE_LEN;
}

static void psp_unthrottle(struct psp_qdisc *q, struct psp_class *cl)
{
	if (!psp_child_is_throttled(cl))
		return;
	list_del_init(&cl->throttled);
	q->throttled_count--;
}

/* Reports all frames of an rt class to core/, which knows of none yet. */
static void psp_report_backlog(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	const struct sk_buff *head = cl->head;
	u64 bytes = psp_class_backlog(cl);
	u64 frames = psp_class_qlen(cl);

	if (head) {
		bytes += qdisc_pkt_len(head);
		frames++;
	}
	bytes += frames * q->pace.cfg.overhead_bytes;
	if (frames)
		pace_arrived(&q->pace, &cl->pace, min_t(u64, bytes, U32_MAX),
			     now_ns);
}

/* The class has no frame to send. */
static void psp_class_deactivate(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	psp_unthrottle(q, cl);
	psp_entity_deactivate(q, &cl->entity, now_ns);
}

/* Drops the frame that was taken out of the child. */
static void psp_drop_head(struct psp_qdisc *q, struct psp_class *cl)
{
	struct sk_buff *skb = cl->head;

	if (!skb)
		return;
	cl->head = NULL;
	psp_qlen_add(q->sch, -1, -qdisc_pkt_len(skb));
	psp_count_drops(q->sch, 1);
	rtnl_kfree_skbs(skb, skb);
}

/* Frees the frames in the FIFO of the class.  RTNL. */
static void psp_free_fifo(struct psp_class *cl)
{
	struct psp_entity *e = &cl->entity;

	psp_launch_purge(cl);
	rtnl_kfree_skbs(e->queue.head, e->queue.tail);
	e->queue = (struct qdisc_skb_head){};
	e->backlog = 0;
}

/* Drops the frames in the FIFO of the class.  RTNL and tree lock. */
static void psp_drop_fifo(struct psp_qdisc *q, struct psp_class *cl)
{
	u32 frames = cl->entity.queue.qlen;

	psp_qlen_add(q->sch, -(int)frames, -(int)cl->entity.backlog);
	psp_count_drops(q->sch, frames);
	psp_free_fifo(cl);
}

/* The class has another child or option.  Tree lock. */
static void psp_class_set_plain(struct psp_class *cl)
{
	cl->entity.is_plain = !cl->child && !cl->flows && !cl->opt.deadline_ns &&
			      !cl->opt.txtime;
}

/* Releases the ids that classes reserve for more flows than they allow now. */
static void psp_classes_release_ids(struct psp_qdisc *q)
{
	struct psp_class *cl;
	unsigned int i;

	for (i = 0; i < q->classes.hashsize; i++) {
		hlist_for_each_entry(cl, &q->classes.hash[i], common.hnode) {
			u32 ids = cl->flows ? psp_flows_ids(cl->flows) : 0;

			if (!cl->flows || ids >= cl->flows->reserved)
				continue;
			psp_ids_add(q, cl->group, (int)ids - (int)cl->flows->reserved);
			cl->flows->reserved = ids;
		}
	}
}

/*
 * Returns what of `opt` takes force on a line of this rate, if no rate may
 * exceed `most_bps`.  In a dynamic class the ceil is each flow's, and frames
 * without a flow are sent at the rate.
 */
static struct pace_class_config
psp_class_config(const struct psp_class_options *opt, u64 line_rate_bps,
		 u64 most_bps)
{
	u64 rate_bps = opt->rate_bps, ceil_bps = opt->ceil_bps;

	if (opt->type == TC_PSP_TYPE_DYNAMIC) {
		ceil_bps = ceil_bps ?: line_rate_bps;
		rate_bps = rate_bps ?: ceil_bps;
		if (opt->total_bps)
			rate_bps = min(rate_bps, opt->total_bps);
	}
	/* Its rate and ceil are those of the node: psp_node_config(). */
	if (opt->type == TC_PSP_TYPE_NORMAL || opt->type == TC_PSP_TYPE_GROUP)
		return (struct pace_class_config){
			.type = PACE_TYPE_NORMAL,
			.quantum_bytes = opt->quantum_bytes,
		};
	if (psp_type_reserves(opt->type))
		return (struct pace_class_config){
			.type = opt->type == TC_PSP_TYPE_RT ? PACE_TYPE_RT :
							      PACE_TYPE_NRT,
			.reserve_bytes = opt->reserve_bytes,
		};
	return (struct pace_class_config){
		.type = PACE_TYPE_PACED,
		.rate_bps = min(rate_bps, most_bps),
		.ceil_bps = min(ceil_bps, most_bps),
		.launches = opt->txtime && !opt->txtime_deadline,
	};
}

/* May the class have these options?  Fills in *cfg with what takes force. */
static int psp_class_check(struct psp_qdisc *q, const struct psp_class *cl,
			   const struct psp_class_options *opt,
			   struct pace_class_config *cfg,
			   struct netlink_ext_ack *extack)
{
	const struct pace_config *line = psp_owns_group(cl) ? &q->pace.cfg :
							      &psp_sched_of(q, cl)->cfg;
	const char *above = line == &q->pace.cfg ? "the line's " : "a group's ";
	u64 line_rate_bps = line->line_rate_bps;
	struct psp_class_options in_force = *opt;
	enum pace_error refused;

	/* What stays is capped: the line may have become slower since. */
	if (opt->rate_bps == cl->opt.rate_bps)
		in_force.rate_bps = min(opt->rate_bps, line_rate_bps);
	if (opt->ceil_bps == cl->opt.ceil_bps)
		in_force.ceil_bps = min(opt->ceil_bps, line_rate_bps);
	*cfg = psp_class_config(&in_force, line_rate_bps, U64_MAX);
	refused = pace_class_check(line == &q->pace.cfg ? &q->pace : psp_sched_of(q, cl),
				   &cl->pace, cfg);
	/* On a faster line, too. */
	if (!refused && opt->ceil_bps && opt->ceil_bps < opt->rate_bps)
		return psp_extack_class(extack, PACE_ERR_CEIL, line, opt, above);
	if (refused == PACE_ERR_RESERVED)
		return psp_extack_reserve(extack, q, cl, opt->reserve_bytes);
	/* In a dynamic class the ceil may stand for the rate. */
	if (refused == PACE_ERR_RATE_LINE && !opt->rate_bps)
		refused = PACE_ERR_CEIL;
	else
		in_force.rate_bps = cfg->rate_bps;
	return refused ? psp_extack_class(extack, refused, line, &in_force, above) : 0;
}

/*
 * Returns the configuration of the class itself in core/: a flow's ceil is
 * not its own.
 */
static struct pace_class_config
psp_class_core_config(const struct psp_class *cl, u8 type,
		      const struct pace_class_config *cfg)
{
	struct pace_class_config own = *cfg;

	if (type == TC_PSP_TYPE_DYNAMIC)
		own.ceil_bps = 0;
	if (psp_type_reserves(type))
		own.reservation = cl->reservation;
	return own;
}

/*
 * Allocates a table for as many flows as `opt` allows, and reserves their
 * ids.  *made is NULL if the class needs no other table.
 */
static int psp_class_new_flows(struct psp_qdisc *q, const struct psp_class *cl,
			       const struct psp_class_options *opt,
			       struct psp_flows **made,
			       struct netlink_ext_ack *extack)
{
	u32 reserved;
	int err;

	*made = NULL;
	if (opt->type != TC_PSP_TYPE_DYNAMIC ||
	    (cl->flows && cl->flows->max == opt->flows))
		return 0;
	psp_classes_release_ids(q);
	reserved = cl->flows ? cl->flows->reserved : 0;
	if (opt->flows > reserved) {
		err = psp_grow_storage(q, cl->group, opt->flows - reserved, extack);
		if (err)
			return err;
	}
	*made = psp_flows_alloc(opt->flows,
				cl->flows ? READ_ONCE(cl->flows->count) : 0);
	return *made ? 0 : -ENOMEM;
}

/*
 * Puts `opt` in force together with the table of psp_class_new_flows(): the
 * first frame that finds a flow finds its bounds, too.  Leaves in *made what
 * is to be freed. Tree lock.
 */
static void psp_class_set_options(struct psp_qdisc *q, struct psp_class *cl,
				  const struct psp_class_options *opt,
				  struct psp_flows **made)
{
	u32 reserved = cl->flows ? cl->flows->reserved : 0;

	q->tai_classes -= cl->opt.txtime == TC_PSP_TXTIME_TAI;
	q->tai_classes += opt->txtime == TC_PSP_TXTIME_TAI;
	q->launch_classes -= !!cl->opt.txtime;
	q->launch_classes += !!opt->txtime;
	cl->opt = *opt;
	/* None has frames: psp_class_check_flows(). */
	if (cl->flows && opt->type != TC_PSP_TYPE_DYNAMIC) {
		psp_flows_clear(q, cl);
		swap(cl->flows, *made);
		psp_ids_add(q, cl->group, -(int)reserved);
		psp_class_set_plain(cl);
		return;
	}
	if (*made && cl->flows)
		psp_flows_resize(cl->flows, *made);
	else if (*made)
		swap(cl->flows, *made);
	psp_class_set_plain(cl);
	if (!cl->flows)
		return;
	psp_ids_add(q, cl->group, (int)cl->flows->reserved - (int)reserved);
	psp_flows_clamp(q, cl, pace_least_rate_bps(&q->pace.cfg),
			psp_class_ceil_bps(q, cl));
}

/* Frees the flows and the frames they still hold. */
static void psp_class_drop_flows(struct psp_qdisc *q, struct psp_class *cl)
{
	struct psp_flows *flows = cl->flows;

	if (!flows)
		return;
	sch_tree_lock(q->sch);
	psp_flows_clear(q, cl);
	cl->flows = NULL;
	sch_tree_unlock(q->sch);
	psp_ids_add(q, cl->group, -(int)flows->reserved);
	psp_flows_free(flows);
}

/* Has the class a rate that is the device's? */
static bool psp_class_shares(const struct psp_qdisc *q, const struct psp_class_options *opt)
{
	return q->device && (opt->type == TC_PSP_TYPE_PACED ||
			     opt->type == TC_PSP_TYPE_DYNAMIC ||
			     opt->type == TC_PSP_TYPE_GROUP);
}

/* May a class of these options be the device's? */
static int psp_class_check_shared(const struct psp_qdisc *q,
				  const struct psp_class_options *opt,
				  struct netlink_ext_ack *extack)
{
	if (!q->opt.shared)
		return 0;
	if (psp_type_reserves(opt->type)) {
		psp_set_extack(extack, "mode %s: expected none with periods, psp is shared",
			       opt->type == TC_PSP_TYPE_RT ? "rt" : "nrt");
		return -EOPNOTSUPP;
	}
	if (opt->txtime) {
		psp_set_extack(extack, "txtime: expected none, psp is shared");
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Allocates what a class of this type has beside the class itself. */
static int psp_class_alloc_parts(struct psp_qdisc *q, struct psp_class *cl, u32 minor,
				 const struct psp_class_options *opt)
{
	if (psp_class_shares(q, opt) && !cl->parts) {
		cl->parts = psp_parts_alloc(q, minor);
		if (!cl->parts)
			return -ENOMEM;
	}
	if (psp_type_reserves(opt->type)) {
		if (!cl->reservation)
			cl->reservation = kzalloc(sizeof(*cl->reservation),
						  GFP_KERNEL_ACCOUNT);
		if (!cl->reservation)
			return -ENOMEM;
	} else if (opt->type != TC_PSP_TYPE_NORMAL && opt->type != TC_PSP_TYPE_GROUP &&
		   !cl->lateness) {
		cl->lateness = kzalloc(sizeof(*cl->lateness), GFP_KERNEL_ACCOUNT);
		if (!cl->lateness)
			return -ENOMEM;
	}
	return 0;
}

/* Frees what the class has beside itself, its frames included. */
static void psp_class_clear(struct psp_qdisc *q, struct psp_class *cl)
{
	psp_class_drop_flows(q, cl);
	psp_free_fifo(cl);
	qdisc_put(cl->child);
	cl->child = NULL;
	kfree(cl->lateness);
	cl->lateness = NULL;
	kfree(cl->reservation);
	cl->reservation = NULL;
	if (cl->group)
		list_del_init(&cl->member);
	if (psp_owns_group(cl))
		psp_group_free(q, cl->group);
	cl->group = NULL;
	cl->entity.in_group = false;
	psp_parts_free(q, cl->parts, TC_H_MIN(cl->common.classid));
	cl->parts = NULL;
}

/*
 * Makes the class the device's if its options say so, or no more; of a group, its node.
 * Tree lock.
 */
static void psp_class_share(struct psp_qdisc *q, struct psp_class *cl)
{
	bool is_group = psp_owns_group(cl);

	if (!psp_class_shares(q, &cl->opt)) {
		/* Only a class that is no group changes so: core/ has left. */
		cl->entity.is_shared = false;
		return;
	}
	if (is_group && !cl->group->is_shared)
		psp_parts_join_group(q, cl->group, cl->parts);
	else if (!is_group && !cl->entity.is_shared)
		psp_parts_join(q, psp_sched_of(q, cl), &cl->pace, cl->parts);
	if (is_group)
		cl->group->is_shared = true;
	else
		cl->entity.is_shared = true;
}

/*
 * Initialises a zeroed class.  On failure it is left without memory of its
 * own.
 */
static int psp_class_setup(struct psp_qdisc *q, struct psp_class *cl, u32 classid,
			   const struct psp_class_options *opt,
			   struct netlink_ext_ack *extack)
{
	struct pace_class_config cfg, own;
	struct psp_flows *flows = NULL;
	enum pace_error refused;
	int err;

	INIT_LIST_HEAD(&cl->member);
	psp_classes_release_ids(q);
	cl->common.classid = classid;
	err = psp_class_check_shared(q, opt, extack);
	if (!err && psp_makes_group(opt))
		err = psp_group_new(q, cl, opt, extack);
	if (err)
		return err;
	err = psp_class_check(q, cl, opt, &cfg, extack) ?:
	      psp_grow_storage(q, cl->group, 1 + opt->flows, extack) ?:
	      psp_class_alloc_parts(q, cl, TC_H_MIN(classid), opt) ?:
	      psp_class_new_flows(q, cl, opt, &flows, extack);
	if (err)
		goto failed;
	cl->sch = q->sch;
	cl->launch = RB_ROOT_CACHED;
	cl->entity.limit = psp_default_limit(q);
	INIT_LIST_HEAD(&cl->throttled);
	gnet_stats_basic_sync_init(&cl->bstats);
	/* No frame finds the class yet. */
	psp_class_set_options(q, cl, opt, &flows);

	own = psp_class_core_config(cl, opt->type, &cfg);
	sch_tree_lock(q->sch);
	refused = pace_class_add(psp_sched_of(q, cl), &cl->pace, &own);
	if (!refused)
		psp_class_share(q, cl);
	sch_tree_unlock(q->sch);
	if (refused) {
		err = psp_extack_class(extack, refused, &q->pace.cfg, opt, "the line's ");
		goto failed;
	}
	psp_ids_add(q, cl->group, 1);
	return 0;

failed:
	if (flows)
		psp_flows_free(flows);
	psp_class_clear(q, cl);
	return err;
}

static int psp_class_new(struct psp_qdisc *q, u32 classid, struct psp_group *g,
			 const struct psp_class_options *opt, struct psp_class **made,
			 struct netlink_ext_ack *extack)
{
	struct psp_class *cl = kzalloc(sizeof(*cl), GFP_KERNEL_ACCOUNT);
	int err;

	if (!cl)
		return -ENOMEM;
	cl->group = g;
	cl->entity.in_group = !!g;
	err = psp_class_setup(q, cl, classid, opt, extack);
	if (err) {
		kfree(cl);
		return err;
	}

	sch_tree_lock(q->sch);
	if (g)
		list_add_tail(&cl->member, &g->members);
	qdisc_class_hash_insert(&q->classes, &cl->common);
	sch_tree_unlock(q->sch);
	qdisc_class_hash_grow(q->sch, &q->classes);
	*made = cl;
	return 0;
}

/*
 * Frames are in a FIFO or in the order of their launch times, and do not change
 * over.  Tree lock.
 */
static int psp_class_check_txtime(const struct psp_class *cl,
				  const struct psp_class_options *opt,
				  struct netlink_ext_ack *extack)
{
	u32 id = cl->common.classid;

	if (opt->txtime == cl->opt.txtime &&
	    opt->txtime_deadline == cl->opt.txtime_deadline)
		return 0;
	if (cl->child) {
		psp_set_extack(extack, "txtime of %x:%x: it has a qdisc below it, expected none",
			       TC_H_MAJ(id) >> 16, TC_H_MIN(id));
		return -EINVAL;
	}
	if (cl->entity.queue.qlen) {
		psp_set_extack(extack, "txtime of %x:%x: %u frames wait, expected none",
			       TC_H_MAJ(id) >> 16, TC_H_MIN(id),
			       cl->entity.queue.qlen);
		return -EBUSY;
	}
	return 0;
}

/*
 * Before a class changes its type its flows must have sent their frames: there
 * is no order between those and the frames of its queue.  Tree lock.
 */
static int psp_class_check_flows(const struct psp_class *cl,
				 const struct psp_class_options *opt,
				 struct netlink_ext_ack *extack)
{
	u32 id = cl->common.classid;

	if (!cl->flows || !cl->flows->active || opt->type == TC_PSP_TYPE_DYNAMIC)
		return 0;
	psp_set_extack(extack, "mode of %x:%x: %u flows have frames, expected none",
		       TC_H_MAJ(id) >> 16, TC_H_MIN(id), cl->flows->active);
	return -EBUSY;
}

/*
 * Puts a group's options in force.  Flows and frames without a flow get rates that fit
 * the total before and after; the next frame of each flow sets its rate again.  Tree
 * lock.
 */
static void psp_class_change_group(struct psp_qdisc *q, struct psp_class *cl,
				   const struct psp_class_options *opt)
{
	u64 least_bps = pace_least_rate_bps(&q->pace.cfg);
	u64 most_bps = min(opt->total_bps, cl->opt.total_bps);
	const struct pace_class_config own = {
		.type = PACE_TYPE_PACED,
		.rate_bps = min(cl->pace.rate_bps, most_bps),
	};

	if (cl->flows) {
		psp_flows_clamp(q, cl, least_bps, most_bps);
		WARN_ON_ONCE(psp_entity_change(q, &cl->entity, &own));
	}
	psp_group_configure(q, cl->group, opt, q->pace.cfg.line_rate_bps);
}

static int psp_class_reconfigure(struct psp_qdisc *q, struct psp_class *cl,
				 const struct psp_class_options *opt,
				 struct netlink_ext_ack *extack)
{
	struct pace_class_config cfg, own;
	struct psp_flows *flows;
	enum pace_error refused;
	bool was_rt;
	int err;

	if (psp_owns_group(cl)) {
		err = psp_group_check(q, cl->group, opt, extack);
		if (err)
			return err;
	}
	err = psp_class_check_shared(q, opt, extack) ?:
	      psp_class_check(q, cl, opt, &cfg, extack) ?:
	      psp_class_alloc_parts(q, cl, TC_H_MIN(cl->common.classid), opt) ?:
	      psp_class_new_flows(q, cl, opt, &flows, extack);
	if (err)
		return err;
	own = psp_class_core_config(cl, opt->type, &cfg);
	sch_tree_lock(q->sch);
	err = psp_class_check_flows(cl, opt, extack) ?:
	      psp_class_check_txtime(cl, opt, extack);
	if (err) {
		sch_tree_unlock(q->sch);
		if (flows)
			psp_flows_free(flows);
		return err;
	}
	was_rt = cl->pace.type == PACE_TYPE_RT;
	if (psp_owns_group(cl))
		psp_class_change_group(q, cl, opt);
	refused = psp_entity_change(q, &cl->entity, &own);
	if (!refused) {
		psp_class_set_options(q, cl, opt, &flows);
		psp_class_share(q, cl);
		/* The frames that wait arrive at this instant. */
		if (!was_rt && !psp_child_is_throttled(cl))
			psp_report_backlog(q, cl, ktime_get_ns());
	}
	sch_tree_unlock(q->sch);
	if (flows)
		psp_flows_free(flows);
	if (refused)
		return psp_extack_class(extack, refused, &q->pace.cfg, opt, "the line's ");
	psp_run_root(q);
	return 0;
}

/* Deletes the class and the frames that it holds. */
static void psp_class_delete(struct psp_qdisc *q, struct psp_class *cl)
{
	sch_tree_lock(q->sch);
	if (cl->child)
		qdisc_purge_queue(cl->child);
	psp_drop_head(q, cl);
	psp_drop_fifo(q, cl);
	if (cl->flows)
		psp_flows_clear(q, cl);
	psp_class_deactivate(q, cl, ktime_get_ns());
	psp_entity_del(q, &cl->entity);
	qdisc_class_hash_remove(&q->classes, &cl->common);
	psp_ids_add(q, cl->group, -1);
	q->tai_classes -= cl->opt.txtime == TC_PSP_TXTIME_TAI;
	q->launch_classes -= !!cl->opt.txtime;
	sch_tree_unlock(q->sch);

	psp_class_clear(q, cl);
	kfree(cl);
}

/*
 * Gives each paced class the rate that was asked for, up to the rate of the
 * line.
 */
static void psp_classes_cap(struct psp_qdisc *q, u64 line_rate_bps)
{
	struct psp_class *cl;
	unsigned int i;

	for (i = 0; i < q->classes.hashsize; i++) {
		hlist_for_each_entry(cl, &q->classes.hash[i], common.hnode) {
			struct pace_class_config cfg, own;

			/* Classes below a group fit that, whatever the line is. */
			if (psp_owns_group(cl))
				psp_group_configure(q, cl->group, &cl->opt,
						    line_rate_bps);
			if (cl->group)
				continue;
			cfg = psp_class_config(&cl->opt, line_rate_bps,
					       line_rate_bps);
			own = psp_class_core_config(cl, cl->opt.type, &cfg);
			if (cfg.type != PACE_TYPE_PACED ||
			    (own.rate_bps == cl->pace.rate_bps &&
			     (own.ceil_bps ?: own.rate_bps) ==
			     (cl->pace.ceil_bps ?: cl->pace.rate_bps)))
				continue;
			WARN_ON_ONCE(pace_class_change(&q->pace, &cl->pace, &own,
						       ktime_get_ns()));
		}
	}
}

/*
 * Called before a line takes force: rates that nobody asked for must not be a
 * reason to refuse it.  Flows get rates that core/ accepts on both lines, and
 * so do frames without a flow unless rate or ceil is given.  The next frame
 * of each flow sets its rate again; psp_classes_cap() sets that of the class.
 * There are such rates: psp_port_reconfigure().
 */
static void psp_classes_fit_flows(struct psp_qdisc *q, const struct pace_config *cfg)
{
	const struct pace_config *now = &q->pace.cfg;
	u64 least_bps = max(pace_least_rate_bps(now), pace_least_rate_bps(cfg));
	u64 most_bps = min(now->line_rate_bps, cfg->line_rate_bps);
	const struct pace_class_config whole_line = {
		.type = PACE_TYPE_PACED,
		.rate_bps = most_bps,
	};
	struct psp_class *cl;
	unsigned int i;

	for (i = 0; i < q->classes.hashsize; i++) {
		hlist_for_each_entry(cl, &q->classes.hash[i], common.hnode) {
			if (!cl->flows)
				continue;
			psp_flows_clamp(q, cl, least_bps,
					min(most_bps, cl->opt.total_bps ?: U64_MAX));
			if (!cl->group && !cl->opt.rate_bps && !cl->opt.ceil_bps)
				pace_class_change(&q->pace, &cl->pace, &whole_line,
						  ktime_get_ns());
		}
	}
}

static void psp_class_reset(struct psp_qdisc *q, struct psp_class *cl)
{
	if (cl->flows)
		psp_flows_clear(q, cl);
	if (cl->child)
		qdisc_reset(cl->child);
	psp_drop_head(q, cl);
	/* The counters of the qdisc are reset with it. */
	psp_free_fifo(cl);
	psp_class_deactivate(q, cl, ktime_get_ns());
}

static void psp_classes_reset(struct psp_qdisc *q)
{
	struct psp_class *cl;
	unsigned int i;

	for (i = 0; i < q->classes.hashsize; i++)
		hlist_for_each_entry(cl, &q->classes.hash[i], common.hnode)
			psp_class_reset(q, cl);
}

/* Called when nothing sends any more and no filter names a class. */
static void psp_classes_destroy(struct psp_qdisc *q)
{
	struct hlist_node *next;
	struct psp_class *cl;
	unsigned int i;

	for (i = 0; i < q->classes.hashsize; i++) {
		hlist_for_each_entry_safe(cl, next, &q->classes.hash[i],
					  common.hnode) {
			psp_class_clear(q, cl);
			kfree(cl);
		}
	}
	qdisc_class_hash_destroy(&q->classes);
}

static int psp_class_dump_stats(struct Qdisc *sch, unsigned long arg,
				struct gnet_dump *d)
{
	struct psp_class *cl = (struct psp_class *)arg;
	struct psp_qdisc *q = qdisc_priv(sch);
	struct gnet_stats_queue queue = {};
	struct gnet_stats_basic_sync sent;
	struct tc_psp_class_stats st;
	u32 qlen;

	/* Read at one instant, so that no frame is both sent and queued. */
	gnet_stats_basic_sync_init(&sent);
	sch_tree_lock(sch);
	gnet_stats_add_basic(&sent, NULL, &cl->bstats, true);
	if (cl->child) {
		qdisc_qstats_qlen_backlog(cl->child, &qlen, &queue.backlog);
	} else {
		qlen = psp_class_qlen(cl);
		queue.backlog = psp_class_backlog(cl);
	}
	if (cl->head) {
		qlen++;
		queue.backlog += qdisc_pkt_len(cl->head);
	}
	if (cl->flows) {
		qlen += cl->flows->qlen;
		queue.backlog += cl->flows->backlog;
	}
	if (psp_owns_group(cl))
		psp_group_backlog(cl->group, &qlen, &queue.backlog);
	psp_fill_class(&st, q, cl);
	queue.drops = psp_class_drops(&cl->count);
	sch_tree_unlock(sch);
	if (cl->flows)
		psp_flows_stats(q, cl, &st);

	if (gnet_stats_copy_basic(d, NULL, &sent, true) < 0 ||
	    gnet_stats_copy_queue(d, NULL, &queue, qlen) < 0)
		return -1;
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

/* Class operations of tc. */

/*
 * Finds the group that a class is to be in; *g is NULL if it is below the qdisc.  `cl`
 * exists already, or is NULL.
 */
static int psp_class_parent(struct psp_qdisc *q, const struct psp_class *cl, u32 parentid,
			    struct psp_group **g, struct netlink_ext_ack *extack)
{
	u32 root = q->sch->handle, is_below = root;
	const struct psp_class *parent = NULL;

	if (parentid != TC_H_ROOT && parentid != root) {
		parent = psp_class_find(q, parentid);
		if (!parent || parent->opt.type != TC_PSP_TYPE_GROUP) {
			psp_set_extack(extack, "parent %x:%x: expected %x: or a class of mode group",
				       TC_H_MAJ(parentid) >> 16, TC_H_MIN(parentid),
				       root >> 16);
			return -EINVAL;
		}
		*g = parent->group;
	}
	if (!cl)
		return 0;
	if (cl->group && !psp_owns_group(cl))
		is_below = cl->group->owner->common.classid;
	if (is_below == (parent ? parentid : root))
		return 0;
	psp_set_extack(extack, "parent %x:%x: expected %x:%x, classes do not move",
		       TC_H_MAJ(parentid) >> 16, TC_H_MIN(parentid),
		       TC_H_MAJ(is_below) >> 16, TC_H_MIN(is_below));
	return -EINVAL;
}

static int psp_change_class(struct Qdisc *sch, u32 classid, u32 parentid,
			    struct nlattr **tca, unsigned long *arg,
			    struct netlink_ext_ack *extack)
{
	struct psp_class *cl = (struct psp_class *)*arg;
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_class_options opt = {};
	struct psp_group *g = NULL;
	int err;

	err = psp_class_parent(q, cl, parentid, &g, extack);
	if (err)
		return err;
	if (!TC_H_MIN(classid)) {
		psp_set_extack(extack, "classid %x:0: expected %x:1 to %x:ffff",
			       sch->handle >> 16, sch->handle >> 16,
			       sch->handle >> 16);
		return -EINVAL;
	}
	if (tca[TCA_RATE]) {
		psp_set_extack(extack, "estimator: expected none on a class");
		return -EOPNOTSUPP;
	}

	if (cl)
		opt = cl->opt;
	err = psp_parse_class(tca[TCA_OPTIONS], &opt, !cl, extack);
	if (err)
		return err;
	err = psp_group_check_type(cl, cl ? cl->group : g, &opt, extack);
	if (err)
		return err;
	if (cl)
		return psp_class_reconfigure(q, cl, &opt, extack);
	err = psp_class_new(q, classid, g, &opt, &cl, extack);
	if (!err)
		*arg = (unsigned long)cl;
	return err;
}

/*
 * Deletes a class with its frames, as other qdiscs do; not one that filters
 * name.
 */
static int psp_delete_class(struct Qdisc *sch, unsigned long arg,
			    struct netlink_ext_ack *extack)
{
	struct psp_class *cl = (struct psp_class *)arg;
	struct psp_qdisc *q = qdisc_priv(sch);

	if (cl->filters) {
		psp_set_extack(extack, "class %x:%x: %u filters name it, expected none",
			       TC_H_MAJ(cl->common.classid) >> 16,
			       TC_H_MIN(cl->common.classid), cl->filters);
		return -EBUSY;
	}

	if (psp_owns_group(cl) && !list_empty(&cl->group->members)) {
		psp_set_extack(extack, "class %x:%x: it has classes, expected none",
			       TC_H_MAJ(cl->common.classid) >> 16,
			       TC_H_MIN(cl->common.classid));
		return -EBUSY;
	}
	psp_class_delete(q, cl);
	return 0;
}

/*
 * Gives the class another child, or without `new` its own FIFO again.  The
 * frames of the one before are dropped, as everywhere.
 */
static int psp_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
		     struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct psp_class *cl = (struct psp_class *)arg;
	struct psp_qdisc *q = qdisc_priv(sch);

	if (new && cl->opt.txtime) {
		psp_set_extack(extack, "qdisc below %x:%x: expected none, the class has txtime",
			       TC_H_MAJ(cl->common.classid) >> 16,
			       TC_H_MIN(cl->common.classid));
		return -EOPNOTSUPP;
	}
	sch_tree_lock(sch);
	cl->entity.is_plain = false;
	sch_tree_unlock(sch);
	*old = qdisc_replace(sch, new, &cl->child);

	sch_tree_lock(sch);
	psp_drop_head(q, cl);
	psp_drop_fifo(q, cl);
	psp_class_set_plain(cl);
	if (!psp_class_qlen(cl))
		psp_class_deactivate(q, cl, ktime_get_ns());
	sch_tree_unlock(sch);
	return 0;
}

/* Returns the child that was grafted, or NULL: users see no other. */
static struct Qdisc *psp_leaf(struct Qdisc *sch, unsigned long arg)
{
	return ((struct psp_class *)arg)->child;
}

/*
 * The child has dropped its last frame.  The call may come more than once,
 * and for an inactive class.  If the child is being asked for a frame, the
 * caller of its dequeue sets the state; if a frame was taken out already, the
 * class stays active.
 */
static void psp_qlen_notify(struct Qdisc *sch, unsigned long arg)
{
	struct psp_class *cl = (struct psp_class *)arg;
	struct psp_qdisc *q = qdisc_priv(sch);

	if (cl && cl != q->serving && !cl->head)
		psp_class_deactivate(q, cl, ktime_get_ns());
}

static unsigned long psp_find(struct Qdisc *sch, u32 classid)
{
	return (unsigned long)psp_class_find(qdisc_priv(sch), classid);
}

/* Filters are attached to the qdisc; classes have none. */
static struct tcf_block *psp_tcf_block(struct Qdisc *sch, unsigned long arg,
				       struct netlink_ext_ack *extack)
{
	struct psp_qdisc *q = qdisc_priv(sch);

	if (arg) {
		q->walks_for_filters = !extack;
		psp_set_extack(extack, "filter on a class: expected parent %x:",
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

/*
 * The stack walks through all classes for each one that comes, to ask whose filters
 * name it.  Classes have none, so it need not ask a second one.
 */
static void psp_walk(struct Qdisc *sch, struct qdisc_walker *arg)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_class *cl;
	unsigned int i;

	if (arg->stop)
		return;
	q->walks_for_filters = false;
	for (i = 0; i < q->classes.hashsize; i++) {
		hlist_for_each_entry(cl, &q->classes.hash[i], common.hnode) {
			if (!tc_qdisc_stats_dump(sch, (unsigned long)cl, arg) ||
			    q->walks_for_filters)
				return;
		}
	}
}

static const struct Qdisc_class_ops psp_class_ops = {
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
