// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The wheel: a radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster algorithms
 * for the shortest path problem", 1990), whose levels are digits of a key.
 *
 * The smallest keys are in front: the run, which is sorted, and the heap, which
 * takes every key up to `last`, the last key that has entered the run.  A later
 * key enters the level of the highest digit in which it differs from `last`, in
 * the slot that this digit names.  So all keys of a level come before those of the
 * levels above, and the first slot of the lowest level comes next.
 *
 * A slot of a few keys is sorted into the run; a longer one moves to the level
 * below, a chunk at a time.  Of each level the slot after the present one moves
 * while the present one lasts, so that little is left when it comes next.  That is
 * why a ring has slots for two slots of the level above.
 *
 * Keys of one clock differ in their ids only.  If they came by id, as they do once
 * they have been served, their chain is a run already.
 *
 * Keys for which the pool has no chunk go to the heap, which is slower and has the
 * same order.
 */
#include <pace/pace_sched.h>

/*
 * log2 of the units of clock in which a line at its full rate sends about ten of its
 * largest frames: the width of the slots that most keys leave from.  Three digits
 * below are fine, because smaller frames fill such slots; those above are coarse,
 * because keys are far away there and each move costs.  In units of 64 ps, 22 suits
 * lines of 1 to 100 Gbit/s.
 */
#define WHEEL_WIDTH	22u
#define FINE_BITS	4u
#define COARSE_BITS	8u
#define FINE_TO		(PACE_ID_BITS + WHEEL_WIDTH)
#define FINE_FROM	(FINE_TO - 3 * FINE_BITS)
#define DIGITS(from, to, bits)	(((to) - (from) + (bits) - 1) / (bits))
#define LEVELS		(DIGITS(0, FINE_FROM, COARSE_BITS) + \
			 DIGITS(FINE_FROM, FINE_TO, FINE_BITS) + \
			 DIGITS(FINE_TO, 64, COARSE_BITS))
#define RING_SLOTS	(2u << COARSE_BITS)

/*
 * The run is refilled to RUN_HIGH when it has fewer keys than RUN_LOW.
 * pace_coming() knows as many classes in advance.
 */
#define RUN_LOW		32u
#define RUN_HIGH	48u
#define RUN_KEYS	256u
/* Most keys that are sorted at once: what is written behind them fits the chunk. */
#define SORT_KEYS	(CHUNK_KEYS - PACE_SORT_EXTRA)
/* Chunks of the next slot that one operation moves while the front has a key. */
#define MOVES		2u

struct pace_wheel {
	u64 last;		/* all keys of slots are after it */
	u32 keys;		/* of the run, `rest` and slots */
	u32 head;		/* the run: run[head] .. run[tail - 1] */
	u32 tail;
	u32 rest;		/* a sorted chain: from the run on up to `last` */
	bool open;		/* new keys enter; else they only leave */
	u32 levels;		/* a bit for each level that has a key */
	u32 words[LEVELS];	/* a bit for each word of `used` that is not 0 */
	u32 used[LEVELS][RING_SLOTS / 32];	/* a bit for each slot with a key */
	u32 slot[LEVELS][RING_SLOTS];	/* words of chains */
	u8 shift[LEVELS];	/* lowest bit of each level's digit */
	u8 level_of[64];	/* level of each bit */
	u64 run[RUN_KEYS + PACE_SORT_EXTRA];
};

static inline u32 run_keys(const struct pace_wheel *w)
{
	return w->tail - w->head;
}

static inline u32 slot_of(const struct pace_wheel *w, u32 level, u64 key)
{
	return key >> w->shift[level] & (RING_SLOTS - 1);
}

/* Inserts a key into a slot.  Returns false if no chunk is free. */
static inline bool wheel_put(struct pace_queue *q, u32 level, u64 key)
{
	struct pace_wheel *w = q->wheel;
	u32 slot = slot_of(w, level, key), word = w->slot[level][slot];

	if (!(word % CHUNK)) {
		if (!q->pool->free_count)
			return false;
		word = chain_grow(q->pool, word, key);
		w->used[level][slot / 32] |= 1u << slot % 32;
		w->words[level] |= 1u << slot / 32;
		w->levels |= 1u << level;
	}
	q->pool->key[word] = key;
	w->slot[level][slot] = word + 1;
	return true;
}

/* Sets the chain of a slot to what is left of it. */
static inline void set_slot(struct pace_wheel *w, u32 level, u32 slot, u32 word)
{
	u32 *used = &w->used[level][slot / 32];

	w->slot[level][slot] = word;
	if (word)
		return;
	*used &= ~(1u << slot % 32);
	if (!*used)
		w->words[level] &= ~(1u << slot / 32);
	if (!w->words[level])
		w->levels &= ~(1u << level);
}

