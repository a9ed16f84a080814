// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Chunks of keys, and chains of them, from a pool that several queues share.
 *
 * A word names a chain: the number of its first chunk above five bits, the number
 * of keys in that; 0 is no chain.
 */
#include <pace/pace_sched.h>

/* A chunk of keys: four cache lines.  The chunks behind it in a chain are full. */
#define CHUNK_KEYS	31u

struct pace_chunk {
	u32 next;		/* the word of the chunk behind it; 0: none */
	u32 depth;		/* number of chunks behind it */
	u64 key[CHUNK_KEYS];
};

_Static_assert(sizeof(struct pace_chunk) == 256, "a chunk");

struct pace_pool {
	u32 blocks;
	u32 unused;		/* chunks from here on were never allocated */
	u32 free;		/* list of freed chunks */
	u32 free_count;		/* freed chunks and unused ones */
	struct pace_chunk *chunk;	/* aligned to a cache line */
};

/*
 * Ids per chunk of the pool, for which it is sized.  A bucket's last chunk is not
 * full, and an id is in two of the four queues that share a pool.  Keys enter the
 * heap when no chunk is free: that is slower, but the order is the same.
 */
#define IDS_PER_CHUNK	6u
#define CHUNKS_MIN	64u
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
	u32 chunks = pool_chunks(capacity);

	return chunks ? sizeof(struct pace_pool) + LINE_BYTES +
			chunks * sizeof(struct pace_chunk) : 0;
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
	p->chunk = (void *)(((size_t)(p + 1) + LINE_BYTES - 1) &
			    ~(LINE_BYTES - 1));
	return p;
}

static inline struct pace_chunk *chunk_of(const struct pace_pool *p, u32 word)
{
	return &p->chunk[word >> 5];
}

/* Allocates a chunk; the caller has checked that one is free. */
static u32 chunk_alloc(struct pace_pool *p)
{
	u32 b = p->free;

	p->free_count--;
	if (b == PACE_ID_NONE)
		return p->unused++;
	p->free = p->chunk[b].next;
	return b;
}

/* Frees the first chunk of a chain and returns the word of the rest. */
static u32 chunk_free(struct pace_pool *p, u32 word)
{
	u32 next = chunk_of(p, word)->next;

	chunk_of(p, word)->next = p->free;
	p->free = word >> 5;
	p->free_count++;
	return next;
}

static u32 chain_keys(const struct pace_pool *p, u32 word)
{
	return word ? chunk_of(p, word)->depth * CHUNK_KEYS + word % 32 : 0;
}

/* Puts an empty chunk in front of a chain and returns the word of that. */
static u32 chain_grow(struct pace_pool *p, u32 word)
{
	u32 b = chunk_alloc(p);
	struct pace_chunk *chunk = &p->chunk[b];

	chunk->next = word;
	chunk->depth = word ? chunk_of(p, word)->depth + 1 : 0;
	return b << 5;
}

/* Prefetches the keys of the first chunk of a chain. */
static inline void fetch_chunk(const struct pace_pool *p, u32 word)
{
	const u8 *chunk = (const u8 *)chunk_of(p, word);
	u32 i;

	for (i = 0; i <= word % 32 / 8; i++)
		pace_prefetch(chunk + 64 * i);
}
