// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Who is next, and how long the wire stays silent before.
 *
 * Paper 002, 2.2 and 2.3: a class whose clock is not ahead of the port's, of
 * several the one that the order names; else a normal class; else a gap up to
 * the smallest clock.  No clock is altered by the rounding of gaps, so that
 * error does not add up: each frame is at most half a smallest gap early or
 * late (-42 .. +41 bytes).
 */
#include "internal.h"
#include "line.h"
#include "period.h"

u32 pace_min_gap_bytes(const struct pace_sched *s)
{
	return s->min_gap_bytes;
}

/*
 * Nobody was due when time was last looked at.  The line was free from
 * free_bytes on (as global counts); from then on it idled, until now or to the
 * first clock.
 */
void pace_note_idle(struct pace_sched *s, u64 free_bytes)
{
	const struct pace_class *first = pace_paced_first(s);
	u64 until = pace_schedule_clock(s);

	if (first)
		until = pace_clock_earlier(pace_start(first), until);
	if ((s64)(until - (free_bytes - s->offset)) > 0)
		s->idled = until;
}

static void follow_time(struct pace_sched *s, u64 now_ns);

/*
 * Moves the clock, and with it the period.  But for TIMER the clock stands while
 * nobody has a packet: what period it is then is found out when one comes.
 */
void pace_pass_time(struct pace_sched *s, u64 now_ns)
{
	follow_time(s, now_ns);
	if (s->cfg.mode == PACE_MODE_TIMER || s->idling || pace_active(s))
		pace_period_follow(s, now_ns);
}

/*
 * TIMER: real time is the clock, also between frames; HYBRID: while the wire
 * idles.  What a host that stood still has missed is forgotten at once, before
 * anything is measured by it; a line that has been free for years stays within
 * a signed comparison.
 */
static void follow_time(struct pace_sched *s, u64 now_ns)
{
	bool idle;

	if (s->cfg.mode != PACE_MODE_TIMER) {
		if (s->idling)
			pace_idle_follow(s, now_ns);
		return;
	}
	if (now_ns <= s->line.ns)
		return;
	idle = !pace_paced_due(s);
	pace_line_follow(&s->line, s->cfg.line_rate_bps, now_ns);
	s->global = s->line.bytes;
	if (idle)
		pace_note_idle(s, s->busy_until);
	s->busy_until = pace_later(s->busy_until,
				   s->global - PACE_LEAD_WINDOW);
	pace_paced_follow(s);
}

/* What may be in a transmit ring, and must not be counted twice. */
u64 pace_ring_bytes(const struct pace_sched *s)
{
	u64 ring = (u64)PACE_RING_FRAMES * s->train_wire_bytes;

	return ring < s->stall_bytes ? s->stall_bytes : ring;
}

/*
 * GAP, HYBRID: the first packet after an idle spell.  The wire has really been
 * idle only for what line() is ahead of the bytes handed out; if it is behind,
 * the difference is still in the transmit ring and must not be counted twice.
 * A ring holds a bounded amount: without that bound, a NIC faster than its
 * nominal rate would, after a long busy spell, keep the clock from following
 * real time for as long.
 *
 * Not called while any class is active: a device slower than its nominal
 * rate is never caught up.
 */
static void wake(struct pace_sched *s, u64 now_ns)
{
	u64 ring;
	s64 ahead;

	pace_line_follow(&s->line, s->cfg.line_rate_bps, now_ns);
	ahead = (s64)(s->line.bytes - s->global);
	if (ahead >= 0) {
		s->global = s->line.bytes;
		s->idled = pace_schedule_clock(s);
		return;
	}
	ring = pace_ring_bytes(s);
	if (ahead < -(s64)ring)
		pace_line_anchor(&s->line, s->global - ring, s->line.ns);
}

/* A packet comes: what time it is. */
static void attend(struct pace_sched *s, u64 now_ns)
{
	pace_stir(s);
	follow_time(s, now_ns);
	if (s->cfg.mode != PACE_MODE_TIMER && !pace_active(s))
		wake(s, now_ns);
	pace_period_follow(s, now_ns);
}

