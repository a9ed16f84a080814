/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Measures rivals at the same work, round robin: each round runs every rival
 * once, so that a temporary disturbance of the machine affects all of them.
 */
#ifndef BENCH_CONTEST_H
#define BENCH_CONTEST_H

#include "rival.h"

#define ROUNDS_MAX	101

struct contest {
	const char *name;		/* in JSON */
	const char *title;		/* for people */
	struct workload load;
	enum traffic traffic;
	const struct rival *const *rivals;	/* ends with NULL */
	u32 rounds;
	u64 decisions;			/* per rival and round */
	bool huge;
};

struct entry {
	const struct rival *rival;
	struct world world;
	bool open;
	double ns[ROUNDS_MAX];		/* per decision, by round */
	double state_bytes;		/* per class */
};

enum verdict {
	VERDICT_SAME,		/* orders agree wherever they must */
	VERDICT_DIFFERENT,
	VERDICT_NO_MEMORY,
	/* A rate of this workload is lower than the core accepts. */
	VERDICT_TOO_SLOW,
};

#define ENTRIES_MAX	16

struct outcome {
	struct entry entry[ENTRIES_MAX];
	u32 entries;
	enum verdict verdict;
	const char *culprit;		/* DIFFERENT: title of a rival */
	double load;			/* the frames' share of the line */
};

/* Called after each round; may be NULL. */
typedef void round_done(const struct contest *c, u32 round);

void contest_run(const struct contest *c, struct outcome *out,
		 round_done *done);

/* Latency of single decisions, each the least of several equal runs. */
struct latency {
	double mean_ns, p50_ns, p99_ns, p9999_ns, max_ns;
	double once_p9999_ns, once_max_ns;	/* first run alone */
};

#define LATENCY_RUNS	3

/* Measures the latency of one rival.  Returns false if memory is short. */
bool latency_run(const struct contest *c, const struct rival *rival,
		 struct latency *out);

/* Returns the value below which a share of `n` sorted values lies. */
double quantile(const double *sorted, u32 n, double share);

/* Writes a sorted copy of ns[0..n-1]. */
void sort_rounds(const double *ns, u32 n, double *sorted);

#endif /* BENCH_CONTEST_H */
