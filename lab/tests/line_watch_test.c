// SPDX-License-Identifier: GPL-2.0-only
/*
 * What psp concludes from bytes handed out and times, on simulated devices: a
 * ring, a byte queue limit, completions that come late and in batches, a clock
 * that is slewed.  Honest wires are never taken for fast ones.
 */
#include "../../kernel/line_watch.h"
#include "check.h"

#define RING_MAX	4096u
#define MS		1000000ull
#define S		1000000000ull

/* SplitMix64. */
static u64 some(u64 *seed)
{
	u64 z = *seed += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static u64 below(u64 *seed, u64 end)
{
	return some(seed) % end;
}

struct device {
	double rate_bps;	/* that the wire really has */
	u32 ring;
	u64 limit_bytes;	/* byte queue limit; 0: none */
	u64 coalesce_ns;	/* completions come so late, and in batches */
	u64 noise_ns;		/* and at random so much later */
	u64 cpu_ns;		/* to hand out a frame */
	double clock;		/* what the host's clock counts in a second */
	bool small;		/* frames of 84 to 1538 bytes; else 1538 */

	double now, free;	/* real time, ns */
	double end[RING_MAX];
	u32 bytes[RING_MAX];
	u32 head, tail;
	u64 held;		/* bytes in the ring */
	double clock_ns, clock_at;	/* the host's clock, and when it was read */
	u64 seed;
};

static u64 host_ns(struct device *d)
{
	d->clock_ns += (d->now - d->clock_at) * d->clock;
	d->clock_at = d->now;
	return (u64)d->clock_ns + 1;
}

static void device_start(struct device *d)
{
	d->clock_ns = 12345678;
	d->clock_at = 0;
	d->now = 0;
	d->free = 0;
	d->head = 0;
	d->tail = 0;
	d->held = 0;
}

static void complete(struct device *d)
{
	for (; d->tail != d->head && d->end[d->tail % RING_MAX] <= d->now; d->tail++)
		d->held -= d->bytes[d->tail % RING_MAX];
}

/* As many frames as there is room for; true if one of them is one too many. */
static bool fill(struct device *d, struct psp_line_watch *w)
{
	bool fast = false;

	while (d->head - d->tail < d->ring && (!d->limit_bytes || d->held < d->limit_bytes)) {
		u32 bytes = d->small ? 84 + below(&d->seed, 1455) : 1538;
		u64 now_ns = host_ns(d), silence_ns = psp_line_silence(w, now_ns);

		if (silence_ns > w->stop_ns &&
		    psp_line_dry(w, now_ns, d->limit_bytes ? d->limit_bytes : d->ring * 1538))
			psp_line_stopped(w, silence_ns);
		fast |= psp_line_handed(w, bytes, now_ns);
		if (d->free < d->now)
			d->free = d->now;
		d->free += bytes * 8e9 / d->rate_bps;
		d->end[d->head % RING_MAX] = d->free;
		d->bytes[d->head % RING_MAX] = bytes;
		d->held += bytes;
		d->head++;
		d->now += d->cpu_ns;
	}
	return fast;
}

/* Until the next completion interrupt. */
static void interrupt(struct device *d)
{
	double at = d->end[d->tail % RING_MAX] + d->coalesce_ns;

	if (d->noise_ns)
		at += below(&d->seed, d->noise_ns);
	if (at > d->now)
		d->now = at;
	complete(d);
}

static bool run(struct device *d, struct psp_line_watch *w, u64 for_ns)
{
	double until = d->now + for_ns;
	bool fast = false;

	while (d->now < until && !fast) {
		fast = fill(d, w);
		interrupt(d);
	}
	return fast;
}

static struct psp_line_watch watch(u64 line_rate_bps, const struct device *d)
{
	struct psp_line_watch w = { 0 };

	psp_line_start(&w, line_rate_bps,
		       psp_line_slack_bytes(d->ring * 1538), 1538);
	return w;
}

static const u64 rates[] = {
	10000000, 100000000, 333333333, 1000000000, 2500000000ull, 10000000000ull,
	100000000000ull,
};

#define RATES	(sizeof(rates) / sizeof(*rates))

static struct device some_device(u64 seed, u64 line_rate_bps)
{
	struct device d = { .seed = seed };

	d.ring = 64u << below(&d.seed, 7);
	d.limit_bytes = below(&d.seed, 2) ? 20000 + below(&d.seed, 1000000) : 0;
	d.coalesce_ns = below(&d.seed, 200000);
	d.noise_ns = below(&d.seed, 2) ? 60000 : 0;
	d.cpu_ns = below(&d.seed, 300);
	d.small = below(&d.seed, 2);
	d.rate_bps = line_rate_bps;
	d.clock = 1;
	device_start(&d);
	return d;
}

/* Frames that the line takes some time for, and so for any rate. */
static u64 frames_ns(u64 line_rate_bps, u64 frames)
{
	return frames * 12304 * 1000000 / (line_rate_bps / 1000) ;
}

static void test_honest_wires(void)
{
	for (u64 seed = 0; seed < 16; seed++) {
		for (size_t i = 0; i < RATES; i++) {
			struct device d = some_device(seed, rates[i]);
			struct psp_line_watch w = watch(rates[i], &d);

			/* Crystals of 200 ppm, and a clock steered by as much as the kernel does. */
			d.rate_bps *= seed % 3 ? 1.0002 : 0.9998;
			d.clock = seed % 2 ? 1.0 : seed % 4 ? 0.9995 : 1.0005;
			CHECK(!run(&d, &w, frames_ns(rates[i], 20000)), "seed %lu, %lu bit/s", seed,
			      rates[i]);
		}
	}
}

/* What was in the ring is lost, and it is filled again: a reset, or a suspend. */
static void test_resets_and_suspends(void)
{
	for (u64 seed = 0; seed < 16; seed++) {
		for (size_t i = 0; i < RATES; i++) {
			struct device d = some_device(seed, rates[i]);
			struct psp_line_watch w = watch(rates[i], &d);
			bool fast = run(&d, &w, frames_ns(rates[i], 5000));

			if (seed % 2) {
				d.tail = d.head;
				d.held = 0;
				d.free = d.now;
			} else {
				/* The device goes on to the end of its ring, the clock does not. */
				d.now = d.free;
				d.clock_at = d.now;
				complete(&d);
			}
			fast |= run(&d, &w, frames_ns(rates[i], 5000));
			CHECK(!fast, "seed %lu, %lu bit/s", seed, rates[i]);
		}
	}
}

/* A minute in which nothing is handed out, or the host does not run. */
static void test_holds_and_pauses(void)
{
	struct device d = some_device(3, 1000000000);
	struct psp_line_watch w = watch(1000000000, &d);

	for (int i = 0; i < 10; i++) {
		CHECK(!run(&d, &w, 20 * MS), "spell %d", i);
		d.now += 60 * S;
		complete(&d);
		if (i % 2)
			psp_line_idle(&w);
	}
}

static void test_fast_wires_are_found(void)
{
	for (size_t i = 0; i < RATES; i++) {
		for (int times = 2; times <= 64; times *= 2) {
			struct device d = some_device(i, rates[i]);
			struct psp_line_watch w;
			double within;

			d.coalesce_ns = 0;
			d.noise_ns = 0;
			d.cpu_ns = 0;
			d.ring = 256;
			d.rate_bps *= times;
			w = watch(rates[i], &d);
			/* What the slack holds, at what is too fast, and the ring's own time. */
			within = (w.slack_ns + frames_ns(rates[i], 2 * d.ring)) / (times - 1.004);
			CHECK(run(&d, &w, 2 * within), "%lu bit/s x %d", rates[i], times);
			CHECK(d.now <= within, "%lu bit/s x %d: after %.0f ns, not %.0f",
			      rates[i], times, d.now, within);
			CHECK(psp_line_taken_bps(&w, host_ns(&d)) > rates[i], "%lu bit/s", rates[i]);
		}
	}
}

/* A hundredth too fast shows within seconds; 1/512 is within what clocks differ by. */
static void test_a_little_too_fast(void)
{
	static const double times[] = { 1.01, 1 + 1.0 / 512 };

	for (int i = 0; i < 2; i++) {
		struct device d = some_device(1, 1000000000);
		struct psp_line_watch w;

		d.ring = 256;
		d.limit_bytes = 0;
		d.rate_bps *= times[i];
		w = watch(1000000000, &d);
		CHECK(run(&d, &w, 10 * S) == !i, "x %f", times[i]);
		CHECK(w.measured_bps > d.rate_bps * 0.999 && w.measured_bps < d.rate_bps * 1.001,
		      "%lu", w.measured_bps);
	}
}

/* A slewed clock makes any wire fast, which the untouched clock tells. */
static void test_slewed_clocks(void)
{
	struct device d = some_device(1, 1000000000);
	struct psp_line_watch w = watch(1000000000, &d);
	double begin = d.now;
	u64 from_ns = host_ns(&d);

	d.clock = 0.9;
	CHECK(run(&d, &w, 10 * S), "a tenth");
	CHECK(psp_line_slewed(host_ns(&d) - from_ns, d.now - begin), "a tenth");
	CHECK(!psp_line_slewed(10 * S - 5 * MS, 10 * S), "500 ppm are steering");
	CHECK(!psp_line_slewed(10 * S + 100 * MS, 10 * S), "a fast clock makes no wire fast");
	CHECK(psp_line_slewed(10 * S - 20 * MS, 10 * S), "2000 ppm are not");
}

/* Two suspicions are a verdict; one of today and one of yesterday are not. */
static void test_suspicions_age(void)
{
	for (size_t i = 0; i < RATES; i++) {
		struct device d = some_device(1, rates[i]);
		struct psp_line_watch w;
		double first, raw_ns;

		d.ring = 256;
		d.coalesce_ns = 0;
		d.noise_ns = 0;
		d.cpu_ns = 0;
		d.rate_bps *= 1 + 1.0 / 64;
		w = watch(rates[i], &d);
		CHECK(run(&d, &w, 600ull * w.slack_ns), "%lu bit/s", rates[i]);
		first = d.now;
		w = watch(rates[i], &d);
		CHECK(run(&d, &w, 600ull * w.slack_ns), "%lu bit/s", rates[i]);
		raw_ns = d.now - first;
		CHECK(psp_line_confirmed(&w, raw_ns, raw_ns), "%lu bit/s, %.0f ns", rates[i],
		      raw_ns);
		CHECK(!psp_line_confirmed(&w, raw_ns * 0.9, raw_ns), "slewed");
		raw_ns = 257.0 * w.slack_ns;
		CHECK(!psp_line_confirmed(&w, raw_ns, raw_ns), "%lu bit/s: long ago", rates[i]);
	}
}

static void test_a_slow_wire_is_measured(void)
{
	struct device d = some_device(2, 1000000000);
	struct psp_line_watch w;

	d.ring = 256;
	d.limit_bytes = 60000;
	d.coalesce_ns = 50000;
	d.noise_ns = 0;
	d.rate_bps = 4e8;
	w = watch(1000000000, &d);
	CHECK(!run(&d, &w, PSP_LINE_WINDOW_NS + 50 * MS), "slow");
	CHECK(!w.measured_bps, "in the first window the ring was filled: %lu", w.measured_bps);
	CHECK(!run(&d, &w, PSP_LINE_WINDOW_NS), "slow");
	CHECK(w.measured_bps > 399000000 && w.measured_bps < 401000000, "%lu", w.measured_bps);
	/* A silence of nobody who waits is no measure of the wire. */
	psp_line_idle(&w);
	d.now += S;
	complete(&d);
	CHECK(!run(&d, &w, 3 * PSP_LINE_WINDOW_NS), "slow");
	CHECK(w.measured_bps > 399000000 && w.measured_bps < 401000000, "%lu", w.measured_bps);
}

static struct device steady_device(void)
{
	struct device d = { .ring = 256, .limit_bytes = 40000, .rate_bps = 1e9, .clock = 1 };

	device_start(&d);
	return d;
}

/* 40 kB are 320 us of 1 Gbit/s: a host held for less stops nothing. */
static void test_stops(void)
{
	struct device d = steady_device();
	struct psp_line_watch w = watch(1000000000, &d);

	CHECK(!run(&d, &w, 50 * MS), "steady");
	CHECK(w.stops == 0, "%lu stops of a full wire", w.stops);
	d.now += 280000;
	complete(&d);
	CHECK(!run(&d, &w, 50 * MS), "steady");
	CHECK(w.stops == 0, "%lu stops: the ring held as much", w.stops);
	d.now += 1000000;
	complete(&d);
	CHECK(!run(&d, &w, 50 * MS), "steady");
	CHECK(w.stops == 1, "%lu stops of one", w.stops);
	CHECK(w.stop_max_ns > 660000 && w.stop_max_ns < 1000000, "%lu ns", w.stop_max_ns);
}

/* Over seconds a slow crystal's wire falls behind by more than a ring. */
static void test_a_slow_crystal_is_no_stop(void)
{
	struct device d = steady_device();
	struct psp_line_watch w = watch(1000000000, &d);

	d.rate_bps *= 0.9998;
	d.coalesce_ns = 50000;
	d.noise_ns = 60000;
	CHECK(!run(&d, &w, 20 * S), "slow by 200 ppm");
	d.now += 180000;
	complete(&d);
	CHECK(!run(&d, &w, 50 * MS), "slow by 200 ppm");
	CHECK(w.stops == 0, "%lu stops: the ring held as much", w.stops);
	d.now += 1000000;
	complete(&d);
	CHECK(!run(&d, &w, 50 * MS), "slow by 200 ppm");
	CHECK(w.stops == 1, "%lu stops of one", w.stops);
}

/* With no frame waiting, or none due, silence is no stop. */
static void test_silence_that_is_no_stop(void)
{
	struct psp_line_watch w = { 0 };

	psp_line_start(&w, 1000000000, 1 << 20, 1538);
	CHECK(w.stop_ns == 12304, "%lu", w.stop_ns);
	CHECK(psp_line_silence(&w, S) == 0, "nothing was handed out yet");
	psp_line_handed(&w, 1538, S);
	CHECK(psp_line_silence(&w, S + 12304) == 0, "the frame takes that long");
	CHECK(psp_line_silence(&w, S + 12404) == 100, "and no longer");
	psp_line_wait(&w, S + 50000);
	CHECK(psp_line_silence(&w, S + 50000) == 0, "the next one is due then");
	CHECK(psp_line_dry(&w, S + 60000, 1 << 20), "a wire that waits is dry");
	psp_line_wait(&w, S + 40000);
	CHECK(psp_line_silence(&w, S + 50000) == 10000, "or earlier, after all");
	psp_line_wait(&w, S + 90000);
	psp_line_handed(&w, 1538, S + 50000);
	CHECK(psp_line_silence(&w, S + 80000) == 30000 - 12304, "what was due later has gone");
	psp_line_idle(&w);
	CHECK(psp_line_silence(&w, 2 * S) == 0, "nobody waits");
	psp_line_handed(&w, 1538, 2 * S);
	CHECK(psp_line_silence(&w, 2 * S + 20000) == 20000 - 12304, "from then on");

	psp_line_start(&w, 100000000000ull, 1 << 20, 1538);
	CHECK(w.stop_ns == PSP_LINE_STOP_NS, "%lu", w.stop_ns);
}

/* Of frames shorter than a nanosecond each: nothing is lost by rounding. */
static void test_time_of_small_frames(void)
{
	struct psp_line_watch w = { 0 };

	psp_line_start(&w, 1000000000000ull, 1 << 30, 1538);
	for (int i = 0; i < 1000000; i++)
		psp_line_handed(&w, 84, 1000);
	/* 84e6 bytes are 672 us; a rate's unit is exact to 1 in 8000. */
	CHECK(w.free_ns > 1000 + 671900 && w.free_ns <= 1000 + 672000, "%lu", w.free_ns);
}

static void test_counters_stay(void)
{
	struct psp_line_watch w = { 0 };

	psp_line_start(&w, 1000000000, 1 << 20, 1538);
	w.measured_bps = 5;
	psp_line_stopped(&w, 70000);
	psp_line_stopped(&w, 30000);
	psp_line_start(&w, 1000000000, 1 << 20, 1538);
	CHECK(w.stops == 2 && w.stop_max_ns == 70000 && w.measured_bps == 5, "the same line");
	psp_line_start(&w, 100000000, 1 << 20, 1538);
	CHECK(w.stops == 2 && w.measured_bps == 0, "another line is measured anew");
	psp_line_start(&w, 0, 0, 1538);
	CHECK(!w.line_rate_bps, "nothing is watched");
}

/* Two trials on a simulated wire: it takes `taken` of 8 of their time, each with a delay. */
static u32 trials(u64 line_rate_bps, u64 first_bytes, double taken, u64 buffer_bytes,
		  u64 late_a_ns, u64 late_b_ns)
{
	double ns_a = first_bytes * 8e9 / line_rate_bps, ns_b = 3 * ns_a;
	double buffer_ns = buffer_bytes * 8e9 / line_rate_bps;
	double took_a = ns_a * taken - buffer_ns, took_b = ns_b * taken - buffer_ns;

	if (took_a < 0)
		took_a = 0;
	if (took_b < 0)
		took_b = 0;
	return psp_line_eighths((u64)took_a + late_a_ns, (u64)ns_a,
				(u64)took_b + late_b_ns, (u64)ns_b);
}

static void test_trials(void)
{
	for (size_t i = 0; i < RATES; i++) {
		u64 bytes = rates[i] / 8000 > 16384 ? rates[i] / 8000 : 16384, seed = i;

		/* Completions of 200 us and a host held for 60 us: of a million pairs none fails. */
		for (int n = 0; n < 1000000 / (int)RATES; n++) {
			u64 late = below(&seed, 200000);
			u32 got = trials(rates[i], bytes, 0.9998, 0, late + below(&seed, 60000),
					 late + below(&seed, 60000));

			CHECK(got >= 7, "%lu bit/s: %u", rates[i], got);
		}
		CHECK(trials(rates[i], bytes, 0, 0, 1000000, 1000000) == 0, "%lu bit/s: all dropped",
		      rates[i]);
		CHECK(trials(rates[i], bytes, 0.7, 0, 20000, 80000) < 7, "%lu bit/s: 30 %%", rates[i]);
		CHECK(trials(rates[i], bytes, 1, bytes, 20000, 20000) >= 7, "%lu bit/s: a buffer",
		      rates[i]);
		CHECK(trials(rates[i], bytes, 1, 3 * bytes, 20000, 20000) == 0,
		      "%lu bit/s: a buffer that takes both", rates[i]);
	}
	CHECK(psp_line_eighths(5, 100, 90, 100) == 0, "of one length");
	CHECK(psp_line_eighths(90, 100, 5, 300) == 0, "the second was faster");
	CHECK(psp_line_early_ns(100, 100) == 0 && psp_line_early_ns(0, 100) == 0, "in time");
	CHECK(psp_line_early_ns(130, 100) == 30, "early");
}

/* What an honest device releases is never early, but for its packet buffer. */
static void test_release_is_not_early(void)
{
	for (u64 seed = 0; seed < 8; seed++) {
		for (size_t i = 0; i < RATES; i++) {
			struct device d = some_device(seed, rates[i]);
			struct psp_line_watch w = watch(rates[i], &d);
			u64 early_ns = 0;

			d.rate_bps *= seed % 2 ? 1.0002 : 0.9998;
			d.clock = seed % 4 > 1 ? 0.9995 : 1;
			for (int n = 0; n < 2000; n++) {
				u64 mark_ns;
				u32 head;

				fill(&d, &w);
				mark_ns = w.fast_ns;
				head = d.head;
				while ((int)(d.tail - head) < 0)
					interrupt(&d);
				early_ns += psp_line_early_ns(mark_ns, host_ns(&d));
			}
			CHECK(!early_ns, "seed %lu, %lu bit/s: %lu ns", seed, rates[i], early_ns);
		}
	}
}

int main(void)
{
	test_trials();
	test_release_is_not_early();
	test_honest_wires();
	test_resets_and_suspends();
	test_holds_and_pauses();
	test_fast_wires_are_found();
	test_a_little_too_fast();
	test_slewed_clocks();
	test_suspicions_age();
	test_a_slow_wire_is_measured();
	test_stops();
	test_a_slow_crystal_is_no_stop();
	test_silence_that_is_no_stop();
	test_time_of_small_frames();
	test_counters_stay();
	return check_result("line_watch");
}
