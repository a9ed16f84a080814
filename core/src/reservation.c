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
 * align_ns + k x period_ns, made bytes once a period: byte clock and host's
 * clock may then differ by what they drift apart in one.
 *
 * The budget is what may leave in a period, as the layer counts.  Every frame
 * is charged with it when it is sent; rt frames within what is reserved and
 * paced frames go whether or not something is left, all others only if
 * something is, whole.  What is spent beyond it is owed by the next period, up
 * to one budget. So in any number of periods n, if no paced frame is sent, at
 * most n budgets and one longest train leave.  decisions/0140.
 *
 * Cost: O(1) a period, and one look at each class that it leaves frames of.
 */
#include <pace/pace_sched.h>

/*
 * Where an active rt or nrt class is.  A new period takes all that wait to
 * those that may send, at once; what it changes of a class is done when that
 * class is looked at next: pace_stream_follow().
 */
enum pace_reservation_ring {
	PACE_RING_RT,		/* frames that came before the period */
	PACE_RING_RT_LATE,	/* the same, beyond the period's reservation */
	PACE_RING_RT_EXCESS,	/* the same, beyond what may go ahead of others */
	PACE_RING_RT_NEXT,	/* frames that came in it */
	PACE_RING_NRT,		/* has some of its share left */
	PACE_RING_NRT_NEXT,	/* has sent its share */
};

/* Something is left of the budget, or there is none in force. */
static inline bool pace_budget_left(const struct pace_sched *s)
{
	return !s->period.classes || s->period.left_bytes > 0;
}

/* Derives from cfg; a period of another length begins at once. */
static void pace_period_set(struct pace_sched *s)
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
	u64 own = c && c->reservation ? c->reservation->reserve_bytes : 0;

	return s->period.reserved_bytes - own;
}

void pace_set_align(struct pace_sched *s, u64 align_ns)
{
	s->cfg.align_ns = align_ns;
}

static bool period_is_over(const struct pace_sched *s)
{
	return (s64)(s->global - s->period.end.bytes) >= 0;
}

static void move_period_end(struct pace_period *p, u64 periods)
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
static void end_by_bytes(struct pace_sched *s)
{
	struct pace_period *p = &s->period;
	u64 periods, rem;

	p->end_ns = 0;
	move_period_end(p, 1);
	while (period_is_over(s)) {
		periods = pace_div_rem(s->global - p->end.bytes,
				       p->whole_bytes + 1, &rem);
		move_period_end(p, periods ? periods : 1);
	}
}

/*
 * The host's next instant.  If it is, within half a period, the one that the
 * period before was to end at, the byte clock was ahead, and it is the next but
 * one.
 */
static void end_by_host(struct pace_sched *s, u64 now_ns)
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
static u64 count_left(struct pace_class *first, bool overrun)
{
	struct pace_class *c = first;
	u64 classes = 0;

	if (!c)
		return 0;
	do {
		if (overrun)
			c->reservation->overrun++;
		else
			c->reservation->deferred++;
		classes++;
		c = c->next;
	} while (c != first);
	return classes;
}

/* Classes of which the period left late frames; its excess is counted already. */
static u64 count_late_left(struct pace_class *first)
{
	struct pace_class *c = first;
	u64 classes = 0;

	if (!c)
		return 0;
	do {
		if (c->reservation->credit_bytes > 0) {
			c->reservation->deferred++;
			classes++;
		}
		c = c->next;
	} while (c != first);
	return classes;
}

/* What is left when a period ends: each class counts once, by its cause. */
static void count_all_left(struct pace_sched *s)
{
	struct pace_period *p = &s->period;
	struct pace_class *late = p->ring[PACE_RING_RT_LATE];
	struct pace_class *excess = p->ring[PACE_RING_RT_EXCESS];
	struct pace_class *nrt = p->ring[PACE_RING_NRT];

	s->stats.rt_overrun += count_left(p->ring[PACE_RING_RT], true);
	s->stats.rt_deferred += count_late_left(excess);
	if (pace_budget_left(s)) {
		s->stats.rt_overrun += count_left(late, true);
		return;
	}
	s->stats.rt_deferred += count_left(late, false);
	s->stats.nrt_deferred += count_left(nrt, false);
	if (late || excess || nrt || s->ring)
		s->stats.periods_spent++;
}

