/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * pace - the packet scheduler of one port, on a clock of what was sent.
 *
 * The port's clock is the time that the sent bytes took on the wire ("byte clock",
 * paper 002, 2.2), in picoseconds; with a timer of the host it is the host's.  Every
 * paced class has one, too, and may send when its clock is not ahead of the port's.  All that the core
 * decides is which class is next, and how long the wire stays silent before it;
 * packets, memory, locks and the passing of real time belong to the host.
 *
 * Calling convention.  The host serialises all calls on one scheduler.  A
 * class becomes active when its queue gets a first packet
 * (pace_activate()).  pace_next() names it when it may send, and the host then
 * reports what it sent (pace_sent()).  No call allocates, sleeps or fails for lack
 * of memory.  Configuration calls check everything before they change anything,
 * and return 0 or an enum pace_error.
 */
#ifndef PACE_H
#define PACE_H

#include "pace_deps.h"		/* u8..u64, s64, bool, division: deps/ */

/*
 * How the API is declared.  A host that includes pace.c in the file that calls it
 * defines this as static: then the compiler inlines the API, too
 * (decisions/core.md, "One translation unit").
 */
#ifndef PACE_API
#define PACE_API
#endif
/* And this, of what is called for each frame, as a function that is inlined for certain. */
#ifndef PACE_API_PATH
#define PACE_API_PATH	PACE_API
#endif

/*
 * Are there groups of classes (pace_group.h)?  A host without them defines this as 0,
 * and has none of their code.
 */
#ifndef PACE_GROUPS
#define PACE_GROUPS		1
#endif

/* Most classes in one scheduler: an id takes 20 bits of a queue key. */
#define PACE_ID_BITS		20
#define PACE_CLASSES_MAX	(1u << PACE_ID_BITS)

/*
 * A class clock may lead the port's by less than this, 240 s, so that the 44 bits of
 * a clock in a queue key compare safely across their wrap.  A rate is refused if one
 * largest frame, or burst, would advance its clock further: 51 bit/s with frames of
 * 1514 bytes, 2.2 kbit/s with bursts of 64 kB.
 */
#define PACE_LEAD_MAX_PS	240000000000000ull

#define PACE_LINE_RATE_MIN	8000ull			/* bit/s */
#define PACE_LINE_RATE_MAX	1000000000000ull	/* 1 Tbit/s */
#define PACE_FRAME_MAX		(1u << 18)		/* bytes, one frame or burst */
#define PACE_BURST_WIRE_MAX	(1u << 21)		/* wire bytes of one burst */

/* A smaller quantum would cost too many rounds a frame; 0 chooses max_frame. */
#define PACE_QUANTUM_MIN	256u
#define PACE_QUANTUM_MAX	(1u << 20)

/* Ethernet: a frame shorter than 60 bytes (FCS not counted) is padded. */
#define PACE_ETH_MIN_FRAME	60
/* FCS 4 + preamble and start delimiter 8 + inter-frame gap 12. */
#define PACE_ETH_OVERHEAD	24
#define PACE_ETH_HEADER		14

/* A launch time is taken to be at most so far ahead. */
#define PACE_LAUNCH_NS_MAX	(1ull << 42)		/* 73 minutes */

/* Periods of rt and nrt classes.  The largest budget is a second at 1 Tbit/s. */
#define PACE_PERIOD_NS_MIN	125000ull
#define PACE_PERIOD_NS_MAX	1000000000ull
#define PACE_BUDGET_MAX		125000000000ull		/* bytes */

