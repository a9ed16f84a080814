// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Looks at every order in which two or three queues can touch a common clock: the code
 * of core/src/steps.c as it is, run as coroutines that stop before each access to what
 * is shared (pace_deps.h beside this).
 *
 * A state is what is shared, and of each queue what it has read so far: a queue does the
 * same after the same reads.  States are visited once, depth first; each is reached
 * again by repeating the choices that led there.  Sequentially consistent.
 *
 * In each state in which all queues have finished, what all have sent and have left is
 * what was given out.  Time stands still, so that none passes unused.
 *
 * usage: turns [TIMES]
 *   TIMES  so many times as many plans (1)
 * Exit status: 0 all orders keep it; 1 one does not, which is printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <pace/pace_sched.h>
#include "../../src/clock.c"
#ifndef STEPS
#define STEPS	"../../src/steps.c"	/* another one is broken on purpose */
#endif
#include STEPS

#define QUEUES_MAX	3
#define ROUNDS_MAX	2
#define DEPTH_MAX	200
#define NOW		1000u
#define FRAME		4u

/* What a queue does in a round. */
struct round {
	u32 step;	/* what it wants of the clock, in frames */
	u32 wanted;
	int sends;	/* of its step; below 0: so much less than all, above: beyond it */
	bool goes_on;	/* takes the next step before it rests */
};

struct plan {
	u32 queues, rounds;
	struct round round[QUEUES_MAX][ROUNDS_MAX];
};

static struct {
	struct pace_common common;
	struct pace_part *slot[QUEUES_MAX];
} shared;
static struct pace_part part[QUEUES_MAX];

static const struct plan *plan;
static ucontext_t chooser;
static u32 running;

/* A queue: what it has done, and where it goes on. */
static struct queue {
	u64 clock, sent, history;
	bool finished;
	ucontext_t context;
	char stack[4096];
} queue[QUEUES_MAX];

static void stop(void)
{
	swapcontext(&queue[running].context, &chooser);
}

static void note(u64 value)
{
	u64 *history = &queue[running].history;

	*history = (*history ^ value) * 0x9e3779b97f4a7c15ull + 1;
}

u64 pace_atomic_read(const pace_atomic *a)
{
	stop();
	note(*a);
	return *a;
}

u64 turns_read(const u64 *place)
{
	return pace_atomic_read(place);
}

u64 pace_atomic_xchg(pace_atomic *a, u64 to)
{
	u64 was;

	stop();
	was = *a;
	note(was);
	*a = to;
	return was;
}

void turns_write(u64 *place, u64 to)
{
	stop();
	note(0);
	*place = to;
}

void pace_atomic_add(pace_atomic *a, u64 by)
{
	stop();
	note(1);
	*a += by;
}

bool pace_atomic_cmpxchg(pace_atomic *a, u64 *seen, u64 to)
{
	stop();
	note(*a);
	if (*a != *seen) {
		*seen = *a;
		return false;
	}
	*a = to;
	return true;
}

static void run_queue(int q)
{
	u64 *clock = &queue[q].clock;
	u32 at;

	for (at = 0; at < plan->rounds; at++) {
		const struct round *r = &plan->round[q][at];
		const struct pace_wish w = {
			.now = NOW,
			.step_ps = r->step * FRAME,
			.frame_ps = FRAME,
			.wanted_ps = r->wanted * FRAME,
		};
		s64 ps;

		if (pace_steps_begin(&part[q], *clock, NOW, FRAME))
			pace_step_next(&part[q], clock, &w);
		ps = (s64)(part[q].end_ps - *clock) + r->sends;
		if (ps < 0)
			ps = 0;
		*clock += ps;
		queue[q].sent += ps;
		if (r->goes_on && pace_step_is_used(&part[q], *clock, FRAME))
			pace_step_next(&part[q], clock, &w);
		pace_steps_end(&part[q], *clock, 0, NOW);
	}
	queue[q].finished = true;
	for (;;)
		stop();
}

static void step(u32 q)
{
	running = q;
	swapcontext(&chooser, &queue[q].context);
}

static void begin(void)
{
	u32 q;

	memset(&shared, 0, sizeof(shared));
	memset(part, 0, sizeof(part));
	memset(queue, 0, sizeof(queue));
	shared.common.clock_ps = NOW;
	shared.common.slots = plan->queues;
	for (q = 0; q < plan->queues; q++) {
		ucontext_t *context = &queue[q].context;

		part[q].common = &shared.common;
		part[q].end_ps = NOW;
		queue[q].clock = NOW;
		shared.slot[q] = &part[q];
		getcontext(context);
		context->uc_stack.ss_sp = queue[q].stack;
		context->uc_stack.ss_size = sizeof(queue[q].stack);
		context->uc_link = &chooser;
		makecontext(context, (void (*)(void))run_queue, 1, (int)q);
		/* To its first access. */
		step(q);
	}
}

/* What a state is led back to. */
struct snapshot {
	u64 clock;
	struct pace_part part[QUEUES_MAX];
	struct queue queue[QUEUES_MAX];
};

static void save(struct snapshot *s)
{
	s->clock = shared.common.clock_ps;
	memcpy(s->part, part, sizeof(part));
	memcpy(s->queue, queue, plan->queues * sizeof(*queue));
}

