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
	TCA_PSP_SHARED,		/* u8, 0 or 1: below mq: classes are those of the
				 * device, by minor number
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
	TCA_PSP_CLASS_CEIL,	/* u64, bit/s, at least the rate; type paced or group:
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
				 * its flow's rate, is dropped; with txtime: for
				 * longer until its launch time
				 */
	TCA_PSP_CLASS_PACING_FLOOR,	/* u64, bit/s: no flow is slower, whatever its
					 * socket asks for; 0: one largest frame
					 * in a horizon
					 */
	/* Type paced */
	TCA_PSP_CLASS_TXTIME,	/* u8: enum tc_psp_txtime */
	TCA_PSP_CLASS_TXTIME_DEADLINE,	/* u8, 0 or 1: launch times are deadlines */
	TCA_PSP_CLASS_TXTIME_LATE,	/* u64, ns: a frame that would leave so much
					 * later than its launch time is dropped; 0:
					 * 1 ms, or of deadlines none
					 */
	/* Type dynamic */
	TCA_PSP_CLASS_TOTAL,	/* u64, bit/s: all flows together, and frames
				 * without a flow, are no faster; 0: no limit
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
	TC_PSP_TYPE_GROUP,	/* has a rate and ceil for classes below it */
	__TC_PSP_TYPE_MAX,
};

/* The clock of the launch times of a class's frames. */
enum tc_psp_txtime {
	TC_PSP_TXTIME_OFF,	/* none: frames leave at the rate of the class */
	TC_PSP_TXTIME_MONOTONIC,
	TC_PSP_TXTIME_TAI,
	__TC_PSP_TXTIME_MAX,
};

#define TC_PSP_TXTIME_LATE_MAX	1000000000ull	/* ns */
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
 * aligns to 4 bytes only.  sch_psp_stats.h has the unit and meaning of each
 * field.
 */
enum tc_psp_stats_type {
	TC_PSP_STATS_QDISC = 1,
	TC_PSP_STATS_CLASS = 2,
};

struct tc_psp_qdisc_stats {
	__u32 type;			/* TC_PSP_STATS_QDISC */
	__u32 mode;
	__u64 line_rate_bps;
	__u32 max_frame_bytes;
	__u32 line_known;
	__u64 sent_frames;
	__u64 sent_wire_bytes;
	__u64 gap_frames;
	__u64 gap_wire_bytes;
	__u64 early_bytes_max;
	__u64 late_bytes_max;
	__u64 rebases;
	__u64 rebased_bytes;
	__u64 unclassified_frames;
	__u64 drop_filter;
	__u64 drop_child;
	__u64 drop_segment;
	__u64 drop_long;
	__u64 gap_failed;
	__u64 child_retries;
	__u32 why_not_hybrid;
	__u32 queues;
	__u64 drop_late;
	__u64 drop_flow;
	__u64 borrowed_frames;
	__u64 guard_band_held;
	__u64 waits;
	__u64 wait_late_max_ns;
	__u64 lead_ns;
	__u64 bursts_cut;
	__u64 bursts_whole;
	__u64 period_ns;
	__u64 budget_bytes;
	__u64 reserved_bytes;
	__u64 periods;
	__u64 periods_spent;
	__u64 rt_over;
	__u64 rt_deferred;
	__u64 rt_overrun;
	__u64 rt_catchup_bytes;
	__u64 nrt_deferred;
	__u64 no_clock;
	__u64 line_measured_bps;
	__u64 wire_stops;
	__u64 wire_stop_max_ns;
	__u64 drop_limit;
	__u64 drop_horizon;
	__u64 drop_evicted;
	__u64 rt_excess;
	__u64 drop_txtime_invalid;
	__u64 drop_txtime_missed;
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
	TC_PSP_WHY_NOT_PROVED,		/* no train of gap frames has taken its time yet */
	TC_PSP_WHY_HOST_SLOW,		/* the host makes gap frames too slowly for the line */
};

/*
 * Histogram of the lateness of paced frames: byte times at line rate by which the
 * clock of the class was behind when the frame was sent.  Bucket 0 counts frames on
 * time or early, bucket i frames late by 2^(i-1) .. 2^i - 1, the last one all above.
 */
#define TC_PSP_LATE_BUCKETS	24

struct tc_psp_class_stats {
	__u32 type;			/* TC_PSP_STATS_CLASS */
	__u32 active;
	__u64 rate_bps;
	__u64 sent_frames;
	__u64 sent_wire_bytes;
	__u64 ceil_bps;
	__u64 borrowed_frames;
	__u64 throttled;
	__u64 drop_child;
	__u64 drop_segment;
	__u64 drop_long;
	__u64 drop_late;
	__u64 drop_flow;
	__u64 late_frames[TC_PSP_LATE_BUCKETS];
	__u32 flows;
	__u32 flows_active;
	__u64 flows_seen;
	__u64 flows_refused;
	__u64 flow_rate_min_bps;
	__u64 flow_rate_max_bps;
	__u64 flow_rate_sum_bps;
	__u64 reserve_bytes;
	__u64 over;
	__u64 deferred;
	__u64 overrun;
	__u64 rt_catchup_bytes;
	__u64 drop_limit;
	__u64 drop_horizon;
	__u64 drop_evicted;
	__u64 flows_evicted;
	__u32 flow_users;
	__u32 pad;
	__u64 excess;
	__u64 drop_txtime_invalid;
	__u64 drop_txtime_missed;
};

#endif /* _UAPI_SCH_PSP_H */