enum pace_error {
	PACE_OK = 0,
	PACE_ERR_LINE_RATE,	/* outside PACE_LINE_RATE_MIN..MAX */
	PACE_ERR_RATE_ZERO,	/* a paced class needs a rate */
	PACE_ERR_RATE_LINE,	/* rate above the line rate */
	PACE_ERR_RATE_LOW,	/* one frame would pass PACE_LEAD_MAX_PS */
	PACE_ERR_FRAME,		/* max_frame of 0, below min_frame or above PACE_FRAME_MAX */
	PACE_ERR_OVERHEAD,	/* overhead above 256 */
	PACE_ERR_FULL,		/* no free class id: grow the storage */
	PACE_ERR_BUSY,		/* the class is in this scheduler already */
	PACE_ERR_QUANTUM,	/* quantum outside PACE_QUANTUM_MIN..MAX */
	PACE_ERR_CEIL,		/* ceil below the rate, or above the line rate */
	/* max_burst below max_frame, above PACE_FRAME_MAX, or, made of largest
	 * frames, above PACE_BURST_WIRE_MAX
	 */
	PACE_ERR_BURST,
	/* period outside PACE_PERIOD_NS_MIN..MAX, or, for an rt or nrt class,
	 * none, or one in which the line does not carry a longest burst
	 */
	PACE_ERR_PERIOD,
	PACE_ERR_BUDGET,	/* above PACE_BUDGET_MAX; an rt or nrt class needs one */
	PACE_ERR_RESERVE,	/* 0, or above the budget */
	PACE_ERR_RESERVED,	/* together with the other classes', above the budget */
};

/* What a rate counts (docs/understand/how-it-works.md, "What a rate counts"). */
enum pace_layer {
	PACE_LAYER_LINK,	/* the frame as the host holds it: header, no FCS */
	PACE_LAYER_WIRE,	/* padded, plus overhead: what the wire carries */
	PACE_LAYER_IP,		/* without the link header */
};

/* Which of several eligible classes goes first. */
enum pace_order {
	PACE_ORDER_CLOCK,	/* smallest class clock (paper 002, 2.2) */
	PACE_ORDER_RATE,	/* highest rate (paper 000, 3.4) */
	/*
	 * Smallest virtual finish time: the class clock moved on by one
	 * longest burst (WF2Q+: Bennett and Zhang, 1996;
	 * docs/decisions/core.md, "Smallest virtual finish time first").  While
	 * the line carries all rates a class is late by no more than that burst.
	 */
	PACE_ORDER_NEXT,
};

/* What the host does while no class is eligible, and what the clock is. */
enum pace_mode {
	PACE_MODE_GAP,		/* gap frames fill the wire; sent bytes are the clock */
	PACE_MODE_TIMER,	/* a timer of the host waits; real time is the clock */
	/*
	 * A timer of the host waits until a measured lead before the instant,
	 * gap frames fill the wire from there on.  Sent bytes are the clock
	 * while the wire is busy, real time while it idles.
	 */
	PACE_MODE_HYBRID,
};

enum pace_type {
	PACE_TYPE_PACED,	/* has a rate and a clock */
	PACE_TYPE_NORMAL,	/* best effort, round robin by bytes */
	/*
	 * Isochronous (paper 004): frames that arrived before a period leave in
	 * it.  src/reservation.c.
	 */
	PACE_TYPE_RT,
	PACE_TYPE_NRT,		/* sends its share of a period, the rest waits */
};

struct pace_config {
	u64 line_rate_bps;
	u32 overhead_bytes;	/* per frame on the wire; PACE_ETH_OVERHEAD */
	u32 min_frame_bytes;	/* shorter frames are padded; PACE_ETH_MIN_FRAME */
	u32 max_frame_bytes;	/* link header included; also the largest gap frame */
	/*
	 * Most bytes that the host hands over as one burst, with the headers of
	 * each frame counted; 0: max_frame_bytes, no bursts.
	 */
	u32 max_burst_bytes;
	u32 link_header_bytes;	/* what PACE_LAYER_IP does not count */
	enum pace_layer layer;
	enum pace_order order;
	enum pace_mode mode;
	/* A normal or nrt frame is sent only if it ends before a paced one is due. */
	bool guard_band;
	/*
	 * Periods, in force while there is an rt or nrt class: in each of them
	 * budget_bytes leave, as the layer counts.  src/reservation.c.  A period
	 * or budget of 0 allows no such class.
	 */
	bool aligned;		/* periods begin at align_ns and whole periods from it */
	u64 period_ns;
	u64 budget_bytes;
	u64 align_ns;
};

/*
 * The reservation of an rt or nrt class, in memory of the host.  The core zeroes
 * it and uses it as long as the class is of either type.  Hosts read the
 * counters.
 */
