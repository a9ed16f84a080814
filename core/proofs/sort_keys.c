// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * @proves sorting what leaves a slot of the wheel: ascending, and every key that went in as often as it did
 * @bounds up to 5 keys (a group of four, and one more), equal ones too
 * @options --unwind 12
 * @each COUNT=1..5
 */
#include <pace/pace_sched.h>
#include "proof.h"

#include "sort.c"

static u64 key[COUNT + PACE_SORT_EXTRA], out[COUNT + PACE_SORT_EXTRA];
static u64 given[COUNT];

void proof(void)
{
	u32 i, which = any_below(COUNT), found = 0, wanted = 0;

	for (i = 0; i < COUNT; i++) {
		given[i] = nondet_u64();
		key[i] = given[i];
	}
	pace_sort(key, out, COUNT);
	for (i = 0; i < COUNT; i++) {
		PROVE(!i || out[i - 1] <= out[i], "ascending");
		found += out[i] == given[which];
		wanted += given[i] == given[which];
	}
	PROVE(found == wanted, "each key that went in, as often");
	DONE();
}
