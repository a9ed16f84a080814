// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Groups of classes: hierarchical WF2Q+ (Bennett and Zhang, 1996 and 1997) of two
 * levels, of schedulers that pace.
 *
 * The node is a class of the port with the group's rate and ceil, so the port knows
 * nothing else of a group.  The inner scheduler says which class of the group is due,
 * and no more: it has no line of its own (group_line()), because the node's clocks are
 * what bounds the group.  What it decides by is the port's clock: a class of a group is
 * due when the port's clock reaches it, bytes or real time as the mode has it.  The port
 * may send half a smallest gap early, so the inner clock is ahead of the port's by that.
 *
 * A node is active as long as a class of its group has a packet.  While none is due it
 * rests until the first will be (rest.c).  It is asked when a frame has gone and when a
 * class has come, so the port does not wake up for a node that has nothing to send.
 *
 * Over-subscription.  The inner scheduler is over-subscribed if its classes offer more
 * than the group's rate, or if the port is: then the group may get less than its rate,
 * its classes lag behind together, and so they share what it gets in proportion to their
 * rates.  When the port no longer is, the common lag is forgotten, but for what a class
 * is late by on two levels (group_settle()).
 *
 * Error bound.  Rates are exact on both levels, as clocks are; an instant is rounded up
 * to a whole nanosecond, and that does not add up.  If neither level is over-subscribed
 * a class of rate r in a group of rate g on a line of rate R sends its frame later than
 * its clock by no more than one longest burst at r, at g and at R: its burstiness is
 * below 2 + r/g longest bursts.  docs/decisions/core.md, "Groups".
 */
#include <pace/pace_group.h>

/* Copies of the path of a frame: sched.c. */
static noinline struct pace_decision
group_decide(struct pace_sched *s, u64 now_ns)
{
	return decide(s, now_ns);
}

static noinline void
group_account(struct pace_sched *s, struct pace_class *c, const struct pace_burst *t,
	      bool more, u64 now_ns)
{
	account_burst(s, c, t, more, now_ns);
}

/* Returns a burst of the port as the inner scheduler counts it. */
static struct pace_burst inner_burst(const struct pace_config *port,
				     const struct pace_burst *t)
{
	u32 bytes = pace_counted_bytes(port, t);

	return (struct pace_burst){
		.len_bytes = bytes < PACE_FRAME_MAX ? bytes : PACE_FRAME_MAX,
		.frames = t->frames,
		.wire_bytes = bytes,
	};
}

static struct pace_config inner_config(const struct pace_config *port, u64 ceil_bps)
{
	const struct pace_burst frame = frame_of(port, port->max_frame_bytes);
	const struct pace_burst burst = longest_burst(port);
	struct pace_config cfg = {
		.line_rate_bps = ceil_bps,
		.max_frame_bytes = inner_burst(port, &frame).len_bytes,
		.layer = PACE_LAYER_WIRE,
		.order = port->order,
		.mode = PACE_MODE_TIMER,
	};

	if (cfg.line_rate_bps < PACE_LINE_RATE_MIN)
		cfg.line_rate_bps = PACE_LINE_RATE_MIN;
	if (port->max_burst_bytes)
		cfg.max_burst_bytes = inner_burst(port, &burst).len_bytes;
	return cfg;
}

/* Sets from when on the inner scheduler is over-subscribed. */
static void group_set_load(const struct pace_sched *port, struct pace_group *g)
{
	g->port_over = pace_over_subscribed(port);
	g->inner.load_most_bps = g->port_over ? 0 : g->node->rate_bps;
}

/*
 * Takes the line from the inner scheduler: it is free at once.  What is given to it is
 * the node's rate, and by that its classes lag.
 */
static void group_line(const struct pace_sched *port, struct pace_group *g)
{
	u64 rem, ps = pace_div_rem(g->inner.burst_wire_bytes * PACE_BYTE_PS,
				   g->node->rate_bps, &rem);

	g->inner.byte_ps = 0;
	g->inner.byte_rem = 0;
	g->inner.burst_ps = ps + (rem != 0);
	g->inner.step_ps = port->step_ps;
	group_set_load(port, g);
}

/*
 * The port is no longer over-subscribed: forgets what the classes lag together.  Two
 * bursts of the group are what a class is late by without that.
 */
