/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * pace - the packet scheduler of one port, counted in byte times.
 *
 * Time is the number of bytes the wire could have carried ("byte clock",
 * paper 002, 2.2).  The port has one clock, every paced class has one, and a
 * class may send when its clock is not ahead of the port's.  What the core
 * decides is only *who is next, and how long the wire stays silent before*;
 * packets, memory, locks and the passing of real time belong to the host.
 *
 * Calling convention.  The host serialises all calls on one scheduler.  A
 * class becomes active when its queue gets a first packet
 * (pace_activate()), is named by pace_next() when it may send, and reports
 * what it sent (pace_sent()).  No call allocates, sleeps or fails for lack
 * of memory; configuration calls check everything before they change
 * anything and return 0 or an enum pace_error.
 */
#ifndef PACE_H
#define PACE_H

#include "pace_deps.h"		/* u8..u64, s64, bool, division: deps/ */

/* Most classes in one scheduler: an id takes 20 bits of a queue key. */
#define PACE_ID_BITS		20
#define PACE_CLASSES_MAX	(1u << PACE_ID_BITS)

/*
 * A class clock may lead the port's by less than this many bytes, so that
 * 44-bit clocks in queue keys compare safely across their wrap.  A rate is
 * refused if one largest frame would advance its clock further: 820 bit/s
 * on 400 Gbit/s with 9000-byte frames, 3 bit/s on 1 Gbit/s.
 */
#define PACE_LEAD_MAX		(1ull << 42)

#define PACE_LINE_RATE_MIN	8000ull			/* bit/s */
#define PACE_LINE_RATE_MAX	1000000000000ull	/* 1 Tbit/s */
#define PACE_FRAME_MAX		(1u << 18)		/* bytes, one frame or train */
#define PACE_BURST_WIRE_MAX	(1u << 22)		/* what a train takes on the wire */

/* Smaller quanta cost too many rounds a frame; 0 chooses max_frame. */
#define PACE_QUANTUM_MIN	256u
#define PACE_QUANTUM_MAX	(1u << 20)

/* Ethernet: a frame shorter than 60 bytes (FCS not counted) is padded. */
#define PACE_ETH_MIN_FRAME	60
/* FCS 4 + preamble and start delimiter 8 + inter-frame gap 12. */
#define PACE_ETH_OVERHEAD	24
#define PACE_ETH_HEADER		14

/* Periods of rt and nrt classes; the budget is that of a second at 1 Tbit/s. */
#define PACE_PERIOD_NS_MIN	125000ull
#define PACE_PERIOD_NS_MAX	1000000000ull
#define PACE_BUDGET_MAX		125000000000ull		/* bytes */

enum pace_error {
	PACE_OK = 0,
	PACE_ERR_LINE_RATE,	/* outside PACE_LINE_RATE_MIN..MAX */
	PACE_ERR_RATE_ZERO,	/* a paced class needs a rate */
	PACE_ERR_RATE_LINE,	/* rate above the line rate */
	PACE_ERR_RATE_LOW,	/* one frame would pass PACE_LEAD_MAX */
	PACE_ERR_FRAME,		/* max_frame of 0, below min_frame or above PACE_FRAME_MAX */
	PACE_ERR_OVERHEAD,	/* overhead above 256 */
	PACE_ERR_FULL,		/* no free class id: grow the storage */
	PACE_ERR_BUSY,		/* the class is in this scheduler already */
	PACE_ERR_QUANTUM,	/* quantum outside PACE_QUANTUM_MIN..MAX */
	PACE_ERR_CEIL,		/* ceil below the rate, or above the line rate */
	/* max_train below max_frame, above PACE_FRAME_MAX, or, made of largest
	 * frames, above PACE_BURST_WIRE_MAX
	 */
	PACE_ERR_BURST,
	/* period outside PACE_PERIOD_NS_MIN..MAX, or, for an rt or nrt class,
	 * none, or one in which the line does not carry a longest train
	 */
	PACE_ERR_PERIOD,
	PACE_ERR_BUDGET,	/* above PACE_BUDGET_MAX; an rt or nrt class needs one */
	PACE_ERR_RESERVE,	/* 0, or above the budget */
	PACE_ERR_RESERVED,	/* together with the other classes', above the budget */
};

/* What the bytes of a rate are (docs/how-it-works.md, "What a rate counts"). */
enum pace_layer {
	PACE_LAYER_LINK,	/* the frame as the host holds it: header, no FCS */
	PACE_LAYER_WIRE,	/* padded, plus overhead: what the wire carries */
	PACE_LAYER_IP,		/* without the link header */
};

