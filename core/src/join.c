// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Makes a port one of several queues of a device, and classes the device's: part.c. */
#include <pace/pace_sched.h>

void pace_join(struct pace_sched *s, struct pace_device *device, struct pace_part *part,
	       u64 step_ps)
{
	if (!PACE_ASSERT(!s->id_end && s->cfg.mode == PACE_MODE_TIMER))
		return;
	s->device = device;
	s->line_part = part;
	s->step_ps = step_ps;
	s->adopted_ps = pace_atomic_read(&device->line.offset_ps);
}

void pace_set_step(struct pace_sched *s, u64 step_ps)
{
	s->step_ps = step_ps;
}

void pace_leave(struct pace_sched *s)
{
	spare_end(s);
	pace_step_reclaim(s->line_part, line_now(s));
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
	pace_step_reclaim(part, class_now(s));
	pace_step_reclaim(ceil_part, class_now(s));
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
	pace_steps_rescale(part->common, 0, c->rate_bps, class_now(s));
	pace_steps_rescale(ceil_part->common, 0, c->ceil_bps, class_now(s));
	if (active)
		pace_schedule_class(s, c, s->asked_ns);
}
