/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * deps/host, but each access to what several queues share is a step of turns.c, which
 * chooses whose step is next.
 */
#ifndef TURNS_DEPS_H
#define TURNS_DEPS_H

#define pace_atomic_read	host_atomic_read
#define pace_atomic_xchg	host_atomic_xchg
#define pace_atomic_add		host_atomic_add
#define pace_atomic_cmpxchg	host_atomic_cmpxchg
#include "../../deps/host/pace_deps.h"
#undef pace_atomic_read
#undef pace_atomic_xchg
#undef pace_atomic_add
#undef pace_atomic_cmpxchg
#undef pace_read_once
#undef pace_write_once

u64 pace_atomic_read(const pace_atomic *a);
u64 pace_atomic_xchg(pace_atomic *a, u64 to);
void pace_atomic_add(pace_atomic *a, u64 by);
bool pace_atomic_cmpxchg(pace_atomic *a, u64 *seen, u64 to);
u64 turns_read(const u64 *place);
void turns_write(u64 *place, u64 to);

/* Pointers do not change here. */
#define pace_read_once(place)						\
	_Generic((place), u64: turns_read((const u64 *)&(place)), default: (place))
#define pace_write_once(place, to)	turns_write(&(place), (to))

#endif /* TURNS_DEPS_H */
