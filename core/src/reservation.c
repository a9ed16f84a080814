// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Counts periods (paper 004, 2.2.1 and 4.3: the ITM thread) on the port's clock.
 *
 * A period ends when the port's clock reaches end_ps, which moves on by a period,
 * through idle spells too: what the clock is in each mode it is here.  Aligned, the
 * end of each is the host's next instant align_ns + k x period_ns, looked up once a
 * period: sent bytes and the host's clock may then differ by what they drift apart
 * in one.
 *
 * The budget is what may leave in a period, as the layer counts.  Every frame
 * that is sent is charged to it.  rt frames within their reservation and paced
 * frames go even if nothing is left of it; all others go, whole, if anything is.
 * The next period owes what was spent beyond it, up to one budget.  So in n
 * periods, if no paced frame is sent, at most n budgets and one longest burst
 * leave.  docs/decisions/core.md, "Periods and their budget".
 *
 * Cost: O(1) a period, and one visit to each class whose frames it leaves.
 */
#include <pace/pace_sched.h>

/*
 * The rings of active rt and nrt classes.  A new period joins the rings of classes
 * that wait to those of classes that may send.  update_class() does what a new
 * period changes of a class when that class is visited next.
 */
enum pace_reservation_ring {
	PACE_RING_RT,		/* has some of the period's reservation left */
	PACE_RING_RT_LATE,	/* sends on earlier periods' reservations */
	PACE_RING_RT_EXCESS,	/* sends as best effort */
	PACE_RING_RT_NEXT,	/* all its frames arrived in the period */
	PACE_RING_NRT,		/* has some of its share left */
	PACE_RING_NRT_NEXT,	/* has sent its share */
};

/* Returns true if some of the budget is left, or none is in force. */
static inline bool pace_budget_left(const struct pace_sched *s)
{
	return !s->period.classes || s->period.left_bytes > 0;
}

/* Sets the period's length from cfg; one of another length begins at once. */
static void pace_period_set(struct pace_sched *s)
{
	u64 length_ps = s->cfg.period_ns * PACE_PS_PER_NS;

	if (length_ps != s->period.length_ps)
		s->period.running = false;
	s->period.length_ps = length_ps;
}

u64 pace_budget_bytes(u64 line_rate_bps, u64 period_ns, u32 percent)
{
	return pace_mul_div(line_rate_bps, period_ns * percent, 800000000000ull);
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
	return (s64)(s->global_ps - s->period.end_ps) >= 0;
}

/* Moves the end to the first one that is ahead of the clock. */
static void end_by_clock(struct pace_sched *s)
{
	struct pace_period *p = &s->period;
	u64 rem;

	p->end_ns = 0;
	p->end_ps += p->length_ps;
	if (!period_is_over(s))
		return;
	pace_div_rem(s->global_ps - p->end_ps, p->length_ps, &rem);
	p->end_ps = s->global_ps - rem + p->length_ps;
}

/*
 * Moves the end to the next instant of the alignment on the host's clock.  If that
 * is, within half a period, the instant at which the last period ended, the port's
 * clock was ahead, and the end is an instant later.
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
	p->end_ps = s->global_ps + ns * PACE_PS_PER_NS;
}

/* Counts, for each class of a ring, that frames were left.  Returns how many. */
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

/* Does the same for late frames that were left; excess is counted already. */
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

/* Counts classes whose frames the ending period leaves, each once by its cause. */
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

/* Begins a period if the clock has reached the end of the current one. */
static void pace_period_advance(struct pace_sched *s, u64 now_ns)
{
	struct pace_period *p = &s->period;
	u64 past_ps, rem;

	if (!p->classes || (p->running && !period_is_over(s)))
		return;
	if (!p->running) {
		p->running = true;
		p->end_ns = 0;
		p->left_bytes = 0;
		p->end_ps = s->global_ps;
	} else {
		count_all_left(s);
		/* The port was idle for whole periods: they cancel its debt. */
		past_ps = s->global_ps - p->end_ps;
		if (past_ps >= p->length_ps) {
			p->left_bytes = 0;
			p->number += pace_div_rem(past_ps, p->length_ps, &rem);
		}
	}
	begin_period(s);
	if (s->cfg.aligned)
		end_by_host(s, now_ns);
	else
		end_by_clock(s);
}

