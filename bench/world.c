// SPDX-License-Identifier: GPL-2.0-only OR MIT
#define _GNU_SOURCE
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "world.h"

#define HUGE_PAGE	(2u << 20)

/*
 * Allocates from the kernel instead of malloc(), so that no run reuses memory
 * of another.
 */
void *take_memory(struct memory *m, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (bytes >= HUGE_PAGE)
		madvise(p, bytes, m->huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(p, 0, bytes);
	m->bytes += bytes;
	return p;
}

void give_memory(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}

/* Returns a uniform random number in 0..1. */
static double random_unit(u64 *state)
{
	return (double)(random_next(state) >> 11) / (double)(1ull << 53);
}

void workload_rates(const struct workload *load, u64 *rate_bps)
{
	u64 random = load->seed;
	double all = 0, share = load->load * (double)LINE_BPS;
	u32 i;

	for (i = 0; i < load->classes; i++)
		all += pow(load->spread, random_unit(&random));
	random = load->seed;
	for (i = 0; i < load->classes; i++) {
		double weight = pow(load->spread, random_unit(&random));

		rate_bps[i] = load->coincide ?
			      (u64)(share / load->classes) :
			      (u64)(share * weight / all);
	}
}

static void set_rate(struct world *w, struct flow *f, u64 rate_bps)
{
	f->rate_bps = rate_bps;
	f->quot = pace_div_rem(w->wire_bytes * PACE_BYTE_PS, rate_bps, &f->rem);
	if (f->quot > w->period_max)
		w->period_max = f->quot;
}

/* Starts a class at a random point of its period, as after a long time. */
static void start(struct world *w, struct flow *f)
{
	u64 within = (u64)(random_unit(&w->random) * (double)f->quot);

	pace_clock_set(&f->clock, w->port.global + within);
}

void world_swap_rates(struct world *w, u32 a, u32 b)
{
	u64 rate_bps = w->flow[a].rate_bps;

	set_rate(w, &w->flow[a], w->flow[b].rate_bps);
	set_rate(w, &w->flow[b], rate_bps);
	start(w, &w->flow[a]);
	start(w, &w->flow[b]);
}

static bool set_flows(struct world *w)
{
	size_t bytes = w->classes * sizeof(u64);
	struct memory scratch = { 0 };
	u64 *rate_bps = take_memory(&scratch, bytes);
	bool fits = true;
	u32 id;

	if (!rate_bps)
		return false;
	workload_rates(w->load, rate_bps);
	for (id = 0; id < w->classes; id++) {
		struct flow *f = &w->flow[id];

		fits = rate_bps[id] &&
		       w->wire_bytes * PACE_BYTE_PS / rate_bps[id] < PACE_LEAD_MAX_PS;
		if (!fits) {
			/*
			 * Tells this error from a lack of memory: see
			 * world_open().
			 */
			w->period_max = PACE_LEAD_MAX_PS;
			break;
		}
		set_rate(w, f, rate_bps[id]);
		if (w->load->coincide)
			pace_clock_set(&f->clock, w->port.global);
		else
			start(w, f);
	}
	give_memory(rate_bps, bytes);
	return fits;
}

static size_t present_bytes(const struct world *w)
{
	return (w->classes + 63) / 64 * sizeof(u64);
}

bool world_open(struct world *w, const struct workload *load, bool huge)
{
	memset(w, 0, sizeof(*w));
	w->load = load;
	w->classes = load->classes;
	w->wire_bytes = load->wire_bytes;
	w->memory.huge = huge;
	/*
	 * The keys of a queue wrap early in the run: that is part of the work.
	 */
	w->port.global = (1ull << 50) - (1ull << 38);
	w->random = load->seed ^ 0x9e3779b97f4a7c15ull;
	w->flow = take_memory(&w->memory, w->classes * sizeof(*w->flow));
	w->away = take_memory(&w->memory, w->classes * sizeof(*w->away));
	w->present = take_memory(&w->memory, present_bytes(w));
	if (!w->flow || !w->away || !w->present || !set_flows(w)) {
		world_close(w);
		return false;
	}
	w->memory.bytes = 0;	/* count only the structure's own from here */
	return true;
}

void world_close(struct world *w)
{
	give_memory(w->flow, w->classes * sizeof(*w->flow));
	give_memory(w->away, w->classes * sizeof(*w->away));
	w->flow = NULL;
	give_memory(w->present, present_bytes(w));
	w->flow = NULL;
	w->away = NULL;
	w->present = NULL;
}