static void begin_period(struct pace_sched *s)
{
	struct pace_period *p = &s->period;
	s64 budget = s->cfg.budget_bytes;

	if (p->left_bytes < -budget)
		p->left_bytes = -budget;
	if (p->left_bytes > 0)
		p->left_bytes = 0;
	p->left_bytes += budget;
	p->gated_wire_bytes = p->backlog_wire_bytes;
	pace_ring_join(&p->ring[PACE_RING_RT], &p->ring[PACE_RING_RT_LATE]);
	pace_ring_join(&p->ring[PACE_RING_RT], &p->ring[PACE_RING_RT_EXCESS]);
	pace_ring_join(&p->ring[PACE_RING_RT], &p->ring[PACE_RING_RT_NEXT]);
	pace_ring_join(&p->ring[PACE_RING_NRT], &p->ring[PACE_RING_NRT_NEXT]);
	p->number++;
	s->stats.periods++;
}

/* After the port's clock has moved, before anything is decided or comes. */
static void pace_period_advance(struct pace_sched *s, u64 now_ns)
{
	struct pace_period *p = &s->period;
	u64 past, rem;

	if (!p->classes || (p->running && !period_is_over(s)))
		return;
	if (!p->running) {
		p->running = true;
		p->end_ns = 0;
		p->left_bytes = 0;
		pace_clock_set(&p->end, s->global);
	} else {
		count_all_left(s);
		/* Periods went by unseen: nothing is owed from before. */
		past = s->global - p->end.bytes;
		if (past >= p->whole_bytes) {
			p->left_bytes = 0;
			p->number += pace_div_rem(past, p->whole_bytes, &rem);
		}
	}
	begin_period(s);
	if (s->cfg.aligned)
		end_by_host(s, now_ns);
	else
		end_by_bytes(s);
}

/* Frames wait for the next period. */
static bool pace_period_awaited(const struct pace_sched *s)
{
	const struct pace_period *p = &s->period;

	if (!p->classes)
		return false;
	if (p->ring[PACE_RING_RT_NEXT] || p->ring[PACE_RING_NRT_NEXT])
		return true;
	return !pace_budget_left(s) &&
	       (p->ring[PACE_RING_RT_LATE] || p->ring[PACE_RING_RT_EXCESS] ||
		p->ring[PACE_RING_NRT] || s->ring ||
		!pace_queue_empty(&s->borrowing) ||
		!pace_queue_empty(&s->at_ceil));
}

/*
 * Classes that go by the period (paper 004, 2.2.1 and 3.1).
 *
 * RT.  What has come by the start of a period goes out in it; what comes during
 * a period waits for the next.  A class sends what it has reserved; what it has
 * beyond that ("late-first", figure 9) goes next, ahead of all nrt and normal
 * frames, and is paid from what the budget then has left; beyond that it waits
 * for the next period.  Classes take turns by frame.
 *
 * When in the period: deadline first.  Paced frames have theirs at their
 * clocks, all rt frames at the period's end.  So a paced frame that is due goes
 * before them, until what rt classes have left would no more end in time: then
 * they go first.  A class that is paced sees an rt frame at most where it would
 * have seen a normal one, and rt frames end within their period whatever the
 * paced classes ask for.
 *
 * NRT.  A class sends its share of each period while the budget lasts, after
 * all rt frames of that period; the rest waits.
 *
 * The length of a frame is not known before it is sent: it goes if something is
 * left of what pays for it.  What an rt frame takes beyond the reservation the
 * budget pays; what an nrt frame takes beyond the share the class owes to its
 * next period.  So over any n periods a class that is nrt sends at most n
 * shares and one longest train.
 *
 * Error bound: none; bytes are exact.  What is gated is known in wire bytes, as
 * the host tells (pace_arrived()); a class that is active with nothing known of
 * what came has one frame.  decisions/0141.
 */

/* No train takes as much: after so much of its share a class owes nothing. */
#define DEBT_MAX	((u64)PACE_BURST_WIRE_MAX)

/*
 * Reservations of so many periods may be sent later: frames come so late behind
 * as many routers, each of which has delayed them by a period.
 */
#define SAVED_PERIODS	8u

