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

#define PSP_SECOND_NS		1000000000ull
/*
 * At most a day of silence counts: the time stays below 2^48 ns, the limit of
 * pace_mul_div().
 */
#define PSP_WINDOW_NS_MAX	(86400ull * PSP_SECOND_NS)

/* Bytes that a class sends in the current second: psp_window_add(). */
struct psp_window {
	u64 start_ns;		/* 0: nothing has been sent */
	u64 last_ns;		/* when the latest frame was sent */
	u64 bytes;		/* as the layer counts */
};

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

/* Of a class. */
struct psp_class_counters {
	u64 sent_frames;
	u64 sent_wire_bytes;
	u64 borrowed_frames;
	u64 throttled;
	struct psp_drops drops;
	u64 achieved_bps;	/* over the last whole second, as the layer counts */
	struct psp_window window;
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

/* Histogram of the lateness of frames.  Only paced classes have one. */
struct psp_lateness {
	u64 frames[TC_PSP_LATE_BUCKETS];
};

/* A frame or a burst that was handed to the device. */
struct psp_departure {
	const struct pace_burst *burst;
	u32 counted_bytes;	/* as the layer counts */
	/*
	 * By how much the clock of the class is behind, in bytes of the line; not
	 * above 0: on time or early.
	 */
	s64 late_bytes;
	u64 now_ns;
};

/*
 * Adds bytes sent now to the current second.  The second ends with the first
 * frame that is sent a second or more after it began; that frame belongs to
 * the next one.  If the class fell silent meanwhile, the rate of the previous
 * second stays.
 */
static inline void psp_window_add(struct psp_class_counters *count, u32 bytes,
				  u64 now_ns)
{
	struct psp_window *w = &count->window;
	u64 elapsed_ns = now_ns - w->start_ns;

	if (!w->start_ns || elapsed_ns >= PSP_SECOND_NS) {
		bool silent = now_ns - w->last_ns >= PSP_SECOND_NS &&
			      w->last_ns != w->start_ns;

		if (elapsed_ns > PSP_WINDOW_NS_MAX)
			elapsed_ns = PSP_WINDOW_NS_MAX;
		if (w->start_ns && !silent)
			count->achieved_bps = pace_mul_div(w->bytes,
							   8ull * PSP_SECOND_NS,
							   elapsed_ns);
		w->start_ns = now_ns;
		w->bytes = 0;
	}
	w->bytes += bytes;
	w->last_ns = now_ns;
}

/*
 * Adds frames to the histogram of lateness.  Early frames, late_bytes < 0,
 * are in the first bucket with those on time.  Buckets: struct
 * tc_psp_class_stats.
 */
static inline void psp_lateness_add(struct psp_lateness *lateness, u32 frames,
				    s64 late_bytes)
{
	u32 bucket = late_bytes > 0 ? fls64(late_bytes) : 0;

	if (bucket >= TC_PSP_LATE_BUCKETS)
		bucket = TC_PSP_LATE_BUCKETS - 1;
	lateness->frames[bucket] += frames;
}

/* Counts a departure for its class.  `lateness` is NULL if it is not paced. */
static inline void psp_class_count_sent(struct psp_class_counters *count,
					struct psp_lateness *lateness,
					const struct psp_departure *d)
{
	count->sent_frames += d->burst->frames;
	count->sent_wire_bytes += d->burst->wire_bytes;
	psp_window_add(count, d->counted_bytes, d->now_ns);
	if (lateness)
		psp_lateness_add(lateness, d->burst->frames, d->late_bytes);
}

/* Counts a departure for the port, beside core/, which counts frames and bytes. */
static inline void psp_port_count_sent(struct psp_counters *count,
				       const struct psp_departure *d)
{
	if (d->burst->frames > 1)
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
