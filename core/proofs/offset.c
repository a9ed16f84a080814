// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * @proves one common offset is adding to all clocks (paper 002, 2.4): from any two states that differ in that alone, the same decision; and after a send, a leave or a decision they differ in that alone
 * @bounds GAP; 2 active paced classes without ceil; one set of frame sizes; the port's clock at one position; any state with clocks within 2^4 of it, 2^2 or 2^3 where a step is large; any number of steps; frames of the size priced
 * @options --unwind 3 --slice-formula
 * @each CLASSES=2 ONE_CONFIG=1 ACTIVE=3 AT=5 NEAR=7 ORDER=0 WHO=0 STEP=0
 * @each CLASSES=2 ONE_CONFIG=1 ACTIVE=3 AT=5 NEAR=15 ORDER=0 WHO=0 STEP=1..2
 * @each CLASSES=2 ONE_CONFIG=1 ACTIVE=3 AT=5 NEAR=7 ORDER=0 WHO=1 STEP=0
 * @each CLASSES=2 ONE_CONFIG=1 ACTIVE=3 AT=5 NEAR=15 ORDER=0 WHO=1 STEP=1
 * @each CLASSES=2 ONE_CONFIG=1 ACTIVE=3 AT=5 NEAR=3 ORDER=2 WHO=0 STEP=0
 * @each CLASSES=2 ONE_CONFIG=1 ACTIVE=3 AT=5 NEAR=15 ORDER=2 WHO=0 STEP=1
 * @each CLASSES=2 ONE_CONFIG=1 ACTIVE=3 AT=5 NEAR=7 ORDER=2 WHO=0 STEP=2
 * @each CLASSES=2 ONE_CONFIG=1 ACTIVE=3 AT=5 NEAR=3 ORDER=2 WHO=1 STEP=0
 * @each CLASSES=2 ONE_CONFIG=1 ACTIVE=3 AT=5 NEAR=15 ORDER=2 WHO=1 STEP=1
 */
#define PACED		2
#include "state.h"

enum { STEP_SEND, STEP_LEAVE, STEP_NEXT };

/* What came of a step; clocks as they would be had everything been added. */
struct outcome {
	struct pace_decision d;
	u64 global, last_finish, idled;
	struct seen {
		u64 clock, frac, key;
		bool active;
		u8 place;
	} class0, class1;
};

static struct pace_class *const who = WHO == 0 ? &class0 : &class1;

static struct seen look(const struct pace_class *c)
{
	u64 key = 0;

	if (c->active)
		key = (c->place == PACE_ELIGIBLE ? eligible_key_ : waiting_key)[c->id] +
		      (s.offset_ps << PACE_ID_BITS);
	return (struct seen){
		.clock = c->clock.ps + s.offset_ps,
		.frac = c->clock.frac,
		.key = key,
		.active = c->active,
		.place = c->place,
	};
}

static struct outcome step(bool more)
{
	struct outcome o = { 0 };

	if (STEP == STEP_SEND)
		pace_sent_burst(&s, who, who->last.len_bytes,
				who->last.wire_bytes, who->last.frames, more, 0);
	else if (STEP == STEP_LEAVE)
		pace_deactivate(&s, who, 0);
	else
		o.d = pace_next(&s, 0);
	o.global = s.global_ps;
	o.last_finish = s.last_finish_ps + s.offset_ps;
	o.idled = s.idled_ps + s.offset_ps;
	o.class0 = look(&class0);
	o.class1 = look(&class1);
	return o;
}

static bool same(const struct seen *a, const struct seen *b)
{
	return a->clock == b->clock && a->frac == b->frac && a->key == b->key &&
	       a->active == b->active && a->place == b->place;
}

static void add(struct pace_class *c, const struct pace_class *from, u64 ps)
{
	*c = *from;
	c->clock.ps += ps;
	if (!c->active)
		return;
	pace_key_add(&s, c->place == PACE_ELIGIBLE ? &s.eligible : &s.waiting, c);
}

void proof(void)
{
	const bool more = nondet_bool();
	struct pace_class a0, a1;
	struct outcome once, all;
	struct pace_sched before;

	any_scheduler();
	before = s;
	a0 = class0;
	a1 = class1;
	once = step(more);

	/* The same state, its offset added to every clock. */
	s = before;
	s.offset_ps = 0;
	s.last_finish_ps += before.offset_ps;
	s.idled_ps += before.offset_ps;
	any_queue(&s.waiting, waiting_key);
	any_queue(&s.eligible, eligible_key_);
	add(&class0, &a0, before.offset_ps);
	add(&class1, &a1, before.offset_ps);
	all = step(more);

	PROVE(once.d.verdict == all.d.verdict && once.d.cls == all.d.cls &&
	      once.d.gap_bytes == all.d.gap_bytes, "the same decision");
	PROVE(once.global == all.global && once.last_finish == all.last_finish &&
	      once.idled == all.idled, "at the same time");
	PROVE(same(&once.class0, &all.class0) && same(&once.class1, &all.class1),
	      "the same clocks, in the same order");
	DONE();
}
