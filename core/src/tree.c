// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The tree of the wheel.  It divides the circle of keys into ranges and stores
 * the keys of a range in chunks.
 *
 * It is a hierarchical timing wheel (Varghese and Lauck, "Hashed and
 * hierarchical timing wheels", 1987) whose levels exist only where keys are: a
 * leaf that has no room for another key becomes a node of up to 32 leaves (as
 * in a burst trie: Heinz, Zobel and Williams, 2002).  So a key far ahead enters
 * a wide leaf and stays there; most keys are removed from the leaf that they
 * entered.  A leaf has at most PACE_CHAIN_KEYS keys, which bounds every
 * operation.  A node is freed with the last key below it.
 */
#include <pace/pace_sched.h>

/* A block is a chunk of keys or a node of the tree: four 64-byte cache lines. */
#define PACE_BLOCK_BYTES	256u
#define PACE_CHUNK_KEYS		31u
#define PACE_NODE_BITS		5u
#define PACE_NODE_CHILDREN	(1u << PACE_NODE_BITS)
/* A leaf with so many chunks is split when the last of them is full. */
#define PACE_CHAIN_CHUNKS	4u
#define PACE_CHAIN_KEYS		(PACE_CHAIN_CHUNKS * PACE_CHUNK_KEYS)

/* The top of the tree divides the whole circle of keys into so many slots. */
#define PACE_TOP_BITS		10u
#define PACE_TOP_SLOTS		(1u << PACE_TOP_BITS)
#define PACE_TOP_SHIFT		(64u - PACE_TOP_BITS)

/*
 * The run is refilled when it has fewer keys than this.  pace_coming() knows as
 * many classes in advance.
 */
#define PACE_RUN_LOW		32u
#define PACE_RUN_KEYS		(PACE_RUN_LOW + PACE_CHAIN_KEYS)

/*
 * The position of an id.  Below PACE_INDEX_CHUNK it is an index in the heap,
 * else a block and the slot of a key in its chunk.  A key that moves from a
 * chunk to the run, and from the run to the root of an empty heap, keeps its old
 * index, which saves a write to another cache line.  pace_tree_remove() finds
 * out whether the key is still in the chunk.
 */
#define PACE_INDEX_CHUNK	(1u << 31)
#define PACE_INDEX_SLOT_BITS	5u

/* A chunk of keys.  The chunks before it in its leaf are full. */
struct pace_chunk {
	u32 older;		/* block of the chunk before it in the leaf */
	u32 depth;		/* number of chunks before it */
	u64 key[PACE_CHUNK_KEYS];
};

/*
 * A node divides a range of keys into 32 equal parts, or fewer.  The slot of a
 * part is 0 if the part has no key.  Else it is a word that names a block: a
 * node, with the shift that selects a part of it, or the last chunk of a leaf,
 * with the number of keys in that chunk.
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
	u32 unused;		/* blocks from here on were never allocated */
	u32 free;		/* list of freed blocks */
	u32 free_count;		/* freed blocks and unused ones */
	union pace_block *block;	/* aligned to a cache line */
};

struct pace_tree {
	u32 used[PACE_TOP_SLOTS / 32];
	u32 slot[PACE_TOP_SLOTS];
};

struct pace_wheel {
	u64 edge;	/* keys in the run are before it, none in the tree is */
	u64 tree_from;	/* no key in the tree is before it; at or after edge */
	u32 tree_keys;
	u32 head;	/* the run: run[head] .. run[tail - 1] */
	u32 tail;
	u32 taken;	/* keys removed as the smallest since it was taken_from */
	u64 taken_from;
	bool open;	/* new keys enter the tree; else keys only leave it */
	u8 width;	/* log2 of the range of keys that fills a leaf */
	/* A node below which most keys are, and its range; 0: unknown. */
	u8 near_shift;
	u32 near_word;
	u64 near;
	u64 run[PACE_RUN_KEYS + PACE_SORT_EXTRA];
	/* Keys of a leaf on their way to the run. */
	u64 opened[PACE_CHAIN_KEYS + PACE_SORT_EXTRA];
	struct pace_tree tree;
};

/* The path to a leaf.  Each node on it consumes two bits of a key, or more. */
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

#define IS_NODE		(1u << 31)
#define ABOVE_BLOCK	25u	/* shift of a node, or keys in a last chunk */
#define BLOCK_MASK	((1u << ABOVE_BLOCK) - 1)
/* Blocks that a split may need: a node, its leaves, chunks not freed yet. */
#define SPLIT_BLOCKS	(1 + PACE_NODE_CHILDREN + PACE_CHAIN_CHUNKS)

_Static_assert(sizeof(union pace_block) == PACE_BLOCK_BYTES, "a block");

static inline u32 node_shift(u32 word)
{
	return word >> ABOVE_BLOCK & 63;
}