/* Which of several due classes goes first. */
enum pace_order {
	PACE_ORDER_CLOCK,	/* smallest class clock (paper 002, 2.2) */
	PACE_ORDER_RATE,	/* highest rate (paper 000, 3.4) */
	/*
	 * Smallest next clock: the class clock moved on by one largest frame
	 * (WF2Q+: Bennett and Zhang, 1996; decisions/0014).  A class within
	 * the line is late by no more than that, whatever the others' rates.
	 */
	PACE_ORDER_NEXT,
};

/* How time passes while no frame is due. */
enum pace_mode {
	PACE_MODE_GAP,		/* gap frames fill the wire; sent bytes are the clock */
	PACE_MODE_TIMER,	/* the host's timer; real time is the clock */
	/*
	 * The host's timer until a measured lead before the instant, gap
	 * frames from there on: sent bytes are the clock while the wire is
	 * busy, real time while it idles.
	 */
	PACE_MODE_HYBRID,
};

enum pace_type {
	PACE_TYPE_PACED,	/* has a rate and a clock */
	PACE_TYPE_NORMAL,	/* best effort, round robin by bytes */
	/*
	 * Isochronous (paper 004): what has come by the start of a period goes
	 * out in it.  src/reservation.c.
	 */
	PACE_TYPE_RT,
	PACE_TYPE_NRT,		/* so much in a period, the rest in the next */
};

struct pace_config {
	u64 line_rate_bps;
	u32 overhead_bytes;	/* per frame on the wire; PACE_ETH_OVERHEAD */
	u32 min_frame_bytes;	/* shorter frames are padded; PACE_ETH_MIN_FRAME */
	u32 max_frame_bytes;	/* link header included; also the largest gap frame */
	/*
	 * Largest number of bytes handed over as one train of frames, whose
	 * headers are counted once each; 0: max_frame_bytes, no trains.
	 */
	u32 max_burst_bytes;
	u32 link_header_bytes;	/* what PACE_LAYER_IP leaves out */
	enum pace_layer layer;
	enum pace_order order;
	enum pace_mode mode;
	/* A normal or nrt frame goes only where it ends before a paced one is due. */
	bool guard_band;
	/*
	 * In force while there is an rt or nrt class: so many bytes, as the
	 * layer counts, leave in a period.  src/reservation.c.  0: no such classes.
	 */
	bool aligned;		/* one period begins at align_ns, or would */
	u64 period_ns;
	u64 budget_bytes;
	u64 align_ns;
};

/*
 * What an rt or nrt class has beside itself, in memory of the host: zeroed when
 * it is given, and the core's as long as the class is of either kind.  Hosts read
 * the counters.
 */
struct pace_reservation {
	u64 reserve_bytes;
	u64 period;		/* pace_stats.periods as of which the rest is */
	s64 left_bytes;		/* of what is reserved; NRT: below 0, owed */
	s64 late_left_bytes;	/* RT: late frames may go ahead of others */
	s64 credit_bytes;	/* RT: reserved and not sent; below 0, owed */
	u64 backlog_wire_bytes;	/* RT: what has come and was not sent */
	u64 gated_wire_bytes;	/* of that, by the period's start */
	u8 ring;		/* src/reservation.c */
	/* Periods in which... */
	u64 over;		/* RT: more had come than is reserved */
	u64 deferred;		/* frames were left for the next: budget or share */
	u64 overrun;		/* RT: frames were left though the budget was not */
	u64 late_bytes;		/* RT: sent of what earlier periods reserved */
	u64 excess;		/* RT: more had come than all periods have reserved */
};

struct pace_class_config {
	enum pace_type type;
	u64 rate_bps;		/* PACED: guaranteed */
	/*
	 * PACED: what would be a gap is shared in proportion to the rates, as
	 * long as a class stays within its ceil.  0: rate_bps, no share.
	 */
	u64 ceil_bps;
	u32 quantum_bytes;	/* NORMAL: wire bytes per round; 0 = one max_frame */
	u64 reserve_bytes;	/* RT, NRT: per period, as the layer counts */
	struct pace_reservation *reservation;	/* RT, NRT; of a class that has one: not read */
};

/*
 * An exact clock in byte times, rounded up to a whole byte.  When frac is not
 * 0 the exact value is bytes - 1 + frac / r, r being the rate that the clock
 * goes by: see src/byte_clock.c.
 */
struct pace_clock {
	u64 bytes;
	u64 frac;
};

/* What one call hands over: a frame, or a train of them (pace_sent_burst()). */
struct pace_burst {
	u32 len_bytes;
	u32 frames;
	u32 wire_bytes;
};

/* What the rates of this port count of it. */
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

/*
 * One class.  The host embeds it in its own class and leaves the fields
 * alone; they are public so that it can, and so that tests can look.
 *
 * In the order in which they are used, three times 64 bytes where pointers
 * have 8: a frame of a class without a ceil that stays active touches the first
 * 64 bytes, and in ORDER_NEXT `period`.  A host with many classes aligns them to
 * 64, so that this is one line of cache, or two.
 */
