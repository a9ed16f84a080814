// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Borrowing: classes below their ceil share what would be a gap.
 *
 * A class with a ceil has two more clocks.  The ceil clock moves by
 * counted x 8e12 / ceil with every frame, and until it is reached the class may
 * send nothing: pace_class.eligible_time is the later of the two.  The borrow
 * clock moves by counted x 8e12 / rate with every frame sent above the rate.  Of
 * the classes whose ceil clock is reached the one with the smallest borrow clock
 * goes first: start-time fair queueing (Goyal, Vin and Cheng, 1996), so what is
 * borrowed divides in proportion to the rates.  The clock of the rate does not
 * move with such a frame: what is guaranteed stays guaranteed.
 *
 * A class with a ceil waits in `at_ceil`, by ceil clock, and moves to `borrowing`,
 * by borrow clock, when that is reached: O(log n) a frame.  It is in `waiting` or
 * `eligible` at the same time.
 *
 * Burst bound: when a borrowed frame is sent the ceil clock keeps at most
 * ceil_slack() of its lag.  A frame at the rate keeps the lag of the rate's
 * clock, or the shares of an over-subscribed line would not be in proportion to
 * the rates.  So in any time T a class sends at most ceil x T, three longest
 * bursts (one that begins T, two of slack; half a smallest gap at ceil more), and
 * what its rate had to make up.  TIMER adds PACE_SLACK_NS.  Silence earns nothing.
 *
 * Error bound: rates and ceils are exact, as clocks are.  What is borrowed is
 * shared as in SFQ: of two classes that borrow all the time, neither is ahead by
 * more than one longest burst each, relative to its rate.
 * docs/decisions/core.md, "Rate, ceil and borrowing".
 */
#include <pace/pace_sched.h>

/*
 * Returns how far behind its ceil clock a class may make up for frames of
 * others: twice its frame cost at the ceil.  With once its cost a class among ten
 * that borrow loses up to 2 % of its ceil, with line frames instead 20 %.
 */
static u64 ceil_slack(const struct pace_sched *s, const struct pace_class *c)
{
	u64 ps = 2 * c->ceil_quot;

	if (s->cfg.mode == PACE_MODE_TIMER)
		ps += PACE_SLACK_PS;
	return ps;
}

static bool is_below_ceil(const struct pace_sched *s,
			  const struct pace_class *c)
{
	return !pace_clock_ahead(pace_key_clock(c->ceil_clock.ps),
				 pace_schedule_clock(s));
}

/* Returns the class with the smallest ceil clock not reached yet, or NULL. */
static struct pace_class *pace_first_at_ceil(const struct pace_sched *s)
{
	return queue_head(s, &s->at_ceil);
}

/* Adds a class to those that borrow, not behind their virtual time. */
static void insert_borrowing(struct pace_sched *s, struct pace_class *c)
{
	pace_clock_raise(&c->borrow_clock, s->borrow_time_ps);
	pace_key_add(s, &s->borrowing, c);
	s->borrowing_bps += c->rate_bps;
}

static void insert_at_ceil(struct pace_sched *s, struct pace_class *c)
{
	pace_key_add(s, &s->at_ceil, c);
}

static void pace_borrow_remove(struct pace_sched *s, struct pace_class *c)
{
	bool borrows = c->ceil_place == PACE_BORROWING;

	if (borrows)
		s->borrowing_bps -= c->rate_bps;
	pace_key_remove(s, borrows ? &s->borrowing : &s->at_ceil, c);
}

static void promote_borrowing(struct pace_sched *s)
{
	struct pace_class *c;

	while ((c = queue_head(s, &s->at_ceil)) && is_below_ceil(s, c)) {
		pace_borrow_remove(s, c);
		insert_borrowing(s, c);
	}
}

/* Adds a class with a ceil, after others: keys in a queue are close. */
static void pace_borrow_insert(struct pace_sched *s, struct pace_class *c)
{
	promote_borrowing(s);
	if (is_below_ceil(s, c))
		insert_borrowing(s, c);
	else
		insert_at_ceil(s, c);
}

/* The same for a class that becomes active, or had no ceil until now. */
static void pace_borrow_join(struct pace_sched *s, struct pace_class *c)
{
	pace_borrow_insert(s, c);
	s->others++;
}

static void pace_borrow_leave(struct pace_sched *s, struct pace_class *c)
{
	pace_borrow_remove(s, c);
	s->others--;
}

/* Returns the class to serve above its rate, or NULL. */
static struct pace_class *pace_borrow_next(struct pace_sched *s)
{
	struct pace_class *c;

	promote_borrowing(s);
	/* All clocks may have been moved forward since. */
	while ((c = queue_head(s, &s->borrowing)) && !is_below_ceil(s, c)) {
		pace_borrow_remove(s, c);
		insert_at_ceil(s, c);
	}
	return c;
}

/*
 * Raises the ceil clock of a class that becomes active, or had no ceil until
 * now: it could have sent since that clock was reached, and did not.
 */
static void pace_ceil_return(const struct pace_sched *s, struct pace_class *c)
{
	u64 now = pace_schedule_clock(s);

	pace_clock_raise(&c->ceil_clock,
			 pace_clock_earlier(c->clock.ps, now));
	pace_eligible_update(c);
}

static void ceil_advance(struct pace_class *c, u64 floor)
{
	pace_clock_raise(&c->ceil_clock, floor);
	pace_step_raise(c->ceil_part, c->ceil_clock.ps);
	pace_clock_advance(&c->ceil_clock, c->ceil_quot, c->ceil_rem,
			   c->ceil_bps);
}

/* Charges the ceil of a class that sends at its rate, before its clock moves. */
static void pace_ceil_sent(const struct pace_sched *s, struct pace_class *c)
{
	u64 floor = pace_schedule_clock(s) - ceil_slack(s, c);

	ceil_advance(c, pace_clock_earlier(c->clock.ps, floor));
}

/* Charges a frame that is sent above the rate. */
static void pace_borrow_sent(struct pace_sched *s, struct pace_class *c)
{
	ceil_advance(c, pace_schedule_clock(s) - ceil_slack(s, c));
	pace_clock_raise(&c->borrow_clock, s->borrow_time_ps);
	s->borrow_time_ps = c->borrow_clock.ps;
	pace_clock_advance(&c->borrow_clock, c->rate_quot, c->rate_rem,
			   c->rate_bps);
	s->stats.borrowed_frames++;
}