/* Returns true if frames wait for the next period. */
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
 * Classes by the period (paper 004, 2.2.1 and 3.1).
 *
 * RT.  Frames that arrived before a period leave in it; frames that arrive
 * during a period wait for the next.  A class first sends the period's
 * reservation. Then it sends late frames ("late-first", figure 9), before all
 * nrt and normal frames, while the budget lasts.  Late frames are paid by
 * credit: what eight periods before have reserved and the class has not sent.
 * In one period it sends at most one reservation late.  All frames beyond that
 * are excess: they go after every other class, while the budget lasts, or wait.
 * So an rt class takes from others, over n periods, at most n + 8 reservations
 * and one longest burst. Classes are served round robin, one frame each.
 *
 * When in the period: deadline first.  A paced frame's deadline is its clock,
 * an rt frame's the end of the period.  So eligible paced frames go first until
 * the rt frames of the period would no longer end in it; then rt frames go
 * first.  A paced class waits for an rt frame where it would have waited for a
 * normal one, and rt frames end in their period whatever the paced classes
 * offer.
 *
 * NRT.  A class sends its share of each period while the budget lasts, after
 * the rt frames of the period; the rest waits.
 *
 * The length of a frame is not known before it is sent: a frame goes if
 * anything is left of what pays for it.  An rt class owes what a frame takes
 * beyond its credit, an nrt class what a frame takes beyond its share.  So over
 * n periods an nrt class sends at most n shares and one longest burst.
 *
 * Error bound: none, bytes are exact.  Arrivals are known in wire bytes, as the
 * host reports them (pace_arrived()).  An active class without reported
 * arrivals counts as having one frame.  docs/decisions/core.md, "rt frames by
 * the end of their period".
 */

/* Periods after which a class has no debt, because no debt exceeds a burst. */
#define DEBT_MAX	((u64)PACE_BURST_WIRE_MAX)

/*
 * The number of past periods whose reservations may be sent late.  Frames
 * arrive that late behind as many routers, each of which delays them by a
 * period.
 */
#define SAVED_PERIODS	8u

/* Says whether there may be one path for one due class: sched.c. */
static void pace_set_plain(struct pace_sched *s)
{
	s->is_plain = s->cfg.mode == PACE_MODE_TIMER && !s->cfg.guard_band &&
		      s->cfg.order != PACE_ORDER_RATE && !s->period.classes;
}

static u64 smaller_of(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* Returns what an nrt class has left of its share, `periods` after left_bytes. */
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

/* Returns the most credit: this period's reservation and those saved. */
static s64 credit_max(u64 reserve_bytes)
{
	return (s64)((1 + SAVED_PERIODS) * reserve_bytes);
}

/* Returns the credit of an rt class, `periods` after credit_bytes. */
static s64 credit_after(const struct pace_reservation *st, u64 periods)
{
	s64 most = credit_max(st->reserve_bytes), credit;

	/* No product overflows: at most 2^23 x 2^37. */
	if (periods > 2 * DEBT_MAX)
		return most;
	credit = st->credit_bytes + (s64)(periods * st->reserve_bytes);
	return credit < most ? credit : most;
}

/* Updates a class to the current period. */
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

/* Moves a class to the end of a ring, which may be its own. */
static void move_to(struct pace_sched *s, struct pace_class *c,
		    enum pace_reservation_ring ring)
{
	pace_ring_remove(&s->period.ring[c->reservation->ring], c);
	c->reservation->ring = ring;
	pace_ring_add(&s->period.ring[ring], c);
}

/* Removes wire_bytes, at the head of the queue, from the backlog. */
static void spend_backlog(struct pace_sched *s, struct pace_reservation *st,
			  u64 wire_bytes)
{
	struct pace_period *p = &s->period;
	u64 known = smaller_of(wire_bytes, st->backlog_wire_bytes);

	st->backlog_wire_bytes -= known;
	p->backlog_wire_bytes -= known;
	known = smaller_of(wire_bytes, st->gated_wire_bytes);
	st->gated_wire_bytes -= known;
	/* enter_excess() has taken these out of the port's already. */
	if (st->ring == PACE_RING_RT_EXCESS)
		return;
	/* The byte that stands for a frame without arrival was not counted. */
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
		pace_set_plain(s);
	} else {
		update_class(s, c);
	}
	p->reserved_bytes += cfg->reserve_bytes - c->reservation->reserve_bytes;
	c->reservation->reserve_bytes = cfg->reserve_bytes;
}

