// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The API of a running scheduler: activate, next, sent.  It answers which class
 * is next, and how long the wire stays silent before that.
 *
 * Paper 002, 2.2 and 2.3: a class whose clock is not ahead of the port's, of
 * several the one that the order names; else a normal class; else a gap up to
 * the smallest clock.  No clock is altered by the rounding of gaps, so that
 * error does not add up: each frame is at most half a smallest gap early or
 * late (-42 .. +41 bytes).
 *
 * Groups have a copy of the path of a frame (group.c), so it is __always_inline: the
 * compiler would no longer make it part of the host's only call.
 */
#include <pace/pace_sched.h>

u32 pace_min_gap_bytes(const struct pace_sched *s)
{
	return s->min_gap_bytes;
}

/* Advances clock and period to the arrival of a packet. */
static void advance_to_arrival(struct pace_sched *s, u64 now_ns)
{
	pace_invalidate(s);
	advance_port_clock(s, now_ns);
	if (s->cfg.mode != PACE_MODE_TIMER && !pace_active(s))
		end_idle(s, now_ns);
	pace_period_advance(s, now_ns);
}

/* Adds a backlogged class to the schedule. */
static void pace_schedule_class(struct pace_sched *s, struct pace_class *c, u64 now_ns)
{
	if (pace_was_silent(c, now_ns)) {
		pace_class_forget(s, c);
		pace_part_forget(s, c);
	}
	c->active = true;
	if (c->type == PACE_TYPE_NORMAL) {
		pace_best_effort_insert(s, c);
		return;
	}
	if (c->reservation) {
		pace_reservation_insert(s, c);
		return;
	}
	if (c->launches && c->launch_ns) {
		pace_launch_insert(s, c);
		return;
	}
	pace_load_add(s, c);
	pace_part_load(s, c);
	pace_paced_return(s, c);
	pace_paced_enter(s, c);
}

/* Takes a class out of the schedule. */
static void pace_unschedule_class(struct pace_sched *s, struct pace_class *c)
{
	bool was_over = pace_over_subscribed(s);

	c->active = false;
	c->left_at = silent_unit(s->asked_ns);
	c->head_wire_bytes = 0;
	pace_part_unload(s, c);
	if (c->type == PACE_TYPE_NORMAL) {
		pace_best_effort_remove(s, c);
	} else if (c->reservation) {
		pace_reservation_remove(s, c);
	} else if (pace_is_launching(c)) {
		pace_launch_remove(s, c);
	} else if (pace_is_resting(c)) {
		/* Its clock is old, and tells nothing of a lag. */
		pace_rest_remove(s, c);
		pace_load_sub(s, c);
		pace_lag_settle(s, was_over, NULL);
	} else {
		pace_paced_remove(s, c);
		if (c->has_ceil)
			pace_borrow_leave(s, c);
		pace_load_sub(s, c);
		pace_lag_settle(s, was_over, c);
		if (c->part)
			pace_part_rest(s, c);
	}
	if (s->device)
		pace_device_rest(s);
	/*
	 * With no class active the caller may not poll when the timer runs out.
	 */
	if (!pace_active(s))
		s->armed = false;
}

void pace_activate(struct pace_sched *s, struct pace_class *c, u64 now_ns)
{
	if (c->active || !PACE_ASSERT(pace_id_held(s, c)))
		return;
	advance_to_arrival(s, now_ns);
	pace_schedule_class(s, c, now_ns);
}

void pace_arrived(struct pace_sched *s, struct pace_class *c, u32 wire_bytes,
		  u64 now_ns)
{
	if (c->type != PACE_TYPE_RT || !PACE_ASSERT(pace_id_held(s, c)))
		return;
	advance_to_arrival(s, now_ns);
	pace_reservation_arrived(s, c, wire_bytes);
}

void pace_dropped(struct pace_sched *s, struct pace_class *c, u32 wire_bytes,
		  u64 now_ns)
{
	if (c->type != PACE_TYPE_RT || !PACE_ASSERT(pace_id_held(s, c)))
		return;
	advance_to_arrival(s, now_ns);
	pace_reservation_dropped(s, c, wire_bytes);
}

void pace_deactivate(struct pace_sched *s, struct pace_class *c, u64 now_ns)
{
	if (!c->active)
		return;
	pace_invalidate(s);
	pace_advance_clock(s, now_ns);
	pace_unschedule_class(s, c);
}

