// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * @proves one common offset is adding to all clocks (paper 002, 2.4): same decision, same clocks after a send or a leave, from any state
 * @bounds GAP; 2 active paced classes without ceil; one set of frame sizes; any state with clocks within 2^4 of the port; one step of any number; frames of the size priced
 * @with class.c line.c normal.c share.c
 * @options --unwind 3
 * @each CLASSES=2 ONE_CONFIG=1 NEAR=15 ACTIVE=3 ORDER=0 WHO=0 LEAVE=0..1
 * @each CLASSES=2 ONE_CONFIG=1 NEAR=15 ACTIVE=3 ORDER=0 WHO=1 LEAVE=0..1
 * @each CLASSES=2 ONE_CONFIG=1 NEAR=15 ACTIVE=3 ORDER=2 WHO=0 LEAVE=0..1
 * @each CLASSES=2 ONE_CONFIG=1 NEAR=15 ACTIVE=3 ORDER=2 WHO=1 LEAVE=0..1
 */
#define PACED		2
#include "state.h"
#include "paced.c"
#include "sched.c"

/* The clocks, as they would be had everything been added to them. */
struct outcome {
	enum pace_verdict verdict;
	const struct pace_class *who;
	u32 gap_bytes;
	u64 global, clock0, clock1;
};

static struct pace_class *const who = WHO == 0 ? &class0 : &class1;

/* `who` sends a frame, or leaves; then, who is next? */
static struct outcome step(bool leave, bool more)
{
	struct pace_decision d;
	struct outcome o;

	if (leave)
		pace_deactivate(&s, who, 0);
	else
		pace_sent_train(&s, who, who->last.len_bytes,
				who->last.wire_bytes, who->last.frames, more, 0);
	d = pace_next(&s, 0);
	o.verdict = d.verdict;
	o.who = d.cls;
	o.gap_bytes = d.gap_bytes;
	o.global = s.global;
	o.clock0 = class0.clock.bytes + s.offset;
	o.clock1 = class1.clock.bytes + s.offset;
	return o;
}

static void add(struct pace_class *c, const struct pace_class *from, u64 bytes)
{
	*c = *from;
	c->clock.bytes += bytes;
	if (!c->active)
		return;
	pace_queue_insert(c->due ? &s.due : &s.waiting,
			  (c->due ? pace_turn(&s, c) : pace_start(c)) <<
			  PACE_ID_BITS | c->id);
}

void proof(void)
{
	const bool leave = LEAVE, more = nondet_bool();
	struct pace_class a0, a1;
	struct outcome once, all;
	struct pace_sched before;

	any_scheduler();
	GIVEN(who->active);
	before = s;
	a0 = class0;
	a1 = class1;
	once = step(leave, more);

	/* The same state, its offset added to every clock. */
	s = before;
	s.offset = 0;
	s.served += before.offset;
	s.idled += before.offset;
	any_queue(&s.waiting, waiting_key, waiting_place);
	any_queue(&s.due, due_key_, due_place);
	s.waiting.count = 0;
	s.due.count = 0;
	add(&class0, &a0, before.offset);
	add(&class1, &a1, before.offset);
	all = step(leave, more);

	PROVE(once.verdict == all.verdict && once.who == all.who &&
	      once.gap_bytes == all.gap_bytes, "the same decision");
	PROVE(once.global == all.global, "at the same time");
	PROVE(once.clock0 == all.clock0 && once.clock1 == all.clock1, "the same clocks");
	DONE();
}
