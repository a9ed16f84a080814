/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The scheduler's own memory, public so that a host can embed it.  Hosts read
 * `stats` and `cfg`; the rest is for core/src and for tests.
 */
#ifndef PACE_SCHED_H
#define PACE_SCHED_H

#include <pace/pace.h>

struct pace_pool;	/* src/wheel.c */
struct pace_wheel;

/* A priority queue of packed keys: src/queue.c. */
struct pace_queue {
	u64 min;	/* the smallest key, if `count` is not 0 */
	u32 count;	/* keys, stale ones included */
	u32 stale;	/* keys that no class has any more: src/stale.c */
	u64 *heap;
	u32 heap_keys;
	bool has_wheel;	/* the wheel has keys, or new keys enter it */
	u32 limit;	/* most keys; `heap` has room for as many */
	u32 wheel_from;	/* keys */
	struct pace_wheel *wheel;	/* NULL: none */
	struct pace_pool *pool;
};

/* The host's clock as global_ps counts: it was ps at ns. */
struct pace_line {
	u64 ps;
	u64 ns;
};

/* Rings of active rt and nrt classes: enum pace_reservation_ring. */
#define PACE_RINGS	6

/* The current period: src/reservation.c. */
struct pace_period {
	u32 classes;		/* rt and nrt; with none there are no periods */
	u32 active;		/* of those */
	u64 reserved_bytes;	/* by all of those */
	bool running;		/* `end` is set */
	u64 end_ps;		/* as global_ps counts */
	u64 end_ns;		/* the instant of that on the host's clock; 0: not aligned */
	u64 length_ps;		/* derived from cfg */
	u64 number;		/* periods begun, those of an idle port included */
	s64 left_bytes;		/* of the budget; below 0: owed by the next period */
	u64 backlog_wire_bytes;	/* of all rt classes */
	u64 gated_wire_bytes;	/* of that, what has to end in this period */
	struct pace_class *ring[PACE_RINGS];
};

struct pace_sched {
	struct pace_config cfg;

	/*
	 * The port's clock: GAP, the time of the wire bytes sent, brought up to
	 * real time when a packet ends an idle spell; TIMER, real time; HYBRID, as
	 * GAP, and real time while a timer runs.
	 */
	u64 global_ps;
	/*
	 * All class clocks have been moved forward by this much together
	 * (over-subscription).  It is kept here, once, and never added to a
	 * class: class clocks are compared with global_ps - offset_ps, "the
	 * schedule clock".
	 */
	u64 offset_ps;
	u64 last_finish_ps;	/* virtual finish time of the last paced frame */
	/* The last schedule clock at which no paced class was eligible: a normal
	 * or gap frame began then, or the line was idle until then.
	 */
	u64 idled_ps;
	/* TIMER: the virtual line is occupied until here (as global_ps counts). */
	u64 busy_until_ps;
	struct pace_line line;

	u32 active_paced;
	u32 others;		/* active, and not paced, with a ceil or before its launch */
	u32 active_normal;
	u32 least_head_bytes;	/* no active normal class has a shorter first frame */
	u64 offered_load_bps;		/* of all active paced classes, on the wire */
	u64 load_most_bps;	/* the line carries that much; in a group, what it is given */
	u64 least_cost_ps;	/* no class has a lower max_cost_ps */

	struct pace_queue waiting;	/* active paced classes by clock */
	struct pace_queue eligible;	/* those that may send, in cfg.order */
	struct pace_queue at_ceil;	/* with a ceil, and not below it: by ceil clock */
	struct pace_queue borrowing;	/* below their ceil: by borrow clock */
	struct pace_queue launching;	/* active, before their launch time: by that */
	u64 launch_at_ps;	/* position of the first of those, as global_ps counts */
	struct pace_queue resting;	/* active nodes of groups in which nothing is due */
	u64 handover_ps;	/* the wire is so far behind line(): pace_started() */
	u64 handover_least_ps;	/* how long handing over takes, at the least */
	u64 handed_ps;		/* global_ps before what pace_started() speaks of ... */
	u64 handed_ns;		/* ... was handed out, and when */
	bool handed;
	u64 borrow_time_ps;	/* borrow clock of the last borrowed frame */
	struct pace_class *ring;	/* active normal classes, the next one first */
	struct pace_period period;	/* rt and nrt classes */