/* The class has a packet and takes part from now on. */
void pace_join(struct pace_sched *s, struct pace_class *c)
{
	c->active = true;
	if (c->kind == PACE_KIND_NORMAL) {
		pace_normal_put(s, c);
		return;
	}
	if (c->stream) {
		pace_stream_put(s, c);
		return;
	}
	pace_demand_add(s, c);
	pace_return(s, c);
	if (c->sharing) {
		pace_ceil_return(s, c);
		pace_spare_put(s, c);
	}
	pace_paced_put(s, c);
}

void pace_leave(struct pace_sched *s, struct pace_class *c)
{
	bool was_over = pace_over_subscribed(s);

	c->active = false;
	c->head_wire_bytes = 0;
	if (c->kind == PACE_KIND_NORMAL) {
		pace_normal_take(s, c);
	} else if (c->stream) {
		pace_stream_take(s, c);
	} else {
		pace_paced_take(s, c);
		if (c->sharing)
			pace_spare_take(s, c);
		pace_demand_sub(s, c);
		pace_lag_settle(s, was_over, c);
	}
	/* Whoever waited for that timer may not ask again when it runs out. */
	if (!pace_active(s))
		s->armed = false;
}

void pace_activate(struct pace_sched *s, struct pace_class *c, u64 now_ns)
{
	if (c->active || !PACE_ASSERT(pace_id_held(s, c)))
		return;
	attend(s, now_ns);
	pace_join(s, c);
}

void pace_arrived(struct pace_sched *s, struct pace_class *c, u32 wire_bytes,
		  u64 now_ns)
{
	if (c->kind != PACE_KIND_RT || !PACE_ASSERT(pace_id_held(s, c)))
		return;
	attend(s, now_ns);
	pace_stream_arrived(s, c, wire_bytes);
}

void pace_dropped(struct pace_sched *s, struct pace_class *c, u32 wire_bytes,
		  u64 now_ns)
{
	if (c->kind != PACE_KIND_RT || !PACE_ASSERT(pace_id_held(s, c)))
		return;
	attend(s, now_ns);
	pace_stream_dropped(s, c, wire_bytes);
}

void pace_deactivate(struct pace_sched *s, struct pace_class *c, u64 now_ns)
{
	if (!c->active)
		return;
	pace_stir(s);
	pace_pass_time(s, now_ns);
	pace_leave(s, c);
}

/*
 * Wire bytes of the next gap frame of a gap that is above half a smallest
 * one: as large as possible, and such that no remainder is too small for a
 * frame.
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
	/* min later; where even that is too long, one frame of `min`. */
	return gap_bytes >= 2 * (u64)min ? (u32)gap_bytes - min : min;
}

/* Frames this much ahead of their clock leave now: no gap is as short. */
static u64 early_bytes(const struct pace_sched *s)
{
	return s->cfg.mode == PACE_MODE_TIMER ? 0 : s->min_gap_bytes / 2;
}

/* What `c` sends now is guaranteed, not spare. */
static bool at_rate(const struct pace_sched *s, const struct pace_class *c)
{
	return !c->sharing ||
	       !pace_clock_ahead(pace_start(c),
				 pace_schedule_clock(s) + early_bytes(s));
}

static struct pace_decision send(const struct pace_sched *s,
				 struct pace_class *c)
{
	struct pace_decision d = { .verdict = PACE_SEND, .cls = c };

	if (c->kind == PACE_KIND_PACED && at_rate(s, c))
		d.late_bytes = (s64)(pace_schedule_clock(s) - pace_start(c));
	return d;
}

/* GAP, and HYBRID within the lead; else HYBRID answers WAIT. */
static struct pace_decision next_gap(struct pace_sched *s, u64 now_ns)
{
	struct pace_class *c;
	u64 clock, gap;

	for (;;) {
		c = pace_pick(s);
		if (c)
			return send(s, c);
		if (!pace_first_ahead(s, &c, &clock))
			return (struct pace_decision){ .verdict = PACE_IDLE };
		gap = clock - pace_schedule_clock(s);
		if (c && gap <= early_bytes(s))
			return send(s, c);
		if (s->cfg.mode != PACE_MODE_HYBRID ||
		    gap <= s->lead_bytes + pace_idle_least(s))
			return (struct pace_decision){
				.verdict = PACE_GAP,
				.gap_bytes = gap_frame(s, gap),
			};
		if (s->idling)
			return pace_idle_wait(s, clock);
		pace_idle_begin(s, now_ns);
		pace_period_follow(s, now_ns);
	}
}

