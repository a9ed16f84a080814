// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Measures the core and DPDK's rte_sched with real mbufs by the same loop: the
 * packets of each dequeued burst are enqueued again, so every class always has
 * packets waiting.  Neither scheduler touches the frames' data.
 */
#include <math.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_version.h>

#include "contest.h"
#include "json.h"
#include "machine.h"
#include "options.h"
#include "side.h"
#include "timestamp.h"

static const char what[] =
	"The whole way of a packet through pspacer's core and through DPDK's\n"
	"rte_sched, with mbufs: unshaped, and shaped to 90 % of 100 Gbit/s.\n"
	"Numbers of classes are powers of two, from 256 on.";

#define PACKETS		2000000u
#define QUICK_PACKETS	300000u
#define ROUNDS		9u
#define QUICK_ROUNDS	3u
/*
 * Shaped: a slice, in ms, and the number of classes that add 1 ms to it.  A
 * burst in which few classes may send makes rte_sched examine all of them.
 */
#define SLICE_MS	200u
#define QUICK_SLICE_MS	50u
#define SLICE_CLASSES	1024u
/*
 * Frames per class that settle the start: twice as many as it may send at once.
 */
#define SETTLE_FRAMES	10u
#define SETTLE_FRAME_NS	200u
#define SPREAD		100.0
/*
 * rte_sched stores a rate as a share of the port's rate, in steps of 1e-7; a
 * pipe with a smaller share makes it divide by zero.
 */
#define SHARE_MIN	2e-7
#define SEED		1u

/*
 * Memory that DPDK needs for itself, and for each class with both sides and
 * mbufs.
 */
#define BASE_MB		512u
#define CLASS_BYTES	6144ull

static struct side *const sides[] = { &ours, &theirs };

#define SIDES	ARRAY_SIZE(sides)

static struct options options = {
	.classes = { 1024, 16384, 131072, 1048576 },
	.sizes = 4,
};

struct result {
	double ns[SIDES][ROUNDS_MAX];
	u32 rounds;
};

static bool start_dpdk(int cpu)
{
	u64 most = 0;
	char list[16], memory[16];
	/* rte_eal_init() reorders the arguments, but does not change them. */
	char *args[] = {
		"bench", "--no-huge", "--no-pci", "--no-telemetry",
		"--no-shconf", "--iova-mode=va", "--log-level=error",
		"-l", list, "-m", memory, NULL,
	};
	u32 i;

	for (i = 0; i < options.sizes; i++)
		if (options.classes[i] > most)
			most = options.classes[i];
	snprintf(list, sizeof(list), "%d", cpu < 0 ? 0 : cpu);
	snprintf(memory, sizeof(memory), "%u",
		 BASE_MB + (u32)(most * CLASS_BYTES >> 20));
	return rte_eal_init(ARRAY_SIZE(args) - 1, args) >= 0;
}

/*
 * Sets rates over spread:1, evenly over the logarithm; they sum up to 90 % of
 * the line.
 */
static void set_rates(struct setup *s)
{
	double all = 0;
	u32 i;

	for (i = 0; i < s->classes; i++)
		all += pow(s->spread, (double)s->profile[i] / (PROFILES - 1));
	for (i = 0; i < PROFILES; i++)
		s->rate_bps[i] = (u64)(LOAD * (double)LINE_BPS *
				       pow(s->spread,
					   (double)i / (PROFILES - 1)) / all);
}

static bool make_setup(struct setup *s, u32 classes, bool shaped)
{
	u64 random = SEED;
	u32 i;

	s->classes = classes;
	s->shaped = shaped;
	s->profile = malloc(classes * sizeof(*s->profile));
	if (!s->profile)
		return false;
	for (i = 0; i < classes; i++)
		s->profile[i] = (u8)random_below(&random, PROFILES);
	s->spread = SPREAD;
	set_rates(s);
	/*
	 * Reduce the spread, for both sides, while the slowest rate is too low.
	 */
	while (shaped && (double)s->rate_bps[0] <
			 SHARE_MIN * (double)LINE_BPS) {
		s->spread *= 0.9;
		set_rates(s);
	}
	return true;
}

