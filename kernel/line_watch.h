/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Does the wire take the time that its line rate says?  Pure arithmetic in a
 * header of its own, because lab/tests/line_watch_test.c compiles it on the
 * host.
 *
 * It answers three questions from the bytes that were handed out and when:
 *
 * Is the wire too fast?  Within any time t no wire takes more than line rate
 * x t and what the ring holds.  The bytes fill a bucket that the line drains,
 * 1/256 faster than the line: crystals differ by 200 ppm, and the kernel
 * steers its clock by up to 500 ppm.  A bucket with more than the slack in it
 * was filled by frames that took no time, unless the clock was slewed
 * further.
 *
 * Did the wire stop?  It did if the next frame comes later than it was due,
 * and later than the previous frames and all that the device may hold take.
 * Bytes alone do not tell: within seconds a wire 100 ppm too slow falls
 * behind by a ring.
 *
 * How fast is it?  The bytes handed out in a window during which a frame
 * always waited, by the length of the window.  The window before it filled
 * the ring.
 */
#ifndef PSP_LINE_WATCH_H
#define PSP_LINE_WATCH_H

#include "pace_deps.h"

/* Times per byte are in units of 2^-20 ns: 8389 at 1 Tbit/s, 2^40 at 8 kbit/s. */
#define PSP_LINE_SHIFT		20
#define PSP_LINE_NS_BITS	8000000000ull	/* ns of a byte at 1 bit/s */
/*
 * A full ring of 256 frames is 3 % of 100 ms at 1 Gbit/s; its change is less.
 */
#define PSP_LINE_WINDOW_NS	100000000ull
/* Timers and interrupts on any host may be later than that. */
#define PSP_LINE_STOP_NS	10000ull
/* See psp_line_confirmed(). */
#define PSP_LINE_AGE_SLACKS	256

struct psp_line_watch {
	u64 line_rate_bps;	/* 0: the watch is off */
	u64 ns_per_byte;	/* in units of 2^-20 ns */
	u64 part;		/* remainder of a nanosecond, in the same units */

	u64 fast_per_byte;	/* as ns_per_byte, for a line 1/256 faster */
	u64 fast_part;
	u64 slack_ns;		/* what the device may hold, as time on the line */
	u64 fast_ns;		/* when the bucket will be empty */
	u64 spell_ns;		/* when the bucket was empty last */
	u64 spell_bytes;	/* bytes handed out since then */

	bool wanted;		/* a frame waits to be handed out */
	u64 free_ns;		/* when the wire will have sent all it was given */
	u64 due_ns;		/* when the next frame is due; 0: at once */
	u64 last_ns;		/* when the last frame was handed out */
	u64 stop_ns;		/* shortest silence that counts as a stop */

	bool filled;		/* the ring was full when the window began */
	u64 window_ns;		/* start of the window; 0: none runs */
	u64 window_bytes;

	u64 measured_bps;	/* in the last whole window; 0: none */
	u64 stops;
	u64 stop_max_ns;
};

/*
 * Returns the most bytes that may have been handed out and not have left:
 * twice the transmit ring, because a device that is reset or suspended loses
 * its ring and is filled again, and 2 MiB for the packet buffer of the
 * device.  A byte queue limit only reduces it.
 */
static inline u64 psp_line_slack_bytes(u64 ring_bytes)
{
	return 2 * ring_bytes + (2u << 20);
}

/* Starts the watch on a line of this rate; keeps the counters. */
static inline void psp_line_start(struct psp_line_watch *w, u64 line_rate_bps,
				  u64 slack_bytes, u32 max_wire_bytes)
{
	u64 rem;

	*w = (struct psp_line_watch) {
		.line_rate_bps = line_rate_bps,
		.measured_bps = line_rate_bps == w->line_rate_bps ?
				w->measured_bps : 0,
		.stops = w->stops,
		.stop_max_ns = w->stop_max_ns,
	};
	if (!line_rate_bps)
		return;
	w->ns_per_byte = pace_div_rem(PSP_LINE_NS_BITS << PSP_LINE_SHIFT,
				      line_rate_bps, &rem);
	w->fast_per_byte = w->ns_per_byte - (w->ns_per_byte >> 8);
	w->slack_ns = pace_mul_div(slack_bytes, PSP_LINE_NS_BITS,
				   line_rate_bps);
	w->stop_ns = max_wire_bytes * w->ns_per_byte >> PSP_LINE_SHIFT;
	if (w->stop_ns < PSP_LINE_STOP_NS)
		w->stop_ns = PSP_LINE_STOP_NS;
}

/* No frame waits. */
static inline void psp_line_idle(struct psp_line_watch *w)
{
	w->wanted = false;
	w->window_ns = 0;
}

/* The next frame is due at due_ns. */
static inline void psp_line_wait(struct psp_line_watch *w, u64 due_ns)
{
	w->wanted = true;
	w->due_ns = due_ns;
	w->window_ns = 0;
}

/* Returns how long the wire has been silent although a frame was due. */
static inline u64 psp_line_silence(const struct psp_line_watch *w, u64 now_ns)
{
	u64 since_ns = w->due_ns > w->free_ns ? w->due_ns : w->free_ns;

	return w->wanted && now_ns > since_ns ? now_ns - since_ns : 0;
}

