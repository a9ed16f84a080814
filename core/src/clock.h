/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Class clocks: exact arithmetic on byte times.
 *
 * Paper 002, equations (1) and (2): sending s bytes at rate r on a line of
 * rate R moves the class clock by t(s) + w(s, r) = s + (R/r - 1) s = s R/r.
 *
 * Number format.  s R/r = quot + rem / r in integers.  The exact clock is a
 * whole number of bytes plus frac / r, 0 <= frac < r; what is stored is
 * `clock`, the exact clock rounded up, and `frac`.  The port's clock G is an
 * integer, so "exact <= G" and "clock <= G" are the same question and nobody
 * but pace_clock_advance() looks at frac.  (Rate r: of the clock's own kind,
 * the class's rate or its ceil.)
 *
 * Error bound: none, the sum of any number of advances is exact.  A new rate
 * has a new denominator: the fraction is then rounded up, once, and the class
 * loses less than one byte time (pace_clock_round_up()).
 *
 * Sizes.  s <= 2^22 (PACE_TRAIN_WIRE_MAX) and R < 2^40, so s R < 2^62;
 * frac + rem < 2^41.
 */
#ifndef PACE_CLOCK_H
#define PACE_CLOCK_H

#include <pace/pace_sched.h>

/*
 * Clocks wrap at 2^64.  No clock is ahead of the schedule by more than
 * PACE_LEAD_MAX plus half a gap, but one may have been left behind for
 * years; so the half circle of a signed comparison is better spent unevenly.
 */
#define PACE_LEAD_WINDOW	(PACE_LEAD_MAX << 1)

/* a is later than b, by less than PACE_LEAD_WINDOW. */
static inline bool pace_clock_ahead(u64 a, u64 b)
{
	return a - b - 1 < PACE_LEAD_WINDOW - 1;
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
 * Moves a clock by quot + rem / rate_bps, rem < rate_bps: two additions and
 * one comparison.
 */
static inline void pace_clock_advance(struct pace_clock *k, u64 quot, u64 rem,
				      u64 rate_bps)
{
	u64 whole = k->bytes - (k->frac != 0) + quot;
	u64 frac = k->frac + rem;

	if (frac >= rate_bps) {
		frac -= rate_bps;
		whole++;
	}
	k->frac = frac;
	k->bytes = whole + (frac != 0);
}

/* Sets the clock to a whole number of bytes. */
static inline void pace_clock_set(struct pace_clock *k, u64 bytes)
{
	k->bytes = bytes;
	k->frac = 0;
}

/* `bytes` is rounded up already: forgetting the fraction is all there is. */
static inline void pace_clock_round_up(struct pace_clock *k)
{
	k->frac = 0;
}

/* Moves the clock up to `floor` if it is behind. */
static inline void pace_clock_raise(struct pace_clock *k, u64 floor)
{
	if (k->bytes != floor && !pace_clock_ahead(k->bytes, floor))
		pace_clock_set(k, floor);
}

/*
 * After either clock has changed: the class may send when both are reached.  It
 * is the ceil clock that may have been left behind for years.
 */
static inline void pace_start_follow(struct pace_class *c)
{
	if (c->sharing)
		c->start = pace_clock_later(c->ceil_clock.bytes,
					    c->clock.bytes);
}

/* When it may send; without a ceil that is its clock. */
static inline u64 pace_start(const struct pace_class *c)
{
	return c->sharing ? c->start : c->clock.bytes;
}

/* Queue key: 44 bits of clock, 20 of id; see src/queue.h for the order. */
static inline u64 pace_clock_key(u64 bytes, const struct pace_class *c)
{
	return bytes << PACE_ID_BITS | c->id;
}

#endif /* PACE_CLOCK_H */
