// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <pace/pace_sched.h>

static inline u32 pace_run_keys(const struct pace_wheel *w)
{
	return w->tail - w->head;
}

/* Beside the heap. */
static inline u32 pace_wheel_keys(const struct pace_wheel *w)
{
	return pace_run_keys(w) + w->tree_keys;
}

/*
 * What holds between operations: every key in the run is before `edge`, no key
 * in the tree is; the heap's root is before all of both.  So the smallest key
 * of the queue is where a heap alone has it, and a queue changes to the wheel
 * and back by sending new keys elsewhere: those that are there stay, and are
 * taken from there.
 *
 * A leaf is opened when its range begins within two widths of the smallest
 * key, so that it is sorted before it is needed, and classes can be seen
 * coming; one farther away is not, or all keys before its end would come late.
 */

/* Keys taken between two looks at how far apart they are; log2. */
#define TAKEN_LOG	6u
/*
 * A leaf is as wide as 2^LEAF_LOG keys taken are, on average: fewer cost a
 * walk down the tree for little, more take longer to sort.
 */
#define LEAF_LOG	5u
/* At first: 24 frames of 1500 bytes on a full line. */
#define WIDTH_FIRST	(PACE_ID_BITS + 15u)
#define WIDTH_MIN	5u
#define WIDTH_MAX	(PACE_TOP_SHIFT - 1)
/* So many keys of a leaf wider than that may be left in it, and seen again. */
#define WIDE_KEYS	8u
/* Above so many even coinciding keys are taken faster from the tree. */
#define COINCIDING_KEYS	65536u
/* How far ahead indices are fetched: at most PACE_RUN_LOW. */
#define INDICES_AHEAD	16u

/* The width follows how fast keys are taken. */
static void adapt_width(struct pace_wheel *w, u64 root)
{
	u64 span = root - w->taken_from;
	u32 taken = w->taken, log = TAKEN_LOG - LEAF_LOG;

	if (taken < 1u << TAKEN_LOG)
		return;
	w->taken = 0;
	w->taken_from = root;
	if ((s64)span < 0)
		return;
	for (; taken >= 2u << TAKEN_LOG; taken /= 2)
		log++;
	while (w->width < WIDTH_MAX && span >> (w->width + log + 1))
		w->width++;
	while (w->width > WIDTH_MIN && !(span >> (w->width + log)))
		w->width--;
}

/* The tree's first key may be near, or the smallest of all. */
static bool is_near(const struct pace_queue *q)
{
	const struct pace_wheel *w = q->wheel;

	return !q->count ||
	       (s64)(w->tree_from - q->key[0]) < (s64)(2ull << w->width);
}

static void append_to_run(struct pace_queue *q, u64 *key, u32 n)
{
	struct pace_wheel *w = q->wheel;

	w->tree_keys -= n;
	if (w->tail + n > PACE_RUN_KEYS) {
		pace_memmove(w->run, w->run + w->head,
			     pace_run_keys(w) * sizeof(*w->run));
		w->tail -= w->head;
		w->head = 0;
	}
	pace_sort(key, w->run + w->tail, n);
	w->tail += n;
}

/* Keys before `end` come first; the others go back to the tree. */
static u32 keep_before(struct pace_queue *q, u64 *key, u32 n, u64 end)
{
	u32 kept = 0, i;

	for (i = 0; i < n; i++) {
		if (pace_key_before(key[i], end)) {
			key[kept++] = key[i];
		} else if (!pace_tree_insert(q, key[i])) {
			pace_heap_insert(q, key[i]);
			q->wheel->tree_keys--;
		}
	}
	return kept;
}

static u64 smallest_key(const u64 *key, u32 n)
{
	u64 min = key[0];
	u32 i;

	for (i = 1; i < n; i++)
		if (pace_key_before(key[i], min))
			min = key[i];
	return min;
}

/*
 * The keys of that leaf go to the run; of a wide one, those within a width of
 * its smallest.
 */
static void open_leaf(struct pace_queue *q, struct pace_path *leaf, u32 n)
{
	struct pace_wheel *w = q->wheel;
	u64 end = leaf->start + (1ull << leaf->shift);

	pace_tree_take(q, leaf, w->opened);
	if (leaf->shift > w->width) {
		u64 last = smallest_key(w->opened, n) + (1ull << w->width);

		if (pace_key_before(last, end)) {
			end = last;
			n = keep_before(q, w->opened, n, end);
		}
	}
	w->edge = end;
	w->tree_from = end;
	append_to_run(q, w->opened, n);
}

/* Looks at the tree's first leaf: is it time to open it? */
static void look_at_tree(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;
	struct pace_path leaf;
	u32 keys = pace_tree_first(q, w->edge, &leaf);

	w->tree_from = leaf.start;
	if (pace_key_before(leaf.start, w->edge))
		w->tree_from = w->edge;
	if (!is_near(q))
		return;
	if ((keys > 2 * PACE_CHUNK_KEYS ||
	     (leaf.shift > w->width && keys > WIDE_KEYS)) &&
	    pace_tree_split(q, &leaf))
		return;
	open_leaf(q, &leaf, keys);
}

/* The smallest key of the tree may be the smallest of all. */
static bool must_look(const struct pace_queue *q)
{
	const struct pace_wheel *w = q->wheel;

	return !pace_run_keys(w) &&
	       (!q->count || !pace_key_before(q->key[0], w->tree_from));
}

/* The run gets as long as it should be, by one leaf at most if it can wait. */
static void refill_run(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;

	if (q->count)
		adapt_width(w, q->key[0]);
	do {
		look_at_tree(q);
	} while (w->tree_keys && must_look(q));
}