/*
 * Was it the wire that was silent?  The device may still have been sending
 * what it held, held_bytes at most when the last frame was handed out.
 */
static inline bool psp_line_dry(const struct psp_line_watch *w, u64 now_ns,
				u64 held_bytes)
{
	u64 held_ns = pace_mul_div(held_bytes, w->ns_per_byte,
				   1u << PSP_LINE_SHIFT);

	return w->due_ns || now_ns - w->last_ns > held_ns;
}

static inline void psp_line_stopped(struct psp_line_watch *w, u64 silence_ns)
{
	w->stops++;
	if (silence_ns > w->stop_max_ns)
		w->stop_max_ns = silence_ns;
}

static inline void psp_line_measure(struct psp_line_watch *w, u32 wire_bytes,
				    u64 now_ns)
{
	u64 elapsed_ns = now_ns - w->window_ns;

	if (!w->window_ns) {
		w->window_ns = now_ns;
		w->window_bytes = 0;
		w->filled = false;
		return;
	}
	w->window_bytes += wire_bytes;
	if (elapsed_ns < PSP_LINE_WINDOW_NS)
		return;
	if (w->filled)
		w->measured_bps = pace_mul_div(w->window_bytes,
					       PSP_LINE_NS_BITS, elapsed_ns);
	w->filled = true;
	w->window_ns = now_ns;
	w->window_bytes = 0;
}

/* Returns whole nanoseconds; *part keeps the remainder for the next frame. */
static inline u64 psp_line_ns(u64 per_byte, u64 *part, u32 wire_bytes)
{
	u64 units = wire_bytes * per_byte + *part;

	*part = units & ((1u << PSP_LINE_SHIFT) - 1);
	return units >> PSP_LINE_SHIFT;
}

/*
 * Was the clock slewed that counted mono_ns while the raw clock counted
 * raw_ns?
 */
static inline bool psp_line_slewed(u64 mono_ns, u64 raw_ns)
{
	return mono_ns + (raw_ns >> 10) < raw_ns;
}

/*
 * The bucket is too full, as it was mono_ns ago (raw_ns on the clock that is
 * never slewed).  Is the wire too fast?  Only if the clock was not slewed
 * meanwhile, and if the two are close: far apart each may be an event of its
 * own, like a reset.  A wire 1/128 too fast fills the bucket within
 * PSP_LINE_AGE_SLACKS times the slack.
 */
static inline bool psp_line_confirmed(const struct psp_line_watch *w,
				      u64 mono_ns, u64 raw_ns)
{
	return !psp_line_slewed(mono_ns, raw_ns) &&
	       raw_ns / PSP_LINE_AGE_SLACKS <= w->slack_ns;
}

/*
 * A frame or burst of wire_bytes, below 2^23, was handed out.  Returns true
 * if no wire of that rate takes so much.
 */
static inline bool psp_line_handed(struct psp_line_watch *w, u32 wire_bytes,
				   u64 now_ns)
{
	if (now_ns > w->free_ns)
		w->free_ns = now_ns;
	w->free_ns += psp_line_ns(w->ns_per_byte, &w->part, wire_bytes);
	w->wanted = true;
	w->due_ns = 0;
	w->last_ns = now_ns;

	if (now_ns > w->fast_ns) {
		w->fast_ns = now_ns;
		w->spell_ns = now_ns;
		w->spell_bytes = 0;
	}
	w->fast_ns += psp_line_ns(w->fast_per_byte, &w->fast_part, wire_bytes);
	w->spell_bytes += wire_bytes;

	psp_line_measure(w, wire_bytes, now_ns);
	return w->fast_ns > now_ns && w->fast_ns - now_ns > w->slack_ns;
}

/*
 * All that was handed out before mark_ns was read from fast_ns has been
 * released by now.  Returns how much too early that is for a line 1/256 faster.
 */
static inline u64 psp_line_early_ns(u64 mark_ns, u64 now_ns)
{
	return mark_ns > now_ns ? mark_ns - now_ns : 0;
}

/*
 * Two trials of gap frames took a_ns and b_ns, from handing out the first to
 * the release of the last, and line_a_ns and line_b_ns at the rate of the line.
 * Returns how many eighths of the difference on the line, 255 at most, the second
 * took longer than the first.  What delays both alike (a completion that waits
 * for more, the driver, the host) does not count, nor what a packet buffer
 * takes at once, as long as the first trial fills it.
 */
static inline u32 psp_line_eighths(u64 a_ns, u64 line_a_ns, u64 b_ns, u64 line_b_ns)
{
	u64 line_ns = line_b_ns > line_a_ns ? line_b_ns - line_a_ns : 0;
	u64 took_ns = b_ns > a_ns ? b_ns - a_ns : 0;

	if (!line_ns)
		return 0;
	if (took_ns >= 31 * line_ns)
		return 255;
	return pace_mul_div(took_ns, 8, line_ns);
}

/* Returns the rate, in bit/s, since the bucket was empty. */
static inline u64 psp_line_taken_bps(const struct psp_line_watch *w, u64 now_ns)
{
	u64 elapsed_ns = now_ns > w->spell_ns ? now_ns - w->spell_ns : 0;

	return pace_mul_div(w->spell_bytes, PSP_LINE_NS_BITS,
			    elapsed_ns < 1000 ? 1000 : elapsed_ns);
}

#endif /* PSP_LINE_WATCH_H */
