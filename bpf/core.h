/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The whole core for a BPF program, as one translation unit.  BPF returns no
 * structure from a function and passes at most five arguments, so the functions of
 * the API are part of their callers: core/src/sched.c declares and calls those
 * with structures.
 *
 * All else that the core keeps to itself is global here, or inline for certain.  The
 * verifier looks at a global function once, and at another wherever it is called; and
 * the compiler leaves the parameters of a global one as they are (crates/base/bpf-build).
 */
#ifndef BPF_CORE_H
#define BPF_CORE_H

#define PACE_API	static inline __attribute__((always_inline))
#define PACE_GROUPS	0
/* A mask is five instructions, and a branch two. */
#define PACE_BRANCHES

#include <pace/pace_sched.h>

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-function"
/*
 * What is given the address of a local variable (the stack is not the arena), a
 * structure or more than five arguments is part of its caller.
 */
#define PART	static inline __attribute__((always_inline))
PART void pace_queue_resize(struct pace_queue *q, struct pace_pool *pool, void *memory,
			    u32 capacity, const u64 *key, u32 keys);
PART struct pace_burst frame_of(const struct pace_config *cfg, u32 len_bytes);
PART struct pace_burst longest_burst(const struct pace_config *cfg);
PART u64 advance_of(const struct pace_config *cfg, u64 rate_bps, const struct pace_burst *t,
		    u64 *rem);
PART u64 offered_load(const struct pace_sched *s, u64 rate_bps, const struct pace_burst *t);
PART u64 frame_cost(const struct pace_sched *s, u64 rate_bps, const struct pace_burst *t,
		    u64 *rem);
PART bool is_same_burst(const struct pace_burst *a, const struct pace_burst *b);
PART void pace_class_set_frame_cost(const struct pace_sched *s, struct pace_class *c,
				    const struct pace_burst *t);
PART void pace_class_change_burst(const struct pace_sched *s, struct pace_class *c,
				  const struct pace_burst *t);
PART void charge_rt(struct pace_sched *s, struct pace_class *c, const struct pace_burst *t);
PART bool pace_reservation_sent(struct pace_sched *s, struct pace_class *c,
				const struct pace_burst *t, bool more);
PART bool first_ahead_any(const struct pace_sched *s, struct pace_class **cls, u64 *clock);
PART bool pace_first_ahead(const struct pace_sched *s, struct pace_class **cls, u64 *clock);
PART struct pace_decision pace_idle_wait(struct pace_sched *s, u64 clock);
/* And what would make the calls deeper than eight, the most that BPF allows. */
PART void join_paced(struct pace_sched *s, struct pace_class *c, u64 position, bool over);
PART void launch_begin(struct pace_sched *s, struct pace_class *c, u64 position);
PART void insert_eligible(struct pace_sched *s, struct pace_class *c);
#undef PART

/* No step is taken: no_parts.h. */
#define pace_step_raise(p, clock)	((void)(p), (void)(clock))
#define pace_offset_raise(k, to)	((void)(k), (void)(to))

#define static
#define inline	__inline __attribute__((always_inline))
#include "../core/src/clock.c"
#include "../core/src/heap.c"
#include "no_wheel.h"
#include "../core/src/queue.c"
#include "../core/src/storage.c"
#include "../core/src/class.c"
#include "../core/src/key.c"
#include "../core/src/stale.c"
#include "../core/src/paced.c"
#include "../core/src/borrow.c"
#include "no_parts.h"
#include "../core/src/launch.c"
#include "../core/src/rest.c"
#include "../core/src/ring.c"
#include "../core/src/best_effort.c"
#include "../core/src/reservation.c"
#include "../core/src/select.c"
#include "../core/src/waiting.c"
#undef inline
#undef static
#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)
#include "../core/src/departure.c"
#include "../core/src/sched.c"
#pragma clang attribute pop
#include "../core/src/configure.c"
#pragma clang diagnostic pop

#endif
