// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * @proves a gap goes out in frames from smallest to largest, leaves no remainder below that (but where the largest is not twice it), and the frame after it is at most half a smallest gap early or late
 * @bounds none: every valid configuration, every gap up to 2^43
 */
#include "pace.c"
#include "proof.h"

/* What set_config() derives, less what gaps do not depend on. */
static void derive(struct pace_sched *s)
{
	s->max_wire_bytes = pace_wire_bytes(s, s->cfg.max_frame_bytes);
	s->min_gap_bytes = pace_wire_bytes(s, s->cfg.min_frame_bytes);
	if (!s->min_gap_bytes)
		s->min_gap_bytes = 1;
}

void proof(void)
{
	struct pace_sched s;
	u64 gap, early, min, max, left;
	u32 frame;

	GIVEN(pace_check_config(&s.cfg) == PACE_OK);
	GIVEN(s.cfg.mode <= PACE_MODE_HYBRID);
	derive(&s);
	min = s.min_gap_bytes;
	max = s.max_wire_bytes;
	early = min / 2;

	/* next_gap() gets here only with a gap that is longer. */
	GIVEN(s.cfg.mode != PACE_MODE_TIMER);
	gap = any_within(early + 1, 1ull << 43);
	frame = gap_frame(&s, gap);
	PROVE(frame >= min, "not below the smallest");
	PROVE(frame <= max, "not above the largest");
	if (frame > gap) {
		PROVE(frame - gap <= (min - 1) / 2, "late by less than half");
	} else {
		left = gap - frame;
		PROVE(left == 0 || left >= min || max < 2 * min - 1,
		      "no remainder too small for a frame");
	}
	PROVE(min != 84 || gap > 42, "42 bytes are no gap");
	PROVE(min != 84 || frame <= gap + 41, "late by 41 at most");
	PROVE(gap > min || frame == min, "one smallest for what is shorter");
	PROVE(gap < min || gap > max || frame == gap, "exact where one will do");
	DONE();
}