static void group_settle(struct pace_group *g)
{
	struct pace_sched *s = &g->inner;
	const struct pace_class *first;
	u64 keep = 2 * s->burst_ps + s->timer_ps;
	u64 lag;

	if (s->cfg.order == PACE_ORDER_RATE)
		return;
	pace_invalidate(s);
	first = pace_first_eligible(s);
	lag = first ? lag_in_order(s, first) : 0;
	if (lag > keep)
		rebase(s, lag - keep);
}

/* Advances the inner clock to the port's.  Returns the instant on it. */
static u64 group_advance(const struct pace_sched *port, struct pace_group *g)
{
	u64 now = port->global_ps + early_limit_ps(port);
	u64 ns, rem;

	/*
	 * In another mode the port may be less early, and the inner clock waits for it.  Or
	 * nothing was sent for 106 days.
	 */
	if ((s64)(now - g->at_ps) < 0) {
		if (g->at_ps - now > pace_ring_ps(port) + PACE_STALL_PS)
			g->at_ps = now;
	} else {
		ns = pace_div_rem(now - g->at_ps, PACE_PS_PER_NS, &rem);
		g->at_ps += ns * PACE_PS_PER_NS;
		g->at_ns += ns;
	}
	if (port->step_ps) {
		g->inner.host_ps = g->at_ps - g->at_ns * PACE_PS_PER_NS + line_base(port);
		lane_adopt(port, g);
	}
	/* As late as the port may be, its classes may be, too. */
	g->inner.timer_ps = PACE_STALL_PS + pace_lag_max(port);
	if (g->port_over != pace_over_subscribed(port)) {
		if (g->port_over)
			group_settle(g);
		group_set_load(port, g);
	}
	return g->at_ns;
}

/* Returns where the port's clock is at an instant of the inner clock. */
static u64 group_position(const struct pace_group *g, u64 ns)
{
	return g->at_ps + (ns - g->at_ns) * PACE_PS_PER_NS;
}

/* Will the port ask the node before its clock reaches `position`? */
static bool group_has_to_rest(const struct pace_sched *port, const struct pace_class *node,
			      u64 position)
{
	u64 clock = node->has_ceil ? node->ceil_clock.ps : node->clock.ps;

	if (pace_is_resting(node))
		return node->rest_ps != position;
	return pace_clock_ahead(position - port->offset_ps, pace_key_clock(clock));
}

/* Nothing in the group is due before `position`: the node keeps its turn, or rests. */
static void group_wait(struct pace_sched *port, struct pace_group *g, u64 position)
{
	if (lane_wait(port, g, position))
		return;
	pace_invalidate(port);
	lane_close(port, g);
	pace_rest_begin(port, g->node, position);
}

/*
 * Brings the node to what the classes of the group have become; the port's clock is up
 * to date and its last answer invalidated, unless all that changed was sent.
 */
static void group_follow(struct pace_sched *port, struct pace_group *g, u64 now_ns)
{
	struct pace_class *node = g->node;
	struct pace_decision d;
	u64 position;

	if (!pace_active(&g->inner)) {
		if (node->active) {
			lane_close(port, g);
			pace_unschedule_class(port, node);
		}
		return;
	}
	if (!node->active) {
		if (node->part) {
			d = group_decide(&g->inner, group_advance(port, g));
			lane_enter(port, g, d.cls);
		}
		pace_schedule_class(port, node, now_ns);
	}
	d = group_decide(&g->inner, group_advance(port, g));
	if (d.verdict == PACE_WAIT) {
		position = group_position(g, d.until_ns);
		if (group_has_to_rest(port, node, position))
			group_wait(port, g, position);
		return;
	}
	if (pace_is_resting(node)) {
		lane_enter(port, g, d.cls);
		pace_rest_end(port, node, port->global_ps);
	}
	lane_follow(port, g, d.cls);
}

enum pace_error pace_group_check(const struct pace_config *port, const struct pace_group *g,
				 u64 ceil_bps, struct pace_class **culprit)
{
	struct pace_config cfg = inner_config(port, ceil_bps);
	enum pace_error err = pace_check_config(&cfg);
	struct pace_class *bad = NULL;

	if (!err && g)
		bad = find_culprit(&g->inner, &cfg, &err);
	if (culprit)
		*culprit = bad;
	return err;
}

