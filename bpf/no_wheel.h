/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stands for core/src/chunk.c and wheel.c: queues are heaps.  A wheel gives the same
 * order, faster from 512 classes on, but its calls are deeper than the eight that
 * BPF allows.  Whoever lays out a port for BPF gives it none (PACE_HEAP_ONLY).
 */
#ifndef BPF_NO_WHEEL_H
#define BPF_NO_WHEEL_H

struct pace_pool {
	u32 unused;
};

struct pace_wheel {
	u32 head;
	u32 tail;
	u64 run[1];
};

static inline u32 pool_chunks(u32 capacity) { return 0 * capacity; }
static inline size_t pace_pool_bytes(u32 capacity) { return 0 * capacity; }
static inline u32 run_keys(const struct pace_wheel *w) { return w->tail - w->head; }

static inline struct pace_pool *pace_pool_init(void *memory, u32 capacity)
{
	(void)memory;
	(void)capacity;
	return NULL;
}

static inline struct pace_wheel *pace_wheel_init(void *memory)
{
	(void)memory;
	return NULL;
}

static inline void pace_wheel_open(struct pace_queue *q) { (void)q; }
static inline void pace_wheel_close(struct pace_queue *q) { (void)q; }
static inline void pace_wheel_pop(struct pace_queue *q) { (void)q; }
static inline void pace_wheel_gather(struct pace_queue *q) { (void)q; }
static inline u64 pace_wheel_second(const struct pace_queue *q) { return q->min; }

static inline void pace_wheel_insert(struct pace_queue *q, u64 key)
{
	(void)q;
	(void)key;
}

static inline void pace_wheel_replace_min(struct pace_queue *q, u64 key)
{
	(void)q;
	(void)key;
}

#endif