/* Ends a reservation: the class gets another type, or is deleted. */
static void pace_reservation_end(struct pace_sched *s, struct pace_class *c)
{
	struct pace_period *p = &s->period;

	update_class(s, c);
	spend_backlog(s, c->reservation, ~0ull);
	p->reserved_bytes -= c->reservation->reserve_bytes;
	if (!--p->classes)
		p->running = false;
	pace_set_plain(s);
	c->reservation = NULL;
}

/* Adds a class whose arrivals were reported before: pace_arrived(). */
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
	s->others++;
}

static void pace_reservation_remove(struct pace_sched *s, struct pace_class *c)
{
	update_class(s, c);
	spend_backlog(s, c->reservation, ~0ull);
	pace_ring_remove(&s->period.ring[c->reservation->ring], c);
	s->period.active--;
	s->others--;
}

static void pace_reservation_arrived(struct pace_sched *s, struct pace_class *c,
				     u32 wire_bytes)
{
	update_class(s, c);
	c->reservation->backlog_wire_bytes += wire_bytes;
	s->period.backlog_wire_bytes += wire_bytes;
}

/* Makes the class's frames excess: they need not end in the period. */
static void enter_excess(struct pace_sched *s, struct pace_reservation *st)
{
	struct pace_period *p = &s->period;

	p->gated_wire_bytes -= smaller_of(st->gated_wire_bytes,
					  p->gated_wire_bytes);
	if (st->credit_bytes > 0)
		return;
	st->excess++;
	s->stats.rt_excess++;
}

/* Moves an active rt class to the ring that it belongs to. */
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
		enter_excess(s, st);
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
	/* Excess is sent as best effort: it costs no credit. */
	if (st->credit_bytes <= 0)
		return;
	st->credit_bytes -= (s64)counted;
	st->left_bytes -= (s64)own;
	st->late_left_bytes -= (s64)(counted - own);
	st->catchup_bytes += counted - own;
	s->stats.rt_catchup_bytes += counted - own;
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
 * Charges a frame.  Returns true if the class is empty: the caller unschedules
 * it.
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

/* Returns the class whose rt frame may go now, or NULL.  O(1) amortised. */
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
		/* Its debt is more than a reservation. */
		requeue_rt(s, c);
	}
	return pace_budget_left(s) ? s->period.ring[PACE_RING_RT_LATE] : NULL;
}

/* Returns true if rt frames would end too late after one more longest burst. */
static bool pace_rt_urgent(const struct pace_sched *s)
{
	u64 left_ps = s->period.end_ps - s->global_ps;

	return period_is_over(s) ||
	       pace_mul_div(left_ps, s->cfg.line_rate_bps, PACE_BYTE_PS) <=
	       s->period.gated_wire_bytes + s->burst_wire_bytes;
}

/* Returns the class whose nrt frame may go now, or NULL.  O(1) amortised. */
static struct pace_class *pace_nrt_next(struct pace_sched *s)
{
	struct pace_class *c;

	if (!pace_budget_left(s))
		return NULL;
	while ((c = s->period.ring[PACE_RING_NRT])) {
		update_class(s, c);
		if (c->reservation->left_bytes > 0)
			return c;
		/* Its debt is more than a share. */
		move_to(s, c, PACE_RING_NRT_NEXT);
	}
	return NULL;
}
