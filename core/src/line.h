/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The line clock: how many bytes the wire could have carried by now.
 *
 *   line(now) = bytes + (part + (now - ns) x line_rate) / 8e9
 *
 * An anchor on that straight line is kept, and moved along it: the part of a
 * byte that a division leaves over is carried in `part`, in units of 1 / 8e9
 * byte, so moving the anchor any number of times costs no accuracy.
 *
 * Error bound: none, as long as one move spans less than PACE_LINE_STEP_MAX
 * bytes (14 months at 1 Tbit/s); a longer one is cut there.
 */
#ifndef PACE_LINE_H
#define PACE_LINE_H

#include <pace/pace_sched.h>

#define PACE_NS_PER_S		1000000000ull
/* One byte at 1 bit/s, in ns. */
#define PACE_PARTS_PER_BYTE	(8 * PACE_NS_PER_S)
#define PACE_LINE_STEP_MAX	(1ull << 62)

/* Bytes of line in ns < 2^32. */
static inline u64 pace_line_bytes(u64 line_rate_bps, u64 ns)
{
	return pace_mul_div(ns, line_rate_bps, PACE_PARTS_PER_BYTE);
}

static inline void pace_line_anchor(struct pace_line *l, u64 bytes, u64 now_ns)
{
	l->bytes = bytes;
	l->part = 0;
	l->ns = now_ns;
}

/* Moves the anchor to now_ns.  A clock that runs backwards stands still. */
void pace_line_follow(struct pace_line *l, u64 line_rate_bps, u64 now_ns);

/*
 * The first instant at which line() reaches `bytes`, which is ahead of the
 * anchor by at most 2^43.  Saturates.
 */
u64 pace_line_reaches_ns(const struct pace_line *l, u64 line_rate_bps,
			 u64 bytes);

#endif /* PACE_LINE_H */
