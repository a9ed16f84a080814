/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The scheduler's own memory, so that a host can embed it.  Hosts read
 * `stats` and `cfg`; the rest is for core/src and for tests that look.
 */
#ifndef PACE_SCHED_H
#define PACE_SCHED_H

#include <pace/pace.h>

struct pace_pool;	/* src/tree.c */
struct pace_wheel;

/* A priority queue of packed keys: src/queue.c. */
struct pace_queue {
	u64 *key;	/* the heap: by index */
	u32 *index;	/* by id; PACE_ID_NONE when not queued */
	u32 count;	/* in the heap; 0 if there is none anywhere */
	u32 heap_keys;	/* with so many in the heap the wheel is asked */
	u32 capacity;
	u32 wheel_from;	/* ids */
	struct pace_wheel *wheel;	/* NULL: none */
	struct pace_pool *pool;
};

/*
 * What the wire could have carried by a given instant:
 * bytes + (part + (now - ns) x line_rate) / 8e9.  See src/byte_clock.c.
 */
struct pace_line {
	u64 bytes;
	u64 part;	/* of a byte, in units of 1 / 8e9 */
	u64 ns;
};

/* Where an active rt or nrt class waits for its turn: src/reservation.c. */
#define PACE_RINGS	6

/* The period that runs: src/reservation.c. */
struct pace_period {
	u32 classes;		/* rt and nrt; with none there are no periods */
	u32 active;		/* of those */
	u64 reserved_bytes;	/* by all of those */
	bool running;		/* `end` is known */
	struct pace_clock end;	/* as global counts; frac of 8e9 */
	u64 end_ns;		/* the host's instant that it is; 0: not aligned */
	/* Derived from cfg: its length, in bytes and 1 / 8e9 of one. */
	u64 whole_bytes;
	u64 part;
	u64 number;		/* of periods that have begun, seen or not */
	s64 left_bytes;		/* of the budget; below 0: owed by the next */
	u64 backlog_wire_bytes;	/* of all rt classes */
	u64 gated_wire_bytes;	/* of that, what may go in this period */
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
	/* No paced class was due at this schedule clock: a normal or gap frame
	 * began, or the line was idle until then.
	 */
	u64 idled;
	/* TIMER: the virtual line is occupied until here (as global counts). */
	u64 busy_until;
	struct pace_line line;

	u32 active_paced;
	u32 active_normal;
	u64 offered_load_bps;			/* of all active paced classes, on the wire */

	struct pace_queue waiting;	/* active paced classes by clock */
	struct pace_queue eligible;		/* those that may send, as the order says */
	struct pace_queue at_ceil;	/* with a ceil: by ceil clock, until reached */
	struct pace_queue borrowing;	/* with a ceil: who shares what is left */
	u64 borrow_time;			/* spare clock of the last spare frame */
	struct pace_class *ring;	/* active normal classes; whose turn it is */
	struct pace_period period;	/* rt and nrt classes */

	/* pace_next() has answered WAIT until then and nothing has changed; it
	 * was last asked at asked_ns, up to which no time has been passed yet.
	 * 0: no such answer stands.
	 */
	u64 quiet_until_ns;
	u64 asked_ns;

	/* HYBRID: see src/waiting.c. */
	bool idling;		/* nothing handed out: real time is the clock */
	bool armed;		/* a timer runs until... */
	u64 wait_until_ns;
	u64 lead_bytes;		/* stats.lead_ns of line */
	bool gapped;		/* a gap was sent since the last frame */
	u32 gapped_frames;	/* frames after gaps since the lead was set */

	/* Derived from cfg. */
	u32 max_wire_bytes;		/* of one frame */
	u32 burst_wire_bytes;		/* of the longest train, of largest frames */
	u32 min_gap_bytes;
	u64 slack_bytes;		/* PACE_SLACK_NS of line */
	u64 stall_bytes;		/* PACE_STALL_NS of line */
	u64 timer_bytes;		/* what a late timer may be made up for */

	/* Storage: see src/storage.c. */
	void *storage;
	struct pace_pool *pool;		/* of the wheels; NULL: no wheel */
	u32 capacity;
	struct pace_class **by_id;
	u32 *free_ids;			/* stack of ids given back */
	u32 free_count;
	u32 id_end;			/* ids below were given out at least once */

	struct pace_stats stats;
};

/*
 * Starts the byte clock at another value than 0, to test what happens across
 * its wrap.  Before the first class is added.
 */
void pace_set_global(struct pace_sched *s, u64 global_bytes);

/*
 * Queues of fewer classes have no wheel.  From so many on it is faster, as
 * measured: decisions/0018.
 */
#define PACE_WHEEL_FROM	2048u

/*
 * From how many classes on the wheel orders them, instead of a heap: 0 always,
 * PACE_HEAP_ONLY never.  Both give the same order; to test that, and to
 * measure.  At any time; O(1).
 */
#define PACE_HEAP_ONLY	(~0u)
void pace_set_wheel_from(struct pace_sched *s, u32 classes);

#endif /* PACE_SCHED_H */