/* Enqueues BACKLOG packets for each class, a burst at a time. */
static bool fill(const struct side *side, struct rte_mempool *pool, u32 classes)
{
	struct rte_mbuf *m[BURST];
	u32 round, id, i, n;

	for (round = 0; round < BACKLOG; round++) {
		for (id = 0; id < classes; id += n) {
			n = classes - id < BURST ? classes - id : BURST;
			if (rte_pktmbuf_alloc_bulk(pool, m, n))
				return false;
			for (i = 0; i < n; i++) {
				m[i]->pkt_len = FRAME_BYTES;
				m[i]->data_len = FRAME_BYTES;
				side->address(m[i], id + i);
			}
			side->enqueue(m, n);
		}
	}
	return true;
}

/* Dequeues one burst and enqueues it again.  Returns its packets. */
static inline u32 move_burst(const struct side *side)
{
	struct rte_mbuf *m[BURST];
	u32 n = side->dequeue(m, BURST);

	if (n)
		side->enqueue(m, n);
	return n;
}

/* Moves that many packets as fast as possible.  Returns CPU ns per packet. */
static double run_packets(const struct side *side, u64 packets)
{
	u64 from_ns = thread_ns(), sent = 0;

	while (sent < packets)
		sent += move_burst(side);
	return (double)(thread_ns() - from_ns) / (double)sent;
}

/*
 * Runs for `ms` of real time.  Returns ns per packet sent, or all ns if none
 * was.
 */
static double run_time(const struct side *side, u64 ms)
{
	u64 from = rte_rdtsc(), hz = rte_get_tsc_hz();
	u64 cycles = hz / 1000 * ms, sent = 0, now;

	do {
		sent += move_burst(side);
		now = rte_rdtsc();
	} while (now - from < cycles);
	return (double)(now - from) * 1e9 / (double)hz /
	       (double)(sent ? sent : 1);
}

static u32 rounds_of(void)
{
	if (options.rounds)
		return options.rounds;
	return options.quick ? QUICK_ROUNDS : ROUNDS;
}

/*
 * Measures both sides round robin: a disturbance of the machine affects both.
 */
static void measure_unshaped(const struct setup *s, struct result *r)
{
	u64 packets = options.quick ? QUICK_PACKETS : PACKETS;
	u32 round, i;

	for (i = 0; i < SIDES; i++)
		run_packets(sides[i], 2 * s->classes);
	for (round = 0; round < r->rounds; round++) {
		progress("%u classes, unshaped: round %u of %u", s->classes,
			 round + 1, r->rounds);
		for (i = 0; i < SIDES; i++) {
			run_packets(sides[i], packets / 8);
			r->ns[i][round] = run_packets(sides[i], packets);
		}
	}
}

/*
 * Measures side `i` alone: a side that waits while the other runs would
 * accumulate credit and send that first.
 */
static void measure_shaped(const struct setup *s, struct result *r, u32 i)
{
	u64 slice_ms = (options.quick ? QUICK_SLICE_MS : SLICE_MS) +
		       s->classes / SLICE_CLASSES;
	u64 settle_ms = (u64)s->classes * SETTLE_FRAMES * SETTLE_FRAME_NS /
			1000000 + slice_ms;
	u32 round;

	progress("%u classes, shaped: %s", s->classes, sides[i]->title);
	run_time(sides[i], settle_ms);
	for (round = 0; round < r->rounds; round++)
		r->ns[i][round] = run_time(sides[i], slice_ms);
}

static bool open_side(struct side *side, const struct setup *s,
		      struct rte_mempool *pool)
{
	if (!side->open(s))
		return false;
	if (fill(side, pool, s->classes))
		return true;
	side->close();
	return false;
}

/* Measures both sides.  Mbufs are freed with their pool as a whole. */
static bool measure(const struct setup *s, struct result *r)
{
	u32 mbufs = (u32)SIDES * BACKLOG * s->classes + BURST;
	struct rte_mempool *pool = rte_pktmbuf_pool_create("bench", mbufs, 0, 0,
							   0, SOCKET_ID_ANY);
	u32 i, open = 0;

	if (!pool)
		return false;
	r->rounds = rounds_of();
	for (i = 0; i < SIDES; i++) {
		if (!open_side(sides[i], s, pool))
			break;
		open++;
		if (s->shaped)
			measure_shaped(s, r, i);
	}
	if (open == SIDES && !s->shaped)
		measure_unshaped(s, r);
	for (i = 0; i < open; i++)
		sides[i]->close();
	rte_mempool_free(pool);
	progress("%s", "");
	return open == SIDES;
}

