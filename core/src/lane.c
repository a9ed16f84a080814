// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lanes: what a group guarantees its classes, where several queues send them.
 *
 * To a group the clocks of its node are what the line is to the port (part.c).  What a
 * class of the group sends at its rate leaves when that says so, and is charged to the
 * node's common clocks afterwards.  All else in the group (normal classes, what is
 * borrowed there) leaves in steps of them, which begin when they have carried all that
 * was charged.  So what is guaranteed in one queue does not wait for what is to spare in
 * another.
 *
 * The node has clocks in each lane, exact as those of any class; its own are those of the
 * lane that its next frame is of.  The other's wait in the group, with the step that the
 * queue has: while something guaranteed goes first it keeps its turn.
 *
 * Who waits for a step looks up before, if something will be guaranteed until then:
 * meanwhile the node's clocks are that instant (lane_peek()).
 *
 * Over-subscription.  Where the rates of a group exceed its own, the node's common clock
 * runs away from time, and all class clocks of the group are set back, as those of a
 * device are by the line's: its offset.  The classes of a group are the port's, so they
 * adopt the offset of the line, too; and the node's clock counts by that time.
 */
#include <pace/pace_group.h>

static inline bool has_lanes(const struct pace_group *g)
{
	return g->node->part && g->node->part->lane;
}

static inline bool in_lane(const struct pace_group *g, enum pace_lane lane)
{
	return g->node->part->lane == lane;
}

/* Returns for how long a queue keeps a turn in which nothing is due: a round of steps. */
static u64 turn_kept_ps(const struct pace_sched *port, const struct pace_group *g)
{
	u64 step_ps = port->step_ps > g->node->rate_quot ? port->step_ps : g->node->rate_quot;

	return port->device ? pace_read_once(port->device->queues) * step_ps : 0;
}

/* Returns where the clocks of a turn are that is kept no more. */
static u64 turn_floor(const struct pace_sched *port, const struct pace_group *g)
{
	return pace_schedule_clock(port) - turn_kept_ps(port, g) - PACE_SLACK_PS;
}

/* Has a step of the node begun, and is it not used up? */
static bool has_turn(const struct pace_sched *port, const struct pace_group *g)
{
	const struct pace_class *node = g->node;
	const struct pace_part *p = node->part, *cp = node->ceil_part;
	u64 now = pace_schedule_clock(port);
	u64 clock = node->clock.ps, ceil_clock = node->ceil_clock.ps;

	if (!p->open)
		return false;
	if (in_lane(g, PACE_LANE_GUARANTEED)) {
		clock = g->lane_clock.ps;
		ceil_clock = g->lane_ceil_clock.ps;
	} else if (p->peeks) {
		clock = p->step_clock.ps;
		ceil_clock = cp->step_clock.ps;
	}
	clock = pace_clock_later(clock, turn_floor(port, g));
	ceil_clock = pace_clock_later(ceil_clock, turn_floor(port, g));
	if ((s64)(p->end_ps - clock) < (s64)(node->rate_quot / 2) ||
	    pace_clock_ahead(pace_key_clock(clock), now))
		return false;
	return !node->has_ceil ||
	       ((s64)(cp->end_ps - ceil_clock) >= (s64)(node->ceil_quot / 2) &&
		!pace_clock_ahead(pace_key_clock(ceil_clock), now));
}

/* Is the next frame, one of `c`, guaranteed? */
static bool is_guaranteed(const struct pace_group *g, const struct pace_class *c)
{
	return c->type == PACE_TYPE_PACED && at_rate(&g->inner, c);
}

/* Returns the lane for that.  Who has a turn takes it, or its time would pass. */
static enum pace_lane lane_of(const struct pace_sched *port, const struct pace_group *g,
			      const struct pace_class *c)
{
	return is_guaranteed(g, c) && !has_turn(port, g) ? PACE_LANE_GUARANTEED :
							    PACE_LANE_SPARE;
}

static void swap_clocks(struct pace_clock *a, struct pace_clock *b)
{
	struct pace_clock a_was = *a;

	*a = *b;
	*b = a_was;
}

/* The node's clocks become those of the other lane. */
static void lane_swap(struct pace_group *g)
{
	struct pace_class *node = g->node;
	u8 lane = in_lane(g, PACE_LANE_SPARE) ? PACE_LANE_GUARANTEED : PACE_LANE_SPARE;

	node->part->lane = lane;
	node->ceil_part->lane = lane;
	swap_clocks(&node->clock, &g->lane_clock);
	swap_clocks(&node->ceil_clock, &g->lane_ceil_clock);
	pace_eligible_update(node);
}

/* Takes the active node out of the port's queues, to give it other clocks. */
static void node_leave(struct pace_sched *port, struct pace_class *node)
{
	pace_invalidate(port);
	pace_paced_remove(port, node);
	if (node->has_ceil)
		pace_borrow_leave(port, node);
}

static void node_join(struct pace_sched *port, struct pace_class *node)
{
	pace_eligible_update(node);
	if (node->has_ceil)
		pace_borrow_join(port, node);
	pace_paced_insert(port, node);
}

