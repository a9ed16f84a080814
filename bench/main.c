// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Measures the scheduler's structures side by side in one thread of one
 * process.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"
#include "json.h"
#include "machine.h"
#include "options.h"
#include "timestamp.h"

static const char what[] =
	"What it costs to find the next class and to move its clock: floors,\n"
	"heaps, a red-black tree, a bucket queue, the wheel, and the whole core.\n"
	"All exact ones must make the same decisions, or the program fails.";

/* The hard cases are measured at those of these sizes that were requested. */
static const u32 weak_sizes[] = { 1000, 100000, 1000000 };

#define DECISIONS	1000000u
#define WEAK_DECISIONS	300000u
#define QUICK_DECISIONS	100000u
#define ROUNDS		9u
#define QUICK_ROUNDS	3u

static struct options options = {
	.classes = { 10, 100, 1000, 10000, 100000, 1000000 },
	.sizes = 6,
};

static struct outcome outcome;

static u32 rounds_of(bool weak)
{
	if (options.rounds)
		return options.rounds;
	if (options.quick)
		return QUICK_ROUNDS;
	return weak ? ROUNDS / 2 + 1 : ROUNDS;
}

static struct contest contest_of(const struct contest *what_of, u32 classes)
{
	bool weak = what_of != cases;
	struct contest c = *what_of;

	c.load.classes = classes;
	c.rounds = rounds_of(weak);
	c.decisions = weak ? WEAK_DECISIONS : DECISIONS;
	if (options.quick)
		c.decisions = QUICK_DECISIONS;
	c.huge = options.huge;
	return c;
}

static void show_round(const struct contest *c, u32 round)
{
	progress("%u classes, %s: round %u of %u", c->load.classes, c->title,
		 round + 1, c->rounds);
}

/*
 * Prints one line per structure: the median and the interquartile range of
 * rounds.
 */
static void print_contest(const struct contest *c, const struct outcome *out)
{
	double sorted[ROUNDS_MAX];
	u32 i;

	printf("\n%u classes, %s (load %.3f)\n", c->load.classes, c->title,
	       out->load);
	printf("  %-34s %9s %18s %12s\n", "ns per packet", "median",
	       "quartiles", "bytes/class");
	for (i = 0; i < out->entries; i++) {
		const struct entry *e = &out->entry[i];

		sort_rounds(e->ns, c->rounds, sorted);
		printf("  %-34s %9.1f %8.1f %9.1f %12.1f\n", e->rival->title,
		       quantile(sorted, c->rounds, 0.5),
		       quantile(sorted, c->rounds, 0.25),
		       quantile(sorted, c->rounds, 0.75), e->state_bytes);
	}
}

static void json_contest(struct json *j, const struct contest *c,
			 const struct outcome *out)
{
	u32 i, round;

	json_begin(j, NULL, '{');
	json_text(j, "case", c->name);
	json_text(j, "title", c->title);
	json_count(j, "classes", c->load.classes);
	json_number(j, "load", out->load);
	json_count(j, "decisions", c->decisions);
	json_begin(j, "rivals", '[');
	for (i = 0; i < out->entries; i++) {
		const struct entry *e = &out->entry[i];

		json_begin(j, NULL, '{');
		json_text(j, "name", e->rival->name);
		json_text(j, "title", e->rival->title);
		json_number(j, "bytes_per_class", e->state_bytes);
		json_begin(j, "ns", '[');
		for (round = 0; round < c->rounds; round++)
			json_number(j, NULL, e->ns[round]);
		json_end(j, ']');
		json_end(j, '}');
	}
	json_end(j, ']');
	json_end(j, '}');
}

/* Runs one contest and reports it.  Returns an exit code. */
static int run_contest(struct json *j, const struct contest *c)
{
	contest_run(c, &outcome, show_round);
	progress("%s", "");
	switch (outcome.verdict) {
	case VERDICT_DIFFERENT:
		fprintf(stderr,
			"bench: %u classes, %s: the order of \"%s\" is not that of the others\n",
			c->load.classes, c->title, outcome.culprit);
		return EXIT_DIFFERENT;
	case VERDICT_NO_MEMORY:
		fprintf(stderr, "bench: %u classes, %s: out of memory\n",
			c->load.classes, c->title);
		return EXIT_RESOURCES;
	case VERDICT_TOO_SLOW:
		/* The core rejects such a rate: there is nothing to measure. */
		if (!options.json)
			printf("\n%u classes, %s: the slowest rate is lower than the core takes\n",
			       c->load.classes, c->title);
		return EXIT_SAME;
	case VERDICT_SAME:
		break;
	}
	if (options.json)
		json_contest(j, c, &outcome);
	else
		print_contest(c, &outcome);
	return EXIT_SAME;
}