enum pace_error pace_group_init(const struct pace_sched *port, struct pace_group *g,
				struct pace_class *node, u64 ceil_bps, void *storage,
				u32 capacity)
{
	struct pace_config cfg = inner_config(&port->cfg, ceil_bps);
	enum pace_error err;

	pace_memset(g, 0, sizeof(*g));
	err = pace_init(&g->inner, &cfg, storage, capacity, 0);
	if (err)
		return err;
	g->node = node;
	g->at_ps = port->global_ps + early_limit_ps(port);
	group_line(port, g);
	return PACE_OK;
}

void pace_group_join(struct pace_sched *port, struct pace_group *g, struct pace_part *part,
		     struct pace_part *ceil_part)
{
	pace_class_join(port, g->node, part, ceil_part);
	lane_join(port, g);
}

void pace_group_configure(struct pace_sched *port, struct pace_group *g, u64 ceil_bps,
			  u64 now_ns)
{
	struct pace_config cfg = inner_config(&port->cfg, ceil_bps);

	advance_to_arrival(port, now_ns);
	if (!PACE_ASSERT(!pace_reconfigure(&g->inner, &cfg, group_advance(port, g), NULL)))
		return;
	group_line(port, g);
	lane_rescale(port, g);
	group_follow(port, g, now_ns);
}

enum pace_error pace_group_class_change(struct pace_sched *port, struct pace_group *g,
					struct pace_class *c,
					const struct pace_class_config *cfg, u64 now_ns)
{
	enum pace_error err = pace_class_check(&g->inner, c, cfg);

	if (err)
		return err;
	advance_to_arrival(port, now_ns);
	pace_class_change(&g->inner, c, cfg, group_advance(port, g));
	group_follow(port, g, now_ns);
	return PACE_OK;
}

void pace_group_class_del(struct pace_sched *port, struct pace_group *g,
			  struct pace_class *c)
{
	pace_class_del(&g->inner, c);
	pace_invalidate(port);
	group_follow(port, g, port->asked_ns);
}

void pace_group_activate(struct pace_sched *port, struct pace_group *g,
			 struct pace_class *c, u64 now_ns)
{
	if (c->active || !PACE_ASSERT(pace_id_held(&g->inner, c)))
		return;
	advance_to_arrival(port, now_ns);
	pace_activate(&g->inner, c, group_advance(port, g));
	group_follow(port, g, now_ns);
}

void pace_group_deactivate(struct pace_sched *port, struct pace_group *g,
			   struct pace_class *c, u64 now_ns)
{
	if (!c->active)
		return;
	pace_invalidate(port);
	pace_advance_clock(port, now_ns);
	pace_deactivate(&g->inner, c, group_advance(port, g));
	group_follow(port, g, now_ns);
}

struct pace_decision pace_group_next(struct pace_sched *port, struct pace_group *g)
{
	struct pace_decision d = group_decide(&g->inner, group_advance(port, g));

	if (d.verdict == PACE_WAIT)
		group_wait(port, g, group_position(g, d.until_ns));
	else if (!lane_may_send(port, g, d.cls))
		d.verdict = PACE_WAIT;
	else if (d.late_ps)
		d.late_ps -= (s64)early_limit_ps(port);
	return d;
}

void pace_group_sent(struct pace_sched *port, struct pace_group *g, struct pace_class *c,
		     const struct pace_burst *t, bool more, u64 now_ns)
{
	const struct pace_burst inner = inner_burst(&port->cfg, t);
	bool borrowed;

	lane_sends(port, g);
	borrowed = !at_rate(port, g->node);
	/* At the instant at which it was decided. */
	group_account(&g->inner, c, &inner, more, g->at_ns);
	group_account(port, g->node, t, pace_active(&g->inner), now_ns);
	lane_sent(port, g, borrowed);
	if (g->node->active)
		group_follow(port, g, now_ns);
}

u64 pace_group_debt_ns(const struct pace_sched *port, const struct pace_group *g,
		       const struct pace_class *c, u64 now_ns)
{
	struct pace_line line = port->line;
	u64 ps = port->global_ps;

	if (port->cfg.mode == PACE_MODE_TIMER || port->idling || !pace_active(port)) {
		pace_line_advance(&line, now_ns);
		ps = pace_later(line.ps, ps);
	}
	ps += early_limit_ps(port);
	if ((s64)(ps - g->at_ps) < 0)
		ps = g->at_ps;
	return pace_debt_ns(&g->inner, c, g->at_ns + pace_ns_of(ps - g->at_ps));
}
