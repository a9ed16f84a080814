// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Advances the port's clock in each mode, begins and ends idle spells, and
 * decides how early timers are set.
 */
#include <pace/pace_sched.h>

/* GAP: a transmit ring holds at least so many of the longest bursts. */
#define PACE_RING_FRAMES	256u
/*
 * HYBRID: how early timers are set, at first, at least and at most.  Timers are
 * seen 11 to 25 us late.  Below 10 us a timer costs the host more than the gap
 * frames that it saves; what is later than 250 us (60 us with interrupts held
 * off, 100 to 200 us out of a deep sleep) is a host that stood still.
 */
#define PACE_LEAD_NS_FIRST	30000u
#define PACE_LEAD_NS_MIN	10000u
#define PACE_LEAD_NS_MAX	250000u

/* Makes bytes the clock again (HYBRID), and forgets the timer. */
static inline void pace_idle_end(struct pace_sched *s)
{
	s->idling = false;
	s->armed = false;
}

/* GAP, HYBRID: accounts what goes to the wire. */
static inline void pace_hand_out(struct pace_sched *s, u32 wire_bytes)
{
	if (!s->handed) {
		s->handed = true;
		s->handed_ns = s->asked_ns;
		s->handed_ps = s->global_ps;
	}
	s->global_ps += pace_line_charge(s, wire_bytes);
	pace_idle_end(s);
}

/* Takes off by how much line() is no longer ahead of the wire. */
static void handover_sub(struct pace_sched *s, u64 ps)
{
	s->handover_ps -= ps < s->handover_ps ? ps : s->handover_ps;
}

/* Advances the port's clock to line(), and with it the positions of what was sent. */
static void idle_to_line(struct pace_sched *s)
{
	u64 ahead = s->line.ps - s->global_ps;

	handover_sub(s, ahead);
	s->handed_ps += ahead;
	s->global_ps = s->line.ps;
}

/*
 * Notes until when the line idled.  No class was eligible when time was last
 * looked at, and the line was free from free_ps on (as global_ps counts); so it
 * idled from then until now, or until the first class became eligible.
 */
static inline void pace_note_idle(struct pace_sched *s, u64 free_ps)
{
	const struct pace_class *first = pace_first_waiting(s);
	u64 until = pace_schedule_clock(s);

	if (first)
		until = pace_clock_earlier(pace_eligible_time(first), until);
	if ((s64)(until - (free_ps - s->offset_ps)) > 0)
		s->idled_ps = until;
}

/*
 * Returns how long what is still in the transmit ring may take.  The clock of an
 * idle line must not count that a second time.
 */
static u64 pace_ring_ps(const struct pace_sched *s)
{
	u64 ring = PACE_RING_FRAMES * s->burst_ps;

	return ring < PACE_STALL_PS ? PACE_STALL_PS : ring;
}

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
 * is late by 200 ppm x T, or by what a ring holds.  docs/decisions/core.md,
 * "Hybrid mode and its lead".
 */

/* Frames after which the lead gets 1/16 shorter: 1/1024 a frame. */
#define DECAY_FRAMES	64u
#define DECAY_SHIFT	4
#define MARGIN_SHIFT	3
#define MARGIN_NS	1000u

/* Sets how early timers are set, within its bounds. */
static void pace_lead_set(struct pace_sched *s, u64 lead_ns)
{
	if (lead_ns < PACE_LEAD_NS_MIN)
		lead_ns = PACE_LEAD_NS_MIN;
	if (lead_ns > PACE_LEAD_NS_MAX)
		lead_ns = PACE_LEAD_NS_MAX;
	s->stats.lead_ns = lead_ns;
	s->lead_ps = lead_ns * PACE_PS_PER_NS;
	s->gapped_frames = 0;
}

/* Shortens the lead a little, after a frame that gap frames preceded. */
static void pace_lead_decay(struct pace_sched *s)
{
	u64 above = s->stats.lead_ns - PACE_LEAD_NS_MIN;

	s->gapped = false;
	if (++s->gapped_frames == DECAY_FRAMES)
		pace_lead_set(s, s->stats.lead_ns - (above >> DECAY_SHIFT));
}

/* Measures how late a timer ran out, and lengthens the lead to cover that. */
static void observe_lateness(struct pace_sched *s, u64 now_ns)
{
	u64 late_ns = now_ns - s->wait_until_ns;

	s->armed = false;
	s->stats.waits++;
	if (late_ns > s->stats.wait_late_max_ns)
		s->stats.wait_late_max_ns = late_ns;
	/*
	 * A host that is later than this stood still: its timers are not that
	 * late.
	 */
	if (late_ns > PACE_LEAD_NS_MAX)
		late_ns = PACE_LEAD_NS_MAX;
	late_ns += (late_ns >> MARGIN_SHIFT) + MARGIN_NS;
	if (late_ns > s->stats.lead_ns)
		pace_lead_set(s, late_ns);
}

/* Advances the clock by real time, while nothing is handed out. */
static void pace_idle_advance(struct pace_sched *s, u64 now_ns)
{
	u64 busy_until_ps = s->global_ps;
	bool idle;

	if (s->armed && now_ns >= s->wait_until_ns)
		observe_lateness(s, now_ns);
	pace_line_advance(&s->line, now_ns);
	if ((s64)(s->line.ps - s->global_ps) <= 0)
		return;
	idle = !pace_first_eligible(s);
	idle_to_line(s);
	if (idle)
		pace_note_idle(s, busy_until_ps);
	pace_paced_advance(s);
}