struct pace_reservation {
	u64 reserve_bytes;
	u64 period;		/* number of the period that what follows is of */
	s64 left_bytes;		/* of the period's reservation; NRT: below 0, owed */
	s64 late_left_bytes;	/* RT: late bytes that may still go before others */
	s64 credit_bytes;	/* RT: reserved and not sent; below 0, owed */
	u64 backlog_wire_bytes;	/* RT: arrived and not sent */
	u64 gated_wire_bytes;	/* RT: of these, arrived before the period */
	u8 ring;		/* src/reservation.c */
	/* Periods in which... */
	u64 over;		/* RT: more frames waited than the period reserves */
	u64 deferred;		/* frames waited on: budget, late bytes or share spent */
	u64 overrun;		/* RT: frames waited on though the budget was not */
	u64 excess;		/* RT: more frames waited than the credit pays for */
	u64 catchup_bytes;	/* RT, bytes: sent on earlier periods' reservations */
};

struct pace_class_config {
	enum pace_type type;
	bool launches;		/* PACED: pace_activate_at() says when it may send */
	u64 rate_bps;		/* PACED: guaranteed */
	/*
	 * PACED: classes below their ceil borrow what would be a gap, in
	 * proportion to their rates.  0: rate_bps, the class does not borrow.
	 */
	u64 ceil_bps;
	u32 quantum_bytes;	/* NORMAL: wire bytes per round; 0 = one max_frame */
	u64 reserve_bytes;	/* RT, NRT: per period, as the layer counts */
	struct pace_reservation *reservation;	/* RT, NRT; unused if the class has one */
};

/*
 * An exact clock, rounded up to a whole picosecond.  When frac is not 0 the exact
 * value is ps - 1 + frac / r, r being the rate that the clock goes by: see
 * src/clock.c.
 */
struct pace_clock {
	u64 ps;
	u64 frac;
};

/*
 * A clock that several schedulers, the transmit queues of a device, share: of one class
 * or of the line (src/steps.c).  The host zeroes it, and puts each part into a slot
 * while that is in use.
 */
struct pace_part;
struct pace_common {
	pace_atomic clock_ps;
	pace_atomic offset_ps;	/* of a line, a node: so much was set back what is in it */
	pace_atomic held_until_ps;	/* and by that nothing is due before this instant */
	pace_atomic rate_bps;	/* of a class: by which its time is counted; 0: none */
	pace_atomic users, load_bps;	/* queues in which a class is active, what it offers */
	pace_atomic loads_bps;	/* of a line, a node: of all classes that go by it */
	u32 slots;
	struct pace_part *part[];
};

/* How the node of a group pays for what it sends: src/lane.c. */
enum pace_lane {
	PACE_LANE_NONE,		/* it has no lanes */
	PACE_LANE_SPARE,	/* before: in steps */
	PACE_LANE_GUARANTEED,	/* afterwards */
};

/*
 * A scheduler's part of such a clock, in memory of the host: zeroed but for `common`,
 * and kept until no other scheduler looks at the slot that it was in.
 */
struct pace_part {
	struct pace_common *common;
	u64 end_ps;		/* here the step ends, on the clock's own scale */
	u64 taken_ps;		/* the step; while the part rests, what it used of it */
	u64 keeps_until_ps;	/* until then it has what it left, on the common clock's scale */
	u64 backlog_bytes;	/* the host may say what waits; 0: unknown */
	u64 rate_bps;		/* the common clock's when the step was taken */
	bool loads;		/* the class is active */
	bool open;		/* it has a step, or waits for one */
	u8 lane;		/* enum pace_lane: that the clocks of the class are of */
	bool peeks;		/* its clock is an earlier instant: src/lane.c */
	struct pace_clock step_clock;	/* and that is where it may send */
	/* What others read, and what they take: a line of their own. */
	u64 spare_bps;		/* of a line, a node: of what borrows; 0: nothing, or others, too */
	u64 free_from_ps;
	pace_atomic free_until_ps;
};

