/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stands for core/src/steps.c, part.c and join.c: each qdisc of BPF has rates of its
 * own.  What calls them is the same, and does nothing here.
 */
#ifndef BPF_NO_PARTS_H
#define BPF_NO_PARTS_H

static inline void pace_paced_enter(struct pace_sched *s, struct pace_class *c)
{
	if (c->has_ceil) {
		pace_ceil_return(s, c);
		pace_borrow_join(s, c);
	}
	pace_paced_insert(s, c);
}

#define pace_step_is_used(p, clock, frame)	false
#define pace_part_forget(s, c)		((void)(s))
#define pace_part_rescale(s, c, cfg)	((void)(s))
#define pace_part_load(s, c)		((void)(s))
#define pace_part_unload(s, c)		((void)(s))
#define pace_part_settle(s, c)		((void)(s))
#define pace_part_rest(s, c)		((void)(s))
#define pace_spare_holds(s)		false
#define pace_spare_waits(s)		false
#define pace_device_sent(s, ps, rate)	((void)(s), (void)(rate))
#define pace_device_rest(s)		((void)(s))
#define pace_class_leave(s, c)		((void)(s))

#endif
