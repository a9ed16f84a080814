// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The wheel: a radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster algorithms
 * for the shortest path problem", 1990) with a level for each byte of a key.
 *
 * The smallest keys are in front: the run, which is sorted, and the heap, which
 * takes every key up to `last`, the last key that has entered the run.  A later
 * key enters the level of the highest byte in which it differs from `last`, in
 * the slot that this byte names.  So all keys of a level come before those of
 * the levels above, and the first slot of the lowest level is the next one.
 *
 * A slot with few keys is sorted into the run.  The keys of any other slot move to
 * the level below, a chunk at a time: those of the slot after the present one of
 * each level move while the present one lasts, so that they are few when they
 * are needed.  A ring has room for both, the present slot and the next one.
 *
 * No width depends on the unit of clocks or on the line.  Keys of equal clocks are
 * spread by the bytes of their ids.  Keys for which the pool has no chunk enter
 * the heap, which is slower and has the same order.
 */
#include <pace/pace_sched.h>

#define RADIX_BITS 8u
#ifndef WIDTH
#define WIDTH 34
#endif
#ifndef LOWBITS
#define LOWBITS 4
#endif
#define LEVELS 12u
#define RING_SLOTS	(2u << RADIX_BITS)

/*
 * The run is refilled when it has fewer keys than this.  pace_coming() knows as
 * many classes in advance.
 */
#define RUN_LOW		32u
/* Most keys that are sorted at once. */
#ifndef SORT_KEYS
#define SORT_KEYS	(CHUNK_KEYS - PACE_SORT_EXTRA)
#endif
#ifndef RUN_HIGH
#define RUN_HIGH 48u
#endif
#define RUN_KEYS	256u
/* Most slots or chunks that one operation moves while the run has a key. */
#define STEPS		2u

struct pace_wheel {
	u64 last;		/* all keys of slots are after it */
	u32 keys;		/* of the run and of slots */
	u32 head;		/* the run: run[head] .. run[tail - 1] */
	u32 tail;
	bool open;		/* new keys enter; else they only leave */
	u8 level_of[64], shift[LEVELS + 1];
	u32 levels;		/* a bit for each level that has a key */
	u32 words[LEVELS];	/* a bit for each word of `used` that is not 0 */
	u32 used[LEVELS][RING_SLOTS / 32];	/* a bit for each slot with a key */
	u32 slot[LEVELS][RING_SLOTS];	/* words of chains */
	u64 run[RUN_KEYS + PACE_SORT_EXTRA];
};

static inline u32 run_keys(const struct pace_wheel *w)
{
	return w->tail - w->head;
}

/* Returns the digit of a key that is the number of its slot in a level. */
static inline u32 slot_of(const struct pace_wheel *w, u64 key, u32 level)
{
	return key >> w->shift[level] & (RING_SLOTS - 1);
}

/* Inserts a key into a slot.  Returns false if no chunk is free. */
static inline bool wheel_put(struct pace_queue *q, u32 level, u64 key)
{
	struct pace_wheel *w = q->wheel;
	u32 slot = slot_of(w, key, level), word = w->slot[level][slot];

	if (!(word % CHUNK)) {
		if (!q->pool->free_count)
			return false;
		word = chain_grow(q->pool, word);
		w->used[level][slot / 32] |= 1u << slot % 32;
		w->words[level] |= 1u << slot / 32;
		w->levels |= 1u << level;
	}
	q->pool->key[word] = key;
	w->slot[level][slot] = word + 1;
	return true;
}

/* Frees the first chunk of a slot, whose keys have moved. */
static void wheel_shrink(struct pace_queue *q, u32 level, u32 slot)
{
	struct pace_wheel *w = q->wheel;
	u32 *used = &w->used[level][slot / 32];

	w->slot[level][slot] = chain_shrink(q->pool, w->slot[level][slot]);
	if (w->slot[level][slot])
		return;
	*used &= ~(1u << slot % 32);
	if (!*used)
		w->words[level] &= ~(1u << slot / 32);
	if (!w->words[level])
		w->levels &= ~(1u << level);
}

/* Returns the smallest key that the first slot of a level with keys may have. */
static inline u64 first_begin(const struct pace_wheel *w, u32 level)
{
	u32 from = slot_of(w, w->last, level), i = from / 32;
	u32 bits = w->used[level][i] & ~0u << from % 32;
	u32 words = w->words[level], behind = words & ~1u << i;

	if (!bits) {
		i = pace_lowest_bit(behind ? behind : words);
		bits = w->used[level][i];
	}
	i = i * 32 + pace_lowest_bit(bits);
	return ((w->last >> w->shift[level]) + ((i - from) % RING_SLOTS))
	       << w->shift[level];
}

/* Moves the first chunk of a slot to the level below. */
static void move_chunk(struct pace_queue *q, u32 level, u32 slot)
{
	u32 word = q->wheel->slot[level][slot], i;
	const u64 *chunk = first_chunk(q->pool, word);

	if (chunk[0])
		pace_prefetch(first_chunk(q->pool, (u32)chunk[0]));
	for (i = 1; i <= first_keys(word); i++)
		if (!level || !wheel_put(q, level - 1, chunk[i])) {
			pace_heap_push(q, chunk[i]);
			q->wheel->keys--;
		}
	wheel_shrink(q, level, slot);
}

