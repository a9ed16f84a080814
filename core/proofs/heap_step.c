// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * @proves the heap: from any valid heap each of push, pop and replace leads to a valid one that holds exactly what it should
 * @bounds 7 keys (three levels), any number of operations; every order that keys can have, equal ones too, from three origins, two at the wraps
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
static struct pace_queue q = { .heap = keys };

/* Where values begin: nowhere special, and just before either wrap. */
static u64 origin;

/* Only the order of keys matters: as many as fit have room in any order. */
static u64 any_key(void)
{
	return origin + ((nondet_u64() & VALUES) << PACE_ID_BITS);
}

static bool valid(void)
{
	bool ok = true;
	u32 i;

	for (i = 1; i < CAPACITY; i++)
		if (i < q.heap_keys)
			ok = ok && keys[(i - 1) / HEAP_ARY] - origin <=
				   keys[i] - origin;
	return ok;
}

/* Returns how often a key is in the heap. */
static u32 times(u64 key)
{
	u32 i, n = 0;

	for (i = 0; i < CAPACITY; i++)
		n += i < q.heap_keys && keys[i] == key;
	return n;
}

static void any_heap(void)
{
	u32 i;

	origin = nondet_bool() ? 0 :
		 nondet_bool() ? (1ull << 63) - (8ull << PACE_ID_BITS) :
				 -(8ull << PACE_ID_BITS);
	q.heap_keys = COUNT;
	for (i = 0; i < COUNT; i++)
		keys[i] = any_key();
	GIVEN(valid());
}

void proof(void)
{
	u64 key, some, least;
	u32 before, i;

	any_heap();
	key = any_key();
	some = any_key();
	before = times(some);
	least = keys[0];

#if OP == 0
	pace_heap_push(&q, key);
#elif OP == 1
	pace_heap_pop(&q);
#else
	pace_heap_replace(&q, key);
#endif
	PROVE(valid(), "the heap stays a heap");
	PROVE(q.heap_keys == COUNT + (OP == 0) - (OP == 1), "of so many keys");
	PROVE(times(some) == before + (OP != 1 && some == key) -
			     (OP != 0 && some == least),
	      "what is removed is gone, what is given is there, no other changes");
	for (i = 1; i < CAPACITY; i++)
		PROVE(i >= q.heap_keys || keys[0] - origin <= keys[i] - origin,
		      "the root is the smallest");
	DONE();
}