/* What the transmit queues of a device share, zeroed by the host. */
struct pace_device {
	u32 queues;		/* that the host has joined */
	struct pace_common line;
};

/* What one call hands over: a frame, or a burst of frames (pace_sent_burst()). */
struct pace_burst {
	u32 len_bytes;
	u32 frames;
	u32 wire_bytes;
};

/* Returns the bytes of a burst that the rates of this port count. */
static inline u32 pace_counted_bytes(const struct pace_config *cfg,
				     const struct pace_burst *t)
{
	u64 headers;

	switch (cfg->layer) {
	case PACE_LAYER_WIRE:
		return t->wire_bytes;
	case PACE_LAYER_IP:
		headers = (u64)t->frames * cfg->link_header_bytes;
		return t->len_bytes > headers ? t->len_bytes - (u32)headers : 1;
	case PACE_LAYER_LINK:
	default:
		return t->len_bytes;
	}
}

/* What a burst costs a paced class, by its rate and its ceil. */
struct pace_frame_cost {
	struct pace_burst burst;	/* no frames: none */
	u64 rate_quot;
	u64 rate_rem;
	u64 ceil_quot;
	u64 ceil_rem;
	u64 offered_load_bps;
};

/*
 * The queue that a paced class is in: while active in one of the first two, in
 * ORDER_CLOCK in the first, and with a ceil in one of the others as well.
 */
enum pace_place {
	PACE_NOWHERE,
	PACE_WAITING,
	PACE_ELIGIBLE,
	PACE_AT_CEIL,
	PACE_BORROWING,
	PACE_LAUNCHING,		/* waits for its launch time: src/launch.c */
	PACE_RESTING,		/* no class of the group is due: src/rest.c */
};

/*
 * One class.  The host embeds it in its own class and changes no member; members
 * are public so that it can embed them, and so that tests can read them.
 *
 * Members are in the order of their use, four times 64 bytes where a pointer
 * has 8.  A frame of a class without a ceil that stays active touches the first
 * 64 bytes, and in ORDER_NEXT max_cost_ps.  If the class becomes active or
 * inactive with it, it touches the second 64 bytes, too.  A host with many classes
 * aligns them to 64, so that this is one cache line, or two.
 */
struct pace_class {
	u32 id;			/* slot in the storage; PACE_ID_NONE outside */
	u8 type;		/* enum pace_type */
	bool active;		/* has a packet and takes part in decisions */
	u8 place;		/* enum pace_place: waiting or eligible */
	bool has_ceil;		/* PACED: has a ceil above its rate */
	/*
	 * PACED.  All clocks are compared with the port's less the common
	 * offset.
	 */
	struct pace_clock clock;	/* of the guaranteed rate */
	u64 rate_bps;
	/* Divisions where a size is neither of the last two, none per packet. */
	u64 rate_quot;
	u64 rate_rem;
	struct pace_burst last;	/* the burst whose frame cost that is */
	u32 head_wire_bytes;	/* of the first frame; 0: unknown */

	u64 max_cost_ps;	/* frame cost of a longest burst, rounded up */
	u64 offered_load_bps;	/* wire bit/s at the rate, in bursts like the last */
	struct pace_reservation *reservation;	/* RT, NRT */
	u32 left_at;		/* when it became inactive, in units of 2^32 ns */
	bool launches;
	bool passed;		/* guard band: its visit ended unserved */
	/* With a ceil above its rate: src/borrow.c. */
	u8 ceil_place;		/* enum pace_place: at its ceil or borrowing */
	u64 ceil_bps;		/* 0: none */
	u64 eligible_time;	/* with a ceil: pace_eligible_time() */
	struct pace_clock ceil_clock;

	struct pace_clock borrow_clock;	/* order among classes that borrow */
	u64 ceil_quot;
	u64 ceil_rem;
	/* NORMAL */
	u32 quantum_bytes;
	s64 deficit_bytes;
	union {
		/* ring of active classes; not PACED */
		struct {
			struct pace_class *next, *prev;
		};
		/* PACED: parts of the device's class; NULL: it is this port's */
		struct {
			struct pace_part *part, *ceil_part;
		};
	};

