// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The scheduler's storage.  One block of memory, which the host owns, holds
 * everything that grows with the number of classes: six queues and the pool of
 * their wheels, the table of classes by id, and the list of free ids.
 */
#include <pace/pace_sched.h>

#define QUEUES		6
#define QUEUES_OF(s)	{ &(s)->waiting, &(s)->eligible, &(s)->at_ceil, \
			  &(s)->borrowing, &(s)->launching, &(s)->resting }
/* Those that share the pool: a class is in two of them.  The last two are heaps. */
#define QUEUES_WITH_WHEEL	4

static u32 clamp_capacity(u32 capacity)
{
	return capacity < PACE_CLASSES_MAX ? capacity : PACE_CLASSES_MAX;
}

static size_t round_up_8(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

static size_t table_bytes(u32 capacity)
{
	return round_up_8(capacity * sizeof(struct pace_class *));
}

size_t pace_storage_bytes(u32 capacity)
{
	capacity = clamp_capacity(capacity);
	return pace_pool_bytes(capacity) + QUEUES * pace_queue_bytes(capacity) +
	       table_bytes(capacity) + round_up_8(capacity * sizeof(u32));
}

void *pace_set_storage(struct pace_sched *s, void *storage, u32 capacity)
{
	void *old = s->storage;
	struct pace_class **by_id;
	u32 *free_ids;
	u8 *at = storage;
	struct pace_queue *const queue[QUEUES] = QUEUES_OF(s);
	const u64 *key[QUEUES];
	u32 keys[QUEUES], i;

	capacity = clamp_capacity(capacity);
	if (capacity < s->id_end || (s->pool && capacity < s->capacity))
		return storage;
	for (i = 0; i < QUEUES; i++)
		if (!pace_queue_fits(queue[i], capacity))
			return storage;

	for (i = 0; i < QUEUES; i++) {
		keys[i] = pace_queue_gather(queue[i]);
		key[i] = queue[i]->heap;
	}
	s->pool = pace_pool_init(at, capacity);
	at += pace_pool_bytes(capacity);
	for (i = 0; i < QUEUES; i++) {
		pace_queue_resize(queue[i],
				  i < QUEUES_WITH_WHEEL ? s->pool : NULL, at,
				  capacity, key[i], keys[i]);
		at += pace_queue_bytes(capacity);
	}
	by_id = (struct pace_class **)at;
	at += table_bytes(capacity);
	free_ids = (u32 *)at;

	if (s->id_end) {
		pace_memmove(by_id, s->by_id, s->id_end * sizeof(*by_id));
		pace_memmove(free_ids, s->free_ids,
			     s->free_count * sizeof(*free_ids));
	}
	s->by_id = by_id;
	s->free_ids = free_ids;
	s->storage = storage;
	s->capacity = capacity;
	return old;
}

void pace_set_wheel_from(struct pace_sched *s, u32 classes)
{
	struct pace_queue *const queue[QUEUES] = QUEUES_OF(s);
	u32 i;

	for (i = 0; i < QUEUES; i++)
		pace_queue_wheel_from(queue[i], classes);
}

/* Allocates an id for a class.  Returns false if there is none.  O(1). */
static bool pace_id_alloc(struct pace_sched *s, struct pace_class *c)
{
	if (s->free_count)
		c->id = s->free_ids[--s->free_count];
	else if (s->id_end < s->capacity)
		c->id = s->id_end++;
	else
		return false;
	s->by_id[c->id] = c;
	return true;
}

static void pace_id_free(struct pace_sched *s, struct pace_class *c)
{
	s->by_id[c->id] = NULL;
	s->free_ids[s->free_count++] = c->id;
	c->id = PACE_ID_NONE;
}

static bool pace_id_held(const struct pace_sched *s, const struct pace_class *c)
{
	return c->id < s->id_end && s->by_id[c->id] == c;
}