static struct pace_decision wait_for(const struct pace_sched *s, u64 bytes)
{
	return (struct pace_decision){
		.verdict = PACE_WAIT,
		.until_ns = pace_line_reaches_ns(&s->line,
						 s->cfg.line_rate_bps, bytes),
	};
}

/*
 * TIMER: the line is virtual.  A frame may leave when the one before it would
 * have left the wire.
 */
static struct pace_decision next_timer(struct pace_sched *s)
{
	bool free = (s64)(s->global - s->busy_until) >= 0;
	struct pace_class *c;
	u64 at;

	if (!pace_active(s))
		return (struct pace_decision){ .verdict = PACE_IDLE };
	if (!free && pace_somebody_may(s))
		return wait_for(s, s->busy_until);
	c = free ? pace_pick(s) : NULL;
	if (c)
		return send(s, c);
	if (!pace_first_ahead(s, &c, &at))
		return (struct pace_decision){ .verdict = PACE_IDLE };
	at += s->offset;
	return wait_for(s, free ? at : pace_later(at, s->busy_until));
}

/*
 * Something is about to change: what pace_next() has answered stands no more.
 * First comes the time that it did not pass when it only repeated itself.
 */
void pace_stir(struct pace_sched *s)
{
	if (!s->quiet_until_ns)
		return;
	s->quiet_until_ns = 0;
	pace_pass_time(s, s->asked_ns);
}

/*
 * Hosts ask whenever a packet comes, most of them while a timer runs: the same
 * answer again, without a look at anything.
 */
struct pace_decision pace_next(struct pace_sched *s, u64 now_ns)
{
	struct pace_decision d;

	if (now_ns < s->quiet_until_ns) {
		s->asked_ns = now_ns;
		return (struct pace_decision){
			.verdict = PACE_WAIT,
			.until_ns = s->quiet_until_ns,
		};
	}
	pace_stir(s);
	pace_pass_time(s, now_ns);
	if (s->cfg.mode == PACE_MODE_TIMER)
		d = next_timer(s);
	else
		d = next_gap(s, now_ns);
	/* guard counts how often it holds a frame back. */
	if (d.verdict == PACE_WAIT &&
	    !(s->cfg.guard && (s->active_normal || s->period.active)))
		s->quiet_until_ns = d.until_ns;
	s->asked_ns = now_ns;
	return d;
}

bool pace_is_throttled(const struct pace_sched *s, const struct pace_class *c)
{
	u64 clock = c->ceil_bps ? c->ceil_clock.bytes : c->clock.bytes;

	return c->active && c->kind == PACE_KIND_PACED &&
	       pace_clock_ahead(clock, pace_schedule_clock(s));
}

void pace_set_head(struct pace_sched *s, struct pace_class *c, u32 wire_bytes)
{
	if (!PACE_ASSERT(pace_id_held(s, c)))
		return;
	pace_stir(s);
	c->head_wire_bytes = wire_bytes;
}

/* A frame goes to the wire. */
static void occupy(struct pace_sched *s, const struct pace_train *t)
{
	s->stats.sent_frames += t->frames;
	s->stats.sent_wire_bytes += t->wire_bytes;
	if (s->cfg.mode == PACE_MODE_TIMER) {
		s->busy_until = pace_later(s->busy_until,
					   s->global - s->slack_bytes) +
				t->wire_bytes;
		return;
	}
	s->global += t->wire_bytes;
	pace_handed_out(s);
	if (s->gapped)
		pace_lead_decay(s);
}

static void note_lateness(struct pace_sched *s, const struct pace_class *c)
{
	u64 now = pace_schedule_clock(s);
	u64 early;

	if (pace_clock_ahead(pace_start(c), now)) {
		early = pace_start(c) - now;
		if (early > s->stats.early_bytes_max)
			s->stats.early_bytes_max = early;
	} else if (now - pace_start(c) > s->stats.late_bytes_max) {
		s->stats.late_bytes_max = now - pace_start(c);
	}
}