	struct pace_frame_cost other;	/* of the burst before the last of another size */
	union {
		u64 launch_ns;	/* launches: of the first frame; 0: at once */
		u64 rest_ps;	/* PACE_RESTING: until then, as global_ps counts */
	};
};

#define PACE_ID_NONE	(~0u)

enum pace_verdict {
	PACE_IDLE,		/* no packet anywhere */
	PACE_SEND,		/* take the head of `cls`, then pace_sent() */
	PACE_GAP,		/* fill `gap_bytes` of wire, then pace_gap_sent() */
	PACE_WAIT,		/* nothing before `until_ns` (TIMER, HYBRID) */
};

struct pace_decision {
	enum pace_verdict verdict;
	struct pace_class *cls;
	u32 gap_bytes;		/* wire bytes, overhead included */
	u64 until_ns;
	/*
	 * SEND of a paced class at its guaranteed rate: by how much its clock is
	 * behind the port's or, negative, ahead (gap rounding); 0 for all other
	 * classes and for borrowed frames.
	 */
	s64 late_ps;
};

struct pace_stats {
	u64 sent_frames;
	u64 sent_wire_bytes;
	u64 gap_frames;
	u64 gap_wire_bytes;
	u64 early_max_ps;	/* largest lead given by gap rounding */
	u64 late_max_ps;	/* largest class clock behind the port's at a send */
	u64 rebases;		/* over-subscription: all clocks moved together */
	u64 rebased_ps;
	u64 borrowed_frames;	/* sent above a class's rate, below its ceil */
	u64 guard_band_held;	/* decisions that held a normal or nrt frame back */
	u64 waits;		/* HYBRID: timers that expired */
	u64 wait_late_max_ns;	/* HYBRID: lateness of the latest of them */
	u64 lead_ns;		/* HYBRID: how early the next timer is set */
	/* Periods; the rt and nrt counters are sums of struct pace_reservation's. */
	u64 periods;		/* begun */
	u64 periods_spent;	/* ended with frames held back by the budget */
	u64 rt_over;
	u64 rt_deferred;
	u64 rt_overrun;
	u64 rt_catchup_bytes;
	u64 nrt_deferred;
	u64 rt_excess;
};

/*
 * Storage: six queues, a pool that four of them share from 512 classes on, and the
 * table of classes by id, in one block of memory that the host owns.
 * pace_storage_bytes(n) returns what n classes need, a multiple of 8 aligned as
 * u64.  To grow, the host allocates a larger block, calls pace_set_storage()
 * under its lock and frees what that returns: the old block, or the new one if
 * it is too small for the ids in use or for what the queues hold, or smaller than a
 * block with a pool.  In that case nothing has changed.
 */
PACE_API size_t pace_storage_bytes(u32 capacity);

struct pace_sched;	/* defined in pace_sched.h, so that hosts can embed it */

PACE_API enum pace_error pace_check_config(const struct pace_config *cfg);
PACE_API enum pace_error pace_init(struct pace_sched *s, const struct pace_config *cfg,
				   void *storage, u32 capacity, u64 now_ns);
PACE_API void *pace_set_storage(struct pace_sched *s, void *storage, u32 capacity);

/*
 * Changes the configuration of a running port (line renegotiated, MTU changed).  In another
 * mode classes wait for what was handed out and has not left, at the most for what a
 * transmit ring holds.  It checks every class first.  On error nothing has changed, and *culprit, if
 * culprit is not NULL, is the class that does not fit, or NULL.
 */
PACE_API enum pace_error pace_reconfigure(struct pace_sched *s,
					  const struct pace_config *cfg, u64 now_ns,
					  struct pace_class **culprit);

/*
 * Returns the least rate of a paced class that is not PACE_ERR_RATE_LOW; `cfg` is
 * valid for pace_check_config().
 */
PACE_API u64 pace_least_rate_bps(const struct pace_config *cfg);

/*
 * Checks the configuration of `c`, or of a new class if `c` is NULL.
 * PACE_ERR_RESERVED: the other classes' reservations, which
 * pace_reserved_bytes() returns, leave too little of the budget.
 */