void pace_activate_at(struct pace_sched *s, struct pace_class *c, u64 launch_ns,
		      u64 now_ns)
{
	u64 least = now_ns > PACE_LAUNCH_PAST_NS ? now_ns - PACE_LAUNCH_PAST_NS : 1;

	if (!PACE_ASSERT(pace_id_held(s, c)))
		return;
	pace_deactivate(s, c, now_ns);
	advance_to_arrival(s, now_ns);
	/* Keys of a queue are close: those whose instant has passed leave it. */
	pace_launch_due(s, now_ns);
	if (launch_ns < least)
		launch_ns = least;
	if (launch_ns > now_ns + PACE_LAUNCH_NS_MAX)
		launch_ns = now_ns + PACE_LAUNCH_NS_MAX;
	c->launch_ns = launch_ns;
	pace_schedule_class(s, c, now_ns);
}

/*
 * Returns the wire bytes of the next gap frame, for a gap above half a smallest
 * frame: as many as possible without leaving a remainder too small for a frame.
 */
static u32 gap_frame(const struct pace_sched *s, u64 gap_bytes)
{
	u32 min = s->min_gap_bytes;
	u32 max = s->max_wire_bytes;

	if (gap_bytes <= min)
		return min;
	if (gap_bytes <= max)
		return (u32)gap_bytes;
	if (gap_bytes >= (u64)max + min)
		return max;
	/*
	 * Leave `min` for the next frame; if the gap is too short for that,
	 * send `min`.
	 */
	return gap_bytes >= 2 * (u64)min ? (u32)gap_bytes - min : min;
}

/* Returns true if what `c` sends now is at its rate, and not borrowed. */
static inline bool at_rate(const struct pace_sched *s, const struct pace_class *c)
{
	return !c->has_ceil ||
	       !pace_clock_ahead(pace_key_clock(pace_eligible_time(c)),
				 pace_schedule_clock(s) + early_limit_ps(s));
}

static inline struct pace_decision send_decision(const struct pace_sched *s,
						 struct pace_class *c)
{
	struct pace_decision d = { .verdict = PACE_SEND, .cls = c };

	if (c->type == PACE_TYPE_PACED && at_rate(s, c))
		d.late_ps = (s64)(pace_schedule_clock(s) -
				  pace_eligible_time(c));
	return d;
}

/* Decides in GAP, and in HYBRID: that answers WAIT outside the lead. */
static __always_inline struct pace_decision next_gap(struct pace_sched *s, u64 now_ns)
{
	struct pace_class *c;
	u64 clock, gap_ps;

	for (;;) {
		if (s->launching.count)
			pace_launch_due(s, now_ns);
		if (PACE_GROUPS && s->resting.count)
			pace_rest_due(s);
		c = pace_select(s);
		if (c)
			return send_decision(s, c);
		if (!pace_first_ahead(s, &c, &clock))
			return (struct pace_decision){ .verdict = PACE_IDLE };
		gap_ps = clock - pace_schedule_clock(s);
		if (c && gap_ps <= early_limit_ps(s))
			return send_decision(s, c);
		if (s->cfg.mode != PACE_MODE_HYBRID ||
		    gap_ps <= s->lead_ps + pace_idle_least_ps(s))
			return (struct pace_decision){
				.verdict = PACE_GAP,
				.gap_bytes = gap_frame(s, pace_gap_bytes(s, gap_ps)),
			};
		if (s->idling)
			return pace_idle_wait(s, clock);
		pace_idle_begin(s, now_ns);
		pace_period_advance(s, now_ns);
	}
}

static inline struct pace_decision wait_decision(const struct pace_sched *s,
						 u64 global_ps)
{
	return (struct pace_decision){
		.verdict = PACE_WAIT,
		.until_ns = pace_line_reaches_ns(&s->line, global_ps),
	};
}

/*
 * Decides in TIMER.  The line is virtual: a frame may leave when the one before
 * it would have left the wire.
 */
static __always_inline struct pace_decision next_timer(struct pace_sched *s, u64 now_ns)
{
	bool free = (s64)(s->global_ps - s->busy_until_ps) >= 0;
	struct pace_class *c;
	u64 at;

	if (s->launching.count)
		pace_launch_due(s, now_ns);
	if (PACE_GROUPS && s->resting.count)
		pace_rest_due(s);
	if (!pace_active(s))
		return (struct pace_decision){ .verdict = PACE_IDLE };
	if (!free && pace_any_ready(s))
		return wait_decision(s, s->busy_until_ps);
	c = free ? pace_select(s) : NULL;
	if (c)
		return send_decision(s, c);
	if (!pace_first_ahead(s, &c, &at))
		return (struct pace_decision){ .verdict = PACE_IDLE };
	at += s->offset_ps;
	return wait_decision(s, free ? at : pace_later(at, s->busy_until_ps));
}

