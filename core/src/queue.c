// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A priority queue of ids.  It is a heap; from `wheel_from` ids on it is a wheel,
 * if there is a pool, and the heap holds the wheel's first keys.
 *
 * An id is in a queue at most once.  A queue allocates nothing: its memory comes
 * with pace_queue_resize(), and pace_queue_bytes() returns the size of that.
 * Several queues may share a pool.
 */
#include <pace/pace_sched.h>

/*
 * Keys per block for which the pool is sized.  On average a block is at most
 * half full, because a leaf's last chunk is not full, and an id is in two of
 * the four queues that share a pool.  Keys enter the heap when no block is
 * free: that is slower, but the order is the same.
 */
#define KEYS_PER_BLOCK	8u
#define BLOCKS_MIN	64u
/* Bytes of a cache line.  The pool is correct with lines of any size. */
#define LINE_BYTES	((size_t)64)

static u32 pool_blocks(u32 capacity)
{
	return capacity < PACE_WHEEL_FROM ? 0 :
	       BLOCKS_MIN + capacity / KEYS_PER_BLOCK;
}

/*
 * Returns the bytes of a pool for queues of `capacity` ids, a multiple of 8, or 0
 * if such queues are too small for a wheel.
 */
static size_t pace_pool_bytes(u32 capacity)
{
	u32 blocks = pool_blocks(capacity);

	return blocks ? sizeof(struct pace_pool) + LINE_BYTES +
			(size_t)blocks * PACE_BLOCK_BYTES : 0;
}

/*
 * Moves a pool, if there is one, to new memory aligned as u64.  The capacity is
 * no smaller; the caller then resizes the queues that share the pool.  Returns
 * NULL if queues of that capacity have no wheel.  O(capacity).
 */
static struct pace_pool *pace_pool_resize(const struct pace_pool *from,
					  void *memory, u32 capacity)
{
	u32 blocks = pool_blocks(capacity);
	struct pace_pool *p = memory;

	if (!blocks)
		return NULL;
	p->blocks = blocks;
	p->block = (void *)(((size_t)(p + 1) + LINE_BYTES - 1) &
			    ~(LINE_BYTES - 1));
	p->unused = 0;
	p->free = PACE_ID_NONE;
	p->free_count = blocks;
	if (from) {
		p->unused = from->unused;
		p->free = from->free;
		p->free_count = from->free_count + blocks - from->blocks;
		pace_memmove(p->block, from->block,
			     (size_t)from->unused * PACE_BLOCK_BYTES);
	}
	return p;
}

static size_t index_bytes(u32 capacity)
{
	return ((size_t)capacity * sizeof(u32) + 7) & ~(size_t)7;
}

static size_t wheel_bytes(u32 capacity)
{
	return pool_blocks(capacity) ? sizeof(struct pace_wheel) : 0;
}

/* Returns the bytes of a queue of `capacity` ids, a multiple of 8. */
static size_t pace_queue_bytes(u32 capacity)
{
	return (size_t)capacity * sizeof(u64) + index_bytes(capacity) +
	       wheel_bytes(capacity);
}

/*
 * Sets the number of ids from which the queue uses its wheel: 0 means always,
 * ~0 never; the initial value is PACE_WHEEL_FROM.  Tests and measurements may
 * call this at any time.
 */
static void pace_queue_wheel_from(struct pace_queue *q, u32 ids)
{
	q->wheel_from = ids;
	if (!q->wheel)
		q->heap_keys = PACE_ID_NONE;
	else if (q->heap_keys || !pace_wheel_keys(q->wheel))
		pace_wheel_close(q);
	else
		q->wheel->open = false;
}

/*
 * Moves a queue to new memory aligned as u64.  Every id in it is below the new
 * capacity.  A queue with a pool must be given a pool again.  O(capacity).
 */
static void pace_queue_resize(struct pace_queue *q, struct pace_pool *pool,
			      void *memory, u32 capacity)
{
	u64 *key = memory;
	u32 *index = (u32 *)(key + capacity);
	u32 kept = q->capacity < capacity ? q->capacity : capacity;
	struct pace_wheel *wheel = NULL;

	if (kept) {
		pace_memmove(key, q->key, q->count * sizeof(*key));
		pace_memmove(index, q->index, kept * sizeof(*index));
	} else {
		q->wheel_from = PACE_WHEEL_FROM;
	}
	pace_memset(index + kept, 0xff, (capacity - kept) * sizeof(*index));
	if (pool) {
		wheel = (void *)((u8 *)index + index_bytes(capacity));
		if (q->wheel)
			pace_memmove(wheel, q->wheel, sizeof(*wheel));
		else
			pace_wheel_init(wheel);
	}
	q->key = key;
	q->index = index;
	q->capacity = capacity;
	q->pool = pool;
	q->wheel = wheel;
	pace_queue_wheel_from(q, q->wheel_from);
}

/* Returns true if the wheel is in use. */
static inline bool pace_queue_has_wheel(const struct pace_queue *q)
{
	return !q->heap_keys;
}

/* Inserts a key whose id is not in the queue.  O(log n). */
static void pace_queue_insert(struct pace_queue *q, u64 key)
{
	u32 id = key & PACE_KEY_ID_MASK;

	if (!PACE_ASSERT(id < q->capacity && q->index[id] == PACE_ID_NONE))
		return;
	if (q->count >= q->heap_keys)
		pace_wheel_insert(q, key);
	else
		pace_heap_insert(q, key);
}

/* Removes an id that is in the queue.  O(log n). */
static void pace_queue_remove(struct pace_queue *q, u32 id)
{
	if (!PACE_ASSERT(id < q->capacity && q->index[id] != PACE_ID_NONE))
		return;
	if (!q->heap_keys)
		pace_wheel_remove(q, id);
	else
		pace_heap_remove(q, q->index[id]);
}

/* Gives the smallest id another key; the id stays the same.  O(log n). */
static void pace_queue_replace_min(struct pace_queue *q, u64 key)
{
	if (!PACE_ASSERT(q->count && pace_queue_min(q) ==
			 (key & PACE_KEY_ID_MASK)))
		return;
	if (!q->heap_keys)
		pace_wheel_replace_min(q, key);
	else
		pace_heap_replace_min(q, key);
}

/*
 * Returns the id that will be the smallest when the present smallest and
 * `ahead` more have been removed, if no key changes.  Returns PACE_ID_NONE
 * without a wheel, because only the wheel keeps its next keys sorted, or if
 * fewer are.
 */
static u32 pace_queue_coming(const struct pace_queue *q, u32 ahead)
{
	const struct pace_wheel *w = q->wheel;

	if (!pace_queue_has_wheel(q) || w->tail - w->head <= ahead)
		return PACE_ID_NONE;
	return w->run[w->head + ahead] & PACE_KEY_ID_MASK;
}
