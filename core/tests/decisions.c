// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Prints a checksum of the core's decisions for each mode, order and queue:
 * the same numbers on every architecture.  Operations come from a generator
 * with a fixed seed; nothing depends on the host's time, word order or memory.
 *
 * Before that it compares the division of the contract with the compiler's
 * own 128-bit one, and fails if they differ.
 */
#include <stdio.h>
#include <stdlib.h>

#include <pace/pace.h>
#include <pace/pace_sched.h>

#define CLASSES		48u
#define STEPS		6000u
#define DIVISIONS	200000u
#define LINE_BPS	1000000000ull

struct slot {
	struct pace_class pace;
	struct pace_reservation reservation;
	u32 frames;		/* that the class has waiting */
	bool added;
};

static u64 seed;

/* Returns the next number of a splitmix64 generator. */
static u64 next_random(void)
{
	u64 z = seed += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static u32 below(u32 limit)
{
	return next_random() % limit;
}

/* A number of a random length, so that small ones are as frequent as large ones. */
static u64 random_bits(u32 most)
{
	return next_random() >> (64 - 1 - below(most));
}

static u64 sum;

/* Adds a number to the checksum (FNV-1a on bytes, lowest first). */
static void note(u64 number)
{
	int i;

	for (i = 0; i < 64; i += 8)
		sum = (sum ^ (number >> i & 0xff)) * 0x100000001b3ull;
}

#ifdef __SIZEOF_INT128__
/* The largest divisor that the contract allows is below 2^48. */
static int check_division(void)
{
	u64 a, b, c, found, expected;
	unsigned __int128 exact;
	u32 i;

	for (i = 0; i < DIVISIONS; i++) {
		a = random_bits(64);
		b = random_bits(64);
		c = random_bits(48) | 1;
		exact = (unsigned __int128)a * b / c;
		if (exact >> 64)
			continue;
		expected = exact;
		found = pace_mul_div(a, b, c);
		if (found != expected) {
			fprintf(stderr, "%llu * %llu / %llu: expected %llu, found %llu\n",
				(unsigned long long)a, (unsigned long long)b,
				(unsigned long long)c,
				(unsigned long long)expected,
				(unsigned long long)found);
			return 1;
		}
	}
	return 0;
}
#else
static int check_division(void)
{
	return 0;	/* what decides is compared with 64 bits all the same */
}
#endif

static struct pace_class_config random_class(struct slot *slot)
{
	struct pace_class_config cfg = { .type = below(4) };

	switch (cfg.type) {
	case PACE_TYPE_PACED:
		cfg.rate_bps = 100000 + random_bits(29);
		if (below(3) == 0)
			cfg.ceil_bps = cfg.rate_bps + random_bits(28);
		break;
	case PACE_TYPE_NORMAL:
		cfg.quantum_bytes = 256 + below(4000);
		break;
	default:
		cfg.reserve_bytes = 1500 + below(20000);
		cfg.reservation = &slot->reservation;
		break;
	}
	return cfg;
}

/* All frames of a class have one length, so that each class is of one kind of traffic. */
static u32 length_of(u32 slot)
{
	return 60 + slot * 31;
}

static void configure(struct pace_sched *s, struct slot *slot, u64 now_ns)
{
	struct pace_class_config cfg = random_class(slot);
	enum pace_error refused;

	if (slot->added) {
		note(pace_class_change(s, &slot->pace, &cfg, now_ns));
		return;
	}
	refused = pace_class_add(s, &slot->pace, &cfg);
	slot->added = !refused;
	note(refused);
}

static void take_out(struct pace_sched *s, struct slot *slot, u64 now_ns)
{
	if (!slot->added)
		return;
	pace_deactivate(s, &slot->pace, now_ns);
	slot->frames = 0;
	if (below(4))
		return;
	pace_class_del(s, &slot->pace);
	slot->added = false;
}

static void arrive(struct pace_sched *s, struct slot *slot, u32 len_bytes,
		   u64 now_ns)
{
	if (!slot->added)
		return;
	slot->frames++;
	pace_arrived(s, &slot->pace, pace_wire_bytes(s, len_bytes), now_ns);
	pace_activate(s, &slot->pace, now_ns);
}

/* Does what the core says, and returns the host's time after that. */
static u64 obey(struct pace_sched *s, struct slot *slots, u64 now_ns)
{
	struct pace_decision d = pace_next(s, now_ns);
	struct slot *slot;
	u32 i;

	note(d.verdict);
	switch (d.verdict) {
	case PACE_SEND:
		for (i = 0; &slots[i].pace != d.cls;)
			i++;
		slot = &slots[i];
		note(i);
		note(d.late_ps);
		slot->frames--;
		pace_sent(s, d.cls, length_of(i), slot->frames > 0, now_ns);
		return now_ns + pace_wire_bytes(s, length_of(i)) * 8;
	case PACE_GAP:
		note(d.gap_bytes);
		pace_gap_sent(s, d.gap_bytes);
		return now_ns + d.gap_bytes * 8;
	case PACE_WAIT:
		note(d.until_ns);
		return d.until_ns + below(30000);
	default:
		return now_ns + random_bits(24);
	}
}

static void play(struct pace_sched *s, struct slot *slots)
{
	u64 now_ns = 0;
	u32 step, i;

	for (step = 0; step < STEPS; step++) {
		i = below(CLASSES);
		switch (below(20)) {
		case 0:
			configure(s, &slots[i], now_ns);
			break;
		case 1:
			if (below(10) == 0)
				take_out(s, &slots[i], now_ns);
			break;
		case 2: case 3: case 4: case 5: case 6: case 7: case 8: case 9:
			arrive(s, &slots[i], length_of(i), now_ns);
			break;
		default:
			now_ns = obey(s, slots, now_ns);
			break;
		}
	}
}

static void note_stats(const struct pace_stats *stats)
{
	note(stats->sent_frames);
	note(stats->sent_wire_bytes);
	note(stats->gap_frames);
	note(stats->gap_wire_bytes);
	note(stats->early_max_ps);
	note(stats->late_max_ps);
	note(stats->rebases);
	note(stats->rebased_ps);
	note(stats->borrowed_frames);
	note(stats->guard_band_held);
	note(stats->waits);
	note(stats->lead_ns);
	note(stats->periods);
	note(stats->periods_spent);
	note(stats->rt_over);
	note(stats->rt_deferred);
	note(stats->rt_overrun);
	note(stats->rt_catchup_bytes);
	note(stats->nrt_deferred);
	note(stats->rt_excess);
}

static void *zeroed(size_t bytes)
{
	void *memory = calloc(1, bytes);

	if (!memory)
		abort();
	return memory;
}

static int run(u32 mode, u32 order, bool guard, bool wheel)
{
	const struct pace_config cfg = {
		.line_rate_bps = LINE_BPS,
		.overhead_bytes = 24,
		.min_frame_bytes = 60,
		.max_frame_bytes = 1518,
		.link_header_bytes = 14,
		.order = order,
		.mode = mode,
		.guard_band = guard,
		.period_ns = 1000000,
		.budget_bytes = 87500,
	};
	/* More ids than classes: below that there is no wheel. */
	u32 capacity = wheel ? 4096 : CLASSES;
	void *storage = zeroed(pace_storage_bytes(capacity));
	struct slot *slots = zeroed(CLASSES * sizeof(*slots));
	struct pace_sched *s = zeroed(sizeof(*s));
	enum pace_error refused;

	sum = 0xcbf29ce484222325ull;
	seed = 1 + mode * 64 + order * 8 + guard * 2;
	refused = pace_init(s, &cfg, storage, capacity, 0);
	if (refused) {
		fprintf(stderr, "the port is refused: error %d\n", refused);
		return 1;
	}
	/* Clocks wrap on the way. */
	pace_set_global(s, ~0ull - 8000000000);
	pace_set_wheel_from(s, wheel ? 0 : PACE_HEAP_ONLY);
	play(s, slots);
	if (!s->stats.sent_frames) {
		fprintf(stderr, "nothing was sent\n");
		return 1;
	}
	note_stats(&s->stats);
	printf("mode %u order %u guard %u wheel %u: %016llx, %llu frames\n",
	       mode, order, guard, wheel, (unsigned long long)sum,
	       (unsigned long long)s->stats.sent_frames);
	free(s);
	free(slots);
	free(storage);
	return 0;
}

int main(void)
{
	u32 mode, order, guard, wheel;

	if (check_division())
		return 1;
	for (mode = PACE_MODE_GAP; mode <= PACE_MODE_HYBRID; mode++)
		for (order = PACE_ORDER_CLOCK; order <= PACE_ORDER_NEXT; order++)
			for (guard = 0; guard < 2; guard++)
				for (wheel = 0; wheel < 2; wheel++)
					if (run(mode, order, guard, wheel))
						return 1;
	return 0;
}