struct pace_class {
	u32 id;			/* slot in the storage; PACE_ID_NONE outside */
	u8 type;		/* enum pace_type */
	bool active;		/* has a packet and takes part in decisions */
	bool eligible;		/* is in the queue of those due; never in ORDER_CLOCK */
	bool has_ceil;		/* PACED: has a ceil above its rate */
	/*
	 * PACED.  All clocks are compared with the port's less the common
	 * offset.
	 */
	struct pace_clock clock;	/* of the guaranteed rate */
	u64 rate_bps;
	/* Two divisions per change of packet size, none per packet. */
	u64 rate_quot;
	u64 rate_rem;
	struct pace_burst last;	/* priced above */
	u32 head_wire_bytes;	/* of the first frame; 0: not known */

	u64 max_cost_bytes;		/* by which a longest train moves the clock, rounded up */
	u64 offered_load_bps;		/* wire bit/s this class asks for, at its last packet size */
	/* With a ceil above its rate: src/paced.c. */
	u64 eligible_time;		/* with a ceil, when it may send: pace_eligible_time() */
	u64 ceil_bps;		/* 0: none */
	struct pace_clock ceil_clock;
	struct pace_clock borrow_clock;	/* its turn among those that share */

	u64 ceil_quot;
	u64 ceil_rem;
	bool borrowing;		/* is in the queue of those within their ceil */
	/* NORMAL */
	bool passed;		/* guard: its visit ended unserved */
	u32 quantum_bytes;
	s64 deficit_bytes;
	struct pace_class *next, *prev;	/* ring of active classes; not PACED */
	struct pace_reservation *reservation;	/* RT, NRT */
	u64 unused;		/* makes it three lines */
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
	 * SEND of a paced class at its guaranteed rate: by how many byte
	 * times its clock is behind (late) or, negative, ahead (gap rounding);
	 * 0 for normal classes and for what is sent above the rate.
	 */
	s64 late_bytes;
};

struct pace_stats {
	u64 sent_frames;
	u64 sent_wire_bytes;
	u64 gap_frames;
	u64 gap_wire_bytes;
	u64 early_bytes_max;	/* largest lead given by gap rounding */
	u64 late_bytes_max;	/* largest class clock behind the port's at a send */
	u64 rebases;		/* over-subscription: common moves of all clocks */
	u64 rebased_bytes;
	u64 borrowed_frames;	/* sent above a class's rate, below its ceil */
	u64 guard_band_held;		/* decisions in which guard held a normal frame back */
	u64 waits;		/* HYBRID: timers that ran out */
	u64 wait_late_max_ns;	/* HYBRID: how late the latest of them was */
	u64 lead_ns;		/* HYBRID: how early the next is set */
	/* Isochronous classes; in periods of a class as in struct pace_reservation. */
	u64 periods;		/* begun */
	u64 periods_spent;	/* ended with frames held back by the budget */
	u64 rt_over;
	u64 rt_deferred;
	u64 rt_overrun;
	u64 rt_late_bytes;
	u64 nrt_deferred;
	u64 rt_excess;
};

/*
 * Storage: four queues, the blocks that they share once there are many classes
 * (from 2048 on) and the id table, in one block that the host owns.
 * pace_storage_bytes(n) is what n classes need (multiple of 8, aligned as
 * u64).  Growing: allocate a larger block, call pace_set_storage() under
 * the host's lock, free what it returns afterwards: the old block, or the
 * new one if it is too small for the ids in use, or smaller than one with such
 * blocks, and nothing was changed.
 */
size_t pace_storage_bytes(u32 capacity);

struct pace_sched;	/* defined in pace_sched.h, so that hosts can embed it */

enum pace_error pace_check_config(const struct pace_config *cfg);
enum pace_error pace_init(struct pace_sched *s, const struct pace_config *cfg,
			  void *storage, u32 capacity, u64 now_ns);
void *pace_set_storage(struct pace_sched *s, void *storage, u32 capacity);

/*
 * New line parameters while running (line renegotiated, MTU changed).
 * Checks every class first; on error nothing has changed and *culprit, when
 * not NULL, names the class whose rate does not fit.
 */
enum pace_error pace_reconfigure(struct pace_sched *s,
				 const struct pace_config *cfg, u64 now_ns,
				 struct pace_class **culprit);

/*
 * The least rate of a paced class that is not PACE_ERR_RATE_LOW; `cfg` as
 * pace_check_config() takes it.
 */
u64 pace_least_rate_bps(const struct pace_config *cfg);

/*
 * May a new class, `c` NULL, or `c` be that?  PACE_ERR_RESERVED: beside the other
 * classes', which pace_reserved_bytes() tells.
 */
