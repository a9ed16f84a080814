// SPDX-License-Identifier: GPL-2.0-only
/* Generates pseudo-random numbers from a seed by splitmix64. */
#include "fuzz.h"

uint64_t random_next(struct random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint32_t random_below(struct random *r, uint32_t n)
{
	return (random_next(r) >> 32) * n >> 32;
}

bool random_percent(struct random *r, uint32_t percent)
{
	return random_below(r, 100) < percent;
}

uint64_t random_value(struct random *r, unsigned int bits)
{
	uint64_t all = bits == 64 ? ~0ULL : (1ULL << bits) - 1;

	switch (random_below(r, 5)) {
	case 0:
		return random_below(r, 4);
	case 1:
		return all - random_below(r, 3);
	case 2:
		return 1ULL << random_below(r, bits);
	case 3:
		return random_next(r) & all;
	default:
		return random_next(r) >> random_below(r, 64) & all;
	}
}
