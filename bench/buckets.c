// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A calendar queue of buckets with a bitmap of those in use, four levels of 64,
 * as Carousel (Saeed et al., 2017) and Eiffel (2019) use for pacing.  Within a
 * bucket the order is that of arrival, so it is not exact.
 */
#include "rival.h"

#define NONE		(~0u)
/*
 * log2 of a bucket's width in ps, some 16 KB of line; doubled if the slowest class needs
 * too many.
 */
#define WIDTH_SHIFT	20
#define BUCKETS_MAX	(1u << 22)
#define LEVELS		4

struct bucket {
	u32 first, last;
};

struct calendar {
	struct bucket *bucket;
	u64 *map[LEVELS];	/* a bit per bucket; above level 0: per word */
	u32 words[LEVELS];
	u32 buckets;		/* a power of two */
	u32 shift;
	u32 at;			/* bucket of the last smallest clock */
};

static inline void mark(struct calendar *c, u32 bit)
{
	int level;

	for (level = 0; level < LEVELS; level++) {
		u64 *word = &c->map[level][bit / 64];
		bool was = *word;

		*word |= 1ull << bit % 64;
		if (was)
			break;
		bit /= 64;
	}
}

static inline void unmark(struct calendar *c, u32 bit)
{
	int level;

	for (level = 0; level < LEVELS; level++) {
		u64 *word = &c->map[level][bit / 64];

		*word &= ~(1ull << bit % 64);
		if (*word)
			break;
		bit /= 64;
	}
}

/* Returns the first set bit from `bit` on, or NONE. */
static inline u32 find_from(const struct calendar *c, u32 bit)
{
	int level;

	for (level = 0; level < LEVELS; level++) {
		u64 word;

		if (bit / 64 >= c->words[level])
			return NONE;
		word = c->map[level][bit / 64] >> bit % 64;
		if (word) {
			bit += (u32)__builtin_ctzll(word);
			while (level--)
				bit = bit * 64 +
				      (u32)__builtin_ctzll(c->map[level][bit]);
			return bit;
		}
		bit = bit / 64 + 1;
	}
	return NONE;
}

static inline u32 bucket_of(const struct calendar *c, u64 clock)
{
	return (u32)(clock >> c->shift) & (c->buckets - 1);
}

static inline u32 queue_min(struct world *w)
{
	struct calendar *c = w->queue;
	u32 id;

	if (c->bucket[c->at].first == NONE) {
		u32 next = find_from(c, c->at);

		c->at = next == NONE ? find_from(c, 0) : next;
	}
	id = c->bucket[c->at].first;
	return id;
}

static void queue_insert(struct world *w, u32 id)
{
	struct calendar *c = w->queue;
	u32 n = bucket_of(c, w->flow[id].clock.ps);
	struct bucket *b = &c->bucket[n];

	w->flow[id].u.next = NONE;
	if (b->first == NONE) {
		b->first = id;
		mark(c, n);
	} else {
		w->flow[b->last].u.next = id;
	}
	b->last = id;
}

/*
 * Moves the first class, which is in bucket `at`: its clock has advanced
 * already.
 */
static inline void queue_replace_min(struct world *w, u32 id)
{
	struct calendar *c = w->queue;
	struct bucket *b = &c->bucket[c->at];

	b->first = w->flow[id].u.next;
	if (b->first == NONE)
		unmark(c, c->at);
	else
		__builtin_prefetch(&w->flow[b->first], 1);
	queue_insert(w, id);
}

static void steady(struct world *w, enum traffic traffic, u64 decisions)
{
	struct port port = w->port;

	(void)traffic;
	while (decisions--) {
		u32 id = queue_min(w);

		world_send(w, &port, id);
		queue_replace_min(w, id);
	}
	w->port = port;
}

static void calendar_close(struct world *w)
{
	struct calendar *c = w->queue;
	int level;

	for (level = 0; level < LEVELS; level++)
		give_memory(c->map[level], c->words[level] * sizeof(u64));
	give_memory(c->bucket, c->buckets * sizeof(*c->bucket));
	give_memory(c, sizeof(*c));
	w->queue = NULL;
}

/*
 * Sets the number of buckets: a period of the slowest class and one more must
 * fit.
 */
static void set_buckets(struct calendar *c, u64 period_max)
{
	c->shift = WIDTH_SHIFT;
	while ((period_max >> c->shift) + 2 > BUCKETS_MAX)
		c->shift++;
	c->buckets = 64;
	while (c->buckets < (period_max >> c->shift) + 2)
		c->buckets *= 2;
}

static bool calendar_open(struct world *w)
{
	struct calendar *c = take_memory(&w->memory, sizeof(*c));
	u32 i, words;
	int level;

	if (!c)
		return false;
	w->queue = c;
	set_buckets(c, w->period_max);
	words = c->buckets;
	c->bucket = take_memory(&w->memory, c->buckets * sizeof(*c->bucket));
	for (level = 0; level < LEVELS; level++) {
		words = (words + 63) / 64;
		c->words[level] = words;
		c->map[level] = take_memory(&w->memory, words * sizeof(u64));
		if (!c->map[level])
			break;
	}
	if (!c->bucket || level < LEVELS) {
		calendar_close(w);
		return false;
	}
	for (i = 0; i < c->buckets; i++)
		c->bucket[i] = (struct bucket){ NONE, NONE };
	c->at = bucket_of(c, w->port.global);
	return true;
}

const struct rival rival_buckets = {
	.name = "buckets",
	.title = "bucket queue, inexact",
	.steady_only = true,
	.node_bytes = sizeof(u32),
	.open = calendar_open,
	.close = calendar_close,
	.insert = queue_insert,
	.run = steady,
};
