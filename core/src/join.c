// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Makes a port one of several queues of a device, and classes the device's: part.c. */
#include <pace/pace_sched.h>

/* Gives what a part that is used no more had left, or owed, to the others. */
static void part_end(const struct pace_sched *s, struct pace_part *p)
{
	pace_step_reclaim(p, class_now(s));
}

void pace_join(struct pace_sched *s, struct pace_device *device, struct pace_part *spare,
	       u64 step_ps)
{
	if (!PACE_ASSERT(!s->id_end && s->cfg.mode == PACE_MODE_TIMER))
		return;
	s->device = device;
	s->spare = spare;
	s->step_ps = step_ps;
	s->adopted_ps = pace_atomic_read(&device->offset_ps);
}

void pace_set_step(struct pace_sched *s, u64 step_ps)
{
	s->step_ps = step_ps;
}

void pace_leave(struct pace_sched *s)
{
	if (s->spare_open)
		pace_steps_end(s->spare, s->spare_ps, line_base(s), line_now(s));
	s->spare_open = false;
	pace_step_reclaim(s->spare, line_now(s));
	s->device = NULL;
	s->step_ps = 0;
}

void pace_class_leave(struct pace_sched *s, struct pace_class *c)
{
	struct pace_part *part = c->part, *ceil_part = c->ceil_part;
	bool active = c->active;

	if (!s->step_ps || c->type != PACE_TYPE_PACED || !part)
		return;
	pace_invalidate(s);
	if (active)
		pace_unschedule_class(s, c);
	part_end(s, part);
	part_end(s, ceil_part);
	c->part = NULL;
	c->ceil_part = NULL;
	if (active)
		pace_schedule_class(s, c, s->asked_ns);
}

void pace_class_join(struct pace_sched *s, struct pace_class *c, struct pace_part *part,
		     struct pace_part *ceil_part)
{
	bool active;

	if (!s->step_ps || c->type != PACE_TYPE_PACED)
		return;
	pace_class_leave(s, c);
	active = c->active;
	pace_invalidate(s);
	if (active)
		pace_unschedule_class(s, c);
	part->end_ps = c->clock.ps;
	ceil_part->end_ps = c->ceil_clock.ps;
	c->part = part;
	c->ceil_part = ceil_part;
	if (active)
		pace_schedule_class(s, c, s->asked_ns);
}
