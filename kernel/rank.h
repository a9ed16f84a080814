/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds who has most, in O(1) for each change and each query.  A header of
 * its own, because lab/tests/rank_test.c compiles it on the host.
 *
 * Each member has a count.  Members whose counts have the same number of
 * binary digits are on the same level, so a member of the top level has more
 * than half of the largest count.  On one level the first has been there for
 * longest.
 *
 * If U members have N together, the largest count is at least N / U.  So a
 * member with N / 2U or less is never on the top level.
 */
#ifndef SCH_PSP_RANK_H
#define SCH_PSP_RANK_H

#include <linux/bitops.h>
#include <linux/bits.h>
#include <linux/list.h>

/* Counts are at most 2^20: PSP_FLOWS_MAX, TC_PSP_LIMIT_MAX. */
#define PSP_RANK_LEVELS	22

struct psp_rank {
	u32 used;			/* bit mask of levels that have members */
	struct list_head level[PSP_RANK_LEVELS];
};

struct psp_ranked {
	struct list_head node;
	u32 count;
};

static inline u32 psp_rank_level(u32 count)
{
	return fls(count);
}

static inline void psp_rank_init(struct psp_rank *rank)
{
	u32 i;

	rank->used = 0;
	for (i = 0; i < PSP_RANK_LEVELS; i++)
		INIT_LIST_HEAD(&rank->level[i]);
}

/* Adds a member with count 0. */
static inline void psp_rank_add(struct psp_rank *rank, struct psp_ranked *r)
{
	r->count = 0;
	list_add_tail(&r->node, &rank->level[0]);
	rank->used |= BIT(0);
}

static inline void psp_rank_del(struct psp_rank *rank, struct psp_ranked *r)
{
	u32 level = psp_rank_level(r->count);

	list_del(&r->node);
	if (list_empty(&rank->level[level]))
		rank->used &= ~BIT(level);
}

static inline void psp_rank_set(struct psp_rank *rank, struct psp_ranked *r,
				u32 count)
{
	u32 from = psp_rank_level(r->count), to = psp_rank_level(count);

	r->count = count;
	if (from == to)
		return;
	list_move_tail(&r->node, &rank->level[to]);
	rank->used |= BIT(to);
	if (list_empty(&rank->level[from]))
		rank->used &= ~BIT(from);
}

/* Returns a member of the top level, or NULL if there is none. */
static inline struct psp_ranked *psp_rank_top(const struct psp_rank *rank)
{
	if (!rank->used)
		return NULL;
	return list_first_entry(&rank->level[fls(rank->used) - 1],
				struct psp_ranked, node);
}

/* Would a member with `count` be on the top level? */
static inline bool psp_rank_is_top(const struct psp_rank *rank, u32 count)
{
	return psp_rank_level(count) + 1 >= (u32)fls(rank->used);
}

#endif /* SCH_PSP_RANK_H */