static u64 smaller_of(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* What is left of an nrt class's share, `periods` after it was worked out. */
static s64 share_left(const struct pace_reservation *st, u64 periods)
{
	s64 left = st->left_bytes, reserve = st->reserve_bytes;

	/* No product overflows: fewer than 2^42 x 2^22. */
	if (periods > DEBT_MAX)
		return reserve;
	if (periods > 1)
		left += (s64)((periods - 1) * smaller_of(reserve, DEBT_MAX));
	return (left < 0 ? left : 0) + reserve;
}

/* Returns the most that an rt class saves: its own of this period, and more. */
static s64 credit_max(u64 reserve_bytes)
{
	return (s64)((1 + SAVED_PERIODS) * reserve_bytes);
}

/* Returns the credit of an rt class, `periods` after it was worked out. */
static s64 credit_after(const struct pace_reservation *st, u64 periods)
{
	s64 most = credit_max(st->reserve_bytes), credit;

	/* No product overflows: at most 2^23 x 2^37. */
	if (periods > 2 * DEBT_MAX)
		return most;
	credit = st->credit_bytes + (s64)(periods * st->reserve_bytes);
	return credit < most ? credit : most;
}

/* Brings the class up to the period that runs. */
static void update_class(const struct pace_sched *s, struct pace_class *c)
{
	struct pace_reservation *st = c->reservation;
	u64 periods = s->period.number - st->period;

	if (!periods)
		return;
	st->period = s->period.number;
	st->gated_wire_bytes = st->backlog_wire_bytes;
	if (c->type == PACE_TYPE_RT) {
		st->left_bytes = (s64)st->reserve_bytes;
		st->late_left_bytes = (s64)st->reserve_bytes;
		st->credit_bytes = credit_after(st, periods);
		st->ring = PACE_RING_RT;
	} else {
		st->left_bytes = share_left(st, periods);
		st->ring = PACE_RING_NRT;
	}
}

/* Last of those there, also if it is there already. */
static void move_to(struct pace_sched *s, struct pace_class *c,
		    enum pace_reservation_ring index)
{
	pace_ring_remove(&s->period.ring[c->reservation->ring], c);
	c->reservation->ring = index;
	pace_ring_add(&s->period.ring[index], c);
}

/* So many bytes of the first frames wait no more. */
static void spend_backlog(struct pace_sched *s, struct pace_reservation *st,
			  u64 wire_bytes)
{
	struct pace_period *p = &s->period;
	u64 known = smaller_of(wire_bytes, st->backlog_wire_bytes);

	st->backlog_wire_bytes -= known;
	p->backlog_wire_bytes -= known;
	known = smaller_of(wire_bytes, st->gated_wire_bytes);
	st->gated_wire_bytes -= known;
	/* Of excess the port expects nothing any more: expect_no_more(). */
	if (st->ring == PACE_RING_RT_EXCESS)
		return;
	/* One byte of a frame that nothing is known of was not counted. */
	p->gated_wire_bytes -= smaller_of(known, p->gated_wire_bytes);
}

static void pace_reservation_begin(struct pace_sched *s, struct pace_class *c,
				   const struct pace_class_config *cfg)
{
	struct pace_period *p = &s->period;

	if (!c->reservation) {
		c->reservation = cfg->reservation;
		pace_memset(c->reservation, 0, sizeof(*c->reservation));
		c->reservation->credit_bytes = credit_max(cfg->reserve_bytes);
		p->classes++;
	} else {
		update_class(s, c);
	}
	p->reserved_bytes += cfg->reserve_bytes - c->reservation->reserve_bytes;
	c->reservation->reserve_bytes = cfg->reserve_bytes;
}

/* Its frames, if it has any, are not known of any more. */
static void pace_reservation_end(struct pace_sched *s, struct pace_class *c)
{
	struct pace_period *p = &s->period;

	update_class(s, c);
	spend_backlog(s, c->reservation, ~0ull);
	p->reserved_bytes -= c->reservation->reserve_bytes;
	if (!--p->classes)
		p->running = false;
	c->reservation = NULL;
}

/* The class comes; what it has was told before: pace_arrived(). */
static void pace_reservation_insert(struct pace_sched *s, struct pace_class *c)
{
	struct pace_reservation *st = c->reservation;

	update_class(s, c);
	if (c->type == PACE_TYPE_RT)
		st->ring = st->gated_wire_bytes ? PACE_RING_RT :
						   PACE_RING_RT_NEXT;
	else
		st->ring = st->left_bytes > 0 ? PACE_RING_NRT :
						 PACE_RING_NRT_NEXT;
	pace_ring_add(&s->period.ring[st->ring], c);
	s->period.active++;
}

static void pace_reservation_remove(struct pace_sched *s, struct pace_class *c)
{
	update_class(s, c);
	spend_backlog(s, c->reservation, ~0ull);
	pace_ring_remove(&s->period.ring[c->reservation->ring], c);
	s->period.active--;
}

static void pace_reservation_arrived(struct pace_sched *s, struct pace_class *c,
				     u32 wire_bytes)
{
	update_class(s, c);
	c->reservation->backlog_wire_bytes += wire_bytes;
	s->period.backlog_wire_bytes += wire_bytes;
}

/* What is gated of the class need not end in the period. */
static void expect_no_more(struct pace_sched *s, struct pace_reservation *st)
{
	struct pace_period *p = &s->period;

	p->gated_wire_bytes -= smaller_of(st->gated_wire_bytes,
					  p->gated_wire_bytes);
	if (st->credit_bytes > 0)
		return;
	st->excess++;
	s->stats.rt_excess++;
}

/* Where an active rt class belongs, by what it has. */
static void requeue_rt(struct pace_sched *s, struct pace_class *c)
{
	struct pace_reservation *st = c->reservation;

	if (!st->gated_wire_bytes) {
		move_to(s, c, PACE_RING_RT_NEXT);
		return;
	}
	if (st->credit_bytes > 0 && st->left_bytes > 0) {
		move_to(s, c, PACE_RING_RT);
		return;
	}
	if (st->ring == PACE_RING_RT) {
		st->over++;
		s->stats.rt_over++;
	}
	if (st->credit_bytes > 0 && st->late_left_bytes > 0) {
		move_to(s, c, PACE_RING_RT_LATE);
		return;
	}
	if (st->ring != PACE_RING_RT_EXCESS)
		expect_no_more(s, st);
	move_to(s, c, PACE_RING_RT_EXCESS);
}

static void pace_reservation_dropped(struct pace_sched *s, struct pace_class *c,
				     u32 wire_bytes)
{
	update_class(s, c);
	spend_backlog(s, c->reservation, wire_bytes);
	if (c->active && c->reservation->ring != PACE_RING_RT_NEXT)
		requeue_rt(s, c);
}

static void charge_rt(struct pace_sched *s, struct pace_class *c,
		      const struct pace_burst *t)
{
	struct pace_reservation *st = c->reservation;
	u64 counted = pace_counted_bytes(&s->cfg, t);
	u64 own = st->left_bytes > 0 ? smaller_of(st->left_bytes, counted) : 0;

	spend_backlog(s, st, t->wire_bytes);
	/* Excess is sent as best effort, and costs no reservation. */
	if (st->credit_bytes <= 0)
		return;
	st->credit_bytes -= (s64)counted;
	st->left_bytes -= (s64)own;
	st->late_left_bytes -= (s64)(counted - own);
	st->late_bytes += counted - own;
	s->stats.rt_late_bytes += counted - own;
}

static void requeue_nrt(struct pace_sched *s, struct pace_class *c)
{
	if (c->reservation->left_bytes > 0) {
		move_to(s, c, PACE_RING_NRT);
		return;
	}
	c->reservation->deferred++;
	s->stats.nrt_deferred++;
	move_to(s, c, PACE_RING_NRT_NEXT);
}

/*
 * Charges a frame; returns true if the class is empty, and is to be
 * unscheduled.
 */
static bool pace_reservation_sent(struct pace_sched *s, struct pace_class *c,
				  const struct pace_burst *t, bool more)
{
	update_class(s, c);
	if (c->type == PACE_TYPE_RT)
		charge_rt(s, c, t);
	else
		c->reservation->left_bytes -= pace_counted_bytes(&s->cfg, t);
	if (!more)
		return true;
	if (c->type == PACE_TYPE_RT)
		requeue_rt(s, c);
	else
		requeue_nrt(s, c);
	return false;
}

/* Whose rt frame may go now, or NULL. */
static struct pace_class *pace_rt_next(struct pace_sched *s)
{
	struct pace_class *c;

	while ((c = s->period.ring[PACE_RING_RT])) {
		update_class(s, c);
		if (c->reservation->credit_bytes > 0) {
			if (!c->reservation->gated_wire_bytes)
				c->reservation->gated_wire_bytes = 1;
			return c;
		}
		/* It still owes more than a reservation. */
		requeue_rt(s, c);
	}
	return pace_budget_left(s) ? s->period.ring[PACE_RING_RT_LATE] : NULL;
}

/* After one more longest train what is gated would not end in the period. */
static bool pace_rt_urgent(const struct pace_sched *s)
{
	return s->period.end.bytes - s->global <=
	       s->period.gated_wire_bytes + s->burst_wire_bytes;
}

/* Whose nrt frame may go now, or NULL.  O(1) amortised over periods. */
static struct pace_class *pace_nrt_next(struct pace_sched *s)
{
	struct pace_class *c;

	if (!pace_budget_left(s))
		return NULL;
	while ((c = s->period.ring[PACE_RING_NRT])) {
		update_class(s, c);
		if (c->reservation->left_bytes > 0)
			return c;
		/* It still owes more than a share. */
		move_to(s, c, PACE_RING_NRT_NEXT);
	}
	return NULL;
}
