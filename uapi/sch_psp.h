/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * psp: the netlink interface between `tc` and the kernel module.
 *
 * Options travel in TCA_OPTIONS as nested attributes, strictly validated:
 * unknown attributes, wrong lengths and values out of range are refused.  In
 * a change request an absent attribute leaves its setting as it is.
 *
 * Every rate is a 64-bit number of bits per second.
 */
#ifndef _UAPI_SCH_PSP_H
#define _UAPI_SCH_PSP_H

#include <linux/types.h>

/* Options of the qdisc. */
enum {
	TCA_PSP_UNSPEC,
	TCA_PSP_PAD,
	TCA_PSP_DEFAULT,	/* u32: minor of the class for unclassified
				 * frames; 0: none
				 */
	TCA_PSP_LINE_RATE,	/* u64, bit/s; 0: follow the device */
	TCA_PSP_MODE,		/* u8: enum tc_psp_mode */
	TCA_PSP_OVERHEAD,	/* u32: bytes a frame takes on the wire beyond
				 * what the host holds
				 */
	TCA_PSP_LAYER,		/* u8: enum tc_psp_layer */
	TCA_PSP_ORDER,		/* u8: enum tc_psp_order */
	TCA_PSP_GAP,		/* u8: enum tc_psp_gap */
	TCA_PSP_GUARD,		/* u8, 0 or 1: normal frames only where they fit
				 * before the next paced one
				 */
	TCA_PSP_SPLIT_GSO,	/* u8: enum tc_psp_split_gso */
	TCA_PSP_PERIOD,		/* u64, ns: of classes of type rt and nrt, in force
				 * while there is such a class
				 */
	TCA_PSP_BUDGET,		/* u64, bytes a period for the whole port; 0: by
				 * percent
				 */
	TCA_PSP_BUDGET_PERCENT,	/* u32: of the line */
	TCA_PSP_ALIGN,		/* u64, ns: periods begin this long after multiples
				 * of the period on CLOCK_TAI;
				 * TC_PSP_ALIGN_OFF: at any time
				 */
	__TCA_PSP_MAX,
};

#define TCA_PSP_MAX (__TCA_PSP_MAX - 1)

/* Options of a class. */
enum {
	TCA_PSP_CLASS_UNSPEC,
	TCA_PSP_CLASS_PAD,
	TCA_PSP_CLASS_TYPE,	/* u8: enum tc_psp_type */
	TCA_PSP_CLASS_RATE,	/* u64, bit/s; not type normal; type dynamic:
				 * of frames without a socket, all together
				 */
	TCA_PSP_CLASS_QUANTUM,	/* u32, bytes a round; type normal only; 0: one
				 * largest frame
				 */
	TCA_PSP_CLASS_CEIL,	/* u64, bit/s, at least the rate; type paced:
				 * borrows unused rate up to it; type dynamic:
				 * no flow is faster; 0: the rate, or for type
				 * dynamic the rate of the line
				 */
	TCA_PSP_CLASS_FLOOR,	/* u64, bit/s; type dynamic: packet size x cwnd /
				 * RTT is taken to be at least this; 0: one
				 * largest frame in 200 ms
				 */
	TCA_PSP_CLASS_FLOWS,	/* u32; type dynamic: most flows at a time */
	TCA_PSP_CLASS_DEADLINE,	/* u64, ns; frames that have waited for longer are
				 * dropped; 0: none
				 */
	TCA_PSP_CLASS_RESERVE,	/* u64, bytes a period; types rt and nrt */
	/* Type dynamic; 0: the default */
	TCA_PSP_CLASS_LIMIT,	/* u32: most frames in all flows together */
	TCA_PSP_CLASS_FLOW_LIMIT,	/* u32: most frames in one flow */
	TCA_PSP_CLASS_HORIZON,	/* u64, ns: a frame that would wait for longer, at
				 * its flow's rate, is dropped
				 */
	TCA_PSP_CLASS_PACING_FLOOR,	/* u64, bit/s: no flow is slower, whatever its
					 * socket asks for; 0: one largest frame
					 * in a horizon
					 */
	__TCA_PSP_CLASS_MAX,
};

#define TCA_PSP_CLASS_MAX (__TCA_PSP_CLASS_MAX - 1)

/* How time passes while no frame is due. */
enum tc_psp_mode {
	TC_PSP_MODE_AUTO,	/* hybrid where the device allows it, else timer */
	TC_PSP_MODE_GAP,	/* gap frames fill the wire */
	TC_PSP_MODE_TIMER,	/* a high-resolution timer */
	TC_PSP_MODE_HYBRID,	/* a timer, and gap frames for the last stretch */
	__TC_PSP_MODE_MAX,
};