enum pace_error pace_class_check(const struct pace_sched *s,
				 const struct pace_class *c,
				 const struct pace_class_config *cfg);
/* `c` is zeroed memory, or a class that pace_class_del() took out. */
enum pace_error pace_class_add(struct pace_sched *s, struct pace_class *c,
			       const struct pace_class_config *cfg);
/*
 * Kind and rate may change while the class is active: its clock is kept
 * (ORDER_NEXT: unless by its new rate it should have had its turn long ago).
 */
enum pace_error pace_class_change(struct pace_sched *s, struct pace_class *c,
				  const struct pace_class_config *cfg);
void pace_class_del(struct pace_sched *s, struct pace_class *c);

/* What the classes but `c`, or all, NULL, have reserved in a period. */
u64 pace_reserved_bytes(const struct pace_sched *s, const struct pace_class *c);
/* `percent` of what the line carries in a period, in bytes. */
u64 pace_budget_bytes(u64 line_rate_bps, u64 period_ns, u32 percent);
/* The clocks of host and alignment were set apart: pace_config.align_ns. */
void pace_set_align(struct pace_sched *s, u64 align_ns);

/*
 * A frame or train came for a class, before pace_activate(): rt classes send in a
 * period what came before it, so this is to be said of each.  What goes
 * without being sent has to be taken back; all of it is when the class has no
 * packet any more.  No effect on other kinds.
 */
void pace_arrived(struct pace_sched *s, struct pace_class *c, u32 wire_bytes,
		  u64 now_ns);
void pace_dropped(struct pace_sched *s, struct pace_class *c, u32 wire_bytes,
		  u64 now_ns);

/* The class has a packet.  No effect on a class that is active already. */
void pace_activate(struct pace_sched *s, struct pace_class *c, u64 now_ns);
/* Its packets are gone without being sent.  No effect on an inactive class. */
void pace_deactivate(struct pace_sched *s, struct pace_class *c, u64 now_ns);

/*
 * Who is next?  Asking again gives the same answer.  Changes no clock (TIMER
 * and HYBRID: but for time passing, and for what a host that stood still has
 * missed). O(1); ORDER_RATE and ORDER_NEXT O(log n), amortised over the frames
 * sent: a class becomes due once per frame; for normal classes with quanta
 * below a frame, as many visits as quanta make up a frame.
 */
struct pace_decision pace_next(struct pace_sched *s, u64 now_ns);
/*
 * The class that, as things are, is to send after `ahead` others and the next,
 * or NULL if that is not known: only where classes are many.  A hint, wrong now
 * and then, for a host that has its own memory of a class fetched before it is
 * needed. O(1).
 */
struct pace_class *pace_coming(const struct pace_sched *s, u32 ahead);
/*
 * `c`, active, sent a frame of len_bytes (1..PACE_FRAME_MAX); `more`: it has
 * another packet. O(log n).
 */
void pace_sent(struct pace_sched *s, struct pace_class *c, u32 len_bytes,
	       bool more, u64 now_ns);
/*
 * The same for a train of `frames` frames that the host hands over as one and
 * that leave back to back: len_bytes (up to max_burst_bytes) in all, headers of
 * every frame counted, wire_bytes (up to PACE_BURST_WIRE_MAX) on the wire,
 * padding and overhead of every frame counted.  O(log n).
 */
void pace_sent_burst(struct pace_sched *s, struct pace_class *c, u32 len_bytes,
		     u32 wire_bytes, u32 frames, bool more, u64 now_ns);
/*
 * What the class's first frame (or train) takes on the wire, for a host that
 * knows it: pace_wire_bytes() of a frame.  It is what guard goes by.  Forgotten
 * with the frame; 0, unknown, counts as the longest there can be.
 */
void pace_set_head(struct pace_sched *s, struct pace_class *c, u32 wire_bytes);
/*
 * An active paced class that may not send yet: it waits for its clock, or, with
 * a ceil, for that.  While an answer PACE_WAIT stands: as of that answer.
 */
bool pace_is_throttled(const struct pace_sched *s, const struct pace_class *c);
/*
 * How far, in byte times, a paced class is from the clock of its rate: what it
 * has sent ahead of its rate, active or not.  0: it owes nothing, and is no
 * different from a new one.  Passes no time. O(1).
 */
u64 pace_debt_bytes(const struct pace_sched *s, const struct pace_class *c,
		    u64 now_ns);
/* A gap of gap_bytes went to the wire. O(1). */
void pace_gap_sent(struct pace_sched *s, u32 gap_bytes);

/* Wire length of a frame, and the smallest gap there can be. */
u32 pace_wire_bytes(const struct pace_sched *s, u32 len_bytes);
u32 pace_min_gap_bytes(const struct pace_sched *s);

#endif /* PACE_H */
