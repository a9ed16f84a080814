// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Best effort: normal classes share what the paced ones leave, by deficit round
 * robin (Shreedhar and Varghese, "Efficient fair queueing using deficit round
 * robin", 1995) in its surplus form.  A class is served while its deficit is
 * positive and pays afterwards, so the length of a frame need not be known
 * before it is sent.
 *
 * Deficits count wire bytes.  Error bound: over any time in which two classes
 * stay active, their service divided by their quanta differs by less than one
 * quantum and one largest frame.  Cost per frame: one visit, or, when quanta are smaller
 * than frames, at most four rounds: after one in vain, those that nobody can use are
 * added at once.
 */
#include <pace/pace_sched.h>

static u32 pace_quantum(const struct pace_sched *s, const struct pace_class *c)
{
	return c->quantum_bytes ? c->quantum_bytes : s->cfg.max_frame_bytes;
}

/*
 * The guard band.  A normal frame that ends after the next paced one is due
 * makes that one late by up to a largest frame.  With the guard band it is not
 * sent: another class of the round whose first frame fits goes instead, or
 * none.  The nrt class that is next, and excess, wait likewise.  rt frames do
 * not: they have to end in their period.
 *
 * Deficits stay fair.  A class that is passed over gets its quantum as if it
 * had been served, but saves at most two, or a class that never fits would
 * later shut the others out.
 *
 * A frame has to end before paced classes are due at their rates; when they may
 * borrow does not matter.  A frame that never fits, because paced frames are
 * never so far apart, is never sent: such a class needs shorter frames, a rate
 * of its own, or no guard band.
 *
 * Error bound: none; no paced class that was active when a normal frame began
 * waits for it.  Cost: O(1) if the head of the round fits, else a walk over the
 * round.  docs/decisions/core.md, "Guard band".
 */

/* How many quanta a class that is passed over saves up at most. */
#define SAVED_QUANTA	2

/*
 * Returns true if so many bytes end before a paced class is eligible; none is
 * now.
 */
static bool pace_fits(const struct pace_sched *s, u32 wire_bytes)
{
	const struct pace_class *first = pace_first_waiting(s);
	u64 ps = pace_line_takes_ps(s, wire_bytes);

	if (s->launching.count && ps > s->launch_at_ps - s->global_ps)
		return false;
	return !first || ps <= pace_eligible_time(first) - pace_schedule_clock(s);
}

/* Returns the wire bytes of the first frame, or of a longest burst if it is unknown. */
static u32 head_bytes(const struct pace_sched *s, const struct pace_class *c)
{
	return c->head_wire_bytes ? c->head_wire_bytes : s->burst_wire_bytes;
}

static bool pace_head_fits(const struct pace_sched *s,
			   const struct pace_class *c)
{
	return pace_fits(s, head_bytes(s, c));
}

/* Notes the length of a first frame, for any_fits(). */
static void pace_note_head(struct pace_sched *s, u32 wire_bytes)
{
	if (wire_bytes < s->least_head_bytes)
		s->least_head_bytes = wire_bytes;
}

/* O(1) until a shorter frame comes: what does not fit is not looked for twice. */
static bool any_fits(struct pace_sched *s)
{
	const struct pace_class *c = s->ring;
	u32 least = s->burst_wire_bytes;	/* no unknown one is longer */

	if (!pace_fits(s, s->least_head_bytes))
		return false;
	do {
		if (pace_head_fits(s, c))
			return true;
		if (head_bytes(s, c) < least)
			least = head_bytes(s, c);
		c = c->next;
	} while (c != s->ring);
	s->least_head_bytes = least;
	return false;
}

/* Adds a class at the end of the round.  It keeps its debt, but no surplus. */
static void pace_best_effort_insert(struct pace_sched *s, struct pace_class *c)
{
	if (c->deficit_bytes > 0)
		c->deficit_bytes = 0;
	c->passed = false;
	pace_note_head(s, head_bytes(s, c));
	pace_ring_add(&s->ring, c);
	s->active_normal++;
	s->others++;
}

static void pace_best_effort_remove(struct pace_sched *s, struct pace_class *c)
{
	pace_ring_remove(&s->ring, c);
	s->active_normal--;
	s->others--;
}

/*
 * Begins the visit of a class, or goes on with it: adds its quantum if that is
 * due.
 */
static void begin_visit(const struct pace_sched *s, struct pace_class *c)
{
	if (c->deficit_bytes <= 0 || c->passed)
		c->deficit_bytes += pace_quantum(s, c);
	c->passed = false;
}

/* Ends so many visits of a class before it has sent what it might. */
static void pass_over(const struct pace_sched *s, struct pace_class *c, u64 visits)
{
	s64 most = SAVED_QUANTA * (s64)pace_quantum(s, c);

	begin_visit(s, c);
	c->deficit_bytes += (s64)((visits - 1) * pace_quantum(s, c));
	if (c->deficit_bytes > most)
		c->deficit_bytes = most;
	c->passed = true;
}

/* Returns after how many more quanta a class that owes still has no surplus. */
static u64 vain_rounds(const struct pace_sched *s, const struct pace_class *c)
{
	u64 rem;

	return pace_div_rem((u64)-c->deficit_bytes, pace_quantum(s, c), &rem);
}

static bool may_go(const struct pace_sched *s, const struct pace_class *c)
{
	return !s->cfg.guard_band || pace_head_fits(s, c);
}

/*
 * A round was in vain: all that may go owe.  Adds the rounds after it that are, too.
 */
static void skip_rounds(const struct pace_sched *s)
{
	struct pace_class *c = s->ring;
	u64 rounds = ~0ull, own;

	do {
		own = may_go(s, c) ? vain_rounds(s, c) : rounds;
		rounds = own < rounds ? own : rounds;
		c = c->next;
	} while (c != s->ring);
	if (!rounds)
		return;
	do {
		if (may_go(s, c))
			c->deficit_bytes += (s64)(rounds * pace_quantum(s, c));
		else
			pass_over(s, c, rounds);
		c = c->next;
	} while (c != s->ring);
}

/*
 * Returns the normal class to serve; at least one is active.  It returns the
 * same class again until that has been served.
 */
static struct pace_class *pace_best_effort_next(struct pace_sched *s)
{
	struct pace_class *c = s->ring;

	while (c->deficit_bytes <= 0) {
		c->deficit_bytes += pace_quantum(s, c);
		if (c->deficit_bytes > 0)
			break;
		c = c->next;
		if (c == s->ring)
			skip_rounds(s);
	}
	s->ring = c;
	return c;
}

/*
 * Returns the normal class to serve among those that fit, or NULL; at least one
 * is active and no paced one is eligible.  It returns the same class again as
 * long as that fits.
 */
static struct pace_class *pace_guarded_next(struct pace_sched *s)
{
	struct pace_class *c = s->ring;

	if (!any_fits(s)) {
		s->stats.guard_band_held++;
		return NULL;
	}
	if (!pace_head_fits(s, c))
		s->stats.guard_band_held++;
	for (;;) {
		if (!pace_head_fits(s, c)) {
			pass_over(s, c, 1);
		} else {
			begin_visit(s, c);
			if (c->deficit_bytes > 0)
				break;
		}
		c = c->next;
		if (c == s->ring)
			skip_rounds(s);
	}
	s->ring = c;
	return c;
}
