// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The API of departures: when what is handed out leaves, for launch times (launch.c). */
#include <pace/pace_sched.h>

/* Returns the position of the host's clock at an instant that is not far away. */
static u64 line_at(const struct pace_line *l, u64 ns)
{
	return l->ps + (u64)((s64)(ns - l->ns) * PACE_PS_PER_NS);
}

bool pace_started(struct pace_sched *s, u64 got_ns, u64 latest_ns)
{
	s64 behind;

	if (!s->handed)
		return false;
	behind = (s64)(line_at(&s->line, got_ns) - s->handed_ps);
	if (behind > (s64)s->handover_ps) {
		pace_invalidate(s);
		s->handover_ps = behind;
		handover_took(s, got_ns);
	}
	s->handed = false;
	behind = (s64)(line_at(&s->line, latest_ns) - s->handed_ps);
	return behind > (s64)s->handover_ps;
}

u64 pace_launch_ns(const struct pace_sched *s)
{
	const struct pace_class *c = queue_head(s, &s->launching);

	return c ? c->launch_ns : ~0ull;
}

u64 pace_departure_ns(const struct pace_sched *s, u64 now_ns)
{
	struct pace_line line = s->line;

	if (s->cfg.mode == PACE_MODE_TIMER)
		return now_ns;
	pace_line_advance(&line, now_ns);
	line.ps -= s->handover_ps;
	if ((s64)(line.ps - s->global_ps) >= 0)
		return now_ns;
	return pace_line_reaches_ns(&line, s->global_ps);
}
