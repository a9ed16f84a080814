// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cable's arithmetic against the definition, in 128-bit integers: the k-th
 * byte of a run without pause leaves at floor(k x 8e12 / rate_bps).
 */
#include <stdlib.h>

#include "../wire/wire_math.h"
#include "check.h"

typedef unsigned __int128 u128;

static const u64 rates[] = {
	1000, 8000, 300000000, 333333333, 500000000, 999999937, 1000000000, 2500000000ULL,
	10000000000ULL, 99999999977ULL, 100000000000ULL, 400000000001ULL, 1000000000000ULL,
};

#define RATES	(sizeof(rates) / sizeof(*rates))

static u64 exact_ps(u64 rate_bps, u128 bytes)
{
	return bytes * WIRE_PS_BITS / rate_bps;
}

static u32 some_frame(u64 *random)
{
	return wire_random(random) % 9001 + 14;
}

static void test_known_figures(void)
{
	struct wire_rate r = wire_rate_of(1000000000);
	struct wire_clock line = { 0 };
	u64 end_ps;

	CHECK(wire_length(1514) == 1538, "%u", wire_length(1514));
	CHECK(wire_length(14) == 84 && wire_length(60) == 84 && wire_length(61) == 85, "padding");
	CHECK(wire_depart(&line, &r, 5000000, 1538, &end_ps) == 5000000, "idle wire");
	CHECK(end_ps == 5000000 + 1526 * 8000, "%lu", end_ps);
	CHECK(wire_depart(&line, &r, 5000001, 1538, &end_ps) == 5000000 + 12304000, "busy wire");
	CHECK(wire_depart(&line, &r, 90000000, 84, &end_ps) == 90000000, "idle again");
}

/* No drift: after a million frames in a run still floor(exact). */
static void test_run_has_no_drift(void)
{
	for (size_t i = 0; i < RATES; i++) {
		struct wire_rate r = wire_rate_of(rates[i]);
		struct wire_clock line = { 0 };
		u64 random = i, start_ps, end_ps, base_ps = 123456789;
		u128 bytes = 0;
		u32 wire_bytes;
		int k, runs = rates[i] < 1000000 ? 1000 : 1000000;

		for (k = 0; k < runs; k++) {
			wire_bytes = wire_length(some_frame(&random));
			start_ps = wire_depart(&line, &r, base_ps, wire_bytes, &end_ps);
			if (start_ps != base_ps + exact_ps(rates[i], bytes) ||
			    end_ps != base_ps + exact_ps(rates[i], bytes + wire_bytes - WIRE_IFG))
				break;
			bytes += wire_bytes;
		}
		CHECK(k == runs, "rate %lu: frame %d starts at %lu", rates[i], k, start_ps);
	}
}

static void test_long_span(void)
{
	for (size_t i = 0; i < RATES; i++) {
		struct wire_rate r = wire_rate_of(rates[i]);
		u64 bytes[] = { 1, 65536, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, WIRE_BYTES_MAX };

		for (size_t k = 0; k < sizeof(bytes) / sizeof(*bytes); k++) {
			u64 carry = 0, ps = wire_span_long(&r, bytes[k], &carry);

			CHECK(ps == exact_ps(rates[i], bytes[k]) &&
			      carry == (u64)((u128)bytes[k] * WIRE_PS_BITS % rates[i]),
			      "rate %lu, %lu bytes", rates[i], bytes[k]);
		}
	}
}

/*
 * A FIFO that drains bit by bit, in exact fractions: time in units of
 * 1 / rate_bps ps, so that a byte takes 8e12 units.
 */
struct exact_fifo {
	u64 rate_bps, limit_bytes;
	u128 free;
};

static bool exact_fifo_pass(struct exact_fifo *q, u64 at_ps, u32 bytes, u64 *out_ps)
{
	u128 at = (u128)at_ps * q->rate_bps;
	u128 start = q->free > at ? q->free : at;

	if (start - at + (u128)bytes * WIRE_PS_BITS > (u128)q->limit_bytes * WIRE_PS_BITS)
		return false;
	q->free = start + (u128)bytes * WIRE_PS_BITS;
	*out_ps = q->free / q->rate_bps;
	return true;
}