static inline u32 last_keys(u32 word)
{
	return word >> ABOVE_BLOCK;
}

static union pace_block *block_of(struct pace_pool *p, u32 word)
{
	return &p->block[word & BLOCK_MASK];
}

/* Allocates a block; the caller has checked that one is free. */
static u32 block_alloc(struct pace_pool *p)
{
	u32 b = p->free;

	p->free_count--;
	if (b == PACE_ID_NONE)
		return p->unused++;
	p->free = p->block[b].next_free;
	return b;
}

static void block_free(struct pace_pool *p, u32 b)
{
	p->block[b].next_free = p->free;
	p->free = b;
	p->free_count++;
}

/* Adds a chunk to the leaf, which is empty or whose last chunk is full. */
static u32 chunk_add(struct pace_pool *p, u32 word)
{
	u32 b = block_alloc(p);
	struct pace_chunk *chunk = &p->block[b].chunk;

	chunk->depth = 0;
	if (word) {
		chunk->older = word & BLOCK_MASK;
		chunk->depth = block_of(p, word)->chunk.depth + 1;
	}
	return b;
}

/*
 * Inserts a key into the leaf that `word` names and returns its new word.  The
 * leaf has room, or the pool has a block.
 */
static inline u32 leaf_insert(struct pace_queue *q, u32 word, u64 key)
{
	u32 n = last_keys(word);

	if (!n || n == PACE_CHUNK_KEYS) {
		word = chunk_add(q->pool, word);
		n = 0;
	}
	word &= BLOCK_MASK;
	q->pool->block[word].chunk.key[n] = key;
	q->index[key & PACE_KEY_ID_MASK] =
		PACE_INDEX_CHUNK | word << PACE_INDEX_SLOT_BITS | n;
	return word | (n + 1) << ABOVE_BLOCK;
}

/*
 * Returns log2 of the part that a leaf gets of a range of 2^shift keys.  A step
 * is five bits; steps above `width` are shorter where that lets one end there.
 */
static u32 part_shift(u32 shift, u32 width)
{
	u32 step = PACE_NODE_BITS;

	if (shift > width) {
		step = (shift - width) % PACE_NODE_BITS;
		if (step == 0)
			step = PACE_NODE_BITS;
		else if (step == 1 && shift - width > 1)
			step = 3;
	}
	return shift > step ? shift - step : 0;
}

/*
 * Returns the part of a node that a key belongs to.  If the node has fewer than
 * 32 parts, the number includes bits that all keys of the node have in common.
 */
static inline u32 part_of(u64 key, u32 shift)
{
	return key >> shift & (PACE_NODE_CHILDREN - 1);
}

/* Distributes the keys of a chunk over the parts of a node. */
static void distribute_keys(struct pace_queue *q, struct pace_node *node, u32 shift,
		      const struct pace_chunk *chunk, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		u32 part = part_of(chunk->key[i], shift);

		node->used |= 1u << part;
		node->slot[part] = leaf_insert(q, node->slot[part],
					    chunk->key[i]);
	}
}

/*
 * Turns the leaf at `slot`, a range of 2^shift keys, into a node.  Returns false
 * if the pool has too few blocks.
 */
static bool leaf_split(struct pace_queue *q, u32 *slot, u32 shift)
{
	struct pace_pool *p = q->pool;
	u32 chain[PACE_CHAIN_CHUNKS];
	u32 word = *slot, chunks, b, i;
	struct pace_node *node;

	if (p->free_count < SPLIT_BLOCKS)
		return false;
	shift = part_shift(shift, q->wheel->width);
	b = block_alloc(p);
	node = &p->block[b].node;
	pace_memset(node, 0, sizeof(*node));
	*slot = IS_NODE | shift << ABOVE_BLOCK | b;

	/* Distribute the oldest chunk first: keys often arrive in order. */
	chunks = block_of(p, word)->chunk.depth + 1;
	b = word & BLOCK_MASK;
	for (i = chunks; i--; b = p->block[b].chunk.older)
		chain[i] = b;
	for (i = 0; i < chunks; i++) {
		u32 n = i + 1 < chunks ? PACE_CHUNK_KEYS : last_keys(word);

		distribute_keys(q, node, shift, &p->block[chain[i]].chunk, n);
		block_free(p, chain[i]);
	}
	return true;
}

static inline u32 top_of(u64 key)
{
	return key >> PACE_TOP_SHIFT;
}

/* Returns true if the last chunk of the leaf has room for a key. */
static inline bool has_room(u32 word)
{
	return last_keys(word) - 1 < PACE_CHUNK_KEYS - 1;
}

/*
 * Makes room for a key in a leaf that is empty or whose last chunk is full.  A
 * leaf that has all the chunks it may have is split.
 */
