// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * @proves the heap: from any valid heap each of insert, remove and replace_min leads to a valid one that holds exactly what it should
 * @bounds 7 ids (three levels), any number of operations; every order that their keys can have, from three origins, two at the wraps
 * @options --unwind 9 --unwindset sift_up.0:3,sift_down.0:3,smallest_child.0:4
 * @each OP=0 COUNT=0..6
 * @each OP=1 COUNT=1..7
 * @each OP=2 COUNT=1..7
 */
#include "heap.c"
#include "proof.h"

#define CAPACITY	7u
#define VALUES		15u

static u64 keys[CAPACITY];
static u32 indices[CAPACITY];
static struct pace_queue q = {
	.key = keys, .index = indices, .capacity = CAPACITY, .heap_keys = ~0u,
};

/* Where values begin: nowhere special, and just before either wrap. */
static u64 origin;

/*
 * Only the order of keys matters, so those in the heap are numbered by it, with
 * room between for one more.
 */
static u64 usual_key(u32 id)
{
	return origin + ((u64)(2 * id + 1) << PACE_ID_BITS | id);
}

static u64 any_key(u32 id)
{
	return origin + ((nondet_u64() & VALUES) << PACE_ID_BITS | id);
}

static u32 id_in(u64 key)
{
	return key & PACE_KEY_ID_MASK;
}

/* The order, and indices that keys and ids agree about. */
static bool valid(void)
{
	bool ok = q.count <= CAPACITY;
	u32 i;

	for (i = 0; i < CAPACITY; i++) {
		if (i < q.count) {
			ok = ok && id_in(q.key[i]) < CAPACITY &&
			     q.index[id_in(q.key[i])] == i;
			if (i)
				ok = ok && q.key[(i - 1) / HEAP_ARY] - origin <=
						   q.key[i] - origin;
		}
		ok = ok && (q.index[i] == PACE_ID_NONE ||
			    (q.index[i] < q.count &&
			     id_in(q.key[q.index[i]]) == i));
	}
	return ok;
}

static bool holds(u32 id)
{
	return q.index[id] != PACE_ID_NONE;
}

static u64 key_of(u32 id)
{
	return q.key[q.index[id]];
}

/* Any heap of COUNT keys; the ids that are not in it have no index. */
static void any_heap(void)
{
	u32 i;

	origin = nondet_bool() ? 0 :
		 nondet_bool() ? (1ull << 63) - (8ull << PACE_ID_BITS) :
				 -(8ull << PACE_ID_BITS);
	q.count = COUNT;
	for (i = 0; i < CAPACITY; i++)
		indices[i] = PACE_ID_NONE;
	for (i = 0; i < COUNT; i++) {
		u32 id = nondet_u32() & 7;

		GIVEN(id < CAPACITY && indices[id] == PACE_ID_NONE);
		keys[i] = usual_key(id);
		indices[id] = i;
	}
	GIVEN(valid());
}

void proof(void)
{
	const u32 id = nondet_u32() & 7, other = nondet_u32() & 7;
	u64 key, before = 0;
	bool held;

	any_heap();
	key = any_key(id);
	GIVEN(id < CAPACITY && other < CAPACITY && other != id);
	held = holds(other);
	if (held)
		before = key_of(other);

#if OP == 0
	GIVEN(!holds(id));
	pace_heap_insert(&q, key);
#elif OP == 1
	GIVEN(holds(id));
	pace_heap_remove(&q, q.index[id]);
#else
	GIVEN(pace_queue_min(&q) == id);
	pace_heap_replace_min(&q, key);
#endif
	PROVE(valid(), "the heap stays a heap");
	PROVE(holds(id) == (OP != 1), "what is removed is gone, no other");
	PROVE(OP == 1 || key_of(id) == key, "an id has the key it was given");
	PROVE(holds(other) == held, "no other id comes or goes");
	PROVE(!held || key_of(other) == before, "no other key changes");
	PROVE(!holds(other) || key_of(pace_queue_min(&q)) - origin <=
			       key_of(other) - origin, "the minimum is one");
	DONE();
}
