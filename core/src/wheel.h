/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The wheel: what a queue keeps beside its heap once it is long.
 *
 * Three places, from the smallest key on: the heap, whose root is the smallest
 * of all; the run, sorted, from which the heap is fed one key at a time; the
 * tree (src/tree.c), keys by range and within a range in no order.  Keys
 * before `edge` never enter the tree: a key that comes late, or one for which
 * the pool has no block left, goes to the heap, where it is exact as well,
 * only slower.
 *
 *	heap  <- run <-(sorted)- leaf of the tree      keys below edge | tree
 *
 * Cost: a key enters a leaf, leaves it in a batch that is sorted, and passes
 * the heap while that is short: O(1) amortised where clocks are spread.  No
 * operation does more than a bounded amount of work: it splits a chain of
 * PACE_CHAIN_KEYS per level of the tree at most, sorts one, and moves O(log n)
 * keys of the heap.  Clocks that coincide are told apart by their ids, which
 * are the low bits of a key, like any others.
 */
#ifndef PACE_WHEEL_H
#define PACE_WHEEL_H

#include "queue.h"

/* A block: 4 lines of 64 bytes, a chunk of keys or a node of the tree. */
#define PACE_BLOCK_BYTES	256u
#define PACE_CHUNK_KEYS		31u
#define PACE_NODE_BITS		5u
#define PACE_NODE_CHILDREN	(1u << PACE_NODE_BITS)
/* Chunks in a leaf; one that is full is split. */
#define PACE_CHAIN_CHUNKS	4u
#define PACE_CHAIN_KEYS		(PACE_CHAIN_CHUNKS * PACE_CHUNK_KEYS)

/* The tree's top: the whole circle of keys in so many slots. */
#define PACE_TOP_BITS		10u
#define PACE_TOP_SLOTS		(1u << PACE_TOP_BITS)
#define PACE_TOP_SHIFT		(64u - PACE_TOP_BITS)

/*
 * The run is refilled when it gets shorter than this; so many classes can be
 * seen coming.
 */
#define PACE_RUN_LOW		32u
/* Keys that sorting adds behind the others. */
#define PACE_SORT_EXTRA		3u
#define PACE_RUN_KEYS		(PACE_RUN_LOW + PACE_CHAIN_KEYS)

/*
 * Where an id is: below PACE_PLACE_CHUNK a place in the heap, else block and
 * slot of a chunk.  A key that goes from there to the run, and from the run to
 * the root of an empty heap, leaves its place as it was: one line of cache
 * less.  Whether it is still there can be told: pace_tree_remove().
 */
#define PACE_PLACE_CHUNK	(1u << 31)
#define PACE_PLACE_SLOT_BITS	5u

/* A chunk's keys; those before it in its leaf are full. */
struct pace_chunk {
	u32 older;		/* block of the chunk before */
	u32 depth;		/* how many are before */
	u64 key[PACE_CHUNK_KEYS];
};

/*
 * A range of keys in 32 equal parts, or fewer.  A slot is 0 if nothing is in
 * its range; else it names a block: a node, and the shift that tells the parts
 * of that apart, or the last chunk of a leaf, and how many keys are in it.
 */
struct pace_node {
	u32 used;		/* bit i: slot i is not 0 */
	u32 slot[PACE_NODE_CHILDREN];
};

union pace_block {
	struct pace_chunk chunk;
	struct pace_node node;
	u32 next_free;
	u8 bytes[PACE_BLOCK_BYTES];
};

struct pace_pool {
	u32 blocks;
	u32 unused;		/* blocks from here on were never given out */
	u32 free;		/* list of those given back */
	u32 free_count;		/* of both kinds */
	union pace_block *block;	/* aligned as lines of cache are */
};

struct pace_tree {
	u32 used[PACE_TOP_SLOTS / 32];
	u32 slot[PACE_TOP_SLOTS];
};

struct pace_wheel {
	u64 edge;	/* what is in the tree is not before; the run is */
	u64 tree_from;	/* nothing in the tree is before; not before edge */
	u32 tree_keys;
	u32 head;	/* the run: run[head] .. run[tail - 1] */
	u32 tail;
	u32 taken;	/* times the smallest key was taken since... */
	u64 taken_from;	/* ...it was this */
	bool open;	/* keys enter the tree; else they are only taken out */
	u8 width;	/* log2 of the range of keys that fills a leaf */
	/* A node that most keys are below, its range; 0: none is known. */
	u8 near_shift;
	u32 near_word;
	u64 near;
	u64 run[PACE_RUN_KEYS + PACE_SORT_EXTRA];
	/* Keys of a leaf, on their way there. */
	u64 opened[PACE_CHAIN_KEYS + PACE_SORT_EXTRA];
	struct pace_tree tree;
};

static inline bool pace_key_before(u64 a, u64 b)
{
	/* Wrap-safe: the difference on the circle of 2^64, signed. */
	return (s64)(a - b) < 0;
}

static inline u32 pace_run_keys(const struct pace_wheel *w)
{
	return w->tail - w->head;
}

/* Beside the heap. */
static inline u32 pace_wheel_keys(const struct pace_wheel *w)
{
	return pace_run_keys(w) + w->tree_keys;
}

/* heap.c: the heap alone. */
void pace_heap_insert(struct pace_queue *q, u64 key);
void pace_heap_remove(struct pace_queue *q, u32 place);
/* Would `key` be before all others, were it in the root's place? */
bool pace_heap_root_may_be(const struct pace_queue *q, u64 key);

/* wheel.c: what the operations of a queue are while its wheel is in use. */
void pace_wheel_init(struct pace_wheel *w);
void pace_wheel_close(struct pace_queue *q);
void pace_wheel_insert(struct pace_queue *q, u64 key);
void pace_wheel_remove(struct pace_queue *q, u32 id);
void pace_wheel_replace_min(struct pace_queue *q, u64 key);

/* tree.c */

/* The nodes on the way to a leaf.  Each takes two bits of a key, or more. */
#define PACE_LEVELS_MAX	(PACE_TOP_SHIFT / 2 + 1)

struct pace_path {
	u32 *slot;		/* of the leaf */
	u64 start;		/* of its range */
	u32 shift;		/* log2 of its range */
	u32 top;
	u32 levels;
	u8 part[PACE_LEVELS_MAX];
	struct pace_node *node[PACE_LEVELS_MAX];
};

/* False if the pool has no block for it. */
bool pace_tree_insert(struct pace_queue *q, u64 key);
/* False if the id is not in the tree, although its place is in a chunk. */
bool pace_tree_remove(struct pace_queue *q, u32 id);
/*
 * The leaf that the smallest keys are in, none of which is before `from`; how
 * many keys it has.  The tree is not empty.
 */
u32 pace_tree_first(struct pace_queue *q, u64 from, struct pace_path *path);
/* Splits that leaf; false if the pool has no room for its parts. */
bool pace_tree_split(struct pace_queue *q, struct pace_path *path);
/* Moves all keys of that leaf to `out`, oldest first. */
void pace_tree_take(struct pace_queue *q, struct pace_path *path, u64 *out);

/*
 * sort.c: to `out`, ascending as unsigned numbers; what is in `key` is lost.
 * n <= PACE_CHAIN_KEYS; both have room for PACE_SORT_EXTRA keys more.
 */
void pace_sort(u64 *key, u64 *out, u32 n);

#endif /* PACE_WHEEL_H */