static bool leaf_make_room(struct pace_queue *q, u32 *slot, u32 shift)
{
	struct pace_pool *p = q->pool;

	if (*slot &&
	    block_of(p, *slot)->chunk.depth == PACE_CHAIN_CHUNKS - 1)
		return leaf_split(q, slot, shift);
	return p->free_count;
}

/* Inserts the first key of a chunk.  Returns false if the pool has no block. */
static bool insert_first(struct pace_queue *q, u64 key)
{
	struct pace_tree *t = &q->wheel->tree;
	struct pace_node *node = NULL;
	u32 part = top_of(key), shift = PACE_TOP_SHIFT;
	u32 *slot = &t->slot[part];

	for (;;) {
		while (*slot & IS_NODE) {
			node = &block_of(q->pool, *slot)->node;
			shift = node_shift(*slot);
			part = part_of(key, shift);
			slot = &node->slot[part];
		}
		/* After a split the part may have a chunk with room. */
		if (has_room(*slot))
			break;
		if (!leaf_make_room(q, slot, shift))
			return false;
		if (*slot & IS_NODE)
			continue;
		if (node)
			node->used |= 1u << part;
		else
			t->used[part / 32] |= 1u << part % 32;
		break;
	}
	*slot = leaf_insert(q, *slot, key);
	return true;
}

/* Returns false if the pool has no block for the key. */
static bool pace_tree_insert(struct pace_queue *q, u64 key)
{
	struct pace_wheel *w = q->wheel;
	u32 word = w->tree.slot[top_of(key)], n;
	u32 *slot = &w->tree.slot[top_of(key)];
	union pace_block *block = q->pool->block;

	if (w->near_word && !((key ^ w->near) >> w->near_shift))
		word = w->near_word;
	while (word & IS_NODE) {
		struct pace_node *node = &block[word & BLOCK_MASK].node;

		slot = &node->slot[part_of(key, node_shift(word))];
		word = *slot;
	}
	n = last_keys(word);
	if (!has_room(word))
		return insert_first(q, key);
	*slot = word + (1u << ABOVE_BLOCK);
	word &= BLOCK_MASK;
	block[word].chunk.key[n] = key;
	q->index[key & PACE_KEY_ID_MASK] =
		PACE_INDEX_CHUNK | word << PACE_INDEX_SLOT_BITS | n;
	return true;
}

static void path_begin(struct pace_tree *t, struct pace_path *path, u32 top)
{
	path->slot = &t->slot[top];
	path->top = top;
	path->start = (u64)top << PACE_TOP_SHIFT;
	path->shift = PACE_TOP_SHIFT;
	path->levels = 0;
}

/* Extends the path to a part of the node at path->slot. */
static void path_down(struct pace_path *path, struct pace_node *node, u32 part,
		      u32 shift)
{
	path->node[path->levels] = node;
	path->part[path->levels] = part;
	path->levels++;
	path->start |= (u64)part << shift;
	path->slot = &node->slot[part];
	path->shift = shift;
}

static void path_to_key(const struct pace_queue *q, struct pace_path *path,
			u64 key)
{
	path_begin(&q->wheel->tree, path, top_of(key));
	while (*path->slot & IS_NODE) {
		u32 shift = node_shift(*path->slot);

		path_down(path, &block_of(q->pool, *path->slot)->node,
			  part_of(key, shift), shift);
	}
}

/* Returns the first slot of the top that has keys, from `top` on the circle. */
static u32 top_first(const struct pace_tree *t, u32 top)
{
	u32 i = top / 32;
	u32 bits = t->used[i] & ~0u << top % 32;

	while (!bits) {
		i = (i + 1) % (PACE_TOP_SLOTS / 32);
		bits = t->used[i];
	}
	return i * 32 + pace_lowest_bit(bits);
}

/*
 * Remembers a node from which insertion may start instead of the top.  Its range
 * covers new keys as long as their distance from the first leaf is typical.
 */
static void set_near(struct pace_wheel *w, u32 word, u64 start, u32 shift)
{
	w->near_word = word;
	w->near = start;
	w->near_shift = shift;
}

/*
 * Finds the leaf with the smallest keys, none of which is before `from`, and
 * returns its number of keys.  The tree is not empty.
 */
static u32 pace_tree_first(struct pace_queue *q, u64 from,
			   struct pace_path *path)
{
	struct pace_wheel *w = q->wheel;
	u32 keys = w->tree_keys, near = w->width, word;

	for (; keys; keys /= 2)
		near++;
	path_begin(&w->tree, path, top_first(&w->tree, top_of(from)));
	while ((word = *path->slot) & IS_NODE) {
		struct pace_node *node = &block_of(q->pool, word)->node;

		if (path->shift >= near)
			set_near(w, word, path->start, path->shift);
		path_down(path, node, pace_lowest_bit(node->used),
			  node_shift(word));
	}
	return block_of(q->pool, word)->chunk.depth * PACE_CHUNK_KEYS +
	       last_keys(word);
}