/* From now on keys enter the tree.  The heap keeps what it has. */
static void wheel_open(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;

	w->open = true;
	if (!q->heap_keys)
		return;
	q->heap_keys = 0;
	w->taken = 0;
	if (q->count) {
		w->edge = q->key[0];
		w->tree_from = w->edge;
		w->taken_from = w->edge;
	}
}

/* The heap holds all there is. */
static void pace_wheel_close(struct pace_queue *q)
{
	q->wheel->open = false;
	q->heap_keys = q->wheel_from;
	if (q->count)
		q->index[pace_queue_min(q)] = 0;
	if (!q->heap_keys) {
		q->heap_keys = 1;
		wheel_open(q);
	}
}

/* Makes true what holds between operations. */
static void wheel_settle(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;

	if (pace_run_keys(w) < PACE_RUN_LOW && w->tree_keys && is_near(q))
		refill_run(q);
	if (pace_run_keys(w) &&
	    (!q->count || pace_key_before(w->run[w->head], q->key[0])))
		pace_heap_insert(q, w->run[w->head++]);
	if (!q->count)
		return;
	/* What is before the smallest key comes late; and `edge` keeps up. */
	if (pace_key_before(w->edge, q->key[0]) || !pace_wheel_keys(w)) {
		w->edge = q->key[0];
		if (pace_key_before(w->tree_from, w->edge))
			w->tree_from = w->edge;
	}
	if (!w->open && !pace_wheel_keys(w))
		pace_wheel_close(q);
}

static void pace_wheel_init(struct pace_wheel *w)
{
	pace_memset(w, 0, sizeof(*w));
	w->width = WIDTH_FIRST;
}

/*
 * Keys lately taken had a value in common, a leaf of them.  They differ in the
 * lowest bits alone, far down the tree; a heap is faster unless it is large.
 */
static inline bool coinciding(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;

	if (w->width >= PACE_ID_BITS ||
	    q->count + pace_wheel_keys(w) > COINCIDING_KEYS)
		return false;
	adapt_width(w, q->key[0]);
	return w->width < PACE_ID_BITS;
}

/* The queue has other keys. */
static inline void put_key(struct pace_queue *q, u64 key)
{
	struct pace_wheel *w = q->wheel;

	if (!w->open || coinciding(q) || pace_key_before(key, w->edge) ||
	    !pace_tree_insert(q, key)) {
		pace_heap_insert(q, key);
		return;
	}
	if (!w->tree_keys++ || pace_key_before(key, w->tree_from))
		w->tree_from = key;
}

static void pace_wheel_insert(struct pace_queue *q, u64 key)
{
	struct pace_wheel *w = q->wheel;

	if (!w->open && q->count + pace_wheel_keys(w) >= q->wheel_from)
		wheel_open(q);
	/* `edge` says nothing of an empty queue. */
	if (q->count)
		put_key(q, key);
	else
		pace_heap_insert(q, key);
	wheel_settle(q);
}

/* The id is in the run. */
static void remove_from_run(struct pace_wheel *w, u32 id)
{
	u32 i = w->head;

	while (i < w->tail && (w->run[i] & PACE_KEY_ID_MASK) != id)
		i++;
	pace_memmove(w->run + i, w->run + i + 1,
		     (w->tail - i - 1) * sizeof(*w->run));
	w->tail--;
}

/* What will be written to when a key of the run has been the root. */
static inline void fetch_index(const struct pace_queue *q)
{
	const struct pace_wheel *w = q->wheel;

	if (pace_run_keys(w) > INDICES_AHEAD)
		pace_prefetch(&q->index[w->run[w->head + INDICES_AHEAD] &
					PACE_KEY_ID_MASK]);
}

/* The root goes; what its id is to be put to is up to the caller. */
static inline void take_root(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;
	u64 next;

	w->taken++;
	if (pace_run_keys(w)) {
		next = w->run[w->head];
		if (q->count == 1 || pace_heap_root_may_be(q, next)) {
			w->head++;
			q->key[0] = next;
			fetch_index(q);
			return;
		}
	}
	pace_heap_remove(q, 0);
}

static void pace_wheel_remove(struct pace_queue *q, u32 id)
{
	struct pace_wheel *w = q->wheel;
	u32 index = q->index[id];

	if (id == pace_queue_min(q))
		take_root(q);
	else if (index < PACE_INDEX_CHUNK)
		pace_heap_remove(q, index);
	else if (pace_tree_remove(q, id))
		w->tree_keys--;
	else
		remove_from_run(w, id);
	q->index[id] = PACE_ID_NONE;
	if (q->count + pace_wheel_keys(w) < q->wheel_from / 2)
		w->open = false;
	wheel_settle(q);
}

static void pace_wheel_replace_min(struct pace_queue *q, u64 key)
{
	struct pace_wheel *w = q->wheel;
	u64 next = w->run[w->head];

	/* The usual case: the run is long, the heap has but its first key. */
	if (pace_run_keys(w) > PACE_RUN_LOW && q->count == 1 && w->open &&
	    !pace_key_before(key, w->edge) && w->width >= PACE_ID_BITS &&
	    pace_tree_insert(q, key)) {
		if (!w->tree_keys++ || pace_key_before(key, w->tree_from))
			w->tree_from = key;
		w->taken++;
		w->head++;
		q->key[0] = next;
		fetch_index(q);
		return;
	}
	take_root(q);
	if (q->count)
		put_key(q, key);
	else
		pace_heap_insert(q, key);
	wheel_settle(q);
}