/*
 * One path for one due class: pace_set_plain(), nothing active but paced classes
 * without a ceil, and the first that waits is due before the others or not at all, and
 * late by no more than a stall.  Returns false, and has changed nothing, if that is not
 * so.
 */
static __always_inline bool next_alone(struct pace_sched *s, u64 now_ns,
				       struct pace_decision *d)
{
	u64 ns = now_ns - s->line.ns;
	u64 global, free_ps, clock, until;
	struct pace_class *c;
	s64 late;

	if (!s->is_plain || s->others || !s->waiting.count || s->eligible.count ||
	    ns > PACE_STEP_NS_MAX)
		return false;
	global = s->line.ps + ns * PACE_PS_PER_NS;
	/* After a change of the mode real time may not have reached the clock yet. */
	if ((s64)(global - s->global_ps) < 0)
		return false;
	c = pace_first_waiting(s);
	clock = pace_key_clock(c->clock.ps) + s->offset_ps;
	free_ps = s->busy_until_ps;
	late = (s64)(global - clock);
	if (late >= 0 && (late > (s64)PACE_STALL_PS || (s64)(global - free_ps) < 0 ||
			  !is_first_in_order(s, c, global)))
		return false;
	if (ns && (s64)(clock - s->global_ps) > 0) {
		/* pace_note_idle() */
		until = pace_earlier(global, c->clock.ps + s->offset_ps);
		if ((s64)(until - free_ps) > 0)
			s->idled_ps = until - s->offset_ps;
	}
	s->line.ps = global;
	s->line.ns = now_ns;
	s->global_ps = global;
	s->alone = late >= 0 && !s->waiting.stale;
	if (late >= 0)
		*d = (struct pace_decision){
			.verdict = PACE_SEND,
			.cls = c,
			.late_ps = (s64)(global - s->offset_ps - c->clock.ps),
		};
	else
		*d = wait_decision(s, pace_later(c->clock.ps + s->offset_ps, free_ps));
	return true;
}

/*
 * Repeats its last answer while that stands: hosts ask whenever a packet comes,
 * mostly while a timer runs.
 */
static __always_inline struct pace_decision decide(struct pace_sched *s, u64 now_ns)
{
	struct pace_decision d;

	if (now_ns < s->quiet_until_ns) {
		s->asked_ns = now_ns;
		s->repeated = true;
		s->advanced = false;
		return (struct pace_decision){
			.verdict = PACE_WAIT,
			.until_ns = s->quiet_until_ns,
		};
	}
	pace_invalidate(s);
	if (!next_alone(s, now_ns, &d)) {
		pace_advance_clock(s, now_ns);
		if (s->cfg.mode == PACE_MODE_TIMER)
			d = next_timer(s, now_ns);
		else
			d = next_gap(s, now_ns);
	}
	/* guard counts how often it holds a frame back. */
	if (d.verdict == PACE_WAIT &&
	    !(s->cfg.guard_band && (s->active_normal || s->period.active)))
		s->quiet_until_ns = d.until_ns;
	s->asked_ns = now_ns;
	s->repeated = false;
	s->advanced = d.verdict == PACE_SEND;
	return d;
}

struct pace_decision pace_next(struct pace_sched *s, u64 now_ns)
{
	return decide(s, now_ns);
}

/*
 * The first that waits sends its frame and waits again; the next is that class, or
 * the one behind it.
 */
u64 pace_after_ns(const struct pace_sched *s)
{
	const struct pace_class *c = pace_first_waiting(s), *second;
	struct pace_clock after;
	u32 id = PACE_ID_NONE;

	if (!s->quiet_until_ns || s->cfg.mode != PACE_MODE_TIMER || !c ||
	    !only_paced(s) || (s64)(s->global_ps - s->busy_until_ps) < 0)
		return 0;
	after = c->clock;
	pace_clock_advance(&after, c->rate_quot, c->rate_rem, c->rate_bps);
	if (s->waiting.count > 1)
		id = pace_queue_second(&s->waiting) & PACE_KEY_ID_MASK;
	/* It may be no key of a class: pace_wheel_second(). */
	second = id < s->id_end ? s->by_id[id] : NULL;
	if (second)
		after.ps = pace_clock_earlier(second->clock.ps, after.ps);
	return pace_line_reaches_ns(&s->line, after.ps + s->offset_ps);
}

bool pace_is_throttled(const struct pace_sched *s, const struct pace_class *c)
{
	u64 clock = c->has_ceil ? c->ceil_clock.ps : c->clock.ps;

	return c->active && c->type == PACE_TYPE_PACED &&
	       pace_clock_ahead(pace_key_clock(clock), pace_schedule_clock(s));
}