static void test_fifo(void)
{
	for (size_t i = 3; i < RATES; i++) {
		struct exact_fifo exact = { .rate_bps = rates[i], .limit_bytes = 65536 };
		struct wire_port port = {
			.rate = wire_rate_of(rates[i]), .fifo_bytes = 65536, .delay_ns = 1000,
		};
		u64 random = 7 * i, at_ps = 0, byte_ps = exact_ps(rates[i], 1) + 1;
		int k, drops = 0;

		wire_port_start(&port, 0);
		for (k = 0; k < 1000000; k++) {
			u32 bytes = some_frame(&random), counted = bytes < 60 ? 60 : bytes;
			u64 out_ps = 0, arrive_ps = 0;
			enum wire_fate fate;
			bool pass;

			/* Bursts and pauses about the drain rate. */
			at_ps += wire_random(&random) % (2 * 4400 * byte_ps);
			pass = exact_fifo_pass(&exact, at_ps, counted, &out_ps);
			fate = wire_port_pass(&port, at_ps, bytes, &arrive_ps);
			if (pass != (fate == WIRE_DELIVERED) || (!pass && fate != WIRE_DROP_FIFO) ||
			    (pass && arrive_ps != out_ps + 1000000))
				break;
			drops += !pass;
		}
		CHECK(k == 1000000, "rate %lu: frame %d differs", rates[i], k);
		CHECK(drops > 1000 && drops < 900000, "rate %lu: %d drops", rates[i], drops);
	}
}

static void test_fifo_limit_is_inclusive(void)
{
	struct wire_port port = { .rate = wire_rate_of(300000000), .fifo_bytes = 3000 };
	u64 arrive_ps;

	wire_port_start(&port, 0);
	CHECK(wire_port_pass(&port, 10, 1500, &arrive_ps) == WIRE_DELIVERED, "first");
	CHECK(arrive_ps == 10 + 40000000, "%lu", arrive_ps);
	CHECK(wire_port_pass(&port, 10, 1500, &arrive_ps) == WIRE_DELIVERED, "exactly full");
	CHECK(arrive_ps == 10 + 80000000, "%lu", arrive_ps);
	CHECK(wire_port_pass(&port, 10, 60, &arrive_ps) == WIRE_DROP_FIFO, "over");
	CHECK(wire_port_pass(&port, 10 + 1600000, 60, &arrive_ps) == WIRE_DELIVERED,
	      "60 bytes have drained");
	CHECK(wire_port_pass(&port, 10 + 1600000, 60, &arrive_ps) == WIRE_DROP_FIFO, "full again");
}

/*
 * A token bucket in exact fractions, refilled step by step at every multiple of
 * the refresh interval. Tokens in units of 1 / (8e12) byte: one ps brings rate_bps.
 */
struct exact_bucket {
	u64 rate_bps, refresh_ps, filled_ps;
	u128 limit, tokens;
};

static bool exact_bucket_pass(struct exact_bucket *b, u64 at_ps, u32 bytes)
{
	u64 step = b->refresh_ps ? b->refresh_ps : at_ps - b->filled_ps;
	u128 need = (u128)bytes * WIRE_PS_BITS;

	while (step && b->filled_ps + step <= at_ps) {
		b->filled_ps += step;
		b->tokens += (u128)step * b->rate_bps;
		if (b->tokens > b->limit)
			b->tokens = b->limit;
		if (!b->refresh_ps)
			break;
	}
	if (need > b->tokens)
		return false;
	b->tokens -= need;
	return true;
}

