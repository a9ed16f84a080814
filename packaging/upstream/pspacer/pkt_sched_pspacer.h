/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */

/* PSPACER */

enum {
	TCA_PSPACER_UNSPEC,
	TCA_PSPACER_LINE_RATE,		/* u64, bit/s */
	TCA_PSPACER_DEFAULT,		/* u32, minor of a class */
	TCA_PSPACER_MAX_PACKET,		/* u32, bytes */
	TCA_PSPACER_PAD,
	TCA_PSPACER_CLASS_RATE,		/* u64, bit/s; without: best effort */
	TCA_PSPACER_CLASS_LIMIT,	/* u32, packets */
	TCA_PSPACER_CLASS_QUANTUM,	/* u32, bytes; without a rate */
@from ceil
	TCA_PSPACER_CLASS_CEIL,		/* u64, bit/s; with a rate */
	TCA_PSPACER_OVERSUBSCRIBE,	/* u32, 1: rates may exceed the line */
@from launch
	TCA_PSPACER_CLASS_CLOCKID,	/* s32, launch times by this clock */
@from gap
	TCA_PSPACER_GAP,		/* u32, 1: gap frames fill the wire */
@always
	__TCA_PSPACER_MAX
};

#define TCA_PSPACER_MAX (__TCA_PSPACER_MAX - 1)

/* Nested in TCA_STATS_APP */
enum {
	TCA_PSPACER_STATS_UNSPEC,
	TCA_PSPACER_STATS_RESERVED,	/* u64, bit/s, the sum of all rates */
	TCA_PSPACER_STATS_CLASSES,	/* u32 */
	TCA_PSPACER_STATS_LATE_MAX,	/* u64, ns */
	TCA_PSPACER_STATS_STALLS,	/* u64, times */
	TCA_PSPACER_STATS_STALLED,	/* u64, ns */
	TCA_PSPACER_STATS_PAD,
@from ceil
	TCA_PSPACER_STATS_BORROWED,	/* u64, packets above a rate */
@from launch
	TCA_PSPACER_STATS_TXTIME_INVALID,	/* u64, packets refused */
	TCA_PSPACER_STATS_TXTIME_MISSED,	/* u64, packets too late */
@from gap
	TCA_PSPACER_STATS_GAP_PACKETS,	/* u64 */
	TCA_PSPACER_STATS_GAP_BYTES,	/* u64, on the wire */
	TCA_PSPACER_STATS_GAP_HELD,	/* u64, times the device was too fast */
	TCA_PSPACER_STATS_GAP_FAILED,	/* u64, times without memory */
@always
	__TCA_PSPACER_STATS_MAX
};

#define TCA_PSPACER_STATS_MAX (__TCA_PSPACER_STATS_MAX - 1)