static bool is_weak_size(u32 classes)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(weak_sizes); i++)
		if (weak_sizes[i] == classes)
			return true;
	return false;
}

static int run_contests(struct json *j)
{
	int status = EXIT_SAME;
	u32 i, size;

	json_begin(j, "contests", '[');
	for (i = 0; i < case_count && status == EXIT_SAME; i++) {
		for (size = 0; size < options.sizes && status == EXIT_SAME;
		     size++) {
			struct contest c = contest_of(&cases[i],
						      options.classes[size]);

			if (i && !is_weak_size(c.load.classes))
				continue;
			status = run_contest(j, &c);
		}
	}
	json_end(j, ']');
	return status;
}

static void tell_latency(struct json *j, const struct rival *r,
			 const struct latency *l)
{
	if (!options.json) {
		printf("  %-34s %8.1f %8.1f %8.1f %8.1f %10.1f %10.1f\n",
		       r->title, l->mean_ns, l->p50_ns, l->p99_ns, l->p9999_ns,
		       l->max_ns, l->once_p9999_ns);
		return;
	}
	json_begin(j, NULL, '{');
	json_text(j, "name", r->name);
	json_text(j, "title", r->title);
	json_number(j, "mean_ns", l->mean_ns);
	json_number(j, "p50_ns", l->p50_ns);
	json_number(j, "p99_ns", l->p99_ns);
	json_number(j, "p9999_ns", l->p9999_ns);
	json_number(j, "max_ns", l->max_ns);
	json_number(j, "once_p9999_ns", l->once_p9999_ns);
	json_number(j, "once_max_ns", l->once_max_ns);
	json_end(j, '}');
}

static int run_latencies(struct json *j, u32 classes)
{
	const struct contest c = contest_of(&cases[0], classes);
	struct latency l;
	u32 i;

	if (!options.json)
		printf("\n%u classes, one operation, ns\n  %-34s %8s %8s %8s %8s %10s %10s\n",
		       classes, "", "mean", "p50", "p99", "p99.99", "max",
		       "p99.99 once");
	json_begin(j, NULL, '{');
	json_count(j, "classes", classes);
	json_count(j, "operations", c.decisions);
	json_begin(j, "rivals", '[');
	for (i = 0; latency_rivals[i]; i++) {
		progress("%u classes, single operations: %s", classes,
			 latency_rivals[i]->title);
		if (!latency_run(&c, latency_rivals[i], &l)) {
			fputs("bench: out of memory\n", stderr);
			return EXIT_RESOURCES;
		}
		progress("%s", "");
		tell_latency(j, latency_rivals[i], &l);
	}
	json_end(j, ']');
	json_end(j, '}');
	return EXIT_SAME;
}

int main(int argc, char **argv)
{
	struct json j = { 0 };
	int status, cpu;
	u32 size;

	if (!options_read(&options, argc, argv, what, &status))
		return status;
	/*
	 * Without --json the JSON is discarded, so that there is one code path.
	 */
	j.to = options.json ? stdout : fopen("/dev/null", "w");
	if (!j.to) {
		perror("bench: /dev/null");
		return EXIT_RESOURCES;
	}
	cpu = machine_pin();
	json_begin(&j, NULL, '{');
	json_text(&j, "program", "structures");
	machine_json(&j, cpu);
	json_flag(&j, "huge_pages", options.huge);
	json_flag(&j, "quick", options.quick);
	json_count(&j, "wheel_from", PACE_WHEEL_FROM);
	status = run_contests(&j);
	json_begin(&j, "latency", '[');
	for (size = 0; size < options.sizes && status == EXIT_SAME; size++)
		status = run_latencies(&j, options.classes[size]);
	json_end(&j, ']');
	json_end(&j, '}');
	if (fflush(j.to) || fflush(stdout)) {
		perror("bench: writing");
		return EXIT_RESOURCES;
	}
	return status;
}