	/* pace_next() has answered WAIT until quiet_until_ns, and nothing has
	 * changed since.  0: no such answer stands.
	 */
	u64 quiet_until_ns;
	u64 asked_ns;		/* pace_next() was last called then */
	bool repeated;		/* the clock was not advanced to asked_ns */
	bool advanced;		/* it was, and nothing was sent since */
	bool alone;		/* and nothing has changed, if by next_alone() */
	bool spare_open;	/* of line_part there is a step, or it waits for one */

	/* HYBRID: see src/waiting.c. */
	bool idling;		/* the wire idles: real time is the clock */
	bool armed;		/* a timer expires at wait_until_ns */
	u64 wait_until_ns;
	u64 lead_ps;		/* stats.lead_ns */
	bool gapped;		/* a gap was sent since the last frame */
	u32 gapped_frames;	/* frames sent after a gap since the lead was set */

	u64 line_frac;		/* of a ps, in units of 1 / line_rate_bps: src/clock.c */

	/* Derived from cfg. */
	bool is_plain;		/* pace_set_plain() */
	u32 max_wire_bytes;	/* of one frame */
	u32 burst_wire_bytes;	/* of the longest burst, of largest frames */
	u32 min_gap_bytes;
	u64 byte_ps;		/* of the line */
	u64 byte_rem;		/* and so many 1 / line_rate_bps of a ps */
	u64 max_wire_ps;
	u64 burst_ps;
	u64 min_gap_ps;
	u64 half_gap_ps;
	u64 timer_ps;		/* lateness of a timer that is made up for */

	/* Storage: see src/storage.c. */
	void *storage;
	struct pace_pool *pool;		/* of the queues' wheels; NULL: no wheel */
	u32 capacity;
	struct pace_class **by_id;
	u32 *free_ids;			/* stack of freed ids */
	u32 free_count;
	u32 id_end;			/* ids below were allocated at least once */

	struct pace_stats stats;

	/* One of several queues of a device: src/part.c. */
	struct pace_device *device;	/* NULL: the line is this port's own */
	struct pace_part *line_part;	/* of the line; of a group's: of its node's clock */
	u64 spare_ps;		/* such a frame may leave from here, as global_ps counts */
	union {
		u64 owed_ps;	/* sent at guaranteed rates, and not charged yet */
		u64 port_adopted_ps; /* of a group's: of adopted_ps, what its port has */
	};
	u64 borrowing_bps;	/* the rates of what is below its ceil and borrows */
	u64 step_ps;		/* 0: its classes are its own */
	u64 host_ps;		/* of a group's: its clock and this is the host's time */
	u64 adopted_ps;		/* of the line's offset, in offset_ps */
};

/*
 * Starts the port's clock at another value than 0, for tests across its wrap.
 * Called before the first class is added.
 */
PACE_API void pace_set_global(struct pace_sched *s, u64 global_ps);

/*
 * Queues of fewer classes have no wheel.  From here on it is faster than a heap
 * (measured: docs/decisions/core.md, "A wheel for many classes").
 */
#define PACE_WHEEL_FROM	512u

/*
 * Sets from how many classes on the wheel orders them instead of a heap: 0 is
 * always, PACE_HEAP_ONLY never.  Both give the same order.  For tests and
 * measurements, at any time.  O(1).
 */
#define PACE_HEAP_ONLY	(~0u)
PACE_API void pace_set_wheel_from(struct pace_sched *s, u32 classes);

#endif /* PACE_SCHED_H */
