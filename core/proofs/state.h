/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Any scheduler of CLASSES classes that can be: not the outcome of some calls,
 * but every state in which its parts agree with each other.  What holds after
 * one call from each of them holds after any number of calls.
 *
 * Left to chance: clocks, rates, frame costs, deficits, who is active, and the
 * configuration; small numbers, which the solver needs, but near the wraps too.
 * Queues are those of queue_model.h; heap_step.c is about their insides.
 */
#ifndef STATE_H
#define STATE_H

#define KEY_UNIT_SHIFT	0
#include "proof.h"

#ifndef CLASSES
#define CLASSES	3
#endif
#ifndef ORDER
#define ORDER	PACE_ORDER_CLOCK
#endif
#ifndef MODE
#define MODE	PACE_MODE_GAP
#endif
#ifndef GUARD
#define GUARD	false
#endif

static struct pace_sched s;

#include "above_queue.h"

/* Objects of their own: a pointer into an array of them costs the solver much. */
static struct pace_class class0, class1, class2;
static struct pace_class *table[CLASSES];
static u64 waiting_key[MODEL_KEYS], eligible_key_[MODEL_KEYS],
	   at_ceil_key[MODEL_KEYS], borrowing_key[MODEL_KEYS];

/* How far apart clocks are, at most, and what longest frames cost. */
#ifndef NEAR
#define NEAR	0xfffull
#endif

/*
 * On both sides of where clocks wrap: only differences matter, anywhere
 * (clock_compare.c).
 */
static u64 any_time(void)
{
	return (nondet_u64() & NEAR) - (NEAR >> 1);
}

/* Where the port is: one position will do where all else is relative to it. */
static u64 any_position(void)
{
#ifdef AT
	return AT;
#else
	return any_time();
#endif
}

static void any_config(void)
{
#ifdef ONE_CONFIG
	s.cfg.line_rate_bps = PACE_BYTE_PS;
	s.cfg.overhead_bytes = 2;
	s.cfg.max_frame_bytes = 20;
	s.cfg.min_frame_bytes = 4;
#else
	/* As pace_check_config() lets through. */
	s.cfg.line_rate_bps = PACE_BYTE_PS;
	s.cfg.overhead_bytes = nondet_u32() & 0x1f;
	s.cfg.max_frame_bytes = 1 + (nondet_u32() & 0xff);
	s.cfg.min_frame_bytes = 1 + (nondet_u32() & 0x3f);
	GIVEN(s.cfg.min_frame_bytes <= s.cfg.max_frame_bytes);
	s.cfg.layer = any_below(PACE_LAYER_IP + 1);
#endif
	/* About two loads of classes: over-subscribed, or not, or no longer. */
	s.load_most_bps = nondet_u64() & 0x7fff;
	s.cfg.order = ORDER;
	s.cfg.mode = MODE;
	s.cfg.guard_band = GUARD;
	/* As set_config() has it. */
	s.max_wire_bytes = pace_wire_bytes(&s, s.cfg.max_frame_bytes);
	s.min_gap_bytes = pace_wire_bytes(&s, s.cfg.min_frame_bytes);
	s.burst_wire_bytes = s.max_wire_bytes;
#ifndef ONE_CONFIG
	s.burst_wire_bytes += nondet_u32() & 0xff;
#endif
	/* A byte takes a ps: the line's rate is a factor of all else. */
	s.byte_ps = 1;
	s.max_wire_ps = s.max_wire_bytes;
	s.burst_ps = s.burst_wire_bytes;
	s.min_gap_ps = s.min_gap_bytes;
	s.half_gap_ps = s.min_gap_bytes / 2;
	s.timer_ps = MODE == PACE_MODE_GAP ? 0 : nondet_u64() & NEAR;
}

static void any_queue(struct pace_queue *q, u64 *key)
{
	q->heap = key;
	q->count = 0;
	q->limit = 0;
}

/* A rate and what a longest burst and the last one cost at it. */
static void any_prices(struct pace_class *c)
{
	c->rate_bps = 1 + (nondet_u64() & NEAR);
	c->max_cost_ps = 1 + (nondet_u64() & NEAR);
	c->rate_quot = nondet_u64() & NEAR;
	c->rate_rem = nondet_u64() & NEAR;
	c->offered_load_bps = 1 + (nondet_u64() & 0x3fff);
	c->last.frames = 1;
	c->last.len_bytes = 1 + (nondet_u32() & 0xff);
	c->last.wire_bytes = 1 + (nondet_u32() & 0xff);
	GIVEN(c->rate_rem < c->rate_bps);
	GIVEN(c->last.wire_bytes <= s.burst_wire_bytes);
}

static void any_paced(struct pace_class *c)
{
	u64 now = pace_schedule_clock(&s);
	bool eligible;

	c->type = PACE_TYPE_PACED;
	any_prices(c);
	c->clock.frac = nondet_u64() & NEAR;
	GIVEN(c->clock.frac < c->rate_bps);
	/* Behind, or ahead: a key apart from the others by less than 2 NEAR. */
	c->clock.ps = now - NEAR + (nondet_u64() & (2 * NEAR + 1));
	if (!c->active)
		return;
	s.offered_load_bps += c->offered_load_bps;
	s.active_paced++;
#ifdef DUE
	eligible = DUE >> c->id & 1;
#else
	eligible = ORDER != PACE_ORDER_CLOCK && nondet_bool();
#endif
	pace_key_add(&s, eligible ? &s.eligible : &s.waiting, c);
}

static void any_normal(struct pace_class *c)
{
	c->type = PACE_TYPE_NORMAL;
	c->quantum_bytes = nondet_bool() ? 0 :
			   PACE_QUANTUM_MIN + (nondet_u32() & 0xff);
	c->head_wire_bytes = nondet_u32() & 0xff;
	if (!c->active)
		return;
	pace_best_effort_insert(&s, c);
	c->deficit_bytes = (s64)(nondet_u64() & 0x7ff) - 0x3ff;
	GIVEN(c->deficit_bytes >= -(s64)pace_quantum(&s, c));
	c->passed = GUARD && nondet_bool();
}

static void any_class(struct pace_class *c, u32 id)
{
	table[id] = c;
	c->id = id;
#ifdef ACTIVE
	c->active = ACTIVE >> id & 1;
#else
	c->active = nondet_bool();
#endif
	if (id < PACED)
		any_paced(c);
	else
		any_normal(c);
}

/* One of the paced ones. */
static struct pace_class *any_of_paced(void)
{
	return PACED > 2 && nondet_bool() ? &class2 :
	       PACED > 1 && nondet_bool() ? &class1 : &class0;
}

static void any_scheduler(void)
{
	any_config();
	s.global_ps = any_position();
	s.offset_ps = any_time();
	s.last_finish_ps = s.global_ps - s.offset_ps - (nondet_u64() & NEAR);
	s.idled_ps = s.global_ps - s.offset_ps - (nondet_u64() & NEAR);
	s.capacity = CLASSES;
	s.id_end = CLASSES;
	s.by_id = table;
	any_queue(&s.waiting, waiting_key);
	any_queue(&s.eligible, eligible_key_);
	any_queue(&s.at_ceil, at_ceil_key);
	any_queue(&s.borrowing, borrowing_key);
	any_class(&class0, 0);
	any_class(&class1, 1);
	if (CLASSES > 2)
		any_class(&class2, 2);
	if (s.ring && nondet_bool())
		s.ring = s.ring->next;
}

#endif /* STATE_H */
