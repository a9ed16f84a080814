/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What every harness starts from. */
#ifndef PROOF_H
#define PROOF_H

/* Groups are two of the schedulers that are proved: tests have them (groups.rs). */
#define PACE_GROUPS	0
#include <pace/pace.h>
#include <pace/pace_sched.h>

typedef unsigned __int128 u128;
typedef __int128 s128;

/* Any value at all. */
u64 nondet_u64(void);
u32 nondet_u32(void);
s64 nondet_s64(void);
bool nondet_bool(void);

#define GIVEN(what)		__CPROVER_assume(what)
#define PROVE(what, text)	__CPROVER_assert(what, text)

/*
 * The last line of a harness.  break.sh asks whether it is reached: an
 * assumption that nothing meets would prove anything.
 */
#ifdef PROOF_REACHED
#define DONE()	__CPROVER_assert(0, "the end of the harness is reached")
#else
#define DONE()	((void)0)
#endif

/* Where PACE_ASSERT() of deps/host ends a program, a proof fails. */
void __builtin_trap(void)
{
	__CPROVER_assert(0, "PACE_ASSERT holds");
	__CPROVER_assume(0);
}

static inline u64 any_below(u64 end)
{
	u64 x = nondet_u64();

	GIVEN(x < end);
	return x;
}

static inline u64 any_within(u64 least, u64 most)
{
	u64 x = nondet_u64();

	GIVEN(x >= least && x <= most);
	return x;
}

#endif /* PROOF_H */