/* Which bytes of a frame a rate counts. */
enum tc_psp_layer {
	TC_PSP_LAYER_LINK,	/* the frame without FCS, as tc counts */
	TC_PSP_LAYER_WIRE,	/* padded, and with the overhead */
	TC_PSP_LAYER_IP,	/* without the link header */
	__TC_PSP_LAYER_MAX,
};

/* Which of several due classes goes first. */
enum tc_psp_order {
	TC_PSP_ORDER_CLOCK,	/* the one that has waited longest */
	TC_PSP_ORDER_RATE,	/* the one with the highest rate */
	TC_PSP_ORDER_NEXT,	/* the one whose next frame is due first */
	__TC_PSP_ORDER_MAX,
};

/* Type of gap frame. */
enum tc_psp_gap {
	TC_PSP_GAP_PAUSE,	/* IEEE 802.3x PAUSE, pause time 0 */
	TC_PSP_GAP_MULTICAST,	/* EtherType 0x88b5 to 01-80-c2-00-00-01 */
	__TC_PSP_GAP_MAX,
};

/* Is a burst (GSO packet) cut into frames before it is queued? */
enum tc_psp_split_gso {
	TC_PSP_SPLIT_GSO_AUTO,	/* where pacing would suffer from a whole one */
	TC_PSP_SPLIT_GSO_ON,
	TC_PSP_SPLIT_GSO_OFF,
	__TC_PSP_SPLIT_GSO_MAX,
};

/* Type of class; values as in `psp mode 0`, `psp mode 1`. */
enum tc_psp_type {
	TC_PSP_TYPE_NORMAL,	/* best effort */
	TC_PSP_TYPE_PACED,	/* has a rate */
	TC_PSP_TYPE_DYNAMIC,	/* each TCP flow at packet size x cwnd / RTT */
	TC_PSP_TYPE_RT,		/* frames that arrived before a period leave in it */
	TC_PSP_TYPE_NRT,	/* a share of each period, the rest in the next */
	__TC_PSP_TYPE_MAX,
};

#define TC_PSP_LIMIT_MAX	(1u << 20)	/* frames */
#define TC_PSP_HORIZON_MIN	1000000000ull	/* ns */
#define TC_PSP_HORIZON_MAX	3600000000000ull	/* ns */
#define TC_PSP_PERIOD_MIN	125000		/* ns */
#define TC_PSP_PERIOD_MAX	1000000000	/* ns */
#define TC_PSP_ALIGN_OFF	(~0ull)
#define TC_PSP_OVERHEAD_MAX	256		/* bytes */
#define TC_PSP_QUANTUM_MIN	256		/* bytes */
#define TC_PSP_QUANTUM_MAX	(1u << 20)	/* bytes */

/*
 * Statistics: one attribute, TCA_STATS_APP, for qdisc and class alike; `type`
 * tells which.  New fields are only ever appended: a reader takes the part
 * that both sides know and treats the rest as zero.  Read it by copy, netlink
 * aligns to 4 bytes only.
 */
enum tc_psp_stats_type {
	TC_PSP_STATS_QDISC = 1,
	TC_PSP_STATS_CLASS = 2,
};

struct tc_psp_qdisc_stats {
	__u32 type;			/* TC_PSP_STATS_QDISC */
	__u32 mode;			/* in force: not AUTO */
	__u64 line_rate_bps;		/* in force */
	__u32 max_frame_bytes;		/* in force, link header included */
	__u32 line_known;		/* 0: assumed, the device names no rate */
	__u64 sent_frames;
	__u64 sent_wire_bytes;
	__u64 gap_frames;
	__u64 gap_wire_bytes;
	__u64 early_bytes_max;		/* most a frame was sent ahead of its class clock */
	__u64 late_bytes_max;		/* most a frame was sent behind its class clock */
	__u64 rebases;			/* over-subscription: all clocks advanced at once */
	__u64 rebased_bytes;
	__u64 unclassified_frames;	/* no filter and no default class matched */
	__u64 drop_filter;		/* a filter's action said drop */
	__u64 drop_child;		/* a class's own queue refused the frame */
	__u64 drop_segment;		/* a GSO packet could not be cut up */
	__u64 drop_long;		/* longer than the device's largest frame */
	__u64 gap_failed;		/* no memory for a gap frame: tried again */
	__u64 child_retries;		/* a class's queue held frames but gave none */
	__u32 why_not_hybrid;		/* enum tc_psp_why: of mode auto */
	__u32 queues;			/* transmit queues that share the line */
	__u64 drop_late;		/* waited for longer than the class's deadline */
	__u64 drop_flow;		/* type dynamic: a flow's queue was full */
	__u64 borrowed_frames;		/* above a class's rate, below its ceil */
	__u64 guard_band_held;			/* decisions in which guard held a normal frame */
	__u64 waits;			/* mode hybrid: timers that ran out */
	__u64 wait_late_max_ns;		/* mode hybrid: how late the latest was */
	__u64 lead_ns;			/* mode hybrid: how early the next is set */
	__u64 bursts_cut;		/* GSO packets cut into frames */
	__u64 bursts_whole;		/* GSO packets sent whole */
	/* Periods.  Each class has its part of the last five. */
	__u64 period_ns;		/* 0: none, no class is of type rt or nrt */
	__u64 budget_bytes;		/* in force */
	__u64 reserved_bytes;		/* by all classes */
	__u64 periods;			/* begun */
	__u64 periods_spent;		/* ended with frames held back by the budget */
	__u64 rt_over;
	__u64 rt_deferred;
	__u64 rt_overrun;
	__u64 rt_catchup_bytes;
	__u64 nrt_deferred;
	/* Modes gap and hybrid: is the wire a clock? */
	__u64 no_clock;			/* times the wire was found to be no clock */
	__u64 line_measured_bps;	/* while a frame always waited; 0: not yet */
	__u64 wire_stops;		/* times the wire was silent with a frame due */
	__u64 wire_stop_max_ns;
	/* Type dynamic: */
	__u64 drop_limit;		/* the class held as many frames as it may */
	__u64 drop_horizon;		/* would have waited beyond the horizon */
	__u64 drop_evicted;		/* of a flow that made room for another user's */
	__u64 rt_excess;		/* of all rt classes */
};

