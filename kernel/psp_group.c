// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups: one level above classes (core/include/pace/pace_group.h).  A class of type
 * group owns one, and so does a dynamic class with the option total, for its flows.
 *
 * Whatever is asked of core/ for a class or flow that may be in a group is asked here.
 * Under the root lock unless a comment says otherwise.
 */

static inline struct psp_group *psp_group_of(struct psp_entity *e)
{
	return e->in_group ? psp_class_of(e)->group : NULL;
}

static void psp_entity_activate(struct psp_qdisc *q, struct psp_entity *e, u64 now_ns)
{
	struct psp_group *g = psp_group_of(e);

	if (unlikely(g))
		pace_group_activate(&q->pace, &g->pace, &e->pace, now_ns);
	else
		pace_activate(&q->pace, &e->pace, now_ns);
}

static void psp_entity_deactivate(struct psp_qdisc *q, struct psp_entity *e, u64 now_ns)
{
	struct psp_group *g = psp_group_of(e);

	if (unlikely(g))
		pace_group_deactivate(&q->pace, &g->pace, &e->pace, now_ns);
	else
		pace_deactivate(&q->pace, &e->pace, now_ns);
}

static enum pace_error psp_entity_change(struct psp_qdisc *q, struct psp_entity *e,
					 const struct pace_class_config *cfg)
{
	struct psp_group *g = psp_group_of(e);
	u64 now_ns = ktime_get_ns();

	return g ? pace_group_class_change(&q->pace, &g->pace, &e->pace, cfg, now_ns) :
		   pace_class_change(&q->pace, &e->pace, cfg, now_ns);
}

static void psp_entity_del(struct psp_qdisc *q, struct psp_entity *e)
{
	struct psp_group *g = psp_group_of(e);

	if (g)
		pace_group_class_del(&q->pace, &g->pace, &e->pace);
	else
		pace_class_del(&q->pace, &e->pace);
}

/* Returns what sends of the group whose node is to send, or NULL if nothing is due. */
static noinline struct psp_entity *psp_group_next(struct psp_qdisc *q,
						  struct psp_entity *node, s64 *late_ps)
{
	struct psp_group *g = container_of(node, struct psp_group, node);
	struct pace_decision d = pace_group_next(&q->pace, &g->pace);

	*late_ps = d.late_ps;
	return d.verdict == PACE_SEND ? psp_entity_of(d.cls) : NULL;
}

/* Reports a frame or burst that is sent to both levels. */
static noinline void psp_group_sent(struct psp_qdisc *q, struct psp_entity *e,
				    const struct pace_burst *burst, bool more, u64 now_ns)
{
	struct psp_class *cl = psp_class_of(e);
	struct psp_group *g = cl->group;
	u64 by_group = q->pace.stats.borrowed_frames;
	u64 by_class = g->pace.inner.stats.borrowed_frames;

	pace_group_sent(&q->pace, &g->pace, &e->pace, burst, more, now_ns);
	cl->count.borrowed_frames += g->pace.inner.stats.borrowed_frames - by_class;
	g->owner->count.borrowed_frames += q->pace.stats.borrowed_frames - by_group;
	if (g->owner != cl && pace_is_throttled(&q->pace, &g->node.pace))
		g->owner->count.throttled++;
}

/* Counts what a class below a group has sent for that, too. */
static noinline void psp_group_count_sent(const struct psp_class *cl,
					  const struct sk_buff *skb,
					  const struct psp_packet_info *info)
{
	struct psp_class *owner = cl->group->owner;

	if (owner == cl)
		return;
	psp_class_count_sent(&owner->count, NULL, &info->burst, 0);
	bstats_update(&owner->bstats, skb);
}

/* Counts ids in use or reserved, in the port's scheduler or in that of a group.  RTNL. */
static void psp_ids_add(struct psp_qdisc *q, struct psp_group *g, int ids)
{
	q->reserved += ids;
	if (!g)
		return;
	g->reserved += ids;
	q->reserved_in_groups += ids;
}

/*
 * Makes room for `more` classes and flows, of a group or, without, of the port.
 * Doubles the storage at least, so the cost per class is O(1).  RTNL.
 */
static int psp_grow_storage(struct psp_qdisc *q, struct psp_group *g, u32 more,
			    struct netlink_ext_ack *extack)
{
	struct pace_sched *s = g ? &g->pace.inner : &q->pace;
	u32 *held = g ? &g->capacity : &q->capacity;
	u32 wanted = more + (g ? g->reserved : q->reserved - q->reserved_in_groups);
	u32 capacity = clamp(*held * 2, wanted, PSP_IDS_MAX);
	void *storage;

