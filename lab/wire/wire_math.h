/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arithmetic of the cable: when frames leave and arrive. Pure functions on
 * integers, compiled into the module and, for its unit test, on a host.
 *
 * Time is in picoseconds (u64: 213 days). n bytes take n * 8e12 / rate_bps ps,
 * which is seldom a whole number. The fraction is carried as a numerator over
 * rate_bps while frames follow each other without a pause, so the k-th frame of
 * such a run starts at floor(exact) however long the run: no drift.
 */
#ifndef WIRE_MATH_H
#define WIRE_MATH_H

#include "wire_types.h"

#define WIRE_PS_BITS		8000000000000ULL	/* ps of 8 bits at 1 bit/s */
#define WIRE_RATE_MIN		1000ULL			/* bit/s */
#define WIRE_RATE_MAX		1000000000000ULL
#define WIRE_BYTES_MAX		(1ULL << 30)		/* limit of FIFO and bucket */

#define WIRE_MIN_FRAME		60	/* without FCS */
#define WIRE_OVERHEAD		24	/* FCS 4, preamble and SFD 8, gap 12 */
#define WIRE_IFG		12

struct wire_rate {
	u64 rate_bps;
	u64 ps_per_byte;	/* floor(8e12 / rate_bps) */
	u64 rest;		/* 8e12 mod rate_bps */
};

/*
 * The instant at which something becomes free, in whole ps and a carried
 * fraction.
 */
struct wire_clock {
	u64 free_ps;
	u64 carry;		/* numerator over rate_bps, < rate_bps */
};

enum wire_fate {
	WIRE_DELIVERED = 0,
	WIRE_DROP_FIFO = 1,
	WIRE_DROP_POLICER = 2,
	WIRE_ENDED = 3,
	WIRE_SUNK = 4,
	WIRE_LOST = 5,
};

static inline struct wire_rate wire_rate_of(u64 rate_bps)
{
	struct wire_rate r = { .rate_bps = rate_bps };

	r.ps_per_byte = wire_div_rem(WIRE_PS_BITS, rate_bps, &r.rest);
	return r;
}

/*
 * Returns how long @bytes take, in ps, and adds the fraction to *@carry. With
 * @bytes up to 2^20 nothing overflows, because rest < 2^40.
 */
static inline u64 wire_span(const struct wire_rate *r, u32 bytes, u64 *carry)
{
	u64 ps = bytes * r->ps_per_byte;

	if (r->rest)
		ps += wire_div_rem(bytes * r->rest + *carry, r->rate_bps, carry);
	return ps;
}

/*
 * Returns how long up to WIRE_BYTES_MAX bytes take, in ps. It is slower than
 * wire_span(): for set-up, not for each frame.
 */
static inline u64 wire_span_long(const struct wire_rate *r, u64 bytes, u64 *carry)
{
	const u32 step = 1U << 20;
	u64 ps = 0;

	for (; bytes > step; bytes -= step)
		ps += wire_span(r, step, carry);
	return ps + wire_span(r, (u32)bytes, carry);
}

static inline u32 wire_length(u32 frame_bytes)
{
	return (frame_bytes < WIRE_MIN_FRAME ? WIRE_MIN_FRAME : frame_bytes) + WIRE_OVERHEAD;
}

/*
 * Sends a frame of @wire_bytes that is handed over at @now_ps: it starts when
 * the wire is free. Returns its start and sets *@end_ps to the end of its FCS.
 * The inter-frame gap after it counts as part of the frame.
 */
static inline u64 wire_depart(struct wire_clock *line, const struct wire_rate *r,
			      u64 now_ps, u32 wire_bytes, u64 *end_ps)
{
	u64 start = line->free_ps, carry;

	if (now_ps > start) {
		start = now_ps;
		line->carry = 0;
	}
	carry = line->carry;
	*end_ps = start + wire_span(r, wire_bytes - WIRE_IFG, &carry);
	line->free_ps = start + wire_span(r, wire_bytes, &line->carry);
	return start;
}

/*
 * Several queues share the wire as a NIC's do: whenever the wire becomes free,
 * the next queue with a frame, in round robin, sends one. The choice at an
 * instant depends only on frames handed over before it. So choices may be
 * computed later, in order, and no timer has to expire when the wire becomes
 * free.
 */
#define WIRE_QUEUES_MAX		64

struct wire_arbiter {
	u64 waiting;		/* a bit for each queue with frames not chosen yet */
	u32 last;		/* the queue that sent last */
};

/* Returns true if a choice was due by @now_ps. */
static inline bool wire_arbiter_due(const struct wire_arbiter *a, const struct wire_clock *line,
				    u64 now_ps)
{
	return a->waiting && line->free_ps <= now_ps;
}

/* Returns the next queue in round robin; at least one has a frame. */
static inline u32 wire_arbiter_choose(struct wire_arbiter *a)
{
	u64 after = a->waiting & ~1ULL << a->last;	/* the queues above the last one */

	a->last = __builtin_ctzll(after ? after : a->waiting);
	return a->last;
}

/*
 * The far port: a drop-tail FIFO drained at a rate, or a token bucket, then a
 * delay. Bytes waiting and tokens are both held as the time they take at the
 * port's rate, so a decision is a comparison and a refill needs no division.
 */
struct wire_port {
	struct wire_rate rate;		/* rate_bps 0: no limit */
	u64 fifo_bytes, burst_bytes;	/* with a rate one is set */
	u64 refresh_ns, delay_ns;
	u32 overhead_bytes;

