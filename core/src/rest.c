// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Rests: the node of a group in which no class is due yet (group.c).
 *
 * A node stays active as long as its group has a packet.  Until the first class of
 * the group is due it waits in a queue of its own, by the port's clock: neither a
 * common move of all clocks nor the host's clock touches what waits.  Then its clock
 * is the later of that position and what its rate allows, as with a launch time.
 *
 * While a node rests it is in the offered load.  So the port does not take one frame
 * that a group has to wait for as the end of an over-subscription.
 */
#include <pace/pace_sched.h>

static inline bool pace_is_resting(const struct pace_class *c)
{
	return PACE_GROUPS && c->place == PACE_RESTING;
}

static void pace_rest_remove(struct pace_sched *s, struct pace_class *c)
{
	pace_key_remove(s, &s->resting, c);
	s->others--;
}

/* Ends the rest of a node at a position of the port's clock. */
static void pace_rest_end(struct pace_sched *s, struct pace_class *c, u64 position)
{
	pace_rest_remove(s, c);
	join_paced(s, c, position, pace_over_subscribed(s));
}

/* Ends all rests that are due. */
static void pace_rest_due(struct pace_sched *s)
{
	struct pace_class *c;

	while ((c = queue_head(s, &s->resting)) &&
	       (s64)(c->rest_ps - s->global_ps) <= (s64)early_limit_ps(s))
		pace_rest_end(s, c, c->rest_ps);
}

/* Makes an active node rest, or rest until another position. */
static void pace_rest_begin(struct pace_sched *s, struct pace_class *c, u64 position)
{
	if (pace_is_resting(c)) {
		pace_rest_remove(s, c);
	} else {
		pace_paced_remove(s, c);
		if (c->has_ceil)
			pace_borrow_leave(s, c);
		if (c->part)
			pace_part_rest(s, c);
	}
	/* Keys of a queue are close: those that are due leave it. */
	pace_rest_due(s);
	c->rest_ps = position;
	pace_key_add(s, &s->resting, c);
	s->others++;
}

/*
 * Returns the first node that rests if its position is before *clock or `first`, which
 * that is the clock of, is NULL; else `first`.
 */
static struct pace_class *pace_first_resting(const struct pace_sched *s,
					     struct pace_class *first, u64 *clock)
{
	struct pace_class *c = queue_head(s, &s->resting);
	u64 at = c->rest_ps - s->offset_ps;

	if (first && !pace_clock_ahead(*clock, at))
		return first;
	*clock = at;
	return c;
}