/* Gives back the step that the other lane keeps, before the node rests or is inactive. */
static void lane_close(const struct pace_sched *port, struct pace_group *g)
{
	if (!has_lanes(g) || !g->node->part->open || in_lane(g, PACE_LANE_SPARE))
		return;
	lane_swap(g);
	pace_part_rest(port, g->node);
	lane_swap(g);
}

/*
 * The node, in no queue, is about to become active for a frame of `c`; NULL: none is due,
 * and it stays in the lane of the last one.
 */
static void lane_enter(const struct pace_sched *port, struct pace_group *g,
		       const struct pace_class *c)
{
	if (!has_lanes(g) || !c || in_lane(g, lane_of(port, g, c)))
		return;
	lane_close(port, g);
	lane_swap(g);
}

/*
 * Returns when the first class of the group will be guaranteed something, as the port's
 * clock counts; false if that is not before `position`.
 */
static bool first_guaranteed(const struct pace_group *g, u64 position, u64 *at)
{
	const struct pace_sched *inner = &g->inner;
	const struct pace_class *first = pace_first_waiting(inner);

	if (!first)
		return false;
	*at = pace_eligible_time(first) + inner->offset_ps - inner->global_ps + g->at_ps;
	return (s64)(*at - position) < 0;
}

/* The node's clocks are `at` for now, or where they are if that is later. */
static void lane_set_peek(struct pace_group *g, u64 at, bool later)
{
	struct pace_class *node = g->node;

	node->part->peeks = true;
	node->part->step_clock = node->clock;
	node->ceil_part->step_clock = node->ceil_clock;
	if (pace_clock_ahead(node->clock.ps, at) != later)
		pace_clock_set(&node->clock, at);
	if (node->has_ceil && pace_clock_ahead(node->ceil_clock.ps, at) != later)
		pace_clock_set(&node->ceil_clock, at);
}

/* The clocks of the node, which has steps and is in no queue, are those of its turn. */
static void lane_look_down(const struct pace_sched *port, struct pace_group *g)
{
	struct pace_class *node = g->node;
	u64 floor = turn_floor(port, g);

	pace_part_look_down(node);
	if (in_lane(g, PACE_LANE_GUARANTEED))
		return;
	pace_clock_raise(&node->clock, floor);
	pace_step_raise(node->part, node->clock.ps);
	if (node->has_ceil) {
		pace_clock_raise(&node->ceil_clock, floor);
		pace_step_raise(node->ceil_part, node->ceil_clock.ps);
	}
	pace_eligible_update(node);
}

/*
 * Nothing in the group is due before `position`, by the port's clock: what borrows there
 * waits for a turn of its own.  Returns true if the active node keeps its turn until then.
 */
static bool lane_wait(struct pace_sched *port, struct pace_group *g, u64 position)
{
	struct pace_class *node = g->node;

	if (!has_lanes(g) || !node->part->open || pace_is_resting(node) ||
	    pace_queue_empty(&g->inner.at_ceil) ||
	    (s64)(position - port->global_ps - turn_kept_ps(port, g)) > 0)
		return false;
	node_leave(port, node);
	if (in_lane(g, PACE_LANE_GUARANTEED))
		lane_swap(g);
	lane_look_down(port, g);
	lane_set_peek(g, position - port->offset_ps, true);
	node_join(port, node);
	return true;
}

/* Where the node waits for its step, it looks up when something is guaranteed before. */
static void lane_peek(const struct pace_sched *port, struct pace_group *g)
{
	struct pace_class *node = g->node;
	u64 at;

	if (pace_is_eligible(port, node) ||
	    !first_guaranteed(g, pace_eligible_time(node) + port->offset_ps, &at))
		return;
	lane_set_peek(g, at - port->offset_ps, false);
}

/* The active node, in no queue, goes by the other lane. */
static void lane_change(struct pace_sched *port, struct pace_group *g)
{
	struct pace_class *node = g->node;

	lane_swap(g);
	if (node->part->open && in_lane(g, PACE_LANE_SPARE)) {
		lane_look_down(port, g);
		return;
	}
	if (in_lane(g, PACE_LANE_GUARANTEED))
		pace_paced_return(port, node);
	else
		pace_clock_raise(&node->clock, pace_schedule_clock(port));
	if (node->has_ceil)
		pace_ceil_return(port, node);
	pace_part_begin(port, node);
}

/* The active node goes by the lane of a frame of `c`, its own or the other. */
static void lane_go(struct pace_sched *port, struct pace_group *g,
		    const struct pace_class *c, bool same)
{
	struct pace_class *node = g->node;

	node_leave(port, node);
	lane_look_down(port, g);
	if (!same)
		lane_change(port, g);
	if (in_lane(g, PACE_LANE_SPARE)) {
		publish_spare(&g->inner, node->part);
		pace_part_settle(port, node);
		if (!is_guaranteed(g, c))
			lane_peek(port, g);
		else if (!pace_is_eligible(port, node))
			lane_change(port, g);
	}
	node_join(port, node);
}

