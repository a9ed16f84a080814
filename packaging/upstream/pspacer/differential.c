// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lets the scheduler of the series and core/ decide over the same arrivals, and compares:
 * classes, instants, clocks. Random classes, packets, changes of rates, classes that come and
 * go, polls that are early, on time and late, hosts that stand still.
@from ceil
 * Half of the runs may over-subscribe the line, and half of the classes have a ceil.
@from launch
 * A third of the classes have launch times.
@from gap
 * Half of the runs are on a wire with gap frames, and without launch times. Core knows no
 * wire that is not as fast as told: what the series does there has bounds of its own.
@always
 *
 * usage: differential SEED RUNS; scheduler.c is the template's result above "The qdisc".
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PACE_API	static __attribute__((unused))
#include "pace.c"

#include "kernel.h"
#include "scheduler.c"

#define CLASSES		24
#define QUEUE		64

struct pair {
	bool used;
	struct pace_class core;
	struct pspacer_class series;
	u32 len[QUEUE];
@from launch
	bool launches;
@always
	u32 head, count;
};

static struct pair pairs[CLASSES];
static struct pace_sched core;
static struct pspacer_sched series;
static u64 storage[1 << 16];
static u64 state, now_ns, sends, waits, changes, stalls, forgotten;
static u64 line_bps, reserved_bps, seed, step;
static u32 largest;
@from ceil
static bool oversubscribe;
static u64 borrowed;
@from launch
static u64 launched;
@from gap
/* A wire: when it is free, what the device holds beside, and how long it idled. */
static bool gaps;
static u64 wire_free_ps, ring_ps, lost_ps, filled;
@always

static u64 random_below(u64 below)
{
	state += 0x9e3779b97f4a7c15ull;
	u64 z = state;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31)) % below;
}

static void differ(const char *what, u64 by_core, u64 by_series)
{
	printf("seed %" PRIu64 ", step %" PRIu64 ": %s is %" PRIu64 " by core and %" PRIu64
	       " by the series\n", seed, step, what, by_core, by_series);
	exit(1);
}

static void compare(const char *what, u64 by_core, u64 by_series)
{
	if (by_core != by_series)
		differ(what, by_core, by_series);
}

@from launch
/* The first packet of a class is to leave at a random instant, mostly a near one. */
static void launch(struct pair *p)
{
	u64 ahead_ns = random_below(8) ? random_below(3000000) : random_below(10000000000ull);
	u64 at_ns = random_below(6) ? now_ns + ahead_ns : now_ns - random_below(1000000) - 1;

	if (random_below(30) == 0)
		at_ns = now_ns;
	if ((s64)at_ns < 1)
		at_ns = 1;
	launched++;
	pace_activate_at(&core, &p->core, at_ns, now_ns);
	pspacer_activate_at(&series, &p->series, at_ns, now_ns);
}

@from gap
/* Returns how long so many bytes take, rounded down. */
static u64 takes_ps(u64 bytes)
{
	return bytes * PACE_BYTE_PS / line_bps;
}

/* The device takes what was sent, if it has room. */
static void hand_out(u64 bytes)
{
	if (wire_free_ps < now_ns * 1000) {
		lost_ps += now_ns * 1000 - wire_free_ps;
		wire_free_ps = now_ns * 1000;
	}
	wire_free_ps += takes_ps(bytes);
}

static bool has_room(void)
{
	return !gaps || wire_free_ps <= now_ns * 1000 + ring_ps;
}

