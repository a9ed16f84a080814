// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Above the rate, below the ceil: what would be a gap is shared.
 *
 * A class with a ceil has two more clocks.  The ceil clock moves by
 * counted x line / ceil with every frame, and until it is reached the class may
 * send nothing: pace_class.start is the later of the two.  The spare clock
 * moves by counted x line / rate with every frame sent above the rate, and of
 * those whose ceil clock is reached the smallest goes first: start-time fair
 * queueing (Goyal, Vin and Cheng, 1996), so what is spare divides in proportion
 * to the rates.  The clock of the rate itself does not move with such a frame:
 * what is guaranteed stays guaranteed.
 *
 * A class that shares waits in `ceiled`, by ceil clock, and changes to `spare`,
 * by spare clock, once that is reached: O(log n) a frame.  Its place among the
 * paced classes is another matter (paced.c).
 *
 * The ceiling: the ceil clock may be behind by slack() when a spare frame is
 * sent and keeps no more of that; a frame at the rate keeps what the clock of
 * the rate is behind, or shares beyond the line would not be in proportion to
 * the rates.  So in any time T a class sends at most ceil x T, three longest
 * trains (one that begins T, two of slack; half a smallest gap at ceil more),
 * and what its rate had to make up.  TIMER adds PACE_SLACK_NS.  Silence earns
 * nothing.
 *
 * Error bound: rates and ceils are exact, as clocks are.  Shares of what is
 * spare are those of SFQ: of two classes that both share all the time, neither
 * is ahead by more than one longest train each, relative to its rate.
 * decisions/0016.
 */
#include "internal.h"
#include "queue.h"

/*
 * How far behind its ceil clock a class may make up for frames of others: two
 * of its own periods.  One loses up to 2 % of a ceil among ten that share,
 * frames of the line instead of its own 20 %.
 */
static u64 slack(const struct pace_sched *s, const struct pace_class *c)
{
	u64 bytes = 2 * c->ceil_quot;

	if (s->cfg.mode == PACE_MODE_TIMER)
		bytes += s->slack_bytes;
	return bytes;
}

static bool reached(const struct pace_sched *s, const struct pace_class *c)
{
	return !pace_clock_ahead(c->ceil_clock.bytes, pace_schedule_clock(s));
}

static struct pace_class *head(const struct pace_sched *s,
			       const struct pace_queue *q)
{
	return pace_queue_empty(q) ? NULL : s->by_id[pace_queue_min(q)];
}

/* The class with the smallest ceil clock that is not reached yet, or NULL. */
struct pace_class *pace_spare_first(const struct pace_sched *s)
{
	return head(s, &s->ceiled);
}

/* Who joins those that share starts where they are. */
static void put_spare(struct pace_sched *s, struct pace_class *c)
{
	pace_clock_raise(&c->spare_clock, s->spare_time);
	c->spare = true;
	pace_queue_insert(&s->spare, pace_clock_key(c->spare_clock.bytes, c));
}

static void put_ceiled(struct pace_sched *s, struct pace_class *c)
{
	pace_queue_insert(&s->ceiled, pace_clock_key(c->ceil_clock.bytes, c));
}

void pace_spare_take(struct pace_sched *s, struct pace_class *c)
{
	pace_queue_remove(c->spare ? &s->spare : &s->ceiled, c->id);
	c->spare = false;
}

static void promote(struct pace_sched *s)
{
	struct pace_class *c;

	while ((c = head(s, &s->ceiled)) && reached(s, c)) {
		pace_spare_take(s, c);
		put_spare(s, c);
	}
}

/* Time may have run on: what stays in the queue by clock must be close. */
void pace_spare_put(struct pace_sched *s, struct pace_class *c)
{
	promote(s);
	if (reached(s, c))
		put_spare(s, c);
	else
		put_ceiled(s, c);
}

/* The class to send above its rate, or NULL. */
struct pace_class *pace_spare_due(struct pace_sched *s)
{
	struct pace_class *c;

	promote(s);
	/* All clocks may have been moved forward since. */
	while ((c = head(s, &s->spare)) && !reached(s, c)) {
		pace_spare_take(s, c);
		put_ceiled(s, c);
	}
	return c;
}

/*
 * `c` comes (back), or had no ceil until now: it could have sent since its ceil
 * clock was reached, and did not.
 */
void pace_ceil_return(const struct pace_sched *s, struct pace_class *c)
{
	u64 now = pace_schedule_clock(s);

	pace_clock_raise(&c->ceil_clock, pace_clock_earlier(c->clock.bytes, now));
	pace_start_follow(c);
}

static void ceil_advance(struct pace_class *c, u64 floor)
{
	pace_clock_raise(&c->ceil_clock, floor);
	pace_clock_advance(&c->ceil_clock, c->ceil_quot, c->ceil_rem,
			   c->ceil_bps);
}

/* `c` sends at its rate; its clock has not moved yet. */
void pace_ceil_sent(const struct pace_sched *s, struct pace_class *c)
{
	u64 floor = pace_schedule_clock(s) - slack(s, c);

	ceil_advance(c, pace_clock_earlier(c->clock.bytes, floor));
}

/* `c` sends above its rate. */
void pace_spare_sent(struct pace_sched *s, struct pace_class *c)
{
	ceil_advance(c, pace_schedule_clock(s) - slack(s, c));
	pace_clock_raise(&c->spare_clock, s->spare_time);
	s->spare_time = c->spare_clock.bytes;
	pace_clock_advance(&c->spare_clock, c->rate_quot, c->rate_rem,
			   c->rate_bps);
	s->stats.spare_frames++;
}
