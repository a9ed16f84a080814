// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The wheel: a hierarchical timing wheel (Varghese and Lauck, "Hashed and
 * hierarchical timing wheels", 1987) with exact order.
 *
 * A window is 2^22 bytes of clock.  Keys of the window that is being emptied and
 * of the next one are in buckets; their width is chosen when the window is
 * opened, by the number of keys.  Keys farther away are in slots of a window, of
 * 2^8 and of 2^16 windows.  Of each level the slot after the present one is being
 * moved to the levels below while the present one lasts, so that each key moves
 * at most once a level, and few at a time.
 *
 * The smallest keys are in front: the run, which is sorted, and the heap, which
 * takes every key before `edge`, the end of the last bucket that was opened.  All
 * keys of buckets and slots are at or after `edge`.
 *
 * What does not fit goes to the heap, which is slower and has the same order:
 * keys for which the pool has no chunk, and a bucket too full to sort at once.
 */
#include <pace/pace_sched.h>

#define WINDOW_SHIFT	(PACE_ID_BITS + 22u)
#define WINDOW_MASK	((1u << (64 - WINDOW_SHIFT)) - 1)
/* A ring has slots for the present and for the next slot of the level above. */
#define RING_BITS	8u
#define RING_SLOTS	(2u << RING_BITS)
#define LEVELS		3u
#define TOP_SLOTS	(1u << (64 - WINDOW_SHIFT - 2 * RING_BITS))
#define SLOTS_ABOVE	(2 * RING_SLOTS + TOP_SLOTS)
/* log2 of the number of buckets of a window, at least and at most. */
#define BUCKET_BITS_MIN	6u
#define BUCKET_BITS_MAX	13u
/* Half as many keys are in a bucket on average, or more. */
#define BUCKET_KEYS	12u

/*
 * The run is refilled when it has fewer keys than this.  pace_coming() knows as
 * many classes in advance.
 */
#define RUN_LOW		32u
/* Most keys that are moved to the run at once. */
#define OPENED_KEYS	(8 * CHUNK_KEYS)
#define RUN_KEYS	(RUN_LOW + OPENED_KEYS)

/* Keys on their way to lower levels. */
struct pace_chain {
	u32 word;		/* of its first chunk; 0: none */
	u32 keys;
	u32 left;		/* of those */
};

struct pace_wheel {
	u64 edge;
	u32 keys;		/* of the run, buckets, slots and `moving` */
	u32 head;		/* the run: run[head] .. run[tail - 1] */
	u32 tail;
	u32 window;		/* number of the window that is being emptied */
	u32 bits;		/* log2 of the most buckets of a window */
	u32 shift[2];		/* log2 of a bucket's width, in even and odd windows */
	u32 next;		/* buckets before this one are empty */
	u32 opened;		/* keys opened in the window */
	bool open;		/* new keys enter; else they only leave */
	bool over;		/* no bucket of the window has a key: `edge` is its end */
	u32 *slot;		/* buckets of even and of odd windows, then LEVELS rings */
	u32 *used;		/* a bit for each: not 0 */
	struct pace_chain moving[LEVELS];
	u64 run[RUN_KEYS + PACE_SORT_EXTRA];
	u64 fresh[OPENED_KEYS + PACE_SORT_EXTRA];	/* opened, not sorted yet */
};

static inline u32 run_keys(const struct pace_wheel *w)
{
	return w->tail - w->head;
}

static inline u32 ring_of(const struct pace_wheel *w, u32 level)
{
	return (2u << w->bits) + level * RING_SLOTS;
}

/* Returns the slot of a level that the window `x` belongs to. */
static inline u32 slot_above(const struct pace_wheel *w, u32 level, u32 x)
{
	u32 slots = level == LEVELS - 1 ? TOP_SLOTS : RING_SLOTS;

	return ring_of(w, level) + (x >> level * RING_BITS & (slots - 1));
}

/* Returns true if `x` is the present slot of a level, or the one after it. */
static inline bool is_near(const struct pace_wheel *w, u32 level, u32 x)
{
	u32 mask = WINDOW_MASK >> level * RING_BITS;

	return (((x >> level * RING_BITS) - (w->window >> level * RING_BITS)) &
		mask) <= 1;
}