PACE_API enum pace_error pace_class_check(const struct pace_sched *s,
					  const struct pace_class *c,
					  const struct pace_class_config *cfg);
/* Adds a class: zeroed memory, or a class that pace_class_del() removed. */
PACE_API enum pace_error pace_class_add(struct pace_sched *s, struct pace_class *c,
					const struct pace_class_config *cfg);
/*
 * Changes a class, active or not.  Of one that stays paced a new rate, and a new ceil,
 * counts from now on: what it is ahead of its clock takes as long as those bytes take at
 * the new one.  In ORDER_NEXT it starts anew if at its new rate virtual time has passed it.
 */
PACE_API enum pace_error pace_class_change(struct pace_sched *s, struct pace_class *c,
					   const struct pace_class_config *cfg, u64 now_ns);
PACE_API void pace_class_del(struct pace_sched *s, struct pace_class *c);

/* Returns what all classes but `c`, which may be NULL, have reserved of a period. */
PACE_API u64 pace_reserved_bytes(const struct pace_sched *s, const struct pace_class *c);
/* Returns `percent` of the bytes that the line carries in a period. */
PACE_API u64 pace_budget_bytes(u64 line_rate_bps, u64 period_ns, u32 percent);
/* Changes pace_config.align_ns, after one of the two clocks was set. */
PACE_API void pace_set_align(struct pace_sched *s, u64 align_ns);

/*
 * Makes the port one of several queues of a device, which share its line and what
 * pace_class_join() names (src/part.c): before the first class is added, in TIMER only.
 * cfg.line_rate_bps is that of the whole device.  `part` is its part of the line, and
 * step_ps the time that it takes of a clock at once.
 */
PACE_API void pace_join(struct pace_sched *s, struct pace_device *device,
			struct pace_part *part, u64 step_ps);
/* Changes how much it takes at once. */
PACE_API void pace_set_step(struct pace_sched *s, u64 step_ps);
/* Leaves what it has of the line to the others, when nothing sends any more. */
PACE_API void pace_leave(struct pace_sched *s);
/*
 * Makes a paced class one of those that the device's queues have in common.  ceil_part
 * is of its ceil's clock, and used while it has a ceil.  No effect on a
 * class of another type; a change to another type ends it, as pace_class_leave() does.
 */
PACE_API void pace_class_join(struct pace_sched *s, struct pace_class *c,
			      struct pace_part *part, struct pace_part *ceil_part);
PACE_API void pace_class_leave(struct pace_sched *s, struct pace_class *c);

/*
 * Reports the arrival of a frame or burst, before pace_activate(), and a frame
 * that is dropped from the head of the queue.  An rt class sends in a period what
 * arrived before it, so the host reports each.  A class without a packet has
 * nothing to report any more.  No effect on classes of other types.
 */
PACE_API void pace_arrived(struct pace_sched *s, struct pace_class *c, u32 wire_bytes,
			   u64 now_ns);
PACE_API void pace_dropped(struct pace_sched *s, struct pace_class *c, u32 wire_bytes,
			   u64 now_ns);

/* Adds a class that has a packet to the schedule.  No effect if it is active. */
PACE_API void pace_activate(struct pace_sched *s, struct pace_class *c, u64 now_ns);
/*
 * The same for a class that launches, and its first packet may not leave before
 * launch_ns: src/launch.c.  A host that has more packets after pace_sent() reports
 * there that it has none, and then the next one here.  The instant of an active class
 * is changed.  Instants beyond PACE_LAUNCH_NS_MAX are taken to be that far ahead.
 * On a class that does not launch the instant has no effect.  O(log n).
 */
PACE_API void pace_activate_at(struct pace_sched *s, struct pace_class *c, u64 launch_ns,
			       u64 now_ns);
/*
 * Returns the instant at which what is handed out at now_ns leaves: now_ns, or when
 * the wire has carried what was handed out before.  O(1).
 */
PACE_API u64 pace_departure_ns(const struct pace_sched *s, u64 now_ns);
/*
 * Reports when the driver got the first frame of those that were handed out since the
 * last report: at got_ns, at latest_ns at the latest.  The wire carries it from then
 * on, or when it has carried what was handed out before.  Returns true if the wire may
 * have waited for it until latest_ns; else nothing depends on when it came.  A host
 * that reports this meets launch times better.  O(1).
 */