/* Returns the smallest key that may be in the first slot of a level with keys. */
static inline u64 first_begin(const struct pace_wheel *w, u32 level)
{
	u32 from = slot_of(w, level, w->last), i = from / 32;
	u32 bits = w->used[level][i] & ~0u << from % 32;
	u32 words = w->words[level], behind = words & ~1u << i;

	if (!bits) {
		i = pace_lowest_bit(behind ? behind : words);
		bits = w->used[level][i];
	}
	i = i * 32 + pace_lowest_bit(bits);
	return ((w->last >> w->shift[level]) + (i - from) % RING_SLOTS)
	       << w->shift[level];
}

/*
 * Moves the first chunk of a slot to the level below.  The slot is the one after that
 * of `last`: the ring below has no place for those of others.  A slot of the lowest level
 * has equal keys only, which never move.
 */
static void move_chunk(struct pace_queue *q, u32 level, u32 slot)
{
	u32 word = q->wheel->slot[level][slot], n = first_keys(q->pool, word), i;
	const u64 *chunk = first_chunk(q->pool, word);

	for (i = 1; i <= n; i++)
		if (!wheel_put(q, level - 1, chunk[i])) {
			pace_heap_push(q, chunk[i]);
			q->wheel->keys--;
		}
	set_slot(q->wheel, level, slot, chain_shrink(q->pool, word));
}

/* Moves a chunk of the next slot of each level but the lowest, if it has several. */
static void move_ahead(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;
	u32 levels = w->levels & (w->levels - 1);

	for (; levels; levels &= levels - 1) {
		u32 level = pace_lowest_bit(levels);
		u32 slot = slot_of(w, level, w->last + (1ull << w->shift[level]));
		u32 word = w->slot[level][slot];

		if (word && !has_one_chunk(q->pool, word))
			move_chunk(q, level, slot);
	}
}

/* Appends the first chunk of a chain to the run and returns the rest of the chain. */
static u32 take_chunk(struct pace_queue *q, u32 word)
{
	struct pace_wheel *w = q->wheel;
	u64 *key = first_chunk(q->pool, word) + 1;
	u32 n = first_keys(q->pool, word);

	if (w->tail + n > RUN_KEYS) {
		pace_memmove(w->run, w->run + w->head,
			     run_keys(w) * sizeof(*w->run));
		w->tail -= w->head;
		w->head = 0;
	}
	if (n <= SORT_KEYS)
		pace_sort(key, w->run + w->tail, n);
	else
		pace_memmove(w->run + w->tail, key, n * sizeof(*key));
	w->tail += n;
	return chain_shrink(q->pool, word);
}

/*
 * Moves the next slot to the run and returns true, or moves a chunk of it to the level
 * below.  Before, it moves chunks of the slots above that the same keys belong to.
 */
static bool take_slot(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;
	u32 lowest = pace_lowest_bit(w->levels), slot, word, level;
	u64 begin = first_begin(w, lowest);

	for (level = w->level_of[pace_highest_bit(begin ^ w->last)];; level--) {
		slot = slot_of(w, level, begin);
		word = w->slot[level][slot];
		if (word)
			break;
	}
	if (level > lowest) {
		move_chunk(q, level, slot);
		return false;
	}
	if (first_keys(q->pool, word) <= SORT_KEYS) {
		set_slot(w, level, slot, take_chunk(q, word));
		w->last = w->run[w->tail - 1];
		return true;
	}
	if (chain_coincides(q->pool, word)) {
		set_slot(w, level, slot, 0);
		w->rest = word;
		w->last = q->pool->key[word - 1];
		return true;
	}
	w->last = begin - 1;
	move_chunk(q, level, slot);
	return false;
}

/* Returns true if the smallest key is in front. */
static inline bool front_has_min(const struct pace_queue *q)
{
	return run_keys(q->wheel) ||
	       (q->heap_keys && !pace_key_before(q->wheel->last, q->heap[0]));
}

static void refill_run(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;
	u32 moves = 0;

	move_ahead(q);
	while (run_keys(w) < RUN_HIGH && run_keys(w) < w->keys) {
		if (w->rest)
			w->rest = take_chunk(q, w->rest);
		else if (!take_slot(q) && ++moves >= MOVES && front_has_min(q))
			break;
	}
}

