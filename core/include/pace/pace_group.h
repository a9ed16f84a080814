/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Groups: one level above classes.  A group has a rate and a ceil, and its classes
 * share them.
 *
 * To the port a group is one paced class, its node; what the node may send, a scheduler
 * of the group gives to its classes.  The host adds the node to the port as any paced
 * class, and then:
 *
 *	pace_next() of the port says SEND node
 *	pace_group_next()		SEND class: the host takes its frame
 *					WAIT: the host asks the port again
 *	pace_group_sent()		reports the frame to both levels
 *
 * Classes of a group are paced or normal, and do not launch.  Calls of pace.h that are
 * given the time have their counterpart here; those that are not (pace_class_add(),
 * pace_class_check(), pace_is_throttled()) the host calls with the group's scheduler.
 * docs/decisions/core.md, "Groups".
 */
#ifndef PACE_GROUP_H
#define PACE_GROUP_H

#include <pace/pace_sched.h>

struct pace_group {
	/*
	 * Its line rate is the group's ceil, by which it checks its classes; it
	 * counts what the port's layer counts.
	 */
	struct pace_sched inner;
	struct pace_class *node;
	u64 at_ps;		/* the port's clock was this ... */
	u64 at_ns;		/* ... at this instant of the inner clock */
	bool port_over;		/* the port was over-subscribed then */

	/* Of several queues of a device: src/lane.c. */
	struct pace_clock lane_clock;	/* the node's clocks in the other lane ... */
	struct pace_clock lane_ceil_clock;
	u64 lane_rate_bps;	/* ... and by which rates they count */
	u64 lane_ceil_bps;
	struct pace_clock owed;		/* sent at guaranteed rates, and not charged yet */
	struct pace_clock ceil_owed;
};

/*
 * Checks a group: a new one if `g` is NULL, else with its classes; *culprit, if it is not
 * NULL, is the class that does not fit, or NULL.  `port` is the port's configuration.
 * The node is checked as a class of the port.
 */
PACE_API enum pace_error pace_group_check(const struct pace_config *port,
					  const struct pace_group *g, u64 ceil_bps,
					  struct pace_class **culprit);
/* Makes a group without classes; `ceil_bps` is at least the node's rate. */
PACE_API enum pace_error pace_group_init(const struct pace_sched *port,
					 struct pace_group *g, struct pace_class *node,
					 u64 ceil_bps, void *storage, u32 capacity);
/*
 * Makes the group the device's, as pace_class_join() does with its node: once, before the
 * group has a class, and if its port has joined the device.
 */
PACE_API void pace_group_join(struct pace_sched *port, struct pace_group *g,
			      struct pace_part *part, struct pace_part *ceil_part);
/* Called after the node or the port was changed as pace_group_check() allows. */
PACE_API void pace_group_configure(struct pace_sched *port, struct pace_group *g,
				   u64 ceil_bps, u64 now_ns);

PACE_API enum pace_error pace_group_class_change(struct pace_sched *port,
						 struct pace_group *g,
						 struct pace_class *c,
						 const struct pace_class_config *cfg,
						 u64 now_ns);
PACE_API void pace_group_class_del(struct pace_sched *port, struct pace_group *g,
				   struct pace_class *c);
PACE_API void pace_group_activate(struct pace_sched *port, struct pace_group *g,
				  struct pace_class *c, u64 now_ns);
PACE_API void pace_group_deactivate(struct pace_sched *port, struct pace_group *g,
				    struct pace_class *c, u64 now_ns);
/* Called when the port says SEND node. */
PACE_API struct pace_decision pace_group_next(struct pace_sched *port,
					      struct pace_group *g);
PACE_API void pace_group_sent(struct pace_sched *port, struct pace_group *g,
			      struct pace_class *c, const struct pace_burst *t, bool more,
			      u64 now_ns);
/* As pace_debt_ns(), of a class of the group. */
PACE_API u64 pace_group_debt_ns(const struct pace_sched *port, const struct pace_group *g,
				const struct pace_class *c, u64 now_ns);

#endif /* PACE_GROUP_H */
