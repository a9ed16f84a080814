/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An intrusive red-black tree (Guibas and Sedgewick, 1978) with a pointer to
 * its leftmost node, as sch_fq and hrtimers use the kernel's.  A bit of the
 * pointer to the parent holds the colour.
 *
 * The caller finds the place of a new node itself, so that the comparison is
 * inlined:
 *
 *	for (at = &t->root; *at; at = &(*at)->child[!goes_before])
 *		parent = *at;
 *	tree_link(t, node, parent, at);
 */
#ifndef BENCH_TREE_H
#define BENCH_TREE_H

#include "world.h"

struct tree {
	struct tree_node *root;
	struct tree_node *leftmost;
};

/* Inserts `node` at the empty link `at` below `parent`.  O(log n). */
void tree_link(struct tree *t, struct tree_node *node, struct tree_node *parent,
	       struct tree_node **at);

/* Removes any node.  O(log n). */
void tree_unlink(struct tree *t, struct tree_node *node);

/* Returns true if the red-black invariants hold; counts the nodes in *count. */
bool tree_valid(const struct tree *t, u32 *count);

#endif /* BENCH_TREE_H */