PACE_API bool pace_started(struct pace_sched *s, u64 got_ns, u64 latest_ns);
/*
 * Forgets what pace_started() said: the driver has lost what it had, or takes another time
 * for it.  O(1).
 */
PACE_API void pace_handover_forget(struct pace_sched *s);
/* Returns the first instant for which a class waits, or 2^64 - 1.  O(1). */
PACE_API u64 pace_launch_ns(const struct pace_sched *s);
/* Removes a class whose packets were dropped.  No effect if it is inactive. */
PACE_API void pace_deactivate(struct pace_sched *s, struct pace_class *c, u64 now_ns);

/*
 * Returns what to do next; asked again it returns the same.  It moves no class
 * clock, but forgets lag that a host which stood still has caused.  O(1);
 * ORDER_RATE and ORDER_NEXT O(log n), amortised over the frames sent, as a class
 * becomes eligible once per frame.  Normal classes whose quantum is below a frame
 * take as many visits as quanta make up a frame.
 */
PACE_API_PATH struct pace_decision pace_next(struct pace_sched *s, u64 now_ns);
/*
 * Returns until when pace_next() is expected to wait after the frame for which it
 * waits now, or 0 if that is unknown, as it is but in TIMER.  The expectation holds
 * if the class has another frame of that length and nothing else comes; a host may
 * set its timer by it beforehand.  O(1).
 */
PACE_API u64 pace_after_ns(const struct pace_sched *s);
/*
 * Returns the class that is expected to send after the next one and `ahead`
 * others, or NULL if that is unknown, as it is with few classes.  A host may
 * prefetch its own memory of that class.  The hint is wrong now and then.  O(1).
 */
PACE_API struct pace_class *pace_coming(const struct pace_sched *s, u32 ahead);
/*
 * Reports that an active class sent a frame of len_bytes (1..PACE_FRAME_MAX);
 * `more`: it has another packet.  O(log n).
 */
PACE_API void pace_sent(struct pace_sched *s, struct pace_class *c, u32 len_bytes,
			bool more, u64 now_ns);
/*
 * The same for a burst of `frames` frames that leave back to back.  len_bytes, up
 * to max_burst_bytes, counts the headers of every frame; wire_bytes, up to
 * PACE_BURST_WIRE_MAX, the padding and overhead of every frame.  O(log n).
 */
PACE_API_PATH void pace_sent_burst(struct pace_sched *s, struct pace_class *c,
				   u32 len_bytes, u32 wire_bytes, u32 frames, bool more,
				   u64 now_ns);
/*
 * Reports the wire bytes of the class's first frame or burst, by which the guard
 * band decides whether it ends in time.  They are forgotten when it is sent; 0,
 * unknown, counts as the longest burst.
 */
PACE_API void pace_set_head(struct pace_sched *s, struct pace_class *c, u32 wire_bytes);
/*
 * Returns true if the class is active, paced, and ahead of its clock, or, with a
 * ceil, ahead of its ceil clock.  While an answer PACE_WAIT stands this is as of
 * that answer.
 */
PACE_API bool pace_is_throttled(const struct pace_sched *s, const struct pace_class *c);
/*
 * Returns by how much the clock of a paced class, active or not, is ahead of the
 * port's at now_ns, rounded up.  At 0 the class does not differ from a new one.  It
 * advances no clock.  O(1).
 */
PACE_API u64 pace_debt_ns(const struct pace_sched *s, const struct pace_class *c,
			  u64 now_ns);
/* Reports that a gap of gap_bytes went to the wire.  O(1). */
PACE_API void pace_gap_sent(struct pace_sched *s, u32 gap_bytes);

/* Return the wire length of a frame, and of the smallest gap frame. */
PACE_API u32 pace_wire_bytes(const struct pace_sched *s, u32 len_bytes);
PACE_API u32 pace_min_gap_bytes(const struct pace_sched *s);

#endif /* PACE_H */