/*
 * Returns how much silence, beyond the lead, is worth a timer.  A timer costs
 * the host as much as one or two gap frames; one that already runs costs
 * nothing more.
 */
static u64 pace_idle_least_ps(const struct pace_sched *s)
{
	return s->idling ? s->min_gap_ps : 2 * s->max_wire_ps;
}

/* Begins an idle spell: see "Wire and system clock" above. */
static void pace_idle_begin(struct pace_sched *s, u64 now_ns)
{
	u64 ring_ps = pace_ring_ps(s);
	s64 ahead;

	pace_line_advance(&s->line, now_ns);
	ahead = (s64)(s->line.ps - s->global_ps);
	if (ahead > (s64)s->lead_ps) {
		handover_sub(s, (u64)ahead - s->lead_ps);
		s->line.ps = s->global_ps + s->lead_ps;
	} else if (ahead < -(s64)ring_ps) {
		s->line.ps = s->global_ps - ring_ps;
	}
	s->idling = true;
	pace_idle_advance(s, now_ns);
}

/*
 * Arms the timer for a lead before the schedule clock reaches `clock`, which is
 * farther away than the lead.
 */
static struct pace_decision pace_idle_wait(struct pace_sched *s, u64 clock)
{
	s->armed = true;
	s->wait_until_ns = pace_line_reaches_ns(&s->line, clock + s->offset_ps -
							  s->lead_ps);
	return (struct pace_decision){
		.verdict = PACE_WAIT,
		.until_ns = s->wait_until_ns,
	};
}

/* TIMER: advances the clock by real time, to an instant after the last. */
static void timer_advance(struct pace_sched *s, u64 now_ns)
{
	bool idle = !pace_first_eligible(s);

	pace_line_advance(&s->line, now_ns);
	s->global_ps = pace_later(s->global_ps, s->line.ps);
	if (idle)
		pace_note_idle(s, s->busy_until_ps);
	s->busy_until_ps = pace_later(s->busy_until_ps,
				      s->global_ps - PACE_LEAD_WINDOW_PS);
	pace_paced_advance(s);
}

/*
 * Advances the port's clock by real time: in TIMER always, in HYBRID while the
 * wire idles.  What a host that stood still has missed is forgotten at once,
 * before anything is measured by it; a line that has been free for years stays
 * within a signed comparison.
 */
static inline void advance_port_clock(struct pace_sched *s, u64 now_ns)
{
	if (s->cfg.mode == PACE_MODE_TIMER) {
		if (now_ns > s->line.ns)
			timer_advance(s, now_ns);
	} else if (s->idling) {
		pace_idle_advance(s, now_ns);
	}
}

/*
 * Advances the clock, and with it the period.  In GAP and HYBRID the clock
 * stands while no class has a packet; the next packet brings the period up to
 * date.
 */
static inline void pace_advance_clock(struct pace_sched *s, u64 now_ns)
{
	advance_port_clock(s, now_ns);
	if (s->period.classes && (s->cfg.mode == PACE_MODE_TIMER || s->idling ||
				  pace_active(s)))
		pace_period_advance(s, now_ns);
}

/*
 * Ends an idle spell at its first packet (GAP, HYBRID).  The wire has really
 * been idle only for what line() is ahead of the bytes handed out; if it is
 * behind, the difference is still in the transmit ring and must not be counted
 * twice. A ring holds a bounded amount: without that bound, a NIC faster than
 * its nominal rate would, after a long busy spell, keep the clock from
 * following real time for as long.
 *
 * Not called while any class is active: a device slower than its nominal
 * rate is never caught up.
 */
static void end_idle(struct pace_sched *s, u64 now_ns)
{
	u64 ring_ps;
	s64 ahead;

	pace_line_advance(&s->line, now_ns);
	ahead = (s64)(s->line.ps - s->global_ps);
	if (ahead >= 0) {
		idle_to_line(s);
		s->idled_ps = pace_schedule_clock(s);
		return;
	}
	ring_ps = pace_ring_ps(s);
	if (ahead < -(s64)ring_ps)
		s->line.ps = s->global_ps - ring_ps;
}

/*
 * Another mode, at an instant to which both clocks are advanced.  What was handed out and
 * has not left stays to be waited for: in TIMER the clock stands until real time has
 * reached it, and what TIMER's line still carries is handed out.
 */
static void pace_mode_change(struct pace_sched *s, enum pace_mode mode)
{
	u64 handed_ps = s->global_ps;

	pace_idle_end(s);
	if (s->cfg.mode == PACE_MODE_TIMER) {
		s->global_ps = pace_later(s->global_ps, s->busy_until_ps);
		return;
	}
	if (mode != PACE_MODE_TIMER)
		return;
	/* A wire slower than its rate, and one that was faster for long. */
	s->line.ps = pace_earlier(pace_later(s->line.ps, handed_ps - pace_ring_ps(s)),
				  handed_ps);
	s->busy_until_ps = handed_ps;
}

/* Advances the clock to the instant at which pace_next() was called last. */
static void advance_to_asked(struct pace_sched *s)
{
	pace_advance_clock(s, s->asked_ns);
}

/*
 * Invalidates the last answer of pace_next(), before anything changes.  While
 * pace_next() only repeated that answer it did not advance the clock; this
 * does.  Periods are asked again in any case: a short one may end twice.
 */
static inline void pace_invalidate(struct pace_sched *s)
{
	s->alone = false;
	if (!s->quiet_until_ns)
		return;
	s->quiet_until_ns = 0;
	if (s->repeated || s->period.classes)
		advance_to_asked(s);
}
