// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <stdlib.h>
#include <string.h>

#include "contest.h"
#include "timestamp.h"

/*
 * Share of a run that goes untimed before it, so that its data is in the caches
 * again.
 */
#define PRELUDE_SHARE	8
/* Decisions per class, after which a structure has left its initial state. */
#define WARM_ROUNDS	1
#define WARM_MIN	20000

static u64 warm_decisions(const struct contest *c)
{
	u64 warm = (u64)c->load.classes * WARM_ROUNDS;

	return warm < WARM_MIN ? WARM_MIN : warm;
}

static bool run_untimed(const struct contest *c, const struct rival *r,
			struct world *w, u64 decisions)
{
	if (r->prepare && !r->prepare(w, decisions))
		return false;
	r->run(w, c->traffic, decisions);
	return true;
}

static void close_rival(const struct rival *r, struct world *w)
{
	r->close(w);
	world_close(w);
}

static enum verdict open_rival(const struct contest *c, const struct rival *r,
			       struct world *w)
{
	u32 id;

	if (!world_open(w, &c->load, c->huge))
		return w->period_max ? VERDICT_TOO_SLOW : VERDICT_NO_MEMORY;
	if (!r->open(w)) {
		world_close(w);
		return VERDICT_NO_MEMORY;
	}
	for (id = 0; id < w->classes; id++)
		r->insert(w, id);
	if (run_untimed(c, r, w, warm_decisions(c)))
		return VERDICT_SAME;
	close_rival(r, w);
	return VERDICT_NO_MEMORY;
}

static bool enter(const struct contest *c, struct outcome *out,
		  const struct rival *r)
{
	struct entry *e = &out->entry[out->entries];

	if (r->steady_only && c->traffic != TRAFFIC_STEADY)
		return true;
	e->rival = r;
	out->verdict = open_rival(c, r, &e->world);
	if (out->verdict != VERDICT_SAME)
		return false;
	e->state_bytes = r->node_bytes +
			 (double)e->world.memory.bytes / c->load.classes;
	out->entries++;
	return true;
}

static bool time_one(const struct contest *c, struct entry *e, u32 round)
{
	const struct rival *r = e->rival;
	struct world *w = &e->world;
	u64 prelude = c->decisions / PRELUDE_SHARE;
	u64 from_ns;

	if (r->prepare && !r->prepare(w, prelude + c->decisions))
		return false;
	r->run(w, c->traffic, prelude);
	from_ns = thread_ns();
	r->run(w, c->traffic, c->decisions);
	e->ns[round] = (double)(thread_ns() - from_ns) / (double)c->decisions;
	return true;
}

/*
 * Returns true if all rivals that must make the same decisions have made them
 * so far.
 */
static bool same_so_far(struct outcome *out)
{
	const struct entry *first[ORDER_CORE_NEXT + 1] = { NULL };
	u32 i;

	for (i = 0; i < out->entries; i++) {
		const struct entry *e = &out->entry[i];
		const struct entry **as = &first[e->rival->order];

		if (e->rival->order == ORDER_NONE)
			continue;
		if (!*as)
			*as = e;
		if ((*as)->world.port.sum == e->world.port.sum &&
		    (*as)->world.port.global == e->world.port.global)
			continue;
		out->verdict = VERDICT_DIFFERENT;
		out->culprit = e->rival->title;
		return false;
	}
	return true;
}

/*
 * Notes the frames' share of the line since `from`, as the first rival with an
 * order has it.
 */
static void note_load(const struct contest *c, struct outcome *out)
{
	u32 i;

	for (i = 0; i < out->entries; i++) {
		const struct world *w = &out->entry[i].world;
		u64 frames = c->decisions + c->decisions / PRELUDE_SHARE;
		double sent = (double)(frames * c->rounds +
				       warm_decisions(c)) *
			      c->load.wire_bytes;

		if (out->entry[i].rival->order == ORDER_NONE)
			continue;
		out->load = sent / (sent + (double)w->port.idle_bytes);
		return;
	}
}

void contest_run(const struct contest *c, struct outcome *out, round_done *done)
{
	u32 i, round;

	memset(out, 0, sizeof(*out));
	for (i = 0; c->rivals[i]; i++)
		if (!enter(c, out, c->rivals[i]))
			break;
	for (round = 0; round < c->rounds && out->verdict == VERDICT_SAME;
	     round++) {
		for (i = 0; i < out->entries; i++)
			if (!time_one(c, &out->entry[i], round))
				out->verdict = VERDICT_NO_MEMORY;
		same_so_far(out);
		if (done)
			done(c, round);
	}
	note_load(c, out);
	for (i = 0; i < out->entries; i++)
		close_rival(out->entry[i].rival, &out->entry[i].world);
}

static int by_ticks(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void sort_rounds(const double *ns, u32 n, double *sorted)
{
	memcpy(sorted, ns, n * sizeof(*ns));
	qsort(sorted, n, sizeof(*sorted), by_value);
}

double quantile(const double *sorted, u32 n, double share)
{
	double at = share * (n - 1);
	u32 below = (u32)at;

	if (below + 1 >= n)
		return sorted[n - 1];
	return sorted[below] +
	       (at - below) * (sorted[below + 1] - sorted[below]);
}

/* Converts ticks to ns, less the cost of the timestamp itself. */
static double ticks_ns(u32 ticks, u32 cost)
{
	return ticks > cost ? (ticks - cost) * timestamp_ns() : 0;
}

static void summarise(u32 *ticks, u32 n, u32 cost, struct latency *out)
{
	double all = 0;
	u32 i;

	qsort(ticks, n, sizeof(*ticks), by_ticks);
	for (i = 0; i < n; i++)
		all += ticks_ns(ticks[i], cost);
	out->mean_ns = all / n;
	out->p50_ns = ticks_ns(ticks[n / 2], cost);
	out->p99_ns = ticks_ns(ticks[(u32)(n * 0.99)], cost);
	out->p9999_ns = ticks_ns(ticks[(u32)(n * 0.9999)], cost);
	out->max_ns = ticks_ns(ticks[n - 1], cost);
}

bool latency_run(const struct contest *c, const struct rival *rival,
		 struct latency *out)
{
	struct memory memory = { 0 };
	u32 n = (u32)c->decisions, cost = timestamp_cost();
	u32 *ticks = take_memory(&memory, 2 * n * sizeof(*ticks));
	struct latency once;
	struct world w;
	u32 run;

	if (!ticks)
		return false;
	memset(ticks, 0xff, n * sizeof(*ticks));
	for (run = 0; run < LATENCY_RUNS; run++) {
		if (open_rival(c, rival, &w) != VERDICT_SAME)
			break;
		rival->run_timestamped(&w, n, ticks);
		close_rival(rival, &w);
		if (run)
			continue;
		memcpy(ticks + n, ticks, n * sizeof(*ticks));
		summarise(ticks + n, n, cost, &once);
	}
	summarise(ticks, n, cost, out);
	out->once_p9999_ns = once.p9999_ns;
	out->once_max_ns = once.max_ns;
	give_memory(ticks, memory.bytes);
	return run == LATENCY_RUNS;
}
