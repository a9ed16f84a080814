// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * @proves who is next: every SEND is eligible and the one its order names, a gap only while nobody is, idle only with no packet; asking again changes neither answer nor clock
 * @bounds GAP; 2 paced, or 1 paced and 1 normal class, with guard or not, without ceil; any state with clocks within 2^12 of the port (2^6 but in ORDER_CLOCK) where they wrap; any number of calls
 * @options --unwind 3
 * @each CLASSES=2 PACED=2 ORDER=0
 * @each CLASSES=2 PACED=2 NEAR=63 ORDER=1 ACTIVE=3 DUE=0..3
 * @each CLASSES=2 PACED=2 NEAR=63 ORDER=2 ACTIVE=3 DUE=0..3
 * @each CLASSES=2 PACED=1 NEAR=63 ORDER=0..2
 * @each CLASSES=2 PACED=1 NEAR=63 GUARD=true ORDER=0..2
 * @each AGAIN=1 CLASSES=2 PACED=2 NEAR=63 ORDER=0
 * @each AGAIN=1 CLASSES=2 PACED=2 NEAR=63 ACTIVE=3 DUE=1 ORDER=1..2
 */
#include "state.h"

/* In the order's own terms: before it, `a` goes. */
static bool before(const struct pace_class *a, const struct pace_class *b)
{
	if (ORDER == PACE_ORDER_RATE)
		return a->rate_bps > b->rate_bps ||
		       (a->rate_bps == b->rate_bps && a->id < b->id);
	return (s64)(pace_virtual_finish(&s, a) - pace_virtual_finish(&s, b)) < 0 ||
	       (pace_virtual_finish(&s, a) == pace_virtual_finish(&s, b) && a->id < b->id);
}

static s64 ahead(const struct pace_class *c)
{
	return (s64)(pace_eligible_time(c) - pace_schedule_clock(&s));
}

void proof(void)
{
	const s64 half = (any_scheduler(), s.min_gap_bytes / 2);
	const struct pace_class *c, *other = any_of_paced();
	const u64 global = s.global_ps, offset = s.offset_ps;
	const struct pace_clock clock = other->clock;
	struct pace_decision d;
#ifdef AGAIN
	struct pace_decision again;
#endif

	d = pace_next(&s, nondet_u64());
	c = d.cls;
	PROVE(d.verdict != PACE_WAIT, "GAP never waits");
	if (d.verdict == PACE_SEND) {
		PROVE(c && c->active, "who sends is active");
		if (c->type == PACE_TYPE_PACED) {
			PROVE(ahead(c) <= half, "not before its clock");
			PROVE(d.late_ps == -ahead(c), "late by so much");
			if (other->active && other != c && ahead(c) <= 0 &&
			    ahead(other) <= 0)
				PROVE(before(c, other), "the order's first");
			if (other->active && other != c && ahead(c) > 0)
				PROVE(ahead(other) >= ahead(c),
				      "early only as the first of all");
		} else {
			PROVE(!other->active || ahead(other) > 0,
			      "normal only when no paced class is due");
			PROVE(c->deficit_bytes > 0, "within its deficit");
			PROVE(!GUARD || !other->active || !c->head_wire_bytes ||
			      c->head_wire_bytes <= ahead(other),
			      "guard band: it ends before a paced class is due");
		}
	} else {
		PROVE(GUARD || !s.active_normal,
		      "no silence past a normal packet");
		PROVE(!other->active || ahead(other) > half, "nor a due one");
	}
	if (d.verdict == PACE_GAP) {
		PROVE(s.active_paced, "no gap without a packet");
		PROVE(!other->active ||
		      d.gap_bytes <= ahead(other) + (s.min_gap_bytes - 1) / 2,
		      "no gap past a clock by more than half a smallest");
	}
	PROVE((d.verdict == PACE_IDLE) == !pace_active(&s), "idle");

#ifdef AGAIN
	again = pace_next(&s, nondet_u64());
	PROVE(again.verdict == d.verdict && again.cls == d.cls &&
	      again.gap_bytes == d.gap_bytes, "the same answer again");
#endif
	PROVE(s.global_ps == global && s.offset_ps == offset &&
	      other->clock.ps == clock.ps &&
	      other->clock.frac == clock.frac, "no clock has moved");
	DONE();
}