/* Returns where a key belongs that is not before `edge`; no branch guesses it. */
static inline u32 slot_of(const struct pace_wheel *w, u64 key)
{
	u32 x = key >> WINDOW_SHIFT, odd = x & 1;
	u32 bucket = odd << w->bits |
		     (u32)((key & ((1ull << WINDOW_SHIFT) - 1)) >> w->shift[odd]);
	u32 slot = slot_above(w, 2, x), near1 = slot_above(w, 1, x),
	    near0 = slot_above(w, 0, x);

	slot = is_near(w, 2, x) ? near1 : slot;
	slot = is_near(w, 1, x) ? near0 : slot;
	return is_near(w, 0, x) ? bucket : slot;
}

/* Inserts a key that is not before `edge`.  Returns false if no chunk is free. */
static inline bool wheel_put(struct pace_queue *q, u64 key)
{
	struct pace_wheel *w = q->wheel;
	u32 slot = slot_of(w, key), word = w->slot[slot];

	/* Of 0 keys in the first chunk, and of 31, one more is 0 or 32. */
	if (!((word + 1) & 30)) {
		if (!q->pool->free_count)
			return false;
		word = chain_grow(q->pool, word);
		w->used[slot / 32] |= 1u << slot % 32;
	}
	chunk_of(q->pool, word)->key[word % 32] = key;
	w->slot[slot] = word + 1;
	return true;
}

/* Takes the chain out of a slot. */
static u32 chain_take(struct pace_wheel *w, u32 slot)
{
	u32 word = w->slot[slot];

	w->slot[slot] = 0;
	w->used[slot / 32] &= ~(1u << slot % 32);
	return word;
}

/*
 * Returns the first of `slots` slots, a power of two, that has a key, counted from
 * `from` around, or PACE_ID_NONE.
 */
static u32 first_used(const struct pace_wheel *w, u32 base, u32 slots, u32 from)
{
	const u32 *used = w->used + base / 32;
	u32 words = slots / 32, i = from / 32, n;
	u32 bits = used[i] & ~0u << from % 32;

	for (n = 0; !bits; n++) {
		if (n == words)
			return PACE_ID_NONE;
		i = (i + 1) % words;
		bits = used[i];
	}
	return i * 32 + pace_lowest_bit(bits);
}

/* Moves the keys of the first chunk of a chain to where they belong by now. */
static void move_chunk(struct pace_queue *q, struct pace_chain *chain)
{
	const struct pace_chunk *chunk = chunk_of(q->pool, chain->word);
	u32 n = chain->word % 32, i;

	if (chunk->next)
		fetch_chunk(q->pool, chunk->next);
	for (i = 0; i < n; i++)
		if (!wheel_put(q, chunk->key[i])) {
			pace_heap_push(q, chunk->key[i]);
			q->wheel->keys--;
		}
	chain->left -= n;
	chain->word = chunk_free(q->pool, chain->word);
}

static void move_all(struct pace_queue *q, struct pace_chain *chain)
{
	while (chain->word)
		move_chunk(q, chain);
}

static struct pace_chain chain_at(const struct pace_queue *q, u32 slot)
{
	u32 word = chain_take(q->wheel, slot);
	u32 keys = chain_keys(q->pool, word);

	return (struct pace_chain){ .word = word, .keys = keys, .left = keys };
}

/*
 * Moves keys in proportion to what has gone by of the present slot of each level:
 * all of them by its half.
 */
static void move_some(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;
	u32 level;

	for (level = 0; level < LEVELS; level++) {
		struct pace_chain *chain = &w->moving[level];
		u32 shift = WINDOW_SHIFT + level * RING_BITS;
		/* In 2^-16 of the half. */
		u64 gone = (w->edge & ((1ull << shift) - 1)) >> (shift - 17);

		while (chain->word &&
		       (u64)(chain->keys - chain->left) << 16 < chain->keys * gone)
			move_chunk(q, chain);
	}
}

/* Returns about how many keys a window will have that is not open yet. */
static u32 expected_keys(const struct pace_queue *q, u32 x)
{
	u32 keys = 0, level;

	for (level = 0; level < LEVELS; level++)
		keys += chain_keys(q->pool, q->wheel->slot[slot_above(q->wheel,
								      level, x)]) >>
			level * RING_BITS;
	return keys;
}

/* Sets the width of a window's buckets, which are empty. */
static void set_width(struct pace_wheel *w, u32 x, u32 keys)
{
	u32 bits = BUCKET_BITS_MIN;

	while (bits < w->bits && keys >> bits > BUCKET_KEYS)
		bits++;
	w->shift[x & 1] = WINDOW_SHIFT - bits;
}

static void begin_window(struct pace_wheel *w, u32 x)
{
	w->window = x;
	w->edge = (u64)x << WINDOW_SHIFT;
	w->next = 0;
	w->opened = 0;
	w->over = false;
}

