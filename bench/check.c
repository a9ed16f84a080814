// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Checks, at small sizes and in every case, that exact structures agree with
 * each other and with a search through all classes; that a structure that does
 * not agree is detected; and that the tree stays a red-black tree.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "loops.h"
#include "tree.h"

#define DECISIONS	4000
#define RIVALS_MAX	16

static const u32 sizes[] = { 1, 2, 3, 7, 64, 500 };

/* Returns the class with the smallest clock, by a search through all.  O(n). */
static u32 search(const struct world *w, bool last_of_equals)
{
	u32 id, best = PACE_ID_NONE;

	for (id = 0; id < w->classes; id++) {
		s64 apart;

		if (!is_present(w, id))
			continue;
		if (best == PACE_ID_NONE) {
			best = id;
			continue;
		}
		apart = (s64)(clock_key(w->flow[id].clock.ps, 0) -
			      clock_key(w->flow[best].clock.ps, 0));
		if (apart < 0 || (apart == 0 && last_of_equals))
			best = id;
	}
	return best;
}

/* Returns the smallest class; if w->queue is not NULL, breaks ties wrongly. */
static inline u32 queue_min(struct world *w)
{
	return search(w, w->queue);
}

static inline void queue_replace_min(struct world *w, u32 id)
{
	(void)w;
	(void)id;
}

static inline void queue_insert(struct world *w, u32 id)
{
	set_present(w, id);
}

static inline void queue_remove(struct world *w, u32 id)
{
	unset_present(w, id);
}

static bool open_right(struct world *w)
{
	w->queue = NULL;
	return true;
}

static bool open_wrong(struct world *w)
{
	w->queue = w;
	return true;
}

static void close_search(struct world *w)
{
	w->queue = NULL;
}

static const struct rival rival_search = {
	.name = "search",
	.title = "search through all",
	.order = ORDER_STRUCTURES,
	.open = open_right,
	.close = close_search,
	.insert = loops_insert,
	.run = loops_run,
};

static const struct rival rival_wrong_ties = {
	.name = "wrong",
	.title = "ties the wrong way",
	.order = ORDER_STRUCTURES,
	.open = open_wrong,
	.close = close_search,
	.insert = loops_insert,
	.run = loops_run,
};

static struct outcome outcome;

static void fail(const struct contest *c, const char *what)
{
	fprintf(stderr, "bench check: %u classes, %s: %s\n", c->load.classes,
		c->title, what);
	exit(1);
}

/* Returns a short form of the case, at this size and with one more rival. */
static struct contest short_one(const struct contest *of, u32 classes,
				const struct rival *more,
				const struct rival **rivals)
{
	struct contest c = *of;
	u32 i;

	for (i = 0; of->rivals[i] && i < RIVALS_MAX - 2; i++)
		rivals[i] = of->rivals[i];
	rivals[i++] = more;
	rivals[i] = NULL;
	c.rivals = rivals;
	c.load.classes = classes;
	c.rounds = 2;
	c.decisions = DECISIONS / 2;
	return c;
}

static void check_agreement(void)
{
	const struct rival *rivals[RIVALS_MAX];
	u32 i, size;

	for (i = 0; i < case_count; i++) {
		for (size = 0; size < ARRAY_SIZE(sizes); size++) {
			struct contest c = short_one(&cases[i], sizes[size],
						     &rival_search, rivals);

			contest_run(&c, &outcome, NULL);
			if (outcome.verdict == VERDICT_DIFFERENT)
				fail(&c, outcome.culprit);
			if (outcome.verdict != VERDICT_SAME)
				fail(&c, "did not run");
		}
	}
}

/*
 * Checks that a wrong tie-break is detected: clocks that coincide differ by id
 * alone.
 */
static void check_that_it_can_fail(void)
{
	const struct rival *rivals[RIVALS_MAX];
	struct contest c = short_one(&cases[1], 7, &rival_wrong_ties, rivals);

	contest_run(&c, &outcome, NULL);
	if (outcome.verdict != VERDICT_DIFFERENT)
		fail(&c, "another order was not found out");
}

#define NODES	200