/* Restores what holds between operations: the smallest key is in front. */
static inline void wheel_settle(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;

	if (run_keys(w) < RUN_LOW && run_keys(w) < w->keys)
		refill_run(q);
	if (!q->heap_keys)
		q->min = w->run[w->head];
	else if (run_keys(w) && pace_key_before(w->run[w->head], q->heap[0]))
		q->min = w->run[w->head];
	else
		q->min = q->heap[0];
	q->has_wheel = w->open || w->keys;
}

/* Lets new keys enter the wheel.  The heap keeps its keys. */
static void pace_wheel_open(struct pace_queue *q)
{
	q->wheel->open = true;
	q->has_wheel = true;
}

/* Lets new keys enter the heap.  The wheel keeps its keys until they come out. */
static void pace_wheel_close(struct pace_queue *q)
{
	q->wheel->open = false;
	q->has_wheel = q->wheel->keys;
}

/* Adds a key to the heap or the wheel, whichever it belongs to. */
static inline void wheel_add(struct pace_queue *q, u64 key)
{
	struct pace_wheel *w = q->wheel;

	if (!w->keys)
		w->last = q->heap_keys ? q->heap[0] : key;
	if (w->open && pace_key_before(w->last, key) &&
	    wheel_put(q, w->level_of[pace_highest_bit(key ^ w->last)], key))
		w->keys++;
	else
		pace_heap_push(q, key);
}

/* Takes the smallest key out, wherever it is. */
static inline void wheel_take(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;

	if (run_keys(w) && w->run[w->head] == q->min) {
		w->head++;
		w->keys--;
	} else {
		pace_heap_pop(q);
	}
}

/*
 * Returns a key that none is before but the smallest; there are two keys or more.
 * `last` says something only while a slot has a key.
 */
static u64 pace_wheel_second(const struct pace_queue *q)
{
	const struct pace_wheel *w = q->wheel;
	bool of_run = run_keys(w) && w->run[w->head] == q->min;
	u64 second = w->levels ? w->last : q->min + (~0ull >> 1), of_heap;

	if (run_keys(w) > of_run)
		second = w->run[w->head + of_run];
	if (q->heap_keys + of_run < 2)
		return second;
	of_heap = of_run ? q->heap[0] : smallest_child(q->heap, 1, q->heap_keys).key;
	return pace_key_before(of_heap, second) ? of_heap : second;
}

static void pace_wheel_insert(struct pace_queue *q, u64 key)
{
	wheel_add(q, key);
	if (q->count == 1 || pace_key_before(key, q->min))
		q->min = key;
}

static void pace_wheel_pop(struct pace_queue *q)
{
	wheel_take(q);
	if (q->count)
		wheel_settle(q);
}

static void pace_wheel_replace_min(struct pace_queue *q, u64 key)
{
	wheel_take(q);
	wheel_add(q, key);
	wheel_settle(q);
}

/* Moves a chain's keys to the heap's array, in no order. */
static void gather_chain(struct pace_queue *q, u32 word)
{
	u32 i;

	for (; word; word = chain_shrink(q->pool, word))
		for (i = 1; i <= first_keys(q->pool, word); i++)
			q->heap[q->heap_keys++] = first_chunk(q->pool, word)[i];
}

/* Moves all keys of the wheel to the heap's array, in no order. */
static void pace_wheel_gather(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;
	u32 level, slot;

	while (w->head < w->tail)
		q->heap[q->heap_keys++] = w->run[w->head++];
	gather_chain(q, w->rest);
	w->rest = 0;
	while (w->levels) {
		level = pace_lowest_bit(w->levels);
		slot = slot_of(w, level, first_begin(w, level));
		gather_chain(q, w->slot[level][slot]);
		set_slot(w, level, slot, 0);
	}
	w->keys = 0;
}

/* Makes levels of the bits up to `end`, of so many each; the last may have fewer. */
static u32 make_levels(struct pace_wheel *w, u32 level, u32 bit, u32 end,
		       u32 bits)
{
	for (; bit < end; level++) {
		u32 next = end - bit < bits ? end : bit + bits;

		w->shift[level] = bit;
		while (bit < next)
			w->level_of[bit++] = level;
	}
	return level;
}

/* Makes a wheel without a key in memory of its size. */
static struct pace_wheel *pace_wheel_init(void *memory)
{
	struct pace_wheel *w = memory;
	u32 level;

	pace_memset(w, 0, sizeof(*w));
	level = make_levels(w, 0, 0, FINE_FROM, COARSE_BITS);
	level = make_levels(w, level, FINE_FROM, FINE_TO, FINE_BITS);
	make_levels(w, level, FINE_TO, 64, COARSE_BITS);
	return w;
}