/* Returns how many slots of a level `to` is after `from`. */
static u32 slots_between(u32 level, u32 from, u32 to)
{
	return ((to >> level * RING_BITS) - (from >> level * RING_BITS)) &
	       WINDOW_MASK >> level * RING_BITS;
}

/*
 * Goes on to a later window; those before it are empty.  Where it leaves the
 * present slot of a level all of the next one has been moved by then.
 */
static void enter_window(struct pace_queue *q, u32 to)
{
	struct pace_wheel *w = q->wheel;
	u32 from = w->window, opened = w->opened, keys, level;
	struct pace_chain present;

	to &= WINDOW_MASK;
	for (level = LEVELS; level--;)
		if (slots_between(level, from, to))
			move_all(q, &w->moving[level]);
	begin_window(w, to);
	if (slots_between(0, from, to) > 1)
		set_width(w, to, expected_keys(q, to));
	keys = expected_keys(q, to + 1);
	set_width(w, to + 1, keys > opened ? keys : opened);
	for (level = LEVELS; level--;) {
		if (!slots_between(level, from, to))
			continue;
		if (slots_between(level, from, to) > 1) {
			present = chain_at(q, slot_above(w, level, to));
			move_all(q, &present);
		}
		w->moving[level] = chain_at(q, slot_above(w, level, to +
						  (1u << level * RING_BITS)));
	}
}

/* Returns the first bucket from `from` on of a window that has a key. */
static u32 first_bucket(const struct pace_wheel *w, u32 x, u32 from)
{
	u32 buckets = 1u << (WINDOW_SHIFT - w->shift[x & 1]);

	return from == buckets ? PACE_ID_NONE :
	       first_used(w, (x & 1) << w->bits, buckets, from);
}

/*
 * Finds the next window that has a key and enters it, or moves keys that may be in
 * an earlier one and leaves the rest to the next call.
 */
static void seek_window(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;
	u32 level, from, slots, at, to;

	for (level = 0; level < LEVELS; level++) {
		if (w->moving[level].word) {
			move_all(q, &w->moving[level]);
			return;
		}
		if (!level && first_bucket(w, w->window + 1, 0) != PACE_ID_NONE) {
			enter_window(q, w->window + 1);
			return;
		}
		from = (w->window >> level * RING_BITS) + 2;
		slots = level == LEVELS - 1 ? TOP_SLOTS : RING_SLOTS;
		at = first_used(w, ring_of(w, level), slots, from & (slots - 1));
		if (at == PACE_ID_NONE)
			continue;
		to = (from + ((at - from) & (slots - 1))) << level * RING_BITS;
		if (level + 1 < LEVELS && w->moving[level + 1].word &&
		    slots_between(level + 1, w->window, to))
			move_all(q, &w->moving[level + 1]);
		else
			enter_window(q, to);
		return;
	}
}

/* Moves n keys, `fresh`, to the run, or to the heap if they cannot be sorted. */
static void take_fresh(struct pace_queue *q, u32 n)
{
	struct pace_wheel *w = q->wheel;
	u32 i;

	if (w->tail + n > RUN_KEYS) {
		pace_memmove(w->run, w->run + w->head,
			     run_keys(w) * sizeof(*w->run));
		w->tail -= w->head;
		w->head = 0;
	}
	if (pace_sort(w->fresh, w->run + w->tail, n)) {
		w->tail += n;
		return;
	}
	for (i = 0; i < n; i++)
		pace_heap_push(q, w->fresh[i]);
	w->keys -= n;
}

/* Moves the keys of a bucket to the run, or to the heap if they are many. */
static void open_bucket(struct pace_queue *q, u32 bucket)
{
	struct pace_wheel *w = q->wheel;
	u32 odd = w->window & 1;
	u32 word = chain_take(w, odd << w->bits | bucket);
	u32 keys = chain_keys(q->pool, word), i;

	w->next = bucket + 1;
	w->edge = ((u64)w->window << WINDOW_SHIFT) +
		  ((u64)w->next << w->shift[odd]);
	w->opened += keys;
	for (; word; word = chunk_free(q->pool, word)) {
		const struct pace_chunk *chunk = chunk_of(q->pool, word);

		/* In order of arrival, which often is the order of the keys. */
		for (i = 0; i < word % 32; i++) {
			if (keys <= OPENED_KEYS)
				w->fresh[chunk->depth * CHUNK_KEYS + i] =
					chunk->key[i];
			else
				pace_heap_push(q, chunk->key[i]);
		}
	}
	if (keys <= OPENED_KEYS)
		take_fresh(q, keys);
	else
		w->keys -= keys;
}

