/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The classes that every structure orders: each has a rate, an exact clock, and
 * always a packet.
 *
 * Every structure has a world of its own, made from the same seed.  Structures
 * that agree in every decision keep their worlds equal, so a checksum over
 * the decisions tells whether they do.
 */
#ifndef BENCH_WORLD_H
#define BENCH_WORLD_H

#include <pace/pace.h>

/* The core's clock; core_queue.c includes the whole core. */
#ifndef PACE_LEAD_WINDOW_PS
#include "src/clock.c"
#endif

#define LINE_BPS	100000000000ull	/* 100 Gbit/s */
#define LINE_BYTE_PS	(PACE_BYTE_PS / LINE_BPS)
#define CACHE_LINE	64

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Counts the memory of this world.  Allocations are zeroed; NULL on failure. */
struct memory {
	size_t bytes;
	bool huge;	/* ask the kernel for huge pages */
};

/* A node of the red-black tree, embedded in the class as the kernel's are. */
struct tree_node {
	struct tree_node *parent;	/* bit 0: black */
	struct tree_node *child[2];
};

/*
 * One class takes one cache line, for every structure: what pace_sent() needs
 * to move a clock, and room for those structures that link classes.
 */
struct flow {
	struct pace_clock clock;
	u64 quot;	/* a frame moves the clock by quot + rem / rate */
	u64 rem;
	u64 rate_bps;
	union {
		struct tree_node node;
		u32 next;	/* bucket queue */
	} u;
} __attribute__((aligned(CACHE_LINE)));

/* The parameters of a run. */
struct workload {
	u32 classes;
	u32 spread;		/* fastest rate / slowest rate */
	u32 wire_bytes;		/* of each frame */
	double load;		/* sum of the rates / line */
	bool coincide;		/* one rate, equal clocks at the start */
	u64 seed;
};

/* The port's state, which loops keep in registers. */
struct port {
	u64 global;		/* its clock, in ps */
	u64 idle_bytes;		/* part of that without a frame */
	u64 sum;		/* checksum of all decisions */
};

struct world {
	const struct workload *load;
	u32 classes;
	u32 wire_bytes;
	struct port port;
	u64 random;		/* for arrivals, losses and changes */
	u64 period_max;		/* slowest class's clock advance per frame */
	struct flow *flow;
	u32 *away;		/* classes without a packet */
	u32 away_count;
	u64 *present;		/* a bit for each class with packets */
	void *queue;		/* the structure under test */
	struct memory memory;
};

void *take_memory(struct memory *m, size_t bytes);
void give_memory(void *p, size_t bytes);

/*
 * Returns 64 random bits.  xorshift64*: Vigna, "An experimental exploration of
 * Marsaglia's xorshift generators, scrambled", 2016.
 */
static inline u64 random_next(u64 *state)
{
	u64 x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1dull;
}

/* Returns a uniform number from 0 to below - 1. */
static inline u32 random_below(u64 *state, u32 below)
{
	return (u32)((random_next(state) >> 32) * below >> 32);
}

/* Folds a value into a checksum that depends on the order of values. */
static inline u64 checksum(u64 sum, u64 value)
{
	return (sum << 5 | sum >> 59) ^ value;
}

/* A clock in a key counts units of 64 ps: core/src/key.c. */
static inline u64 clock_key(u64 ps, u32 id)
{
	return ps >> 6 << PACE_ID_BITS | id;
}

static inline u64 flow_key(const struct world *w, u32 id)
{
	return clock_key(w->flow[id].clock.ps, id);
}

/*
 * Does the same as pace_clock_advance(), with masks in the place of branches:
 * whether there is a carry is random, and a misprediction ends the processor's
 * look-ahead, which would hide the differences between floors and structures.
 */
static inline void flow_advance(struct flow *f)
{
	u64 whole = f->clock.ps - (f->clock.frac != 0) + f->quot;
	u64 frac = f->clock.frac + f->rem;
	u64 carry = frac >= f->rate_bps;

	frac -= f->rate_bps & -carry;
	f->clock.frac = frac;
	f->clock.ps = whole + carry + (frac != 0);
}

/*
 * Sends a frame of `id`, the class with the smallest clock.  The line first
 * idles until that clock, if it is ahead.
 */
static inline void world_send(const struct world *w, struct port *p, u32 id)
{
	struct flow *f = &w->flow[id];
	u64 clock = f->clock.ps;
	u64 gap = (clock - p->global) & -(u64)pace_clock_ahead(clock, p->global);

	p->idle_bytes += gap / LINE_BYTE_PS;
	p->global += gap + w->wire_bytes * LINE_BYTE_PS;
	p->sum = checksum(p->sum, clock_key(clock, id));
	flow_advance(f);
}

static inline bool is_present(const struct world *w, u32 id)
{
	return w->present[id / 64] >> id % 64 & 1;
}

static inline void set_present(struct world *w, u32 id)
{
	w->present[id / 64] |= 1ull << id % 64;
}

static inline void unset_present(struct world *w, u32 id)
{
	w->present[id / 64] &= ~(1ull << id % 64);
}

/* Exchanges the rates of two classes, which start anew with them. */
void world_swap_rates(struct world *w, u32 a, u32 b);

/*
 * Creates a world.  Returns false if memory is short or, with period_max set,
 * if a rate is too low for the core.
 */
bool world_open(struct world *w, const struct workload *load, bool huge);
void world_close(struct world *w);

/* Computes the rate of each class from the workload. */
void workload_rates(const struct workload *load, u64 *rate_bps);

#endif /* BENCH_WORLD_H */
