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

/*
 * The bytes that the wire could have carried by an instant:
 * bytes + (part + (now - ns) x line_rate) / 8e9.  See src/byte_clock.c.
 */
struct pace_line {
	u64 bytes;
	u64 part;	/* of a byte, in units of 1 / 8e9 */
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
	struct pace_clock end;	/* as global counts; frac of 8e9 */
	u64 end_ns;		/* the instant of that on the host's clock; 0: not aligned */
	/* Derived from cfg: the length, in bytes and 1 / 8e9 of a byte. */
	u64 whole_bytes;
	u64 part;
	u64 number;		/* periods begun, those of an idle port included */
	s64 left_bytes;		/* of the budget; below 0: owed by the next period */
	u64 backlog_wire_bytes;	/* of all rt classes */
	u64 gated_wire_bytes;	/* of that, what has to end in this period */
	struct pace_class *ring[PACE_RINGS];
};

struct pace_sched {
	struct pace_config cfg;

	/*
	 * The port's clock: GAP, wire bytes sent, brought up to real time when
	 * a packet ends an idle spell; TIMER, real time in byte times; HYBRID,
	 * as GAP, and real time while a timer runs.
	 */
	u64 global;
	/*
	 * All class clocks have been moved forward by this much together
	 * (over-subscription).  It is kept here, once, and never added to a
	 * class: class clocks are compared with global - offset, "the
	 * schedule clock".
	 */
	u64 offset;
	u64 last_finish;	/* virtual finish time of the last paced frame */
	/* The last schedule clock at which no paced class was eligible: a normal
	 * or gap frame began then, or the line was idle until then.
	 */
	u64 idled;
	/* TIMER: the virtual line is occupied until here (as global counts). */
	u64 busy_until;
	struct pace_line line;

	u32 active_paced;
	u32 active_normal;
	u64 offered_load_bps;		/* of all active paced classes, on the wire */

	struct pace_queue waiting;	/* active paced classes by clock */
	struct pace_queue eligible;	/* those that may send, in cfg.order */
	struct pace_class *sole;	/* the one in PACE_SOLE; then `eligible` is empty */
	u64 sole_until;		/* no other class has a key before this in `waiting` */
	struct pace_queue at_ceil;	/* with a ceil, and not below it: by ceil clock */
	struct pace_queue borrowing;	/* below their ceil: by borrow clock */
	struct pace_queue launching;	/* active, before their launch time: by that */
	u64 launch_at;		/* position of the first of those, as global counts */
	u64 handover_bytes;	/* the wire is so far behind line(): pace_started() */
	u64 handover_first_bytes;	/* that was so after the last idle spell */
	u64 probe_bytes;	/* `global` when pace_wire_is_free() said so */
	bool handover_measured;
	bool probe_idle;	/* the wire had idled until then */
	bool wire_idled;	/* and has got nothing since */
	u64 borrow_time;		/* borrow clock of the last borrowed frame */
	struct pace_class *ring;	/* active normal classes, the next one first */
	struct pace_period period;	/* rt and nrt classes */

	/* pace_next() has answered WAIT until quiet_until_ns, and nothing has
	 * changed since.  0: no such answer stands.
	 */
	u64 quiet_until_ns;
	u64 asked_ns;		/* pace_next() was last called then */
	bool repeated;		/* the clock was not advanced to asked_ns */
	bool advanced;		/* it was, and nothing was sent since */
	/* TIMER: pace_after_ns() has found that the line reaches after_bytes then. */
	u64 after_ns;		/* 0: it has not */
	u64 after_bytes;

	/* HYBRID: see src/waiting.c. */
	bool idling;		/* the wire idles: real time is the clock */
	bool armed;		/* a timer expires at wait_until_ns */
	u64 wait_until_ns;
	u64 lead_bytes;		/* bytes of the line in stats.lead_ns */
	bool gapped;		/* a gap was sent since the last frame */
	u32 gapped_frames;	/* frames sent after a gap since the lead was set */

	/* Derived from cfg. */
	u32 max_wire_bytes;		/* of one frame */
	u32 burst_wire_bytes;		/* of the longest burst, of largest frames */
	u32 min_gap_bytes;
	u64 slack_bytes;		/* bytes of the line in PACE_SLACK_NS */
	u64 stall_bytes;		/* bytes of the line in PACE_STALL_NS */
	u64 timer_bytes;		/* lateness of a timer that is made up for */

	/* Storage: see src/storage.c. */
	void *storage;
	struct pace_pool *pool;		/* of the queues' wheels; NULL: no wheel */
	u32 capacity;
	struct pace_class **by_id;
	u32 *free_ids;			/* stack of freed ids */
	u32 free_count;
	u32 id_end;			/* ids below were allocated at least once */

	struct pace_stats stats;
};

/*
 * Starts the byte clock at another value than 0, for tests across its wrap.
 * Called before the first class is added.
 */
PACE_API void pace_set_global(struct pace_sched *s, u64 global_bytes);

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
