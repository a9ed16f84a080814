// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The wheel: a queue for many ids.  Three structures hold the keys, the smallest
 * in front: the heap, the run (the next keys, sorted), and the tree.
 *
 * Between operations every key in the run is before `edge`, no key in the tree
 * is, and the heap's root is before all of both.  So the smallest key of the
 * queue is the heap's root, as in a heap alone.  A queue changes to the wheel
 * and back by where it inserts new keys; keys that it holds stay where they are
 * until they are removed.
 *
 * A leaf is opened, that is moved to the run, when its range begins within two
 * widths of the smallest key.  So it is sorted before its keys are needed, and
 * pace_coming() knows them.  A leaf farther away stays closed: all new keys
 * before its end would have to enter the heap.
 */
#include <pace/pace_sched.h>

static inline u32 pace_run_keys(const struct pace_wheel *w)
{
	return w->tail - w->head;
}

/* Returns the number of keys that are not in the heap. */
static inline u32 pace_wheel_keys(const struct pace_wheel *w)
{
	return pace_run_keys(w) + w->tree_keys;
}

/* log2 of the keys removed between two measurements of their distance. */
#define TAKEN_LOG	6u
/*
 * log2 of the keys that a leaf holds on average.  With fewer a walk down the
 * tree yields little; more take longer to sort.
 */
#define LEAF_LOG	5u
/* The first width: 24 frames of 1500 bytes on a full line. */
#define WIDTH_FIRST	(PACE_ID_BITS + 15u)
#define WIDTH_MIN	5u
#define WIDTH_MAX	(PACE_TOP_SHIFT - 1)
/* A leaf wider than the width is split if it has more keys than this. */
#define WIDE_KEYS	8u
/* With more keys than this the tree is faster even if they coincide. */
#define COINCIDING_KEYS	65536u
/* Keys ahead whose indices are prefetched: at most PACE_RUN_LOW. */
#define INDICES_AHEAD	16u

/* Adapts the width of leaves to the distance of the keys removed lately. */
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

/* Returns true if the tree's first key may be within two widths of the root. */
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

/* Keeps keys before `end` and inserts the others anew.  Returns how many. */
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
 * Moves the keys of a leaf to the run; of a leaf wider than the width only those
 * within a width of its smallest key.
 */
static void open_leaf(struct pace_queue *q, struct pace_path *leaf, u32 n)
{
	struct pace_wheel *w = q->wheel;
	u64 end = leaf->start + (1ull << leaf->shift);

	pace_tree_remove_leaf(q, leaf, w->opened);
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

/* Opens or splits the first leaf of the tree if it is near. */
static void examine_tree(struct pace_queue *q)
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

/* Returns true if the tree may hold the smallest key of the queue. */
static bool must_examine(const struct pace_queue *q)
{
	const struct pace_wheel *w = q->wheel;

	return !pace_run_keys(w) &&
	       (!q->count || !pace_key_before(q->key[0], w->tree_from));
}

/* Refills the run by one leaf, by more if the smallest key requires it. */
static void refill_run(struct pace_queue *q)
{
	struct pace_wheel *w = q->wheel;

	if (q->count)
		adapt_width(w, q->key[0]);
	do {
		examine_tree(q);
	} while (w->tree_keys && must_examine(q));
}

/* Lets new keys enter the tree.  The heap keeps its keys. */
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

/* Lets new keys enter the heap, which holds all keys of the queue. */
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

/* Restores what holds between operations. */
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
	/* Advances `edge`: a key before the root has to enter the heap. */
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
 * Returns true if a leaf's worth of the keys removed lately had one value.  Such
 * keys differ in their lowest bits alone, far down the tree: a heap is faster
 * unless it is large.
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

/* Inserts a key into a queue that is not empty. */
static inline void insert_key(struct pace_queue *q, u64 key)
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
	/* In an empty queue `edge` may be anywhere. */
	if (q->count)
		insert_key(q, key);
	else
		pace_heap_insert(q, key);
	wheel_settle(q);
}

/* Removes an id that is in the run. */
static void remove_from_run(struct pace_wheel *w, u32 id)
{
	u32 i = w->head;

	while (i < w->tail && (w->run[i] & PACE_KEY_ID_MASK) != id)
		i++;
	pace_memmove(w->run + i, w->run + i + 1,
		     (w->tail - i - 1) * sizeof(*w->run));
	w->tail--;
}

/* Prefetches the index that is written when a key of the run was the root. */
static inline void fetch_index(const struct pace_queue *q)
{
	const struct pace_wheel *w = q->wheel;

	if (pace_run_keys(w) > INDICES_AHEAD)
		pace_prefetch(&q->index[w->run[w->head + INDICES_AHEAD] &
					PACE_KEY_ID_MASK]);
}

/* Removes the root; the caller sets the index of its id. */
static inline void remove_root(struct pace_queue *q)
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
		remove_root(q);
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

	/* The usual case: the run is long, the heap has its root alone. */
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
	remove_root(q);
	if (q->count)
		insert_key(q, key);
	else
		pace_heap_insert(q, key);
	wheel_settle(q);
}