static void test_policer(u64 rate_bps, u64 refresh_ns)
{
	struct wire_port port = {
		.rate = wire_rate_of(rate_bps), .burst_bytes = 100000, .refresh_ns = refresh_ns,
	};
	u64 base_ps = 987654321, at_ps = base_ps, arrive_ps;
	u64 random = rate_bps, byte_ps = exact_ps(rate_bps, 1) + 1;
	struct exact_bucket exact = {
		.rate_bps = rate_bps, .refresh_ps = refresh_ns * 1000, .filled_ps = base_ps,
		.limit = (u128)100000 * WIRE_PS_BITS, .tokens = (u128)100000 * WIRE_PS_BITS,
	};
	int k, drops = 0;

	if (refresh_ns)
		exact.filled_ps -= base_ps % exact.refresh_ps;
	wire_port_start(&port, base_ps);
	for (k = 0; k < 1000000; k++) {
		u32 bytes = 60 + some_frame(&random);
		enum wire_fate fate;
		bool pass;

		at_ps += wire_random(&random) % (2 * 4000 * byte_ps);
		pass = exact_bucket_pass(&exact, at_ps, bytes);
		fate = wire_port_pass(&port, at_ps, bytes, &arrive_ps);
		if (pass != (fate == WIRE_DELIVERED) || (!pass && fate != WIRE_DROP_POLICER) ||
		    (pass && arrive_ps != at_ps))
			break;
		drops += !pass;
	}
	CHECK(k == 1000000, "rate %lu: frame %d differs", rate_bps, k);
	CHECK(drops > 1000 && drops < 900000, "rate %lu: %d drops", rate_bps, drops);
}

/* Frames of one size with a period that leaves the bucket on its edges. */
static void test_policer_edges(void)
{
	struct wire_port port = { .rate = wire_rate_of(300000000), .burst_bytes = 100 };
	u64 arrive_ps;

	wire_port_start(&port, 0);
	CHECK(wire_port_pass(&port, 0, 100, &arrive_ps) == WIRE_DELIVERED, "full at first");
	CHECK(wire_port_pass(&port, 2666666, 100, &arrive_ps) == WIRE_DROP_POLICER, "2/3 ps early");
	CHECK(wire_port_pass(&port, 2666667, 100, &arrive_ps) == WIRE_DELIVERED, "100 bytes again");
}

static void test_no_limit_is_only_delay(void)
{
	struct wire_port port = { .delay_ns = 100000000 };
	u64 arrive_ps;

	wire_port_start(&port, 55);
	for (u64 at_ps = 1; at_ps < 100; at_ps++)
		CHECK(wire_port_pass(&port, at_ps, 1514, &arrive_ps) == WIRE_DELIVERED &&
		      arrive_ps == at_ps + 100000000000ULL, "%lu", arrive_ps);
}

static void test_overhead(void)
{
	struct wire_port port = {
		.rate = wire_rate_of(1000000000), .fifo_bytes = 65536, .overhead_bytes = 24,
	};
	u64 arrive_ps;

	wire_port_start(&port, 0);
	wire_port_pass(&port, 0, 42, &arrive_ps);
	CHECK(arrive_ps == 84 * 8000, "%lu", arrive_ps);
}

static void test_noise_distributions(void)
{
	const u64 n = 1000000, mean = 500000;
	u64 random = 1, sum = 0, over = 0, top = 0, value;

	for (u64 i = 0; i < n; i++) {
		value = wire_exponential(wire_random(&random), mean);
		sum += value;
		over += value > 3 * mean;
	}
	/* Four standard errors: mean / 1000 each; e^-3 = 0.0498. */
	CHECK(llabs((long long)(sum / n) - (long long)mean) < 2000, "mean %lu", sum / n);
	CHECK(over > 48900 && over < 50700, "%lu of %lu over three means", over, n);
	CHECK(wire_exponential(UINT64_MAX, mean) <= 1, "least");
	CHECK(wire_exponential(0, 10000000000ULL) > 400000000000ULL, "most");
	for (u64 i = 0, low = 0; i < n; i++) {
		value = wire_uniform(wire_random(&random), 60000);
		low += value < 30000;
		top = value > top ? value : top;
		if (i == n - 1)
			CHECK(low > 497500 && low < 502500, "%lu below the middle", low);
	}
	CHECK(top <= 60000 && top > 59990, "top %lu", top);
	CHECK(wire_uniform(UINT64_MAX, 60000) == 60000 && wire_uniform(0, 60000) == 0, "ends");
}

int main(void)
{
	test_known_figures();
	test_run_has_no_drift();
	test_long_span();
	test_fifo();
	test_fifo_limit_is_inclusive();
	test_policer(500000000, 500000);
	test_policer(500000000, 0);
	test_policer(1000000000, 1000);
	test_policer(333333333, 500000);
	test_policer(999999937, 0);
	test_policer(400000000001ULL, 0);
	test_policer_edges();
	test_no_limit_is_only_delay();
	test_overhead();
	test_noise_distributions();
	return check_result("wire_math");
}
