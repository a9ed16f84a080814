// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Sorting a few keys without branches that depend on them: which of two random
 * keys is the smaller is mispredicted half of the time, at the price of ten
 * comparisons.
 */
#include "wheel.h"

/* Up to so many keys are ranked: each compared with each. */
#define RANK_KEYS	32u

/* A key's place is the number of keys before it. */
static void rank_sort(const u64 *key, u64 *out, u32 n)
{
	u32 i, j;

	for (i = 0; i < n; i++) {
		u64 k = key[i];
		u32 rank = 0;

		for (j = 0; j < n; j++)
			rank += key[j] < k;
		out[rank] = k;
	}
}

/* Both halves are sorted.  Masks: a branch would be mispredicted. */
static void merge(const u64 *a, const u64 *a_end, const u64 *b,
		  const u64 *b_end, u64 *out)
{
	while (a < a_end && b < b_end) {
		u64 take_b = -(u64)(*b < *a);

		*out++ = *a ^ ((*a ^ *b) & take_b);
		b -= take_b;
		a += 1 + take_b;
	}
	while (a < a_end)
		*out++ = *a++;
	while (b < b_end)
		*out++ = *b++;
}

void pace_sort(u64 *key, u64 *out, u32 n)
{
	u32 from, width;

	for (from = 0; from < n; from += RANK_KEYS)
		rank_sort(key + from, out + from,
			  n - from < RANK_KEYS ? n - from : RANK_KEYS);
	for (width = RANK_KEYS; width < n; width *= 2) {
		pace_memmove(key, out, n * sizeof(*key));
		for (from = 0; from < n; from += 2 * width) {
			u32 mid = from + width < n ? from + width : n;
			u32 end = mid + width < n ? mid + width : n;

			merge(key + from, key + mid, key + mid, key + end,
			      out + from);
		}
	}
}