/* Sorts the keys of a slot, which are few, into the run. */
static void open_slot(struct pace_queue *q, u32 level, u32 slot)
{
	struct pace_wheel *w = q->wheel;
	u32 word = w->slot[level][slot], n = first_keys(word);

	if (w->tail + n > RUN_KEYS) {
		pace_memmove(w->run, w->run + w->head,
			     run_keys(w) * sizeof(*w->run));
		w->tail -= w->head;
		w->head = 0;
	}
	pace_sort(first_chunk(q->pool, word) + 1, w->run + w->tail, n);
	w->tail += n;
	w->last = w->run[w->tail - 1];
	wheel_shrink(q, level, slot);
}

/* Moves a chunk of the next slot of each level whose keys are many. */
static void move_ahead(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;
	u32 levels = w->levels & (w->levels - 1);

	for (; levels; levels &= levels - 1) {
		u32 level = pace_lowest_bit(levels);
		u32 slot = slot_of(w, w->last + (1ull << w->shift[level]), level);
		u32 word = w->slot[level][slot];

		if (word && *first_chunk(q->pool, word))
			move_chunk(q, level, slot);
	}
}

/*
 * Opens the next slot and returns true, or moves a chunk of it, or of a slot above
 * that it is part of.
 */
static inline bool wheel_step(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;
	u32 level = pace_lowest_bit(w->levels), above, word, slot;
	u64 begin = first_begin(w, level), parts = begin ^ w->last;

	if (parts >> w->shift[level + 1])
		for (above = LEVELS - 1; above > level; above--) {
			if (parts >> w->shift[above] &&
			    w->slot[above][slot_of(w, begin, above)]) {
				move_chunk(q, above, slot_of(w, begin, above));
				return false;
			}
		}
	slot = slot_of(w, begin, level);
	word = w->slot[level][slot];
	if (first_keys(word) <= SORT_KEYS && !*first_chunk(q->pool, word)) {
		open_slot(q, level, slot);
		return true;
	}
	w->last = begin - 1;
	move_chunk(q, level, slot);
	return false;
}

static void wheel_refill(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;
	u32 moves = 0;

	move_ahead(q);
	while (w->levels && run_keys(w) < RUN_HIGH) {
		if (wheel_step(q) || ++moves < STEPS)
			continue;
		if (run_keys(w) || (q->heap_keys &&
				    !pace_key_before(w->last, q->heap[0])))
			break;
	}
}

/* Restores what holds between operations: the smallest key is in front. */
static inline void wheel_settle(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;

	if (run_keys(w) < RUN_LOW && w->levels)
		wheel_refill(q);
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
	u64 second = w->levels ? w->last : q->min + (~0ull >> 1);

	if (run_keys(w) > of_run)
		second = w->run[w->head + of_run];
	if (of_run && q->heap_keys && pace_key_before(q->heap[0], second))
		return q->heap[0];
	if (!of_run && q->heap_keys > 1) {
		u64 child = smallest_child(q->heap, 1, q->heap_keys).key;

		return pace_key_before(child, second) ? child : second;
	}
	return second;
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

/* Moves all keys of the wheel to the heap's array, in no order. */
static void pace_wheel_gather(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;
	u32 level, slot, word, i;

	while (w->head < w->tail)
		q->heap[q->heap_keys++] = w->run[w->head++];
	while (w->levels) {
		level = pace_lowest_bit(w->levels);
		slot = slot_of(w, first_begin(w, level), level);
		word = w->slot[level][slot];
		for (i = 1; i <= first_keys(word); i++)
			q->heap[q->heap_keys++] = first_chunk(q->pool, word)[i];
		wheel_shrink(q, level, slot);
	}
	w->keys = 0;
}

/* Returns the bytes of a wheel, a multiple of 8. */
static size_t pace_wheel_bytes(u32 capacity)
{
	(void)capacity;
	return sizeof(struct pace_wheel);
}

static void wheel_set_levels(struct pace_wheel *w)
{
	u32 level = 0, bit = 0, bits;

	for (; bit < 64; level++) {
		w->shift[level] = bit;
		bits = bit < PACE_ID_BITS && bit ? 8 : bit < PACE_ID_BITS ? 4 : bit >= WIDTH ? 8 : (WIDTH-bit)%4 ? (WIDTH - bit)%4 : 4;
		for (; bits && bit < 64; bits--)
			w->level_of[bit++] = level;
	}
	for (; level <= LEVELS; level++)
		w->shift[level] = 63;
}

/* Makes a wheel without a key in memory of that size. */
static struct pace_wheel *pace_wheel_init(void *memory, u32 capacity)
{
	pace_memset(memory, 0, pace_wheel_bytes(capacity));
	wheel_set_levels(memory);
	return memory;
}
