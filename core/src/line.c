// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "line.h"

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

void pace_line_follow(struct pace_line *l, u64 line_rate_bps, u64 now_ns)
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

u64 pace_line_reaches_ns(const struct pace_line *l, u64 line_rate_bps,
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