/* Why gap frames are not sent. */
enum tc_psp_why {
	TC_PSP_WHY_NOTHING,		/* they are, or the mode was chosen by name */
	TC_PSP_WHY_NOT_ETHERNET,
	TC_PSP_WHY_NO_QUEUE,		/* the device has no transmit queue */
	TC_PSP_WHY_SOFTWARE,		/* a software device, it has no wire */
	TC_PSP_WHY_NO_RATE,		/* the device names no line rate */
	TC_PSP_WHY_SHARED,		/* other transmit queues send on the wire */
	/* Also of the modes that were chosen by name: found later. */
	TC_PSP_WHY_NO_CLOCK,		/* frames took less time than the line says */
	TC_PSP_WHY_FLOW_CONTROL,	/* gap pause: the device sends PAUSE itself */
};

/*
 * Histogram of the lateness of paced frames: byte times at line rate by which the
 * clock of the class was behind when the frame was sent.  Bucket 0 counts frames on
 * time or early, bucket i frames late by 2^(i-1) .. 2^i - 1, the last one all above.
 */
#define TC_PSP_LATE_BUCKETS	24

struct tc_psp_class_stats {
	__u32 type;			/* TC_PSP_STATS_CLASS */
	__u32 active;			/* takes part in decisions: has a frame to send */
	__u64 rate_bps;			/* in force: at most the line rate; 0: normal */
	__u64 sent_frames;
	__u64 sent_wire_bytes;
	__u64 achieved_bps;		/* over the last whole second of sending, as
					 * the layer counts
					 */
	__u64 ceil_bps;			/* in force */
	__u64 borrowed_frames;		/* of those sent, above the rate */
	__u64 throttled;		/* times its next frame had to wait for its clock */
	__u64 drop_child;		/* causes as for the qdisc */
	__u64 drop_segment;
	__u64 drop_long;
	__u64 drop_late;
	__u64 drop_flow;
	__u64 late_frames[TC_PSP_LATE_BUCKETS];	/* by lateness, early ones first */
	/* Type dynamic: */
	__u32 flows;			/* known now */
	__u32 flows_active;		/* with frames waiting */
	__u64 flows_seen;		/* since the start */
	__u64 flows_refused;		/* frames of flows beyond the most allowed,
					 * sent with those that have no socket
					 */
	__u64 flow_rate_min_bps;	/* of the flows known now */
	__u64 flow_rate_max_bps;
	__u64 flow_rate_sum_bps;
	/* Types rt and nrt: periods in which ... */
	__u64 reserve_bytes;		/* 0: another type */
	__u64 over;			/* rt: more had come than is reserved */
	__u64 deferred;			/* frames had to wait for the next, as the budget
					 * or an nrt class's share was spent
					 */
	__u64 overrun;			/* rt: frames were left though it was not */
	__u64 rt_catchup_bytes;		/* sent beyond what is reserved */
	/* Type dynamic: */
	__u64 drop_limit;		/* causes as for the qdisc */
	__u64 drop_horizon;
	__u64 drop_evicted;
	__u64 flows_evicted;		/* flows that made room for another user's */
	__u32 flow_users;		/* owners of the flows known now */
	__u32 pad;
	__u64 excess;			/* rt: more had come than all periods reserved */
};

#endif /* _UAPI_SCH_PSP_H */
