// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Sorts a few keys without branches that depend on them.  Which of two random
 * keys is the smaller is mispredicted half of the time, and a misprediction
 * costs as much as ten comparisons.
 */
#include <pace/pace_sched.h>

/* Keys that pace_sort() writes behind the others. */
#define PACE_SORT_EXTRA	3u

/* Counts, for two keys of which `a` came first, which one the other is behind. */
static inline void rank_pair(u64 a, u64 b, size_t *rank_a, size_t *rank_b)
{
	size_t b_first = b < a;

	*rank_a += b_first;
	*rank_b += !b_first;
}

/*
 * Writes n keys to `out`, ascending as unsigned numbers.  Both arrays have room
 * for PACE_SORT_EXTRA more keys, which it overwrites.
 *
 * The index of a key in the result is its rank: the number of keys before it, of
 * equal ones those that came first.  Four keys are ranked at a time; keys larger
 * than all others fill up the last four.
 */
static void pace_sort(u64 *key, u64 *out, u32 n)
{
	u32 i, j;

	key[n] = ~0ull;
	key[n + 1] = ~0ull;
	key[n + 2] = ~0ull;
	for (i = 0; i < n; i += 4) {
		u64 a = key[i], b = key[i + 1], c = key[i + 2], d = key[i + 3];
		size_t ra = 0, rb = 0, rc = 0, rd = 0;

		for (j = 0; j < i; j++) {
			u64 k = key[j];

			ra += k <= a;
			rb += k <= b;
			rc += k <= c;
			rd += k <= d;
		}
		rank_pair(a, b, &ra, &rb);
		rank_pair(a, c, &ra, &rc);
		rank_pair(a, d, &ra, &rd);
		rank_pair(b, c, &rb, &rc);
		rank_pair(b, d, &rb, &rd);
		rank_pair(c, d, &rc, &rd);
		for (j = i + 4; j < n; j++) {
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

/* Returns true if the keys are sorted: those of one clock often come by id. */
static bool is_sorted(const u64 *key, u32 n)
{
	u32 i;

	for (i = 1; i < n; i++)
		if (key[i] < key[i - 1])
			return false;
	return true;
}
