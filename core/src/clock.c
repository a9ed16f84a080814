// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The clocks: time in picoseconds, exact by a remainder.
 *
 * Class clocks.  Paper 002, equations (1) and (2): sending s bytes at rate r on a
 * line of rate R moves the class clock by t(s) + w(s, r) = s R/r bytes of the line,
 * which take s x 8e12 / r ps whatever the line is.  So a line that changes its rate
 * changes no class.
 *
 * Number format.  s x 8e12 / r = quot + rem / r in integers.  The exact clock is a
 * whole number of picoseconds plus frac / r, 0 <= frac < r.  The core stores `ps`,
 * the exact clock rounded up, and `frac`.  The port's clock G is an integer, so
 * "exact <= G" and "ps <= G" are the same question and only pace_clock_advance()
 * looks at frac.  (Rate r: the class's rate or its ceil, whichever this clock counts.)
 *
 * Error bound: none, the sum of any number of advances is exact.  A new rate has a
 * new denominator, and counts from the change on: the bytes that a class still owes take
 * their time at the new rate.  That is rounded up, once, and the class loses less than a
 * picosecond (pace_clock_rescale()).
 *
 * Sizes.  s <= 2^21 (PACE_BURST_WIRE_MAX), so s x 8e12 < 2^64; frac + rem < 2^41.
 *
 * The line.  A byte takes byte_ps picoseconds, and byte_rem / R of one more; on every
 * Ethernet from 10 Mbit/s to 1.6 Tbit/s that part is 0.  What is charged to the line
 * carries it in line_frac: sent bytes as a clock have no drift either.
 */
#include <pace/pace_sched.h>

#define PACE_PS_PER_NS		1000u
/* One byte at 1 bit/s, in ps. */
#define PACE_BYTE_PS		8000000000000ull

/*
 * Clocks wrap at 2^64 ps, 213 days.  A comparison of wrapping clocks has to choose which
 * differences mean "ahead" and which mean "behind".  A signed comparison gives each 106
 * days.  But a class clock is never further ahead of the schedule's clock than
 * PACE_LEAD_MAX_PS (240 s) plus half a gap, and the clock of an idle class may be behind
 * for months.  So the window for "ahead" has twice PACE_LEAD_MAX_PS, and all other
 * differences mean "behind".
 */
#define PACE_LEAD_WINDOW_PS	(PACE_LEAD_MAX_PS << 1)

/* Returns true if a is later than b, by less than PACE_LEAD_WINDOW_PS. */
static inline bool pace_clock_ahead(u64 a, u64 b)
{
	return a - b - 1 < PACE_LEAD_WINDOW_PS - 1;
}

static inline u64 pace_clock_later(u64 a, u64 floor)
{
	return pace_clock_ahead(a, floor) ? a : floor;
}

static inline u64 pace_clock_earlier(u64 a, u64 b)
{
	return pace_clock_ahead(a, b) ? b : a;
}

/*
 * Adds quot + rem / rate_bps, rem < rate_bps, to an exact number that is rounded up:
 * two additions and one comparison.
 */
static inline void pace_exact_add(u64 *number, u64 *part, u64 quot, u64 rem,
				  u64 rate_bps)
{
	u64 whole = *number - (*part != 0) + quot;
	u64 frac = *part + rem;

	if (frac >= rate_bps) {
		frac -= rate_bps;
		whole++;
	}
	*part = frac;
	*number = whole + (frac != 0);
}

static inline void pace_clock_advance(struct pace_clock *k, u64 quot, u64 rem,
				      u64 rate_bps)
{
	pace_exact_add(&k->ps, &k->frac, quot, rem, rate_bps);
}

/*
 * Returns what a lead by a clock of `from_bps` is by one of `to_bps`: as long as the bytes
 * that it owes take at that rate, rounded up.  Never more than a clock may lead.
 */
static u64 pace_lead_scale(u64 lead_ps, u64 from_bps, u64 to_bps)
{
	u64 ps, most = PACE_LEAD_MAX_PS - 1;

	if (!from_bps || from_bps == to_bps)
		return lead_ps;
	/* Of a slower clock it may not fit 64 bits. */
	if (from_bps > to_bps && lead_ps > pace_mul_div(most, to_bps, from_bps))
		return most;
	ps = pace_mul_div(lead_ps, from_bps, to_bps);
	/* Exact although each product wraps: the difference is < to_bps. */
	return ps + (ps * to_bps != lead_ps * from_bps);
}

/* Sets the clock to a whole number of picoseconds. */
static inline void pace_clock_set(struct pace_clock *k, u64 ps)
{
	k->ps = ps;
	k->frac = 0;
}

/*
 * The clock goes by another rate from `now` on: what it is ahead of that becomes what it
 * would be at the new rate.  So does what it is behind, or a class that had to wait would
 * have waited at the new rate; but at a lower one it gets no further behind.
 */
static void pace_clock_rescale(struct pace_clock *k, u64 now, u64 from_bps, u64 to_bps)
{
	if (from_bps == to_bps)
		return;
	k->frac = 0;	/* `ps` is rounded up already */
	if (pace_clock_ahead(k->ps, now))
		k->ps = now + pace_lead_scale(k->ps - now, from_bps, to_bps);
	else if (from_bps && from_bps < to_bps)
		k->ps = now - pace_mul_div(now - k->ps, from_bps, to_bps);
}

/* Moves the clock up to `floor` if it is behind. */
static inline void pace_clock_raise(struct pace_clock *k, u64 floor)
{
	if (k->ps != floor && !pace_clock_ahead(k->ps, floor))
		pace_clock_set(k, floor);
}

/*
 * TIMER: how much lateness of the host's timer the line makes up for by frames back
 * to back.  High-resolution timers are seen 11 to 25 us late; 100 us covers a busy
 * host and is 13 kB at 1 Gbit/s.
 */
#define PACE_SLACK_PS		100000000ull
/*
 * The longest ordinary stall: one tick at HZ=250; also what a transmit ring holds
 * where its frames are no bound (PACE_RING_FRAMES, on a fast line).
 */
#define PACE_STALL_PS		4000000000ull
/* Most lag that is kept, on a line on which a frame of each class takes longer. */
#define PACE_LAG_MAX_PS		(1ull << 46)		/* 70 s */

/* Returns the clock that class clocks are compared with. */
static inline u64 pace_schedule_clock(const struct pace_sched *s)
{
	return s->global_ps - s->offset_ps;
}

static inline u64 pace_later(u64 a, u64 b)
{
	return (s64)(a - b) < 0 ? b : a;
}

static inline u64 pace_earlier(u64 a, u64 b)
{
	return (s64)(a - b) < 0 ? a : b;
}

/* Returns how long the line takes for so many bytes, at most 2^23, rounded up. */
static inline u64 pace_line_takes_ps(const struct pace_sched *s, u64 bytes)
{
	u64 rate = s->cfg.line_rate_bps, ps = bytes * s->byte_ps, rem;

	if (s->byte_rem)
		ps += pace_div_rem(bytes * s->byte_rem + rate - 1, rate, &rem);
	return ps;
}

/* Returns the same for bytes that leave, to the picosecond in the long run. */
static inline u64 pace_line_charge(struct pace_sched *s, u32 wire_bytes)
{
	u64 ps = wire_bytes * s->byte_ps;

	if (s->byte_rem)
		ps += pace_div_rem(s->line_frac + wire_bytes * s->byte_rem,
				   s->cfg.line_rate_bps, &s->line_frac);
	return ps;
}

/*
 * The distance of a class's clock from the port's is less than this below what the two
 * rounded ones say, where the line has a part of a picosecond.
 */
static inline u64 pace_rounding_ps(const struct pace_sched *s)
{
	return s->byte_rem ? 2 : 0;
}

/* Returns how many bytes of gap fill so many ps, rounded up. */
static inline u64 pace_gap_bytes(const struct pace_sched *s, u64 gap_ps)
{
	u64 ps = gap_ps - pace_rounding_ps(s);
	u64 bytes, rem;

	if (!s->byte_rem) {
		bytes = pace_div_rem(ps, s->byte_ps, &rem);
		return bytes + (rem != 0);
	}
	bytes = pace_mul_div(ps, s->cfg.line_rate_bps, PACE_BYTE_PS);
	/* Exact although each product wraps: the difference is < 8e12. */
	return bytes + (ps * s->cfg.line_rate_bps != bytes * PACE_BYTE_PS);
}

/* A host that was silent for longer has been silent for so long. */
#define PACE_STEP_NS_MAX	(1ull << 42)

/* Moves the host's clock to now_ns.  A clock that runs backwards stands still. */
static inline void pace_line_advance(struct pace_line *l, u64 now_ns)
{
	u64 ns = now_ns - l->ns;

	if (now_ns <= l->ns)
		return;
	if (ns > PACE_STEP_NS_MAX)
		ns = PACE_STEP_NS_MAX;
	l->ps += ns * PACE_PS_PER_NS;
	l->ns = now_ns;
}

/* Returns so many ps in ns, rounded up. */
static inline u64 pace_ns_of(u64 ps)
{
	u64 rem;

	return pace_div_rem(ps + PACE_PS_PER_NS - 1, PACE_PS_PER_NS, &rem);
}

/* Returns the first instant at which the host's clock reaches `ps`, not before now. */
static inline u64 pace_line_reaches_ns(const struct pace_line *l, u64 ps)
{
	return l->ns + pace_ns_of(ps - l->ps);
}