/* An rt frame may go before paced ones that are due. */
static void sent_stream(struct pace_sched *s, struct pace_class *c,
			const struct pace_train *t, bool more)
{
	if (!pace_paced_due(s))
		s->idled = pace_schedule_clock(s);
	occupy(s, t);
	pace_stream_sent(s, c, t, more);
}

static void sent_normal(struct pace_sched *s, struct pace_class *c,
			const struct pace_train *t, bool more)
{
	s->idled = pace_schedule_clock(s);
	occupy(s, t);
	c->deficit_bytes -= t->wire_bytes;
	if (!more)
		pace_leave(s, c);
	else if (c->deficit_bytes <= 0 && s->ring == c)
		s->ring = c->next;
}

static void price(struct pace_sched *s, struct pace_class *c,
		  const struct pace_train *t)
{
	if (c->last.len_bytes == t->len_bytes && c->last.frames == t->frames &&
	    c->last.wire_bytes == t->wire_bytes)
		return;
	pace_demand_sub(s, c);
	pace_class_price(s, c, t);
	pace_demand_add(s, c);
}

/* The clocks of a class move on by one train of its price. */
static void move_clocks(struct pace_sched *s, struct pace_class *c)
{
	if (!at_rate(s, c)) {
		s->idled = pace_schedule_clock(s);
		pace_spare_sent(s, c);
	} else {
		note_lateness(s, c);
		if (s->cfg.order == PACE_ORDER_RATE)
			pace_owed_bound(s, c);
		s->served = pace_turn(s, c);
		if (c->sharing)
			pace_ceil_sent(s, c);
		pace_clock_advance(&c->clock, c->rate_quot, c->rate_rem,
				   c->rate_bps);
	}
	pace_start_follow(c);
}

static void sent_paced(struct pace_sched *s, struct pace_class *c,
		       const struct pace_train *t, bool more)
{
	price(s, c, t);
	move_clocks(s, c);
	occupy(s, t);
	if (!more) {
		pace_leave(s, c);
		return;
	}
	if (c->sharing) {
		pace_spare_take(s, c);
		pace_spare_put(s, c);
	}
	pace_paced_moved(s, c);
}

void pace_sent_train(struct pace_sched *s, struct pace_class *c, u32 len_bytes,
		     u32 wire_bytes, u32 frames, bool more, u64 now_ns)
{
	const struct pace_train t = {
		.len_bytes = len_bytes,
		.frames = frames,
		.wire_bytes = wire_bytes,
	};

	if (!PACE_ASSERT(c->active && len_bytes && frames &&
			 len_bytes <= PACE_FRAME_MAX && wire_bytes &&
			 wire_bytes <= PACE_TRAIN_WIRE_MAX))
		return;
	pace_stir(s);
	pace_pass_time(s, now_ns);
	c->head_wire_bytes = 0;
	if (s->period.classes)
		s->period.left_bytes -= pace_counted_bytes(&s->cfg, &t);
	if (c->kind == PACE_KIND_NORMAL)
		sent_normal(s, c, &t, more);
	else if (c->stream)
		sent_stream(s, c, &t, more);
	else
		sent_paced(s, c, &t, more);
	pace_lag_bound(s);
}

void pace_sent(struct pace_sched *s, struct pace_class *c, u32 len_bytes,
	       bool more, u64 now_ns)
{
	pace_sent_train(s, c, len_bytes, pace_wire_bytes(s, len_bytes), 1, more,
			now_ns);
}

void pace_gap_sent(struct pace_sched *s, u32 gap_bytes)
{
	pace_stir(s);
	s->idled = pace_schedule_clock(s);
	s->stats.gap_frames++;
	s->stats.gap_wire_bytes += gap_bytes;
	if (s->cfg.mode == PACE_MODE_TIMER)
		return;
	s->global += gap_bytes;
	pace_handed_out(s);
	s->gapped = s->cfg.mode == PACE_MODE_HYBRID;
}
