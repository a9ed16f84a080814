// SPDX-License-Identifier: GPL-2.0-only
/* Who has most: against a look at everybody. */
#include "../../kernel/rank.h"
#include "check.h"

#define PEOPLE	40
#define ROUNDS	200000

static struct psp_ranked people[PEOPLE];
static bool in[PEOPLE];
static struct psp_rank rank;

static uint64_t state = 1;

static uint32_t below(uint32_t n)
{
	state = state * 6364136223846793005 + 1442695040888963407;
	return (state >> 33) % n;
}

static void test_top(void)
{
	uint64_t sum = 0, users = 0, top;
	uint32_t most = 0, i;

	for (i = 0; i < PEOPLE; i++) {
		if (!in[i])
			continue;
		users++;
		sum += people[i].count;
		if (people[i].count > most)
			most = people[i].count;
	}
	CHECK(!psp_rank_top(&rank) == !users, "%d users", (int)users);
	if (!users)
		return;
	top = psp_rank_top(&rank)->count;
	CHECK(top * 2 > most || !most, "top %d of %d", (int)top, most);
	/* Nobody with half of an equal share or less is made to give. */
	for (i = 0; i < PEOPLE; i++)
		if (in[i] && sum && people[i].count * 2 * users <= sum)
			CHECK(!psp_rank_is_top(&rank, people[i].count),
			      "%u of %d among %d", people[i].count, (int)sum, (int)users);
	CHECK(psp_rank_is_top(&rank, most), "the most, %u", most);
}

static void test_against_all(void)
{
	uint32_t round, i, count;

	psp_rank_init(&rank);
	CHECK(!psp_rank_top(&rank), "empty");
	for (round = 0; round < ROUNDS; round++) {
		i = below(PEOPLE);
		if (!in[i]) {
			psp_rank_add(&rank, &people[i]);
			in[i] = true;
		} else if (!below(50)) {
			psp_rank_del(&rank, &people[i]);
			in[i] = false;
		} else {
			count = people[i].count;
			if (!below(20))
				count = below(2) ? 0 : below((1u << 20) + 1);
			else if (below(2))
				count += count < 1u << 20;
			else
				count -= count > 0;
			psp_rank_set(&rank, &people[i], count);
		}
		if (round % 16 == 0)
			test_top();
	}
}

/* Of those on one level, the one that has been there longest. */
static void test_first_come(void)
{
	struct psp_ranked a, b, c;

	psp_rank_init(&rank);
	psp_rank_add(&rank, &a);
	psp_rank_add(&rank, &b);
	psp_rank_add(&rank, &c);
	psp_rank_set(&rank, &c, 5);
	psp_rank_set(&rank, &a, 7);
	CHECK(psp_rank_top(&rank) == &c, "c came first");
	psp_rank_set(&rank, &b, 8);
	CHECK(psp_rank_top(&rank) == &b, "b has most");
	CHECK(!psp_rank_is_top(&rank, 7) && psp_rank_is_top(&rank, 8), "levels");
	psp_rank_set(&rank, &b, 3);
	psp_rank_set(&rank, &c, 1);
	CHECK(psp_rank_top(&rank) == &a, "a alone has 7");
	psp_rank_set(&rank, &a, 1 << 20);
	CHECK(psp_rank_top(&rank) == &a, "the largest count");
}

int main(void)
{
	test_against_all();
	test_first_come();
	return check_result("rank");
}
