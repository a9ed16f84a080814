// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * HYBRID: a timer until shortly before the instant, gap frames from there on.
 *
 * Bytes handed out are the clock.  When the next frame is farther away than the
 * lead and two largest gap frames the wire idles until line(until) = due -
 * lead, and the first call from then on brings the clock up to real time:
 * global = max(global, line(now)), the rule that ends every idle spell.  What
 * is still in the transmit ring then is not counted twice.  A call before that
 * instant gets the same answer.
 *
 * The lead is measured.  The first call from `until` on was late by now -
 * until: if the lead does not cover that and an eighth more it does from now
 * on.  It gets shorter by a thousandth of what is above its least with each
 * frame that gap frames preceded, so what happens once in a thousand waits
 * stays covered.
 *
 * Error bound.  A timer within the lead: the frame is as exact as in GAP, -42
 * .. +41 bytes.  A later one: the frame is late by what exceeds the lead;
 * clocks do not move for it, so the next frame is where it would have been, and
 * the time between the two is shorter by as much.  More than PACE_LEAD_NS_MAX
 * is forgotten (pace_lag_max()).
 *
 * Wire and system clock differ by up to 200 ppm.  Each wait begins with
 * line() not ahead of the bytes handed out by more than the lead, and ends with
 * both the same: what they drift apart in one busy spell does not carry on into
 * the next.  A slow wire (or a host that was late in a busy spell) is made up
 * for by one lead at most; behind a fast one the first frame after a spell of T
 * is late by 200 ppm x T, or by what a ring holds.  decisions/0015.
 */
#include "internal.h"
#include "line.h"

/* Frames after which the lead gets 1/16 shorter: 1/1024 a frame. */
#define DECAY_FRAMES	64u
#define DECAY_SHIFT	4
#define MARGIN_SHIFT	3
#define MARGIN_NS	1000u

void pace_lead_set(struct pace_sched *s, u64 lead_ns)
{
	if (lead_ns < PACE_LEAD_NS_MIN)
		lead_ns = PACE_LEAD_NS_MIN;
	if (lead_ns > PACE_LEAD_NS_MAX)
		lead_ns = PACE_LEAD_NS_MAX;
	s->stats.lead_ns = lead_ns;
	s->lead_bytes = pace_line_bytes(s->cfg.line_rate_bps, lead_ns);
	s->gapped_frames = 0;
}

/* A frame was sent that gap frames preceded. */
void pace_lead_decay(struct pace_sched *s)
{
	u64 above = s->stats.lead_ns - PACE_LEAD_NS_MIN;

	s->gapped = false;
	if (++s->gapped_frames == DECAY_FRAMES)
		pace_lead_set(s, s->stats.lead_ns - (above >> DECAY_SHIFT));
}

static void observe(struct pace_sched *s, u64 now_ns)
{
	u64 late_ns = now_ns - s->wait_until_ns;

	s->armed = false;
	s->stats.waits++;
	if (late_ns > s->stats.wait_late_max_ns)
		s->stats.wait_late_max_ns = late_ns;
	/* What stood still says nothing about timers but that they are late. */
	if (late_ns > PACE_LEAD_NS_MAX)
		late_ns = PACE_LEAD_NS_MAX;
	late_ns += (late_ns >> MARGIN_SHIFT) + MARGIN_NS;
	if (late_ns > s->stats.lead_ns)
		pace_lead_set(s, late_ns);
}

/* While nothing is handed out real time is the clock. */
void pace_idle_follow(struct pace_sched *s, u64 now_ns)
{
	u64 busy_until = s->global;
	bool idle;

	if (s->armed && now_ns >= s->wait_until_ns)
		observe(s, now_ns);
	pace_line_follow(&s->line, s->cfg.line_rate_bps, now_ns);
	if ((s64)(s->line.bytes - s->global) <= 0)
		return;
	idle = !pace_paced_due(s);
	s->global = s->line.bytes;
	if (idle)
		pace_note_idle(s, busy_until);
	pace_paced_follow(s);
}

/*
 * How much silence, beyond the lead, is worth a timer: it costs the host as
 * much as one or two gap frames.  A timer that runs is waited for.
 */
u64 pace_idle_least(const struct pace_sched *s)
{
	return s->idling ? s->min_gap_bytes : 2 * (u64)s->max_wire_bytes;
}

/* The wire is about to idle: see "Wire and system clock" above. */
void pace_idle_begin(struct pace_sched *s, u64 now_ns)
{
	u64 ring = pace_ring_bytes(s);
	s64 ahead;

	pace_line_follow(&s->line, s->cfg.line_rate_bps, now_ns);
	ahead = (s64)(s->line.bytes - s->global);
	if (ahead > (s64)s->lead_bytes)
		pace_line_anchor(&s->line, s->global + s->lead_bytes,
				 s->line.ns);
	else if (ahead < -(s64)ring)
		pace_line_anchor(&s->line, s->global - ring, s->line.ns);
	s->idling = true;
	pace_idle_follow(s, now_ns);
}

/* Until a lead before the schedule clock reaches `clock`, farther away. */
struct pace_decision pace_idle_wait(struct pace_sched *s, u64 clock)
{
	s->armed = true;
	s->wait_until_ns = pace_line_reaches_ns(&s->line, s->cfg.line_rate_bps,
						clock + s->offset -
						s->lead_bytes);
	return (struct pace_decision){
		.verdict = PACE_WAIT,
		.until_ns = s->wait_until_ns,
	};
}
