// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The red-black tree under test: clocks in order, ties by id. */
#include "loops.h"
#include "tree.h"

static inline struct flow *flow_of(struct tree_node *n)
{
	return (struct flow *)((char *)n - offsetof(struct flow, u.node));
}

/*
 * Orders by clock, then by id: flows are in one array, so addresses order as
 * ids.
 */
static inline bool goes_before(const struct flow *a, const struct flow *b)
{
	s64 apart = (s64)(clock_key(a->clock.ps, 0) - clock_key(b->clock.ps, 0));

	return apart < 0 || (apart == 0 && a < b);
}

static inline u32 queue_min(struct world *w)
{
	struct tree *t = w->queue;

	return (u32)(flow_of(t->leftmost) - w->flow);
}

static inline void queue_insert(struct world *w, u32 id)
{
	struct tree *t = w->queue;
	struct tree_node *parent = NULL, **at = &t->root;
	struct flow *f = &w->flow[id];

	while (*at) {
		parent = *at;
		at = &parent->child[!goes_before(f, flow_of(parent))];
	}
	tree_link(t, &f->u.node, parent, at);
}

static inline void queue_remove(struct world *w, u32 id)
{
	tree_unlink(w->queue, &w->flow[id].u.node);
}

static inline void queue_replace_min(struct world *w, u32 id)
{
	queue_remove(w, id);
	queue_insert(w, id);
}

static bool tree_open(struct world *w)
{
	w->queue = take_memory(&w->memory, sizeof(struct tree));
	return w->queue;
}

static void tree_close(struct world *w)
{
	give_memory(w->queue, sizeof(struct tree));
	w->queue = NULL;
}

const struct rival rival_red_black = {
	.name = "red_black",
	.title = "red-black tree, cached leftmost",
	.order = ORDER_STRUCTURES,
	.node_bytes = sizeof(struct tree_node),
	.open = tree_open,
	.close = tree_close,
	.insert = loops_insert,
	.run = loops_run,
	.run_timestamped = loops_run_timestamped,
};
