/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What every structure is given to put in order: classes, each with a rate, an
 * exact clock, and always a packet.
 *
 * Every structure has a world of its own, made from the same seed.  Structures
 * that agree in every decision keep their worlds equal, so a checksum over
 * the decisions tells whether they do.
 */
#ifndef BENCH_WORLD_H
#define BENCH_WORLD_H

#include <pace/pace.h>

/* The core's; core_queue.c has all of the core. */
#ifndef PACE_LEAD_WINDOW
#include "src/byte_clock.c"
#endif

#define LINE_BPS	100000000000ull	/* 100 Gbit/s */
#define CACHE_LINE	64

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* Memory of this world, counted.  Zeroed; NULL if there is none. */
struct memory {
	size_t bytes;
	bool huge;	/* ask the kernel for huge pages */
};

/* A node of the red-black tree: as the kernel's, in the class itself. */
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

/* What a run is about. */
struct workload {
	u32 classes;
	u32 spread;		/* fastest rate / slowest rate */
	u32 wire_bytes;		/* of each frame */
	double load;		/* sum of the rates / line */
	bool coincide;		/* one rate, and clocks that begin together */
	u64 seed;
};

/* Loops keep it in registers. */
struct port {
	u64 global;		/* its clock, in byte times */
	u64 idle_bytes;		/* of that, spent without a frame */
	u64 sum;		/* checksum of all decisions */
};

struct world {
	const struct workload *load;
	u32 classes;
	u32 wire_bytes;
	struct port port;
	u64 random;		/* for what comes, goes and changes */
	u64 period_max;		/* by which the slowest class moves its clock */
	struct flow *flow;
	u32 *away;		/* classes without a packet */
	u32 away_count;
	u64 *present;		/* a bit for each of the others */
	void *queue;		/* the structure under test */
	struct memory memory;
};

void *take_memory(struct memory *m, size_t bytes);
void give_memory(void *p, size_t bytes);

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift
 * generators, scrambled", 2016.
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

/* Evenly from 0 to below - 1. */
static inline u32 random_below(u64 *state, u32 below)
{
	return (u32)((random_next(state) >> 32) * below >> 32);
}

/* Order matters in it. */
static inline u64 checksum(u64 sum, u64 value)
{
	return (sum << 5 | sum >> 59) ^ value;
}

static inline u64 flow_key(const struct world *w, u32 id)
{
	return w->flow[id].clock.bytes << PACE_ID_BITS | id;
}

/*
 * pace_clock_advance(), but for masks in the place of branches: which way a
 * carry goes is as good as random, and a processor that guesses wrong stops
 * looking ahead, which would hide what floors and structures are about.
 */
static inline void flow_advance(struct flow *f)
{
	u64 whole = f->clock.bytes - (f->clock.frac != 0) + f->quot;
	u64 frac = f->clock.frac + f->rem;
	u64 carry = frac >= f->rate_bps;

	frac -= f->rate_bps & -carry;
	f->clock.frac = frac;
	f->clock.bytes = whole + carry + (frac != 0);
}

/*
 * `id` is the class with the smallest clock: the line waits for it if it must,
 * and carries its frame.
 */
static inline void world_send(const struct world *w, struct port *p, u32 id)
{
	struct flow *f = &w->flow[id];
	u64 clock = f->clock.bytes;
	u64 gap = (clock - p->global) & -(u64)pace_clock_ahead(clock, p->global);

	p->idle_bytes += gap;
	p->global += gap + w->wire_bytes;
	p->sum = checksum(p->sum, clock << PACE_ID_BITS | id);
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

/* Two classes exchange their rates, and start anew with them. */
void world_swap_rates(struct world *w, u32 a, u32 b);

/*
 * False if memory is short, or, with period_max set, if a rate is too low for
 * the core.
 */
bool world_open(struct world *w, const struct workload *load, bool huge);
void world_close(struct world *w);

/* The rate of each class, as the workload says. */
void workload_rates(const struct workload *load, u64 *rate_bps);

#endif /* BENCH_WORLD_H */
