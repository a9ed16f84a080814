// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Chains of keys, made of chunks from a pool that several queues share.
 *
 * A chunk is four cache lines: a link, then keys.  A word names a chain: the index
 * in the pool where its next key goes; 0 is no chain.  The word of a chain whose
 * first chunk is full is a multiple of CHUNK, and so is 0: a chunk is missing.
 */
#include <pace/pace_sched.h>

#define CHUNK		32u
#define CHUNK_KEYS	(CHUNK - 1)

struct pace_pool {
	u32 blocks;
	u32 unused;		/* chunks from here on were never allocated */
	u32 free;		/* list of freed chunks */
	u32 free_count;		/* freed chunks and unused ones */
	u64 *key;		/* all chunks, aligned to a cache line */
};

/*
 * Ids per chunk of the pool, for which it is sized.  A slot's first chunk is not
 * full, and an id is in two of the four queues that share a pool.  Keys enter the
 * heap when no chunk is free: that is slower, but the order is the same.
 */
#define IDS_PER_CHUNK	6u
#define CHUNKS_MIN	512u
/* Bytes of a cache line.  The pool is correct with lines of any size. */
#define LINE_BYTES	((size_t)64)

static u32 pool_chunks(u32 capacity)
{
	return capacity < PACE_WHEEL_FROM ? 0 :
	       CHUNKS_MIN + capacity / IDS_PER_CHUNK;
}

/*
 * Returns the bytes of a pool for queues of `capacity` ids, a multiple of 8, or 0
 * if such queues are too small for a wheel.
 */
static size_t pace_pool_bytes(u32 capacity)
{
	size_t chunks = pool_chunks(capacity);

	return chunks ? sizeof(struct pace_pool) + LINE_BYTES +
			chunks * CHUNK * sizeof(u64) : 0;
}

/* Makes a pool in memory aligned as u64.  Returns NULL if its size is 0. */
static struct pace_pool *pace_pool_init(void *memory, u32 capacity)
{
	struct pace_pool *p = memory;

	if (!pool_chunks(capacity))
		return NULL;
	p->blocks = pool_chunks(capacity);
	p->unused = 0;
	p->free = PACE_ID_NONE;
	p->free_count = p->blocks;
	p->key = (void *)(((size_t)(p + 1) + LINE_BYTES - 1) &
			  ~(LINE_BYTES - 1));
	return p;
}

/* Puts an empty chunk in front of a chain and returns the word of that. */
static u32 chain_grow(struct pace_pool *p, u32 word)
{
	u32 chunk = p->free;

	if (chunk == PACE_ID_NONE)
		chunk = p->unused++;
	else
		p->free = (u32)p->key[chunk * CHUNK];
	p->free_count--;
	p->key[chunk * CHUNK] = word;
	return chunk * CHUNK + 1;
}

/* Frees the first chunk of a chain and returns the word of the rest. */
static u32 chain_shrink(struct pace_pool *p, u32 word)
{
	u32 chunk = (word - 1) / CHUNK, rest = (u32)p->key[chunk * CHUNK];

	p->key[chunk * CHUNK] = p->free;
	p->free = chunk;
	p->free_count++;
	return rest;
}

/* Returns the number of keys in the first chunk of a chain. */
static inline u32 first_keys(u32 word)
{
	return (word - 1) % CHUNK;
}

/* Returns the first chunk of a chain: its link, a word, and its keys. */
static inline u64 *first_chunk(const struct pace_pool *p, u32 word)
{
	return &p->key[(word - 1) / CHUNK * CHUNK];
}
