// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Sorts a few keys without branches that depend on them.  Which of two random
 * keys is the smaller is mispredicted half of the time, and a misprediction
 * costs as much as ten comparisons.
 */
#include <pace/pace_sched.h>

/* Keys that pace_sort() writes behind the others. */
#define PACE_SORT_EXTRA	3u

/* Up to so many keys are ranked, that is each is compared with each. */
#define RANK_KEYS	32u

/*
 * Ranks each key: its index in the result is the number of smaller keys.  Four
 * keys are ranked at a time; keys larger than all others fill up the last four.
 */
static void rank_sort(u64 *key, u64 *out, u32 n)
{
	u32 i, j;

	key[n] = ~0ull;
	key[n + 1] = ~0ull;
	key[n + 2] = ~0ull;
	for (i = 0; i < n; i += 4) {
		u64 a = key[i], b = key[i + 1], c = key[i + 2], d = key[i + 3];
		size_t ra = 0, rb = 0, rc = 0, rd = 0;

		for (j = 0; j < n; j++) {
			u64 k = key[j];

			ra += k < a;
			rb += k < b;
			rc += k < c;
			rd += k < d;
		}
		out[ra] = a;
		out[rb] = b;
		out[rc] = c;
		out[rd] = d;
	}
}

/* Merges two sorted halves, with masks: a branch would be mispredicted. */
static void merge_sorted(const u64 *a, const u64 *a_end, const u64 *b,
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

/* Sorts a part of the keys, by way of memory with room for the extra keys. */
static void sort_part(u64 *key, u64 *out, u32 n)
{
	u64 part[RANK_KEYS + 3], sorted[RANK_KEYS + 1];

	pace_memmove(part, key, n * sizeof(*key));
	rank_sort(part, sorted, n);
	pace_memmove(out, sorted, n * sizeof(*out));
}

/* Returns true if the keys are sorted: clocks that coincide come by id. */
static bool is_sorted(const u64 *key, u32 n)
{
	u32 i;

	for (i = 1; i < n; i++)
		if (key[i] < key[i - 1])
			return false;
	return true;
}

/*
 * Writes n keys to `out`, ascending as unsigned numbers, and overwrites `key`.
 * Both have room for PACE_SORT_EXTRA more keys.
 */
static void pace_sort(u64 *key, u64 *out, u32 n)
{
	u32 from, width;

	if (is_sorted(key, n)) {
		pace_memmove(out, key, n * sizeof(*key));
		return;
	}
	if (n <= RANK_KEYS) {
		rank_sort(key, out, n);
		return;
	}
	for (from = 0; from < n; from += RANK_KEYS)
		sort_part(key + from, out + from,
			  n - from < RANK_KEYS ? n - from : RANK_KEYS);
	for (width = RANK_KEYS; width < n; width *= 2) {
		pace_memmove(key, out, n * sizeof(*key));
		for (from = 0; from < n; from += 2 * width) {
			u32 mid = from + width < n ? from + width : n;
			u32 end = mid + width < n ? mid + width : n;

			merge_sorted(key + from, key + mid, key + mid, key + end,
				     out + from);
		}
	}
}