/*
 * The port's clock at now_ns is worked out as pace_advance_clock() would move
 * it; where bytes are the clock, it stands.
 */
u64 pace_debt_ns(const struct pace_sched *s, const struct pace_class *c, u64 now_ns)
{
	struct pace_line line = s->line;
	u64 now = s->global_ps;

	if (c->type != PACE_TYPE_PACED || pace_was_silent(c, now_ns))
		return 0;
	if (s->cfg.mode == PACE_MODE_TIMER || s->idling || !pace_active(s)) {
		pace_line_advance(&line, now_ns);
		now = pace_later(line.ps, now);
	}
	now -= s->offset_ps;
	if (!pace_clock_ahead(c->clock.ps, now))
		return 0;
	return pace_ns_of(c->clock.ps - now);
}

void pace_set_head(struct pace_sched *s, struct pace_class *c, u32 wire_bytes)
{
	if (!PACE_ASSERT(pace_id_held(s, c)))
		return;
	pace_invalidate(s);
	c->head_wire_bytes = wire_bytes < PACE_BURST_WIRE_MAX ? wire_bytes :
							PACE_BURST_WIRE_MAX;
	pace_note_head(s, c->head_wire_bytes);
}

/*
 * Charges the line with a frame that goes to the wire.  guaranteed: it leaves at a rate.
 */
static __always_inline void occupy_line(struct pace_sched *s, const struct pace_burst *t,
			       bool guaranteed)
{
	u64 ps;

	s->stats.sent_frames += t->frames;
	s->stats.sent_wire_bytes += t->wire_bytes;
	if (s->cfg.mode == PACE_MODE_TIMER) {
		ps = pace_line_charge(s, t->wire_bytes);
		s->busy_until_ps = pace_later(s->busy_until_ps,
					      s->global_ps - PACE_SLACK_PS) + ps;
		if (s->device)
			pace_device_sent(s, ps, guaranteed);
		return;
	}
	pace_hand_out(s, t->wire_bytes);
	if (s->gapped)
		pace_lead_decay(s);
}

static inline void note_lateness(struct pace_sched *s, u64 eligible_ps)
{
	u64 now = pace_schedule_clock(s);

	if (pace_clock_ahead(eligible_ps, now)) {
		if (eligible_ps - now > s->stats.early_max_ps)
			s->stats.early_max_ps = eligible_ps - now;
	} else if (now - eligible_ps > s->stats.late_max_ps) {
		s->stats.late_max_ps = now - eligible_ps;
	}
}

/*
 * Accounts a frame of an rt or nrt class, which may go before eligible paced
 * ones.
 */
static void sent_reserved(struct pace_sched *s, struct pace_class *c,
			  const struct pace_burst *t, bool more)
{
	if (!pace_first_eligible(s))
		s->idled_ps = pace_schedule_clock(s);
	occupy_line(s, t, true);
	if (pace_reservation_sent(s, c, t, more))
		pace_unschedule_class(s, c);
}

static __always_inline void sent_best_effort(struct pace_sched *s, struct pace_class *c,
					     const struct pace_burst *t, bool more)
{
	s->idled_ps = pace_schedule_clock(s);
	occupy_line(s, t, false);
	c->deficit_bytes -= t->wire_bytes;
	if (!more)
		pace_unschedule_class(s, c);
	else if (c->deficit_bytes <= 0 && s->ring == c)
		s->ring = c->next;
}

static __always_inline void update_frame_cost(struct pace_sched *s, struct pace_class *c,
					      const struct pace_burst *t)
{
	if (is_same_burst(&c->last, t))
		return;
	pace_load_sub(s, c);
	pace_class_change_burst(s, c, t);
	pace_load_add(s, c);
}

/* Advances the clocks of a class by the frame cost of one burst.  Borrowed? */
static __always_inline bool move_clocks(struct pace_sched *s, struct pace_class *c)
{
	bool borrows = !at_rate(s, c);

	if (borrows) {
		s->idled_ps = pace_schedule_clock(s);
		pace_borrow_sent(s, c);
	} else {
		note_lateness(s, pace_eligible_time(c));
		if (s->cfg.order == PACE_ORDER_RATE)
			pace_rate_lag_bound(s, c);
		s->last_finish_ps = pace_virtual_finish(s, c);
		if (c->has_ceil)
			pace_ceil_sent(s, c);
		pace_clock_advance(&c->clock, c->rate_quot, c->rate_rem,
				   c->rate_bps);
	}
	pace_eligible_update(c);
	return borrows;
}