	u64 limit_ps, limit_rest;	/* time of the limit: ps, numerator */
	struct wire_clock fifo;
	u64 tokens_ps, tokens_taken;	/* the bucket holds ps less the numerator */
	u64 filled_ps;			/* tokens are counted up to this instant */
};

/*
 * Fills the bucket: its tokens are a time in ps, rounded up, less a numerator.
 */
static inline void wire_policer_fill(struct wire_port *p)
{
	p->tokens_ps = p->limit_ps;
	p->tokens_taken = 0;
	if (p->limit_rest) {
		p->tokens_ps++;
		p->tokens_taken = p->rate.rate_bps - p->limit_rest;
	}
}

/*
 * Derives the port's limits from its settings and fills the bucket at @now_ps.
 */
static inline void wire_port_start(struct wire_port *p, u64 now_ps)
{
	u64 since = 0;

	p->limit_ps = 0;
	p->limit_rest = 0;
	if (p->rate.rate_bps)
		p->limit_ps = wire_span_long(&p->rate, p->fifo_bytes + p->burst_bytes,
					     &p->limit_rest);
	p->fifo.free_ps = 0;
	p->fifo.carry = 0;
	wire_policer_fill(p);
	if (p->refresh_ns)
		wire_div_rem(now_ps, p->refresh_ns * 1000, &since);
	p->filled_ps = now_ps - since;
}

static inline bool wire_fifo_pass(struct wire_port *p, u64 at_ps, u32 bytes, u64 *out_ps)
{
	u64 carry = p->fifo.carry, wait = 0, take;

	if (at_ps > p->fifo.free_ps)
		carry = 0;
	else
		wait = p->fifo.free_ps - at_ps;
	take = wire_span(&p->rate, bytes, &carry);
	if (wait + take > p->limit_ps ||
	    (wait + take == p->limit_ps && carry > p->limit_rest))
		return false;
	p->fifo.free_ps = at_ps + wait + take;
	p->fifo.carry = carry;
	*out_ps = p->fifo.free_ps;
	return true;
}

static inline void wire_policer_refill(struct wire_port *p, u64 at_ps)
{
	u64 add, since, refresh_ps = p->refresh_ns * 1000;

	if (at_ps <= p->filled_ps)
		return;
	add = at_ps - p->filled_ps;
	if (refresh_ps) {
		if (add < refresh_ps)
			return;
		wire_div_rem(add, refresh_ps, &since);
		add -= since;
	}
	p->filled_ps += add;
	p->tokens_ps += add;
	/*
	 * The bucket is full above the limit, in ps or, if these are equal, by
	 * the fraction.
	 */
	if (p->tokens_ps > p->limit_ps + 1 ||
	    (p->tokens_ps == p->limit_ps + 1 &&
	     p->tokens_taken + p->limit_rest <= p->rate.rate_bps))
		wire_policer_fill(p);
}

static inline bool wire_policer_pass(struct wire_port *p, u64 at_ps, u32 bytes)
{
	u64 taken, take;

	wire_policer_refill(p, at_ps);
	taken = p->tokens_taken;
	take = wire_span(&p->rate, bytes, &taken);
	if (take > p->tokens_ps || (take == p->tokens_ps && taken))
		return false;
	p->tokens_ps -= take;
	p->tokens_taken = taken;
	return true;
}

/*
 * Returns the fate of a frame whose last bit reaches the port at @at_ps. If it
 * is delivered, sets *@arrive_ps to when its last bit reaches the host behind
 * the port.
 */
static inline enum wire_fate wire_port_pass(struct wire_port *p, u64 at_ps,
					    u32 frame_bytes, u64 *arrive_ps)
{
	u64 out_ps = at_ps;
	u32 bytes = frame_bytes;

	if (p->rate.rate_bps) {
		if (bytes < WIRE_MIN_FRAME)
			bytes = WIRE_MIN_FRAME;
		bytes += p->overhead_bytes;
		if (p->fifo_bytes) {
			if (!wire_fifo_pass(p, at_ps, bytes, &out_ps))
				return WIRE_DROP_FIFO;
		} else if (!wire_policer_pass(p, at_ps, bytes)) {
			return WIRE_DROP_POLICER;
		}
	}
	*arrive_ps = out_ps + p->delay_ns * 1000;
	return WIRE_DELIVERED;
}

/* Returns 64 pseudo-random bits; the period is 2^64 (a mixed Weyl sequence). */
static inline u64 wire_random(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Maps 64 random bits to a uniform number in 0..@max; @max < 2^32. */
static inline u64 wire_uniform(u64 random, u64 max)
{
	return ((random >> 32) * (max + 1)) >> 32;
}

/*
 * Maps 64 random bits to an exponentially distributed number of mean @mean (up
 * to 10^10) by inversion: -ln(u) * mean with u = @random / 2^64. log2 has 24
 * fraction bits; each squaring yields one.
 */
static inline u64 wire_exponential(u64 random, u64 mean)
{
	const u64 ln2_q16 = 45426;
	u64 mantissa, log2_q24;
	int i;

	random |= 1;
	i = 63;
	while (!(random >> i))
		i--;
	log2_q24 = (u64)i << 24;
	mantissa = random << (63 - i) >> 32;		/* 1.0 <= m < 2.0, Q31 */
	for (i = 23; i >= 0; i--) {
		mantissa = mantissa * mantissa >> 31;
		if (mantissa >> 32) {
			log2_q24 |= 1ULL << i;
			mantissa >>= 1;
		}
	}
	return (((64ULL << 24) - log2_q24) * mean >> 24) * ln2_q16 >> 16;
}

#endif