static void restore(const struct snapshot *s)
{
	shared.common.clock_ps = s->clock;
	memcpy(part, s->part, sizeof(part));
	memcpy(queue, s->queue, plan->queues * sizeof(*queue));
}

/* The states that were seen, by their hash: two of 128 bits are never alike by chance. */
static struct state {
	u64 a, b;
} *seen;
static size_t seen_size, seen_count;

static struct state state_of(void)
{
	struct state s = { 1, 2 };
	u32 q;

#define MIX(value)							\
	(s.a = (s.a ^ (value)) * 0xff51afd7ed558ccdull, s.a ^= s.a >> 32,	\
	 s.b = (s.b + (value)) * 0xc4ceb9fe1a85ec53ull, s.b ^= s.b >> 29)
	MIX(shared.common.clock_ps);
	for (q = 0; q < plan->queues; q++) {
		MIX(part[q].free_from_ps);
		MIX(part[q].free_until_ps);
		MIX(queue[q].history);
		MIX(queue[q].finished);
	}
	if (!s.a && !s.b)
		s.a = 1;
	return s;
}

static void insert(struct state s)
{
	size_t at = s.a & (seen_size - 1);

	while (seen[at].a || seen[at].b)
		at = (at + 1) & (seen_size - 1);
	seen[at] = s;
}

/* Returns false if the state was seen before. */
static bool is_new(struct state s)
{
	struct state *old = seen;
	size_t at, size = seen_size;

	if (2 * seen_count >= seen_size) {
		seen_size = size ? 2 * size : 1 << 16;
		seen = calloc(seen_size, sizeof(*seen));
		if (!seen)
			abort();
		for (at = 0; at < size; at++)
			if (old[at].a || old[at].b)
				insert(old[at]);
		free(old);
	}
	for (at = s.a & (seen_size - 1); seen[at].a || seen[at].b;
	     at = (at + 1) & (seen_size - 1))
		if (seen[at].a == s.a && seen[at].b == s.b)
			return false;
	insert(s);
	seen_count++;
	return true;
}

static u8 path[DEPTH_MAX];
static u64 ends;

static void print_path(u32 depth)
{
	u32 i;

	printf("  order:");
	for (i = 0; i < depth; i++)
		printf(" %u", path[i]);
	printf("\n");
}

/* Returns false if the end breaks the equation. */
static bool check_end(u32 depth)
{
	u64 given = shared.common.clock_ps - NOW, used = 0;
	u32 q;

	for (q = 0; q < plan->queues; q++) {
		used += queue[q].sent;
		if (part[q].free_until_ps)
			used += part[q].free_until_ps - part[q].free_from_ps;
	}
	ends++;
	if (used != given) {
		printf("turns: %llu used of %llu given out\n", (unsigned long long)used,
		       (unsigned long long)given);
		print_path(depth);
		return false;
	}
	return true;
}

/* Visits all states that follow this one. */
static bool visit(u32 depth)
{
	static struct snapshot at[DEPTH_MAX];
	bool all = true;
	u32 q;

	if (depth == DEPTH_MAX) {
		printf("turns: longer than %d steps\n", DEPTH_MAX);
		return false;
	}
	for (q = 0; q < plan->queues; q++)
		all &= queue[q].finished;
	if (all)
		return check_end(depth);
	save(&at[depth]);
	for (q = 0; q < plan->queues; q++) {
		if (at[depth].queue[q].finished)
			continue;
		restore(&at[depth]);
		path[depth] = q;
		step(q);
		if (is_new(state_of()) && !visit(depth + 1))
			return false;
	}
	return true;
}

static u64 random_state = 1;

static u32 below(u32 end)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (u32)(random_state >> 33) % end;
}

/* Fills in any plan: the rules of steps.c are not looked at. */
static struct plan any_plan(u32 queues, u32 rounds)
{
	struct plan p = { .queues = queues, .rounds = rounds };
	u32 q, at;

	for (q = 0; q < queues; q++)
		for (at = 0; at < rounds; at++)
			p.round[q][at] = (struct round){
				.step = 1 + below(3),
				.wanted = below(3),
				.sends = (int)below(10) - 6,
				.goes_on = below(3) == 0,
			};
	return p;
}

static bool look(u32 queues, u32 rounds, u32 plans)
{
	u64 states = 0;
	u32 at;

	ends = 0;
	for (at = 0; at < plans; at++) {
		const struct plan p = any_plan(queues, rounds);

		plan = &p;
		seen_count = 0;
		memset(seen, 0, seen_size * sizeof(*seen));
		begin();
		if (!visit(0)) {
			printf("turns: plan %u of %u queues with %u rounds\n", at, queues, rounds);
			return false;
		}
		states += seen_count;
	}
	printf("turns: %u queues, %u rounds: %u plans, %llu states, %llu ends\n", queues, rounds,
	       plans, (unsigned long long)states, (unsigned long long)ends);
	return true;
}

int main(int argc, char **argv)
{
	u32 times = argc > 1 ? (u32)atoi(argv[1]) : 1;

	setvbuf(stdout, NULL, _IOLBF, 0);
	return !(look(2, 1, 200 * times) && look(3, 1, 2 * times) && look(2, 2, 2 * times));
}