static __always_inline void sent_paced(struct pace_sched *s, struct pace_class *c,
				       const struct pace_burst *t, bool more)
{
	bool borrows;

	update_frame_cost(s, c, t);
	borrows = move_clocks(s, c);
	occupy_line(s, t, !borrows);
	if (!more) {
		pace_unschedule_class(s, c);
		return;
	}
	if (c->part)
		pace_part_settle(s, c);
	if (c->has_ceil) {
		pace_borrow_remove(s, c);
		pace_borrow_insert(s, c);
	}
	pace_paced_update(s, c);
	if (borrows && s->device)
		pace_device_rest(s);
}

/*
 * The same path for the frame of that class, which waits again.  What pace_next() would
 * answer now, at the same instant, is worked out here, mostly that it waits.  Returns
 * false, and has changed nothing, if pace_next() did not go by this path, or something
 * has changed since.
 */
static __always_inline bool sent_alone(struct pace_sched *s, struct pace_class *c,
				       const struct pace_burst *t, u64 now_ns)
{
	u64 now, due;

	if (!s->alone || now_ns != s->asked_ns ||
	    pace_queue_min(&s->waiting) != c->id || !is_same_burst(&c->last, t))
		return false;
	/* The next step of a class of the device is the other path's. */
	if (c->part && pace_step_is_used(c->part, c->clock.ps + c->rate_quot, c->rate_quot))
		return false;
	s->alone = false;
	s->advanced = false;
	note_lateness(s, c->clock.ps);
	s->last_finish_ps = pace_virtual_finish(s, c);
	pace_clock_advance(&c->clock, c->rate_quot, c->rate_rem, c->rate_bps);
	occupy_line(s, t, true);
	pace_queue_replace_min(&s->waiting, pace_clock_key(c->clock.ps, c));
	if (pace_queue_has_wheel(&s->waiting))
		fetch_coming(s, &s->waiting);
	now = pace_schedule_clock(s);
	due = pace_first_waiting(s)->clock.ps;
	if (pace_clock_ahead(pace_key_clock(due), now))
		s->quiet_until_ns = pace_line_reaches_ns(&s->line,
				pace_later(due + s->offset_ps, s->busy_until_ps));
	return true;
}

static __always_inline void account_burst(struct pace_sched *s, struct pace_class *c,
					  const struct pace_burst *t, bool more, u64 now_ns)
{
	/* It is active, and the burst as one before. */
	if (more && sent_alone(s, c, t, now_ns))
		return;
	if (!PACE_ASSERT(c->active && t->len_bytes && t->frames &&
			 t->len_bytes <= PACE_FRAME_MAX && t->wire_bytes &&
			 t->wire_bytes <= PACE_BURST_WIRE_MAX))
		return;
	pace_invalidate(s);
	/* pace_next() has done so, mostly; a short period may end twice. */
	if (!s->advanced || now_ns != s->asked_ns || s->period.classes)
		pace_advance_clock(s, now_ns);
	s->advanced = false;
	c->head_wire_bytes = 0;
	if (s->period.classes)
		s->period.left_bytes -= pace_counted_bytes(&s->cfg, t);
	if (c->type == PACE_TYPE_NORMAL)
		sent_best_effort(s, c, t, more);
	else if (c->reservation)
		sent_reserved(s, c, t, more);
	else
		sent_paced(s, c, t, more);
	/* In TIMER frames do not move the clock. */
	if (s->cfg.mode != PACE_MODE_TIMER)
		pace_paced_advance(s);
}

void pace_sent_burst(struct pace_sched *s, struct pace_class *c, u32 len_bytes,
		     u32 wire_bytes, u32 frames, bool more, u64 now_ns)
{
	const struct pace_burst t = {
		.len_bytes = len_bytes,
		.frames = frames,
		.wire_bytes = wire_bytes,
	};

	account_burst(s, c, &t, more, now_ns);
}

void pace_sent(struct pace_sched *s, struct pace_class *c, u32 len_bytes,
	       bool more, u64 now_ns)
{
	pace_sent_burst(s, c, len_bytes, pace_wire_bytes(s, len_bytes), 1, more,
			now_ns);
}

void pace_gap_sent(struct pace_sched *s, u32 gap_bytes)
{
	pace_invalidate(s);
	s->advanced = false;
	s->idled_ps = pace_schedule_clock(s);
	s->stats.gap_frames++;
	s->stats.gap_wire_bytes += gap_bytes;
	if (s->cfg.mode == PACE_MODE_TIMER)
		return;
	pace_hand_out(s, gap_bytes);
	s->gapped = s->cfg.mode == PACE_MODE_HYBRID;
}
