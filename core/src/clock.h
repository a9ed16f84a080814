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
 * but pace_clock_advance() looks at frac.
 *
 * Error bound: none, the sum of any number of advances is exact.  A new rate
 * has a new denominator: the fraction is then rounded up, once, and the class
 * loses less than one byte time (pace_clock_round_up()).
 *
 * Sizes.  s <= 2^18 + 256 and R < 2^40, so s R < 2^59; frac + rem < 2^41.
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

/* What the rate counts of a frame of len_bytes. */
static inline u32 pace_counted_bytes(const struct pace_config *cfg,
				     u32 len_bytes)
{
	switch (cfg->layer) {
	case PACE_LAYER_WIRE:
		if (len_bytes < cfg->min_frame_bytes)
			len_bytes = cfg->min_frame_bytes;
		return len_bytes + cfg->overhead_bytes;
	case PACE_LAYER_IP:
		if (len_bytes <= cfg->link_header_bytes)
			return 1;
		return len_bytes - cfg->link_header_bytes;
	case PACE_LAYER_LINK:
	default:
		return len_bytes;
	}
}

/*
 * Moves the clock of `c` by one frame of its cached length: two additions and
 * one comparison.
 */
static inline void pace_clock_advance(struct pace_class *c)
{
	u64 whole = c->clock - (c->frac != 0) + c->cached_quot;
	u64 frac = c->frac + c->cached_rem;

	if (frac >= c->rate_bps) {
		frac -= c->rate_bps;
		whole++;
	}
	c->frac = frac;
	c->clock = whole + (frac != 0);
}

/* Sets the clock to a whole number of bytes. */
static inline void pace_clock_set(struct pace_class *c, u64 clock)
{
	c->clock = clock;
	c->frac = 0;
}

/* `clock` is rounded up already: forgetting the fraction is all there is. */
static inline void pace_clock_round_up(struct pace_class *c)
{
	c->frac = 0;
}

/* Moves the clock up to `floor` if it is behind. */
static inline void pace_clock_raise(struct pace_class *c, u64 floor)
{
	if (c->clock != floor && !pace_clock_ahead(c->clock, floor))
		pace_clock_set(c, floor);
}

/* Queue key: 44 bits of clock, 20 of id; see src/queue.h for the order. */
static inline u64 pace_clock_key(const struct pace_class *c)
{
	return c->clock << PACE_ID_BITS | c->id;
}

#endif /* PACE_CLOCK_H */
