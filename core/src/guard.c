// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A normal frame that would end after the next paced one is due makes that one
 * late by up to a largest frame.  Under guard it is not sent: another class of
 * the round whose first frame fits goes instead, or none.  An nrt class whose
 * turn it is waits likewise, for itself; rt frames have a period to keep to.
 *
 * Deficits stay fair: a class passed over gets its quantum as if it had been
 * served, but saves up no more than two, or a class that never fits would later
 * shut the others out.  Between the others the round is what it was.
 *
 * What counts is when paced classes are due at their rates; when they may share
 * what is spare does not.  A frame that never fits, because paced frames are
 * never so far apart, is never sent: such classes need shorter frames, a rate
 * of their own, or no guard.
 *
 * Error bound: none; no paced class that was active when a normal frame began
 * waits for it.  Cost: one look at the class whose turn it is; if that does not
 * fit, a walk over the round.  decisions/0017.
 */
#include "internal.h"

/* What a class passed over saves up, at most. */
#define SAVED_QUANTA	2

/* So many bytes of wire end before a paced class is due, none being due now. */
bool pace_fits(const struct pace_sched *s, u32 wire_bytes)
{
	const struct pace_class *first = pace_paced_first(s);

	return !first || wire_bytes <= pace_start(first) - pace_schedule_clock(s);
}

bool pace_head_fits(const struct pace_sched *s, const struct pace_class *c)
{
	return pace_fits(s, c->head_wire_bytes ? c->head_wire_bytes :
						 s->train_wire_bytes);
}

static bool any_fits(const struct pace_sched *s)
{
	const struct pace_class *c = s->ring;

	do {
		if (pace_head_fits(s, c))
			return true;
		c = c->next;
	} while (c != s->ring);
	return false;
}

/* The visit of `c` begins, or goes on: what it may send in it. */
static void visit(const struct pace_sched *s, struct pace_class *c)
{
	if (c->deficit_bytes <= 0 || c->passed)
		c->deficit_bytes += pace_quantum(s, c);
	c->passed = false;
}

/* Its visit is over before it has sent what it might. */
static void pass_over(const struct pace_sched *s, struct pace_class *c)
{
	s64 most = SAVED_QUANTA * (s64)pace_quantum(s, c);

	visit(s, c);
	if (c->deficit_bytes > most)
		c->deficit_bytes = most;
	c->passed = true;
}

/*
 * Whose turn it is among those that fit, or NULL; at least one class is active
 * and no paced one is due.  The class found is found again as long as it fits.
 */
struct pace_class *pace_guarded_turn(struct pace_sched *s)
{
	struct pace_class *c = s->ring;

	if (!any_fits(s)) {
		s->stats.guarded++;
		return NULL;
	}
	if (!pace_head_fits(s, c))
		s->stats.guarded++;
	for (;; c = c->next) {
		if (!pace_head_fits(s, c)) {
			pass_over(s, c);
			continue;
		}
		visit(s, c);
		if (c->deficit_bytes > 0)
			break;
	}
	s->ring = c;
	return c;
}