	if (q->reserved + more > PSP_IDS_MAX) {
		psp_set_extack(extack, "%u classes and flows: expected at most %u",
			       q->reserved + more, PSP_IDS_MAX);
		return -ENOSPC;
	}
	if (wanted <= *held)
		return 0;
	storage = kvzalloc(pace_storage_bytes(capacity), GFP_KERNEL_ACCOUNT);
	if (!storage)
		return -ENOMEM;
	sch_tree_lock(q->sch);
	swap(*(g ? &g->storage : &q->storage), storage);
	pace_set_storage(s, g ? g->storage : q->storage, capacity);
	sch_tree_unlock(q->sch);
	*held = capacity;
	kvfree(storage);
	return 0;
}

static bool psp_makes_group(const struct psp_class_options *opt)
{
	return opt->type == TC_PSP_TYPE_GROUP || opt->total_bps;
}

/* Returns the ceil of a group as asked for: what its classes may be up to. */
static u64 psp_group_ceil_bps(const struct psp_class_options *opt)
{
	if (opt->type != TC_PSP_TYPE_GROUP)
		return opt->total_bps;
	return opt->ceil_bps ?: opt->rate_bps;
}

/* Returns the configuration of a node on a line that no rate may exceed. */
static struct pace_class_config psp_node_config(const struct psp_class_options *opt,
						u64 most_bps)
{
	u64 rate_bps = opt->type == TC_PSP_TYPE_GROUP ? opt->rate_bps : opt->total_bps;

	return (struct pace_class_config){
		.type = PACE_TYPE_PACED,
		.rate_bps = min(rate_bps, most_bps),
		.ceil_bps = min(psp_group_ceil_bps(opt), most_bps),
	};
}

/* Returns the class, or the owner of the node, that core/ names. */
static struct psp_class *psp_culprit(struct pace_class *c)
{
	struct psp_entity *e;

	if (!c)
		return NULL;
	e = psp_entity_of(c);
	return e->is_node ? container_of(e, struct psp_group, node)->owner :
			    psp_class_of(e);
}

/*
 * May a group have these options?  Its node has to fit the line, and the classes below
 * it have to fit the group; flows are fitted when it changes.
 */
static int psp_group_check(struct psp_qdisc *q, const struct psp_group *g,
			   const struct psp_class_options *opt,
			   struct netlink_ext_ack *extack)
{
	struct pace_class_config cfg = psp_node_config(opt, U64_MAX);
	struct psp_class_options shown = *opt;
	u64 ceil_bps = psp_group_ceil_bps(opt);
	struct pace_class *bad = NULL;
	enum pace_error refused;
	u32 id;

	if (opt->type != TC_PSP_TYPE_GROUP && opt->total_bps > q->pace.cfg.line_rate_bps &&
	    (!g || opt->total_bps != g->owner->opt.total_bps)) {
		psp_set_extack(extack, "total %llubit: expected at most the line, %llubit",
			       opt->total_bps, q->pace.cfg.line_rate_bps);
		return -ERANGE;
	}
	/* What stays is capped: the line may have become slower since. */
	if (g && opt->rate_bps == g->owner->opt.rate_bps)
		cfg.rate_bps = min(cfg.rate_bps, q->pace.cfg.line_rate_bps);
	if (g && ceil_bps == psp_group_ceil_bps(&g->owner->opt))
		cfg.ceil_bps = min(cfg.ceil_bps, q->pace.cfg.line_rate_bps);
	refused = pace_class_check(&q->pace, NULL, &cfg);
	if (opt->type != TC_PSP_TYPE_GROUP)
		shown.rate_bps = opt->total_bps;
	if (refused)
		return psp_extack_class(extack, refused, &q->pace.cfg, &shown, "the line's ");
	refused = pace_group_check(&q->pace.cfg,
				   g && opt->type == TC_PSP_TYPE_GROUP ? &g->pace : NULL,
				   ceil_bps, &bad);
	if (!refused)
		return 0;
	if (!bad)
		return psp_extack_class(extack, refused, &q->pace.cfg, &shown, "the line's ");
	id = psp_class_of(psp_entity_of(bad))->common.classid;
	psp_set_extack(extack, "ceil %llubit: expected class %x:%x's or more",
		       ceil_bps, TC_H_MAJ(id) >> 16, TC_H_MIN(id));
	return -ERANGE;
}

/* Puts options that psp_group_check() allows in force.  Tree lock. */
static void psp_group_configure(struct psp_qdisc *q, struct psp_group *g,
				const struct psp_class_options *opt, u64 line_rate_bps)
{
	struct pace_class_config cfg = psp_node_config(opt, line_rate_bps);
	u64 now_ns = ktime_get_ns();

	WARN_ON_ONCE(pace_class_change(&q->pace, &g->node.pace, &cfg, now_ns));
	pace_group_configure(&q->pace, &g->pace, psp_group_ceil_bps(opt), now_ns);
}

