// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Periods (paper 004, 2.2.1 and 4.3: the ITM thread), on the byte clock.
 *
 * A period ends when the port's clock reaches `end`, which moves on by exactly
 *
 *   period_ns x line_rate / 8e9  bytes, the part of one carried in `end.frac`,
 *
 * so that periods have no drift, through idle spells too: what the clock is in
 * each mode it is here.  Aligned, the end of each is the host's next instant
 * align_ns + k x period_ns, made bytes once a period: byte clock and host's clock
 * may then differ by what they drift apart in one.
 *
 * The budget is what may leave in a period, as the layer counts.  Every frame is
 * charged with it when it is sent; rt frames within what is reserved and paced
 * frames go whether or not something is left, all others only if something is,
 * whole.  What is spent beyond it is owed by the next period, up to one budget.
 * So in any number of periods n, if no paced frame is sent, at most n budgets
 * and one longest train leave.  decisions/0140.
 *
 * Cost: O(1) a period, and one look at each class that it leaves frames of.
 */
#include "period.h"
#include "line.h"
#include "queue.h"
#include "ring.h"

/* Derives from cfg; a period of another length begins at once. */
void pace_period_set(struct pace_sched *s)
{
	struct pace_period *p = &s->period;
	u64 rate = s->cfg.line_rate_bps, ns = s->cfg.period_ns;
	u64 whole = pace_line_bytes(rate, ns);
	/* Exact although each product wraps: the difference is < 8e9. */
	u64 part = ns * rate - whole * PACE_PARTS_PER_BYTE;

	if (whole != p->whole_bytes || part != p->part)
		p->running = false;
	p->whole_bytes = whole;
	p->part = part;
}

u64 pace_budget_bytes(u64 line_rate_bps, u64 period_ns, u32 percent)
{
	return pace_mul_div(line_rate_bps, period_ns * percent,
			    100 * PACE_PARTS_PER_BYTE);
}

u64 pace_reserved_bytes(const struct pace_sched *s, const struct pace_class *c)
{
	u64 own = c && c->stream ? c->stream->reserve_bytes : 0;

	return s->period.reserved_bytes - own;
}

void pace_set_align(struct pace_sched *s, u64 align_ns)
{
	s->cfg.align_ns = align_ns;
}

static bool is_over(const struct pace_sched *s)
{
	return (s64)(s->global - s->period.end.bytes) >= 0;
}

static void move_end(struct pace_period *p, u64 periods)
{
	u64 carried = pace_mul_div(periods, p->part, PACE_PARTS_PER_BYTE);

	pace_clock_advance(&p->end, periods * p->whole_bytes + carried,
			   periods * p->part - carried * PACE_PARTS_PER_BYTE,
			   PACE_PARTS_PER_BYTE);
}

/*
 * To the first end that is ahead.  A period has a byte at least: what is missed
 * of the way is at least halved each time.
 */
static void follow_bytes(struct pace_sched *s)
{
	struct pace_period *p = &s->period;
	u64 periods, rem;

	p->end_ns = 0;
	move_end(p, 1);
	while (is_over(s)) {
		periods = pace_div_rem(s->global - p->end.bytes,
				       p->whole_bytes + 1, &rem);
		move_end(p, periods ? periods : 1);
	}
}

/*
 * The host's next instant.  If it is, within half a period, the one that the
 * period before was to end at, the byte clock was ahead, and it is the next but one.
 */
static void follow_host(struct pace_sched *s, u64 now_ns)
{
	struct pace_period *p = &s->period;
	u64 ns, past, period_ns = s->cfg.period_ns;
	s64 apart_ns;

	if (now_ns >= s->cfg.align_ns) {
		pace_div_rem(now_ns - s->cfg.align_ns, period_ns, &past);
		ns = period_ns - past;
	} else {
		pace_div_rem(s->cfg.align_ns - now_ns, period_ns, &ns);
	}
	apart_ns = (s64)(now_ns + ns - p->end_ns);
	if (p->end_ns && apart_ns < (s64)(period_ns / 2) &&
	    apart_ns > -(s64)(period_ns / 2))
		ns += period_ns;
	p->end_ns = now_ns + ns;
	pace_clock_set(&p->end,
		       s->global + pace_line_bytes(s->cfg.line_rate_bps, ns));
}

/* The period left frames of each class of a ring; of how many. */
static u64 note(struct pace_class *first, bool overrun)
{
	struct pace_class *c = first;
	u64 classes = 0;

	if (!c)
		return 0;
	do {
		if (overrun)
			c->stream->overrun++;
		else
			c->stream->deferred++;
		classes++;
		c = c->next;
	} while (c != first);
	return classes;
}

/* What is left when a period ends: each class counts once, by its cause. */
static void note_left(struct pace_sched *s)
{
	struct pace_period *p = &s->period;
	struct pace_class *late = p->ring[PACE_PLACE_RT_LATE];
	struct pace_class *nrt = p->ring[PACE_PLACE_NRT];

	s->stats.rt_overrun += note(p->ring[PACE_PLACE_RT], true);
	if (pace_budget_left(s)) {
		s->stats.rt_overrun += note(late, true);
		return;
	}
	s->stats.rt_deferred += note(late, false);
	s->stats.nrt_deferred += note(nrt, false);
	if (late || nrt || s->ring)
		s->stats.periods_spent++;
}

static void begin(struct pace_sched *s)
{
	struct pace_period *p = &s->period;
	s64 budget = s->cfg.budget_bytes;

	if (p->left_bytes < -budget)
		p->left_bytes = -budget;
	if (p->left_bytes > 0)
		p->left_bytes = 0;
	p->left_bytes += budget;
	p->gated_wire_bytes = p->backlog_wire_bytes;
	pace_ring_join(&p->ring[PACE_PLACE_RT], &p->ring[PACE_PLACE_RT_LATE]);
	pace_ring_join(&p->ring[PACE_PLACE_RT], &p->ring[PACE_PLACE_RT_NEXT]);
	pace_ring_join(&p->ring[PACE_PLACE_NRT], &p->ring[PACE_PLACE_NRT_NEXT]);
	s->stats.periods++;
}

/* After the port's clock has moved, before anything is decided or comes. */
void pace_period_follow(struct pace_sched *s, u64 now_ns)
{
	struct pace_period *p = &s->period;

	if (!p->classes || (p->running && !is_over(s)))
		return;
	if (!p->running) {
		p->running = true;
		p->end_ns = 0;
		p->left_bytes = 0;
		pace_clock_set(&p->end, s->global);
	} else {
		note_left(s);
		/* Periods went by unseen: nothing is owed from before. */
		if (s->global - p->end.bytes >= p->whole_bytes)
			p->left_bytes = 0;
	}
	begin(s);
	if (s->cfg.aligned)
		follow_host(s, now_ns);
	else
		follow_bytes(s);
}

/* Frames wait for the next period. */
bool pace_period_awaited(const struct pace_sched *s)
{
	const struct pace_period *p = &s->period;

	if (!p->classes)
		return false;
	if (p->ring[PACE_PLACE_RT_NEXT] || p->ring[PACE_PLACE_NRT_NEXT])
		return true;
	return !pace_budget_left(s) &&
	       (p->ring[PACE_PLACE_RT_LATE] || p->ring[PACE_PLACE_NRT] ||
		s->ring || !pace_queue_empty(&s->spare) ||
		!pace_queue_empty(&s->ceiled));
}
