// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Chains of keys: queues of chunks from a pool that several wheels share.
 *
 * A chunk is four cache lines: a link and CHUNK_KEYS keys.  A word names a chain:
 * the index in the pool where its next key goes, behind the last one; 0 is no chain.
 * So a word that is a multiple of CHUNK has no room for a key.  The last chunk links
 * to the first one, and every other to the one after it.
 */
#include <pace/pace_sched.h>

#define CHUNK		32u
#define CHUNK_KEYS	(CHUNK - 1)
/* In the link of the last chunk: all keys before that chunk came in order. */
#define CHAIN_SORTED	(1ull << 32)

struct pace_pool {
	u32 blocks;
	u32 unused;		/* chunks from here on were never allocated */
	u32 free;		/* list of freed chunks */
	u32 free_count;		/* freed chunks and unused ones */
	u64 *key;		/* all chunks, aligned to a cache line */
};

/*
 * Ids per chunk of the pool, for which it is sized.  A slot's last chunk is not
 * full, and an id is in two of the four queues that share a pool.  Keys enter the
 * heap when no chunk is free: that is slower, but the order is the same.
 */
#define IDS_PER_CHUNK	6u
#define CHUNKS_MIN	256u
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

static inline u64 *last_chunk(const struct pace_pool *p, u32 word)
{
	return &p->key[(word - 1) / CHUNK * CHUNK];
}

/* Returns the first chunk of a chain: its link, then its keys. */
static inline u64 *first_chunk(const struct pace_pool *p, u32 word)
{
	return &p->key[(u32)*last_chunk(p, word) * CHUNK];
}

static inline bool has_one_chunk(const struct pace_pool *p, u32 word)
{
	return first_chunk(p, word) == last_chunk(p, word);
}

/* Returns the number of keys in the first chunk of a chain. */
static inline u32 first_keys(const struct pace_pool *p, u32 word)
{
	return has_one_chunk(p, word) ? (word - 1) % CHUNK : CHUNK_KEYS;
}

/*
 * Appends a chunk to a chain that is to get `key`, and returns the new word.  The
 * caller has checked that a chunk is free.
 */
static u32 chain_grow(struct pace_pool *p, u32 word, u64 key)
{
	u32 chunk = p->free;
	u64 link;

	p->free_count--;
	if (chunk == PACE_ID_NONE)
		chunk = p->unused++;
	else
		p->free = (u32)p->key[chunk * CHUNK];
	link = chunk | CHAIN_SORTED;
	if (word) {
		u64 *last = last_chunk(p, word);

		link = *last;
		if (link & CHAIN_SORTED && (key < last[CHUNK_KEYS] ||
					    !is_sorted(last + 1, CHUNK_KEYS)))
			link -= CHAIN_SORTED;
		*last = chunk;
	}
	p->key[chunk * CHUNK] = link;
	return chunk * CHUNK + 1;
}

/* Frees the first chunk of a chain and returns the word of the rest. */
static u32 chain_shrink(struct pace_pool *p, u32 word)
{
	u64 *first = first_chunk(p, word), *last = last_chunk(p, word);
	u32 chunk = (u32)*last;

	if (first == last)
		word = 0;
	else
		*last = (*last & CHAIN_SORTED) | *first;
	*first = p->free;
	p->free = chunk;
	p->free_count++;
	return word;
}

/* Returns true if all keys of a chain have one clock and came by id. */
static bool chain_coincides(const struct pace_pool *p, u32 word)
{
	const u64 *last = last_chunk(p, word);

	return *last & CHAIN_SORTED &&
	       !((first_chunk(p, word)[1] ^ p->key[word - 1]) >> PACE_ID_BITS) &&
	       is_sorted(last + 1, (word - 1) % CHUNK);
}
