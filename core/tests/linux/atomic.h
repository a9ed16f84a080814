/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What deps/kernel takes from the kernel's headers of 64-bit atomics and single accesses. */
#ifndef TEST_LINUX_ATOMIC_H
#define TEST_LINUX_ATOMIC_H

#include <stdint.h>

typedef struct {
	int64_t counter;
} atomic64_t;

#define atomic64_read_acquire(a)	__atomic_load_n(&(a)->counter, __ATOMIC_ACQUIRE)
#define atomic64_xchg(a, to)		__atomic_exchange_n(&(a)->counter, (to), __ATOMIC_SEQ_CST)
#define atomic64_add(by, a)	((void)__atomic_fetch_add(&(a)->counter, (by), __ATOMIC_SEQ_CST))

static inline _Bool atomic64_try_cmpxchg(atomic64_t *a, int64_t *seen, int64_t to)
{
	return __atomic_compare_exchange_n(&a->counter, seen, to, 0, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

#define READ_ONCE(place)	__atomic_load_n(&(place), __ATOMIC_RELAXED)
#define WRITE_ONCE(place, to)	__atomic_store_n(&(place), (to), __ATOMIC_RELAXED)

#endif /* TEST_LINUX_ATOMIC_H */