static void print_result(const struct setup *s, const struct result *r)
{
	double sorted[ROUNDS_MAX];
	u32 i;

	printf("\n%u classes, %s\n  %-20s %9s %18s %12s\n", s->classes,
	       s->shaped ? "shaped to 90 % of 100 Gbit/s" : "unshaped",
	       "ns per packet", "median", "quartiles", "bytes/class");
	for (i = 0; i < SIDES; i++) {
		sort_rounds(r->ns[i], r->rounds, sorted);
		printf("  %-20s %9.1f %8.1f %9.1f %12.1f\n", sides[i]->title,
		       quantile(sorted, r->rounds, 0.5),
		       quantile(sorted, r->rounds, 0.25),
		       quantile(sorted, r->rounds, 0.75),
		       sides[i]->bytes_per_class);
	}
}

static void json_result(struct json *j, const struct setup *s,
			const struct result *r)
{
	u32 i, round;

	json_begin(j, NULL, '{');
	json_flag(j, "shaped", s->shaped);
	json_count(j, "classes", s->classes);
	json_number(j, "spread", s->spread);
	if (s->shaped)
		json_number(j, "asked_ns",
			    WIRE_BYTES * 8e9 / (LOAD * (double)LINE_BPS));
	json_begin(j, "rivals", '[');
	for (i = 0; i < SIDES; i++) {
		json_begin(j, NULL, '{');
		json_text(j, "name", sides[i]->name);
		json_text(j, "title", sides[i]->title);
		json_number(j, "bytes_per_class", sides[i]->bytes_per_class);
		json_begin(j, "ns", '[');
		for (round = 0; round < r->rounds; round++)
			json_number(j, NULL, r->ns[i][round]);
		json_end(j, ']');
		json_end(j, '}');
	}
	json_end(j, ']');
	json_end(j, '}');
}

static bool run(struct json *j, u32 classes, bool shaped)
{
	static struct result result;
	static struct setup s;
	bool done = make_setup(&s, classes, shaped) && measure(&s, &result);

	if (!done)
		fprintf(stderr, "bench: %u classes: no memory, or DPDK refuses\n",
			classes);
	else if (options.json)
		json_result(j, &s, &result);
	else
		print_result(&s, &result);
	free(s.profile);
	return done;
}

static bool sizes_fit(const char *program)
{
	u32 i;

	for (i = 0; i < options.sizes; i++) {
		u32 n = options.classes[i];

		if (n >= PROFILES && !(n & (n - 1)))
			continue;
		fprintf(stderr, "%s: %u is no power of two from %u on\n",
			program, n, PROFILES);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct json j = { 0 };
	int status, cpu;
	bool done;
	u32 i;

	if (!options_read(&options, argc, argv, what, &status))
		return status;
	if (options.huge) {
		fprintf(stderr, "%s: DPDK without huge pages has none to give\n",
			argv[0]);
		return EXIT_USAGE;
	}
	if (!sizes_fit(argv[0]))
		return EXIT_USAGE;
	j.to = options.json ? stdout : fopen("/dev/null", "w");
	cpu = machine_pin();
	if (!j.to || !start_dpdk(cpu)) {
		fputs("bench: DPDK does not start\n", stderr);
		return EXIT_RESOURCES;
	}
	json_begin(&j, NULL, '{');
	json_text(&j, "program", "dpdk");
	machine_json(&j, cpu);
	json_text(&j, "dpdk", rte_version());
	json_flag(&j, "quick", options.quick);
	json_begin(&j, "contests", '[');
	done = true;
	for (i = 0; i < options.sizes && done; i++)
		done = run(&j, options.classes[i], false) &&
		       run(&j, options.classes[i], true);
	json_end(&j, ']');
	json_end(&j, '}');
	if (fflush(j.to) || fflush(stdout) || !done)
		return EXIT_RESOURCES;
	return EXIT_SAME;
}