@always
/* Asks both. They send, or they wait; returns until when. */
static u64 ask(void)
{
@until gap
	for (;;) {
@from gap
	while (has_room()) {
@always
		struct pace_decision d = pace_next(&core, now_ns);
		u64 until_ns = 0;
		struct pspacer_class *c = pspacer_next(&series, now_ns, &until_ns);
		struct pair *p;
		u32 len;
		bool more;

@from gap
		compare("the gap frame", d.verdict == PACE_GAP ? d.gap_bytes : 0,
			gaps && !c ? series.fill_bytes : 0);
		if (d.verdict == PACE_GAP) {
			hand_out(d.gap_bytes);
			pace_gap_sent(&core, d.gap_bytes);
			pspacer_gap_sent(&series);
			compare("the port's clock", core.global_ps, series.global_ps);
			filled++;
			continue;
		}
@always
		if (d.verdict != PACE_SEND) {
			compare("the class that sends", ~0ull, c ? c->id : ~0ull);
			compare("the instant", d.verdict == PACE_IDLE ? ~0ull : d.until_ns,
				until_ns);
			waits++;
			return until_ns;
		}
		compare("the class that sends", d.cls->id, c ? c->id : ~0ull);
		p = (struct pair *)((char *)d.cls - offsetof(struct pair, core));
		len = p->len[p->head];
		p->head = (p->head + 1) % QUEUE;
		p->count--;
		more = p->count;
@from launch
		if (p->launches)
			more = false;
@always
		pace_sent(&core, d.cls, len, more, now_ns);
@from gap
		if (gaps) {
			len = pace_wire_bytes(&core, len);
			hand_out(len);
		}
@always
		pspacer_sent(&series, c, len, more, now_ns);
		compare("the clock", p->core.clock.ps, c->clock.ps);
		compare("its fraction", p->core.clock.frac, c->clock.frac);
@from ceil
		compare("the ceil's clock", p->core.ceil_clock.ps, c->ceil_clock.ps);
		compare("its fraction", p->core.ceil_clock.frac, c->ceil_clock.frac);
		compare("the clock of borrowing", p->core.borrow_clock.ps, c->borrow_clock.ps);
		compare("its fraction", p->core.borrow_clock.frac, c->borrow_clock.frac);
		compare("what was borrowed", core.stats.borrowed_frames,
			series.borrowed_packets);
		compare("the load", core.offered_load_bps, series.offered_load_bps);
@always
		compare("the deficit", p->core.deficit_bytes, c->deficit_bytes);
		compare("the offset", core.offset_ps, series.offset_ps);
@until gap
		compare("when the line is free", core.busy_until_ps, series.busy_until_ps);
@from gap
		compare("the port's clock", core.global_ps, series.global_ps);
		if (!gaps)
			compare("when the line is free", core.busy_until_ps,
				series.busy_until_ps);
@always
		compare("lateness", core.stats.late_max_ps, series.late_max_ps);
@from launch
		if (p->launches && p->count)
			launch(p);
@always
		sends++;
	}
@from gap
	return ~0ull;
@always
}

static void arrive(struct pair *p, u32 len)
{
	if (!p->used || p->count == QUEUE)
		return;
	p->len[(p->head + p->count++) % QUEUE] = len;
@from launch
	if (p->launches && (p->count == 1 || random_below(4) == 0))
		launch(p);
	if (p->launches)
		return;
@always
	if (p->count > 1)
		return;
	pace_activate(&core, &p->core, now_ns);
	pspacer_activate(&series, &p->series, now_ns);
}

static u64 random_rate(void)
{
	u64 room = line_bps - reserved_bps, least = pace_least_rate_bps(&core.cfg);
	u64 rate;

@from ceil
	if (oversubscribe)
		room = random_below(4) ? line_bps : line_bps / 4;
@always
	if (room < least)
		return 0;
	rate = random_below(3) ? room / (1 + random_below(8)) : least + random_below(room);
	if (random_below(8) == 0)
		rate = room;
	return rate < least ? least : rate > room ? room : rate;
}

@from ceil
static u64 random_ceil(u64 rate)
{
	return rate && random_below(2) ? rate + random_below(line_bps - rate + 1) : 0;
}

static struct pace_class_config config_of(u64 rate, u64 ceil, u32 quantum)
@until ceil
static struct pace_class_config config_of(u64 rate, u32 quantum)
@always
{
	return (struct pace_class_config){
		.type = rate ? PACE_TYPE_PACED : PACE_TYPE_NORMAL,
		.rate_bps = rate,
@from ceil
		.ceil_bps = ceil,
@always
		.quantum_bytes = rate ? 0 : quantum,
	};
}

static void add(struct pair *p)
{
	u64 rate = random_below(4) ? random_rate() : 0;
	u32 quantum = 256 + largest + random_below(20000);
@from ceil
	u64 ceil = random_ceil(rate);
	struct pace_class_config config = config_of(rate, ceil, quantum);
@until ceil
	struct pace_class_config config = config_of(rate, quantum);
@always

	*p = (struct pair){ .used = true };
@only launch
	p->launches = rate && random_below(3) == 0;
@from gap
	p->launches = rate && random_below(3) == 0 && !gaps;
@from launch
	config.launches = p->launches;
@always
	compare("adding", PACE_OK, pace_class_add(&core, &p->core, &config));
	pspacer_class_init(&series, &p->series, p->core.id, now_ns);
	p->series.quantum_bytes = quantum;
@from launch
	p->series.launches = p->launches;
@always
	if (rate)
@from ceil
		pspacer_set_rate(&series, &p->series, rate, ceil, now_ns);
@until ceil
		pspacer_set_rate(&series, &p->series, rate, now_ns);
@always
	reserved_bps += rate;
}

static void drop(struct pair *p)
{
	if (p->series.active)
		pspacer_deactivate(&series, &p->series, now_ns);
	/* Core asks anew after each change, also of an inactive class. */
	series.quiet_until_ns = 0;
	series.reserved_bps -= p->series.rate_bps;
	reserved_bps -= p->series.rate_bps;
	pace_deactivate(&core, &p->core, now_ns);
	pace_class_del(&core, &p->core);
	p->used = false;
}

static void change(struct pair *p)
{
	struct pace_class_config config;
@from ceil
	u64 ceil;
@always
	u64 rate;

	if (!p->series.rate_bps)
		return;
	reserved_bps -= p->series.rate_bps;
	rate = random_rate();
	reserved_bps += rate;
@from ceil
	ceil = random_ceil(rate);
	config = config_of(rate, ceil, 0);
@until ceil
	config = config_of(rate, 0);
@from launch
	config.launches = p->launches;
@always
	compare("changing", PACE_OK, pace_class_change(&core, &p->core, &config, now_ns));
@from ceil
	pspacer_set_rate(&series, &p->series, rate, ceil, now_ns);
@until ceil
	pspacer_set_rate(&series, &p->series, rate, now_ns);
@always
}

static void configure(void)
{
	static const u64 lines[] = { 10000000, 100000000, 1000000000, 999999937,
				     25000000000, 400000000000, 123457 };
	static const u32 lengths[] = { 60, 1514, 9014, 65536, 262144 };
	struct pace_config config;
	u64 begin = random_below(2) ? 0 : -random_below(1ull << 50);

	line_bps = lines[random_below(sizeof(lines) / sizeof(*lines))];
	largest = lengths[random_below(sizeof(lengths) / sizeof(*lengths))];
	now_ns = 1 + random_below(1ull << 40);
	reserved_bps = 0;
@from ceil
	oversubscribe = random_below(2);
@from gap
	gaps = random_below(2);
	/* What the device holds is far from what the series bounds. */
	if (takes_ps(largest + 24) > 1500000000ull)
		gaps = false;
	ring_ps = random_below(1900000000ull - takes_ps(largest + 24) * gaps);
	if (random_below(2) || ring_ps > takes_ps(40000))
		ring_ps = takes_ps(random_below(40000)) % 300000000;
	wire_free_ps = now_ns * 1000;
	lost_ps = 0;
@always
	config = (struct pace_config){
		.line_rate_bps = line_bps,
		.max_frame_bytes = largest,
		.layer = PACE_LAYER_LINK,
		.order = PACE_ORDER_NEXT,
		.mode = PACE_MODE_TIMER,
	};
@from gap
	if (gaps) {
		config.mode = PACE_MODE_GAP;
		config.layer = PACE_LAYER_WIRE;
		config.overhead_bytes = PSPACER_WIRE_MORE;
		config.min_frame_bytes = 60;
	}
@always
	compare("starting", PACE_OK, pace_init(&core, &config, storage, CLASSES, now_ns));
	pace_set_global(&core, begin);
	series = (struct pspacer_sched){ .max_packet = largest };
@from gap
	if (gaps) {
		series.gaps = true;
		series.max_packet = pace_wire_bytes(&core, largest);
		series.gap_max_bytes = series.max_packet;
	}
@always
	INIT_LIST_HEAD(&series.ring);
	series.line.ns = now_ns;
	series.line.ps = series.global_ps = begin;
	series.last_finish_ps = series.idled_ps = series.busy_until_ps = begin;
	pspacer_set_line(&series, line_bps, now_ns);
	for (u32 i = 0; i < CLASSES; i++)
		pairs[i].used = false;
	for (u32 i = 0; i < 1 + random_below(CLASSES); i++)
		add(&pairs[i]);
}

/* Lets time pass: mostly to about the instant, now and then the host stands still. */
static void pass(u64 until_ns)
{
	u64 packet_ns = (u64)largest * 8000000000ull / line_bps + 1;

	switch (random_below(8)) {
	case 0:
	case 1:
	case 2:
		if (until_ns != ~0ull && until_ns - now_ns < 1ull << 42)
			now_ns = until_ns;
		else
			now_ns += random_below(packet_ns);
		return;
	case 3:
		if (until_ns != ~0ull && until_ns - now_ns < 1ull << 42)
			now_ns = until_ns + random_below(60000);
		return;
	case 4:
		now_ns += random_below(packet_ns * 4 + 1);
		return;
	case 5:
		now_ns += random_below(2000);
		return;
	case 6:
		if (random_below(60))
			return;
		now_ns += random_below(1ull << (20 + random_below(20)));
		stalls++;
		return;
	default:
		return;
	}
}

@from gap
/* On a wire the host stands still for 1.4 ms in all while packets wait: beyond, the series
 * does more than core.
 */
static void pass_on_wire(void)
{
	u64 need_ns = (wire_free_ps > ring_ps ? wire_free_ps - ring_ps : 0) / 1000 + 1;
	u64 late_ns = random_below(random_below(4) ? 3000 : 100000);

	if (!pspacer_any_active(&series)) {
		lost_ps = 0;
		now_ns += random_below(3) ? late_ns : random_below(1ull << random_below(41));
		return;
	}
	switch (random_below(4)) {
	case 0:
		/* Packets come while the device has enough. */
		if (need_ns > now_ns)
			now_ns += random_below(need_ns - now_ns);
		return;
	case 1:
		if (lost_ps < 1300000000ull && now_ns < need_ns + 1000)
			now_ns = (need_ns > now_ns ? need_ns : now_ns) + late_ns;
		return;
	default:
		if (need_ns > now_ns)
			now_ns = need_ns;
	}
}

/*
 * What core does not bound: a device that takes bytes at `device_bps`, or at once (0), and a host
 * that takes `host_ns` for each frame. The clock is that of bytes if they are those of the line
 * within 200 ppm, and in any case near real time.
 */
static void bound(u64 device_bps, u64 host_ns)
{
	const u64 line = 1000000000, rate = 3000000, device_holds_ps = 300000000;
	const u64 cost_ps = 1538 * PACE_BYTE_PS / rate;
	u64 begin_ns = now_ns, handed_ps = 0, free_ps = 0, until_ns = 0, packets = 0;
	struct pspacer_class c = { .active = false };
	bool exact = !host_ns && device_bps && (s64)device_bps - (s64)line <= 200000 &&
		     (s64)line - (s64)device_bps <= 200000;
	u64 begin_ps, at_ps, real_ps, bytes, may_be_ps;

	series = (struct pspacer_sched){
		.max_packet = 1538, .gaps = true, .gap_max_bytes = 1538,
	};
	INIT_LIST_HEAD(&series.ring);
	series.line.ns = now_ns;
	pspacer_set_line(&series, line, now_ns);
	pspacer_class_init(&series, &c, 1, now_ns);
	pspacer_set_rate(&series, &c, rate, 0, now_ns);
	pspacer_activate(&series, &c, now_ns);
	begin_ps = series.global_ps;
	for (step = 0; now_ns - begin_ns < 30000000000ull; step++) {
		real_ps = (now_ns - begin_ns) * 1000;
		if (free_ps > real_ps + device_holds_ps) {
			now_ns += (free_ps - real_ps - device_holds_ps) / 1000 + 1;
			continue;
		}
		if (pspacer_next(&series, now_ns, &until_ns)) {
			bytes = 1538;
			packets++;
			pspacer_sent(&series, &c, bytes, true, now_ns);
		} else if (series.fill_bytes) {
			bytes = series.fill_bytes;
			pspacer_gap_sent(&series);
		} else {
			if (until_ns <= now_ns)
				differ("until when it waits", now_ns, until_ns);
			now_ns = until_ns + host_ns / 8;
			continue;
		}
		handed_ps += bytes * 8000;
		now_ns += host_ns;
		if (device_bps)
			free_ps = (free_ps > real_ps ? free_ps : real_ps) +
				  bytes * PACE_BYTE_PS / device_bps;
		at_ps = series.global_ps - begin_ps;
		if (exact) {
			compare("the clock of a wire", handed_ps, at_ps);
			compare("how often a wire was too fast", 0, series.gap_held);
		}
		may_be_ps = PSPACER_STALL_PS + real_ps / 4096;
		if (at_ps > real_ps + may_be_ps + 2 * 1538 * 8000)
			differ("the clock, at most,", real_ps, at_ps);
		if (at_ps + may_be_ps < real_ps)
			differ("the clock, at least,", real_ps, at_ps);
		/* A packet late, one early. */
		may_be_ps += 2 * cost_ps;
		if (packets * cost_ps > real_ps + may_be_ps)
			differ("the rate, at most,", real_ps, packets);
		if (packets * cost_ps + may_be_ps < real_ps)
			differ("the rate, at least,", real_ps, packets);
	}
	/* A host that cannot fill the wire does not try for long. */
	if (host_ns * 1000 > 2 * 1538 * 8000 && series.gap_packets > 2 * packets + 1000)
		differ("gap frames of a slow host", packets, series.gap_packets);
}

static void bounds(void)
{
	static const u64 devices[] = { 0, 1000000000, 1000200000, 999800000, 500000000,
				       2000000000 };

	for (u32 i = 0; i < sizeof(devices) / sizeof(*devices); i++)
		bound(devices[i], 0);
	bound(1000000000, 100000);
	bound(0, 30000);
}

@always
static void run(void)
{
	u64 until_ns;

	configure();
	for (step = 0; step < 3000; step++) {
		u32 burst = random_below(20) ? random_below(3) : random_below(60);
		u32 i = random_below(CLASSES);

		while (burst--)
			arrive(&pairs[random_below(2) ? i : random_below(CLASSES)],
			       1 + random_below(random_below(2) ? 200 : largest));
		until_ns = ask();
		if (random_below(40) == 0) {
			i = random_below(CLASSES);
			changes++;
			if (!pairs[i].used)
				add(&pairs[i]);
			else if (random_below(2))
				change(&pairs[i]);
			else
				drop(&pairs[i]);
			until_ns = ask();
		}
@until gap
		pass(until_ns);
@from gap
		if (gaps)
			pass_on_wire();
		else
			pass(until_ns);
@always
	}
	forgotten += series.rebases;
@from ceil
	borrowed += series.borrowed_packets;
@always
}

int main(int argc, char **argv)
{
	u64 runs = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	u64 first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;

	for (seed = first; seed < first + runs; seed++) {
		state = seed * 0x2545f4914f6cdd1dull;
		run();
	}
@from gap
	now_ns = 1000;
	bounds();
@always
	printf("%" PRIu64 " packets, %" PRIu64 " waits, %" PRIu64 " changes, %" PRIu64
	       " stalls, %" PRIu64 " times lag was forgotten: no difference\n",
	       sends, waits, changes, stalls, forgotten);
@from ceil
	printf("%" PRIu64 " packets were borrowed\n", borrowed);
@from launch
	printf("%" PRIu64 " instants\n", launched);
@from gap
	printf("%" PRIu64 " gap frames\n", filled);
@always
	return 0;
}