/* Opens the next bucket of the window, or finds that it has none. */
static void open_next(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;
	u32 bucket = first_bucket(w, w->window, w->next);

	if (bucket == PACE_ID_NONE) {
		w->over = true;
		w->edge = (u64)(w->window + 1) << WINDOW_SHIFT;
		return;
	}
	open_bucket(q, bucket);
	move_some(q);
	bucket = first_bucket(w, w->window, w->next);
	if (bucket != PACE_ID_NONE)
		fetch_chunk(q->pool, w->slot[(w->window & 1) << w->bits | bucket]);
}

/* Restores what holds between operations: the smallest key is in front. */
static void wheel_settle(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;

	while (w->keys > run_keys(w)) {
		bool needed = !run_keys(w) &&
			      (!q->heap_keys ||
			       !pace_key_before(q->heap[0], w->edge));

		if (!needed && (w->over || run_keys(w) >= RUN_LOW))
			break;
		if (w->over)
			seek_window(q);
		else
			open_next(q);
	}
	if (!q->heap_keys)
		q->min = w->run[w->head];
	else if (run_keys(w) && pace_key_before(w->run[w->head], q->heap[0]))
		q->min = w->run[w->head];
	else
		q->min = q->heap[0];
	q->has_wheel = w->open || w->keys;
}

/* Begins anew, with no key in the wheel, where `key` is. */
static void wheel_begin(struct pace_queue *q, u64 key)
{
	struct pace_wheel *w = q->wheel;
	u32 x = key >> WINDOW_SHIFT;

	begin_window(w, x);
	set_width(w, x, q->count);
	set_width(w, x + 1, q->count);
	w->next = 1 + (u32)((key & ((1ull << WINDOW_SHIFT) - 1)) >>
			    w->shift[x & 1]);
	w->edge += (u64)w->next << w->shift[x & 1];
	w->head = 0;
	w->tail = 0;
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
		wheel_begin(q, q->heap_keys ? q->heap[0] : key);
	if (w->open && !pace_key_before(key, w->edge) && wheel_put(q, key))
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
 * `edge` says something only while a bucket or a slot has a key.
 */
static u64 pace_wheel_second(const struct pace_queue *q)
{
	const struct pace_wheel *w = q->wheel;
	bool of_run = run_keys(w) && w->run[w->head] == q->min;
	u64 second = w->keys > run_keys(w) ? w->edge : q->min + (~0ull >> 1);

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

/* Moves a chain's keys to the heap's array, in no order. */
static void gather_chain(struct pace_queue *q, u32 word)
{
	u32 i;

	for (; word; word = chunk_free(q->pool, word))
		for (i = 0; i < word % 32; i++)
			q->heap[q->heap_keys++] = chunk_of(q->pool, word)->key[i];
}

/* Moves all keys of the wheel to the heap's array, in no order. */
static void pace_wheel_gather(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;
	u32 slots = ring_of(w, 0) + SLOTS_ABOVE, i;

	while (w->head < w->tail)
		q->heap[q->heap_keys++] = w->run[w->head++];
	for (i = 0; i < slots; i++)
		gather_chain(q, chain_take(w, i));
	for (i = 0; i < LEVELS; i++) {
		gather_chain(q, w->moving[i].word);
		w->moving[i].word = 0;
	}
	w->keys = 0;
}

/* log2 of the most buckets of a window that queues of `capacity` ids need. */
static u32 bucket_bits(u32 capacity)
{
	u32 bits = BUCKET_BITS_MIN;

	while (bits < BUCKET_BITS_MAX && capacity >> bits > BUCKET_KEYS / 2)
		bits++;
	return bits;
}

/* Returns the bytes of a wheel for a queue of `capacity` ids, a multiple of 8. */
static size_t pace_wheel_bytes(u32 capacity)
{
	size_t slots = (2u << bucket_bits(capacity)) + SLOTS_ABOVE;

	return sizeof(struct pace_wheel) + slots * sizeof(u32) +
	       slots / 32 * sizeof(u32);
}

/* Makes a wheel without a key in memory of that size. */
static struct pace_wheel *pace_wheel_init(void *memory, u32 capacity)
{
	struct pace_wheel *w = memory;

	pace_memset(w, 0, pace_wheel_bytes(capacity));
	w->bits = bucket_bits(capacity);
	w->slot = (u32 *)(w + 1);
	w->used = w->slot + ring_of(w, 0) + SLOTS_ABOVE;
	return w;
}