static void check_tree(void)
{
	static struct flow flow[NODES];
	bool in[NODES] = { false };
	struct tree t = { 0 };
	u64 random = 1;
	u32 step, count, nodes = 0;

	for (step = 0; step < 20000; step++) {
		u32 n = random_below(&random, NODES);
		struct tree_node *node = &flow[n].u.node, *parent = NULL;
		struct tree_node **at = &t.root;

		if (in[n]) {
			tree_unlink(&t, node);
			nodes--;
		} else {
			while (*at) {
				parent = *at;
				at = &parent->child[node > parent];
			}
			tree_link(&t, node, parent, at);
			nodes++;
		}
		in[n] = !in[n];
		if (!tree_valid(&t, &count) || count != nodes) {
			fprintf(stderr, "bench check: tree broken at step %u\n",
				step);
			exit(1);
		}
	}
}

#define ROBIN		(2 * PACE_WHEEL_FROM)
#define AHEAD		8u

static struct pace_class robin[ROBIN];

static void send_next(struct pace_sched *s)
{
	struct pace_decision d;

	while ((d = pace_next(s, 0)).verdict == PACE_GAP)
		pace_gap_sent(s, d.gap_bytes);
	pace_sent(s, d.cls, 1500, true, 0);
}

/*
 * Classes of one rate become active at one instant, or each a frame after the one
 * before.  They are served round robin, so the next is known: counts how often
 * pace_coming() names it, and how often another.
 */
static void count_coming(bool at_once, u32 *right, u32 *wrong)
{
	const struct pace_config cfg = {
		.line_rate_bps = LINE_BPS,
		.max_frame_bytes = 1500,
		.layer = PACE_LAYER_WIRE,
	};
	const struct pace_class_config one = {
		.rate_bps = LINE_BPS / ROBIN - 1,
	};
	struct memory memory = { 0 };
	void *storage = take_memory(&memory, pace_storage_bytes(ROBIN));
	struct pace_sched s;
	u32 i;

	memset(robin, 0, sizeof(robin));
	if (!storage || pace_init(&s, &cfg, storage, ROBIN, 0))
		exit(1);
	for (i = 0; i < ROBIN; i++) {
		if (pace_class_add(&s, &robin[i], &one))
			exit(1);
		pace_activate(&s, &robin[i], 0);
		if (!at_once)
			send_next(&s);
	}
	/* Keys from before the wheel was in use are in the heap for one round. */
	for (i = 0; i < ROBIN; i++)
		send_next(&s);
	for (i = 0; i < 10 * ROBIN; i++) {
		struct pace_class *coming = pace_coming(&s, AHEAD);

		*right += coming == &robin[(i + AHEAD + 1) % ROBIN];
		*wrong += coming && coming != &robin[(i + AHEAD + 1) % ROBIN];
		send_next(&s);
	}
	pace_set_wheel_from(&s, ~0u);
	for (i = 0; i < ROBIN; i++)
		send_next(&s);
	/* It does not search the heap in front of the wheel. */
	if (pace_coming(&s, AHEAD)) {
		fprintf(stderr, "bench check: a heap sees one coming\n");
		exit(1);
	}
	give_memory(storage, pace_storage_bytes(ROBIN));
}

/*
 * Checks pace_coming(), a hint.  Classes that became active at one instant have
 * one clock for ever: more keys than are sorted at once, so they are in the heap
 * and nothing is known of them.
 */
static void check_coming(void)
{
	u32 right = 0, wrong = 0, right_at_once = 0, wrong_at_once = 0;

	count_coming(false, &right, &wrong);
	count_coming(true, &right_at_once, &wrong_at_once);
	if (right < ROBIN || wrong > right / 1000 ||
	    wrong_at_once > right_at_once / 1000) {
		fprintf(stderr,
			"bench check: %u and %u of %u seen coming, %u and %u wrongly\n",
			right, right_at_once, 10 * ROBIN, wrong, wrong_at_once);
		exit(1);
	}
}

int main(void)
{
	check_coming();
	check_tree();
	check_agreement();
	check_that_it_can_fail();
	printf("bench: exact structures agree\n");
	return 0;
}