/*
 * Removes an empty leaf, and frees the nodes above it that become empty.
 * Returns the lowest node that stays, or NULL.
 */
static struct pace_node *path_clear(struct pace_queue *q,
				    struct pace_path *path)
{
	struct pace_wheel *w = q->wheel;
	struct pace_tree *t = &w->tree;
	struct pace_pool *p = q->pool;
	u32 *slot = path->slot, level = path->levels;

	for (;;) {
		struct pace_node *node;

		if (*slot == w->near_word)
			set_near(w, 0, 0, 0);
		*slot = 0;
		if (!level)
			break;
		node = path->node[--level];
		node->used &= ~(1u << path->part[level]);
		if (node->used)
			return node;
		block_free(p, (union pace_block *)node - p->block);
		slot = level ? &path->node[level - 1]->slot[path->part[level - 1]]
			     : &t->slot[path->top];
	}
	t->used[path->top / 32] &= ~(1u << path->top % 32);
	return NULL;
}

/*
 * Returns true if slot `i` of block `b` holds a key of the leaf that `word`
 * names.  The block may have been freed and allocated again since.
 */
static bool leaf_has(struct pace_pool *p, u32 word, u32 b, u32 i)
{
	u32 n = last_keys(word), depth;

	if (!word)
		return false;
	for (depth = block_of(p, word)->chunk.depth;; depth--) {
		if ((word & BLOCK_MASK) == b)
			return i < n;
		if (!depth)
			return false;
		word = block_of(p, word)->chunk.older;
		n = PACE_CHUNK_KEYS;
	}
}

/*
 * Removes an id whose index names a chunk.  Returns false if its key has moved
 * from there to the run.
 */
static bool pace_tree_remove(struct pace_queue *q, u32 id)
{
	u32 index = q->index[id];
	u32 b = (index & ~PACE_INDEX_CHUNK) >> PACE_INDEX_SLOT_BITS;
	u32 i = index & ((1u << PACE_INDEX_SLOT_BITS) - 1);
	struct pace_pool *p = q->pool;
	u64 key = p->block[b].chunk.key[i], moved;
	struct pace_chunk *last;
	struct pace_path path;
	u32 word, n;

	if ((key & PACE_KEY_ID_MASK) != id)
		return false;
	path_to_key(q, &path, key);
	word = *path.slot;
	if (!leaf_has(p, word, b, i))
		return false;
	last = &block_of(p, word)->chunk;
	n = last_keys(word) - 1;

	/* The last key of the leaf fills the hole. */
	moved = last->key[n];
	if (moved != key) {
		p->block[b].chunk.key[i] = moved;
		q->index[moved & PACE_KEY_ID_MASK] = index;
	}
	word &= BLOCK_MASK;
	if (n) {
		*path.slot = word | n << ABOVE_BLOCK;
		return true;
	}
	if (last->depth)
		*path.slot = last->older | PACE_CHUNK_KEYS << ABOVE_BLOCK;
	else
		path_clear(q, &path);
	block_free(p, word);
	return true;
}

/* Splits a leaf.  Returns false if the pool has too few blocks. */
static bool pace_tree_split(struct pace_queue *q, struct pace_path *path)
{
	return leaf_split(q, path->slot, path->shift);
}

/* Prefetches the used part of the next leaf's last chunk: it is needed soon. */
static void fetch_first(struct pace_queue *q, const struct pace_node *node)
{
	u32 word = node->slot[pace_lowest_bit(node->used)];
	const u8 *block = block_of(q->pool, word)->bytes;
	u32 bytes = PACE_BLOCK_BYTES, i;

	if (!(word & IS_NODE))
		bytes = sizeof(u64) * (1 + last_keys(word));
	for (i = 0; i < bytes; i += 64)
		pace_prefetch(block + i);
}

/* Moves all keys of a leaf to `out`, the oldest first, and removes the leaf. */
static void pace_tree_remove_leaf(struct pace_queue *q, struct pace_path *path,
			   u64 *out)
{
	struct pace_pool *p = q->pool;
	u32 b = *path->slot & BLOCK_MASK, n = last_keys(*path->slot);
	const struct pace_node *node;
	u32 i, depth;

	do {
		const struct pace_chunk *chunk = &p->block[b].chunk;
		u32 older = chunk->older;

		/*
		 * Copy in order of arrival, which is often the order of the
		 * keys.
		 */
		depth = chunk->depth;
		for (i = 0; i < n; i++)
			out[depth * PACE_CHUNK_KEYS + i] = chunk->key[i];
		block_free(p, b);
		b = older;
		n = PACE_CHUNK_KEYS;
	} while (depth);
	node = path_clear(q, path);
	if (node)
		fetch_first(q, node);
}
