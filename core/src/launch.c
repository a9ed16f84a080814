// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Launch times: a class whose first frame the host gives an instant.
 *
 * A class with `launches` waits in a queue of its own, by the host's clock, until
 * the port's clock reaches that instant.  Then it becomes a paced class like any
 * other: its clock is the later of the instant's position and what its rate allows.
 * So an idle class loads no line and is in no order of the others, and neither a
 * common move of all clocks nor a new anchor of the line touches what waits.
 *
 * The position of an instant on the port's clock is what the wire will have carried
 * by then: line(instant) - handover, if what was handed out keeps the wire busy until
 * what is handed out now has reached the driver; else the clock then, and the time from
 * then to the instant, because nothing that is handed out now leaves earlier.  It is
 * worked out anew for the first class of the queue with each decision, so that it
 * follows the wire.
 *
 * By `handover` the wire is behind line(): by as long as it waited since the port was
 * idle last.  The first frame of those that are handed out together begins to leave
 * when the driver gets it, or when the wire has carried what was handed out before,
 * whichever is later (pace_started()).  So handover is the largest distance that was
 * ever seen; what the port idles is taken off.
 *
 * Error bound: as any paced frame's, half a smallest gap of that position, if no other
 * frame is on the wire then (guard band: src/best_effort.c) and no other paced class
 * is due.  In TIMER the frame is as late as the timer.  A class that launches counts
 * in ORDER_NEXT as if its rate were the line's, so its virtual finish time is when
 * its frame would end: classes whose next frame is due later go behind it, and
 * wait for one frame of it more than they would.
 *
 * Wire and system clock drift apart while the wire is never idle: HYBRID brings them
 * together at each wait (src/waiting.c), GAP when no class has a packet.
 * docs/decisions/qdisc.md, "Launch times".
 */
#include <pace/pace_sched.h>

/*
 * Instants farther ahead are looked at again when so much time has passed: so the
 * position is near enough to compare clocks.
 */
#define PACE_LAUNCH_LOOK_NS	(1ll << 32)
/* Keys are compared on a circle of 2^44 ns: they lie within 2^43 of each other. */
#define PACE_LAUNCH_PAST_NS	(1ull << 30)
/* The least time that handing over takes grows by 1/256 with each that is measured. */
#define HANDOVER_GROWTH_SHIFT	8

/* Returns how early a frame may leave, because no gap is as short. */
static inline u64 early_limit_ps(const struct pace_sched *s)
{
	return s->cfg.mode == PACE_MODE_TIMER ? 0 : s->half_gap_ps;
}

static inline bool pace_is_launching(const struct pace_class *c)
{
	return c->place == PACE_LAUNCHING;
}

/* Returns the position of an instant, as global_ps counts: see above. */
static u64 launch_position(struct pace_sched *s, u64 launch_ns, u64 now_ns)
{
	s64 ns = (s64)(launch_ns - now_ns);
	u64 position, latest;

	pace_line_advance(&s->line, now_ns);
	position = s->line.ps - s->handover_ps;
	latest = s->global_ps - s->handover_least_ps;
	if ((s64)(position - latest) > 0)
		position = latest;
	if (ns > PACE_LAUNCH_LOOK_NS)
		ns = PACE_LAUNCH_LOOK_NS;
	return position + (u64)ns * PACE_PS_PER_NS;
}

void pace_handover_forget(struct pace_sched *s)
{
	s->handover_ps = 0;
	s->handover_least_ps = 0;
	s->handed = false;
}

/*
 * The wire waited until got_ns for what was handed out at handed_ns.  The least time
 * counts, which grows slowly.
 */
static void handover_took(struct pace_sched *s, u64 got_ns)
{
	u64 took_ps = (got_ns - s->handed_ns) * PACE_PS_PER_NS;
	u64 least_ps = s->handover_least_ps;

	if (least_ps)
		least_ps += (least_ps >> HANDOVER_GROWTH_SHIFT) + 1;
	if (!least_ps || took_ps < least_ps)
		least_ps = took_ps;
	s->handover_least_ps = least_ps;
}

/* Adds a class that waits for its instant; those that are due have begun. */
static void pace_launch_insert(struct pace_sched *s, struct pace_class *c)
{
	pace_key_add(s, &s->launching, c);
	s->others++;
}

static void pace_launch_remove(struct pace_sched *s, struct pace_class *c)
{
	pace_key_remove(s, &s->launching, c);
	s->others--;
}

/*
 * Makes a class that may send from `position` on, and whose load is added, a paced
 * class among the others.  `over`: the load exceeds the line, their clocks lag, and it
 * is given the same lag.
 */
static void join_paced(struct pace_sched *s, struct pace_class *c, u64 position,
		       bool over)
{
	u64 least = pace_schedule_clock(s) - pace_lag_max(s);
	u64 clock = position - s->offset_ps;

	if (over)
		clock -= virtual_time_lag(s);
	/* A host that stood still. */
	if ((s64)(clock - least) < 0)
		clock = least;
	pace_clock_raise(&c->clock, clock);
	pace_eligible_update(c);
	pace_paced_enter(s, c);
}

/* The instant of a class has come, or almost. */
static void launch_begin(struct pace_sched *s, struct pace_class *c, u64 position)
{
	bool over = pace_over_subscribed(s);

	pace_launch_remove(s, c);
	pace_load_add(s, c);
	join_paced(s, c, position, over);
}

/* Begins all launches that are due, and notes when the next one is. */
static void pace_launch_due(struct pace_sched *s, u64 now_ns)
{
	struct pace_class *c;

	while ((c = queue_head(s, &s->launching))) {
		s->launch_at_ps = launch_position(s, c->launch_ns, now_ns);
		if ((s64)(s->launch_at_ps - s->global_ps) > (s64)early_limit_ps(s))
			return;
		launch_begin(s, c, s->launch_at_ps);
	}
}
