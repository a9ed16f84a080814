// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The byte clock: exact class clocks, and the line's clock beside real time.
 *
 * Class clocks.  Paper 002, equations (1) and (2): sending s bytes at rate r on
 * a line of rate R moves the class clock by t(s) + w(s, r) = s + (R/r - 1) s =
 * s R/r.
 *
 * Number format.  s R/r = quot + rem / r in integers.  The exact clock is a
 * whole number of bytes plus frac / r, 0 <= frac < r.  The core stores
 * `clock`, the exact clock rounded up, and `frac`.  The port's clock G is an
 * integer, so "exact <= G" and "clock <= G" are the same question and only
 * pace_clock_advance() looks at frac.  (Rate r: the class's rate or its ceil,
 * whichever this clock counts.)
 *
 * Error bound: none, the sum of any number of advances is exact.  A new rate
 * has a new denominator: the fraction is then rounded up, once, and the class
 * loses less than one byte time (pace_clock_round_up()).
 *
 * Sizes.  s <= 2^22 (PACE_BURST_WIRE_MAX) and R < 2^40, so s R < 2^62;
 * frac + rem < 2^41.
 *
 * The line's clock: how many bytes the wire could have carried by now.
 *
 *   line(now) = bytes + (part + (now - ns) x line_rate) / 8e9
 *
 * The core keeps an anchor on that straight line and moves it along: `part`
 * carries the part of a byte that a division leaves over, in units of 1 / 8e9
 * byte, so moving the anchor any number of times costs no accuracy.
 *
 * Error bound: none, as long as one move spans less than PACE_LINE_STEP_MAX
 * bytes (14 months at 1 Tbit/s); a longer one is cut there.
 */
#include <pace/pace_sched.h>

/*
 * Clocks wrap at 2^64.  No clock is ahead of the schedule by more than
 * PACE_LEAD_MAX plus half a gap, but one may have been left behind for
 * years; so the half circle of a signed comparison is better spent unevenly.
 */
#define PACE_LEAD_WINDOW	(PACE_LEAD_MAX << 1)

/* Returns true if a is later than b, by less than PACE_LEAD_WINDOW. */
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

/* Rounds the clock up to a whole byte: `bytes` is rounded up already. */
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

/* Returns the clock that class clocks are compared with. */
static inline u64 pace_schedule_clock(const struct pace_sched *s)
{
	return s->global - s->offset;
}

static inline u64 pace_later(u64 a, u64 b)
{
	return (s64)(a - b) < 0 ? b : a;
}

#define PACE_NS_PER_S		1000000000ull
/* One byte at 1 bit/s, in ns. */
#define PACE_PARTS_PER_BYTE	(8 * PACE_NS_PER_S)
#define PACE_LINE_STEP_MAX	(1ull << 62)

/* Returns how many bytes the line carries in ns < 2^32. */
static inline u64 pace_line_bytes(u64 line_rate_bps, u64 ns)
{
	return pace_mul_div(ns, line_rate_bps, PACE_PARTS_PER_BYTE);
}

/* Anchors the line: it has carried `bytes` at now_ns. */
static inline void pace_line_anchor(struct pace_line *l, u64 bytes, u64 now_ns)
{
	l->bytes = bytes;
	l->part = 0;
	l->ns = now_ns;
}

/* Moves the anchor by whole bytes and parts of one: no rounding is lost. */
static void add_parts(struct pace_line *l, u64 bytes, u64 parts)
{
	l->part += parts;
	if (l->part >= PACE_PARTS_PER_BYTE) {
		l->part -= PACE_PARTS_PER_BYTE;
		bytes++;
	}
	l->bytes += bytes;
}

/* Line rates are below 2^40: so many ns of line, and a part, fit 64 bits. */
#define SHORT_NS	(1u << 23)

/* Moves the anchor to now_ns.  A clock that runs backwards stands still. */
static void pace_line_advance(struct pace_line *l, u64 line_rate_bps,
			      u64 now_ns)
{
	u64 s, ns, bytes, bits, limit_s, rem;

	if (now_ns <= l->ns)
		return;
	if (now_ns - l->ns < SHORT_NS) {
		l->bytes += pace_div_rem(l->part +
					 (now_ns - l->ns) * line_rate_bps,
					 PACE_PARTS_PER_BYTE, &rem);
		l->part = rem;
		l->ns = now_ns;
		return;
	}
	s = pace_div_rem(now_ns - l->ns, PACE_NS_PER_S, &ns);
	l->ns = now_ns;

	if (s) {
		/* Whole seconds: of s x line_rate bits, whole bytes apart. */
		limit_s = pace_div_rem(PACE_LINE_STEP_MAX, line_rate_bps >> 3,
				       &rem);
		if (s > limit_s)
			s = limit_s;
		bits = s * (line_rate_bps & 7);
		add_parts(l, s * (line_rate_bps >> 3) + (bits >> 3),
			  (bits & 7) * PACE_NS_PER_S);
	}
	/* The rest is below one second: ns x line_rate < 2^70. */
	bytes = pace_mul_div(ns, line_rate_bps, PACE_PARTS_PER_BYTE);
	/* Exact although each product wraps: the difference is < 8e9. */
	add_parts(l, bytes, ns * line_rate_bps - bytes * PACE_PARTS_PER_BYTE);
}

/*
 * Returns the first instant at which line() reaches `bytes`, which is ahead of
 * the anchor by at most 2^43.  Saturates.
 */
static u64 pace_line_reaches_ns(const struct pace_line *l, u64 line_rate_bps,
				u64 bytes)
{
	u64 ahead = bytes - l->bytes;
	u64 ns, left, whole, rem;

	/*
	 * ceil((ahead x 8e9 - part) / line_rate).  ahead < 2^43 and line_rate
	 * >= 8000 keep the quotient below 2^63.
	 */
	ns = pace_mul_div(ahead, PACE_PARTS_PER_BYTE, line_rate_bps);
	left = ahead * PACE_PARTS_PER_BYTE - ns * line_rate_bps;
	if (left > l->part) {
		ns++;
	} else {
		whole = pace_div_rem(l->part - left, line_rate_bps, &rem);
		ns = ns > whole ? ns - whole : 0;
	}
	return l->ns + ns < ns ? ~0ull : l->ns + ns;
}