/*
 * Frees a group.  Classes below it remain only when the qdisc goes, and nothing sends
 * any more.  RTNL; takes the tree lock.
 */
static void psp_group_free(struct psp_qdisc *q, struct psp_group *g)
{
	struct psp_class *cl, *next;

	list_for_each_entry_safe(cl, next, &g->members, member) {
		list_del_init(&cl->member);
		cl->group = NULL;
	}
	sch_tree_lock(q->sch);
	pace_class_del(&q->pace, &g->node.pace);
	sch_tree_unlock(q->sch);
	psp_ids_add(q, NULL, -1);
	kvfree(g->storage);
	kfree(g);
}

/* Makes the group of a class that is being made.  RTNL; takes the tree lock. */
static int psp_group_new(struct psp_qdisc *q, struct psp_class *owner,
			 const struct psp_class_options *opt,
			 struct netlink_ext_ack *extack)
{
	struct pace_class_config cfg = psp_node_config(opt, U64_MAX);
	enum pace_error refused;
	struct psp_group *g;
	int err;

	err = psp_group_check(q, NULL, opt, extack) ?:
	      psp_grow_storage(q, NULL, 1, extack);
	if (err)
		return err;
	g = kzalloc(sizeof(*g), GFP_KERNEL_ACCOUNT);
	if (!g)
		return -ENOMEM;
	g->capacity = 8;
	g->storage = kvzalloc(pace_storage_bytes(g->capacity), GFP_KERNEL_ACCOUNT);
	if (!g->storage) {
		kfree(g);
		return -ENOMEM;
	}
	g->owner = owner;
	INIT_LIST_HEAD(&g->members);
	sch_tree_lock(q->sch);
	refused = pace_class_add(&q->pace, &g->node.pace, &cfg);
	if (!refused) {
		g->node.is_node = true;
		refused = pace_group_init(&q->pace, &g->pace, &g->node.pace,
					  psp_group_ceil_bps(opt), g->storage,
					  g->capacity);
		if (refused)
			pace_class_del(&q->pace, &g->node.pace);
	}
	sch_tree_unlock(q->sch);
	if (refused) {
		kvfree(g->storage);
		kfree(g);
		return psp_extack_class(extack, refused, &q->pace.cfg, opt, "the line's ");
	}
	psp_ids_add(q, NULL, 1);
	owner->group = g;
	owner->entity.in_group = true;
	return 0;
}

/* May a class of type `opt` be where it is?  `cl` is NULL if it is new. */
static int psp_group_check_type(const struct psp_class *cl, const struct psp_group *g,
				const struct psp_class_options *opt,
				struct netlink_ext_ack *extack)
{
	bool is_below = g && g->owner != cl;

	if (is_below && opt->type != TC_PSP_TYPE_PACED && opt->type != TC_PSP_TYPE_NORMAL) {
		psp_set_extack(extack, "mode in a group: expected paced or normal");
		return -EOPNOTSUPP;
	}
	if (is_below && opt->txtime) {
		psp_set_extack(extack, "txtime in a group: expected a class below the qdisc");
		return -EOPNOTSUPP;
	}
	if (!cl)
		return 0;
	if ((cl->opt.type == TC_PSP_TYPE_GROUP) != (opt->type == TC_PSP_TYPE_GROUP)) {
		psp_set_extack(extack, "mode group: expected for a new class, not for a change");
		return -EOPNOTSUPP;
	}
	if (!cl->opt.total_bps != !opt->total_bps) {
		psp_set_extack(extack, "total: a class gets it when it is made, and keeps one");
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Adds up what waits in the classes below a group.  Tree lock. */
static void psp_group_backlog(const struct psp_group *g, u32 *qlen, u32 *backlog)
{
	const struct psp_class *cl;

	list_for_each_entry(cl, &g->members, member) {
		*qlen += psp_class_qlen(cl);
		*backlog += psp_class_backlog(cl);
		if (cl->head) {
			*qlen += 1;
			*backlog += qdisc_pkt_len(cl->head);
		}
	}
}

/* May a frame's change of the line fail on a group?  Tree lock. */
static enum pace_error psp_groups_check_line(struct psp_qdisc *q,
					     const struct pace_config *line,
					     struct pace_class **culprit)
{
	enum pace_error refused;
	struct psp_class *cl;
	unsigned int i;

	for (i = 0; i < q->classes.hashsize; i++) {
		hlist_for_each_entry(cl, &q->classes.hash[i], common.hnode) {
			if (!psp_owns_group(cl))
				continue;
			refused = pace_group_check(line, &cl->group->pace,
						   psp_group_ceil_bps(&cl->opt), culprit);
			if (refused)
				return refused;
		}
	}
	return PACE_OK;
}