/*
 * The frame that the group sends next is one of `c`: the active node goes by the lane of
 * that, and keeps no step for what is to spare where nothing is.
 */
static void lane_follow(struct pace_sched *port, struct pace_group *g,
			const struct pace_class *c)
{
	const struct pace_part *p = g->node->part;
	bool same;

	if (!has_lanes(g))
		return;
	same = in_lane(g, lane_of(port, g, c));
	if (!same || p->peeks ||
	    (in_lane(g, PACE_LANE_SPARE) && !has_turn(port, g)))
		lane_go(port, g, c, same);
	if (in_lane(g, PACE_LANE_SPARE) || !p->open)
		return;
	promote_borrowing(&g->inner);
	if (!spare_is_wanted(&g->inner))
		lane_close(port, g);
}

/*
 * Returns true if the frame of `c` may be sent, for which the port has named the node; or
 * that has other clocks now.
 */
static bool lane_may_send(struct pace_sched *port, struct pace_group *g,
			  const struct pace_class *c)
{
	struct pace_class *node = g->node;
	bool was_due = pace_is_eligible(port, node);

	if (!has_lanes(g))
		return true;
	lane_follow(port, g, c);
	return pace_is_eligible(port, node) ||
	       (!was_due && node->has_ceil && is_below_ceil(port, node));
}

/*
 * The node is about to send.  What is borrowed leaves before its step begins, and is
 * charged to the clocks of that.
 */
static void lane_sends(struct pace_sched *port, struct pace_group *g)
{
	if (!has_lanes(g) || !g->node->part->peeks)
		return;
	node_leave(port, g->node);
	lane_look_down(port, g);
	node_join(port, g->node);
}

/* The node has sent a frame, at its rate or above that. */
static void lane_sent(struct pace_sched *port, struct pace_group *g, bool borrowed)
{
	struct pace_class *node = g->node;
	struct pace_sched *inner = &g->inner;
	u64 now = class_now(port), ahead_ps;

	if (!has_lanes(g) || in_lane(g, PACE_LANE_SPARE))
		return;
	if (!borrowed)
		pace_clock_advance(&g->owed, node->rate_quot, node->rate_rem,
				   node->rate_bps);
	if (node->has_ceil)
		pace_clock_advance(&g->ceil_owed, node->ceil_quot, node->ceil_rem,
				   node->ceil_bps);
	if ((s64)(g->ceil_owed.ps - inner->step_ps) >= 0) {
		pace_step_take(node->ceil_part->common, now - g->ceil_owed.ps,
			       g->ceil_owed.ps);
		g->ceil_owed.ps = 0;
	}
	if ((s64)(g->owed.ps - inner->step_ps) < 0 || !port->device)
		return;
	ahead_ps = charge(inner, port->device, now, g->owed.ps);
	g->owed.ps = 0;
	if (ahead_ps && loads_of(node->part) > node->rate_bps)
		set_back(node->part->common, now + ahead_ps, now);
	pace_invalidate(inner);
	pace_offset_adopt(inner);
}

/* Adopts what the port has adopted of the line's offset. */
static void lane_adopt(const struct pace_sched *port, struct pace_group *g)
{
	if (!has_lanes(g) || g->inner.port_adopted_ps == port->adopted_ps)
		return;
	g->inner.port_adopted_ps = port->adopted_ps;
	pace_invalidate(&g->inner);
	pace_offset_adopt(&g->inner);
}

/* Notes by which rates the node's clocks count. */
static void lane_note_rates(struct pace_group *g)
{
	g->lane_rate_bps = g->node->rate_bps;
	g->lane_ceil_bps = g->node->ceil_bps;
	g->owed.frac = 0;	/* in units of the old rate */
	g->ceil_owed.frac = 0;
}

/* The node may have another rate or ceil: the other lane's clocks count by that, too. */
static void lane_rescale(const struct pace_sched *port, struct pace_group *g)
{
	struct pace_class *node = g->node;
	u64 now = pace_schedule_clock(port);

	if (!has_lanes(g))
		return;
	lane_close(port, g);
	pace_clock_rescale(&g->lane_clock, now, g->lane_rate_bps, node->rate_bps);
	if (node->has_ceil)
		pace_clock_rescale(&g->lane_ceil_clock, now, g->lane_ceil_bps,
				   node->ceil_bps);
	lane_note_rates(g);
}

/* The node has joined those of the other queues. */
static void lane_join(const struct pace_sched *port, struct pace_group *g)
{
	struct pace_class *node = g->node;

	node->part->lane = PACE_LANE_SPARE;
	node->ceil_part->lane = PACE_LANE_SPARE;
	g->lane_clock = node->clock;
	g->lane_ceil_clock = node->ceil_clock;
	g->inner.line_part = node->part;
	g->inner.port_adopted_ps = port->adopted_ps;
	g->inner.adopted_ps = pace_atomic_read(&node->part->common->offset_ps) +
			      port->adopted_ps;
	lane_note_rates(g);
}
