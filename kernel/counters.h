/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the qdisc counts: what becomes of frames, by class and for the port.
 * core/ counts what it decides: struct pace_stats.  A header of its own
 * without packets, because lab/tests/counters_test.c compiles it on the host.
 *
 * Members have the names that uapi/sch_psp.h gives them: psp_netlink.c copies
 * them by the table uapi/sch_psp_stats.h.
 */
#ifndef SCH_PSP_COUNTERS_H
#define SCH_PSP_COUNTERS_H

#include <linux/bitops.h>

#include "../uapi/sch_psp.h"
#include "pace/pace.h"

/* Frames dropped, by cause: of a class, and of the port. */
struct psp_drops {
	u64 drop_child;
	u64 drop_segment;
	u64 drop_long;
	u64 drop_late;
	u64 drop_flow;
	u64 drop_limit;
	u64 drop_horizon;
	u64 drop_evicted;
	u64 drop_txtime_invalid;
	u64 drop_txtime_missed;
};

/* Of a class.  What a frame changes comes first: struct psp_class. */
struct psp_class_counters {
	u64 sent_frames;
	u64 sent_wire_bytes;
	u64 throttled;
	/* Frames that struct psp_lateness does not have yet. */
	u8 late_recent[TC_PSP_LATE_BUCKETS];

	u64 borrowed_frames;
	struct psp_drops drops;
};

/* Of the port. */
struct psp_counters {
	u64 unclassified_frames;
	u64 drop_filter;
	struct psp_drops drops;
	u64 gap_failed;
	u64 child_retries;
	u64 bursts_cut;
	u64 bursts_whole;
	u64 no_clock;
};

/*
 * Histogram of the lateness of frames.  Only paced classes have one.  Frames are
 * counted beside the other counters of the class, by a byte for each bucket, so
 * that a frame does not touch another cache line; a byte that is full is added to
 * this.
 */
struct psp_lateness {
	u64 frames[TC_PSP_LATE_BUCKETS];
};

/*
 * Adds frames to the histogram of lateness.  Early frames, late_bytes < 0,
 * are in the first bucket with those on time.  Buckets: struct
 * tc_psp_class_stats.
 */
static inline void psp_lateness_add(struct psp_class_counters *count,
				    struct psp_lateness **lateness, u32 frames,
				    s64 late_bytes)
{
	u32 bucket = late_bytes > 0 ? fls64(late_bytes) : 0;

	if (bucket >= TC_PSP_LATE_BUCKETS)
		bucket = TC_PSP_LATE_BUCKETS - 1;
	frames += count->late_recent[bucket];
	if (frames > 255) {
		(*lateness)->frames[bucket] += frames;
		frames = 0;
	}
	count->late_recent[bucket] = frames;
}

/* Returns how many frames the bucket has. */
static inline u64 psp_lateness_frames(const struct psp_class_counters *count,
				      const struct psp_lateness *lateness, u32 bucket)
{
	return lateness->frames[bucket] + count->late_recent[bucket];
}

/*
 * Counts for its class a frame or a burst that was handed to the device.  *lateness is
 * read when a byte is full; `lateness` is NULL if the class is not paced.  Not above
 * 0: on time or early.
 */
static inline void psp_class_count_sent(struct psp_class_counters *count,
					struct psp_lateness **lateness,
					const struct pace_burst *burst,
					s64 late_bytes)
{
	count->sent_frames += burst->frames;
	count->sent_wire_bytes += burst->wire_bytes;
	if (lateness)
		psp_lateness_add(count, lateness, burst->frames, late_bytes);
}

/* The same for the port, beside core/, which counts frames and bytes. */
static inline void psp_port_count_sent(struct psp_counters *count,
				       const struct pace_burst *burst)
{
	if (burst->frames > 1)
		count->bursts_whole++;
}

/* Counts a frame that is dropped, for its class `cl` and for the port `q`. */
#define psp_count_cause(q, cl, cause)		\
	do {					\
		(q)->count.drops.cause++;	\
		(cl)->count.drops.cause++;	\
	} while (0)

/* Returns the frames that a class has dropped, for whatever cause. */
static inline u64 psp_class_drops(const struct psp_class_counters *count)
{
	const struct psp_drops *drops = &count->drops;

	return drops->drop_child + drops->drop_segment + drops->drop_long +
	       drops->drop_late + drops->drop_flow + drops->drop_limit +
	       drops->drop_horizon + drops->drop_evicted +
	       drops->drop_txtime_invalid + drops->drop_txtime_missed;
}

#endif
