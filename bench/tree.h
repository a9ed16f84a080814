/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Red-black tree (Guibas and Sedgewick, 1978) of nodes that live in what they
 * order, its leftmost node remembered, as sch_fq and hrtimers use the
 * kernel's.  Colour sits in a bit of the pointer to the parent.
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

/* Puts `node` at the empty place `at` below `parent`. O(log n). */
void tree_link(struct tree *t, struct tree_node *node, struct tree_node *parent,
	       struct tree_node **at);

/* Takes any node out. O(log n). */
void tree_unlink(struct tree *t, struct tree_node *node);

/* What holds of a red-black tree holds of this one; `count` is its nodes. */
bool tree_valid(const struct tree *t, u32 *count);

#endif /* BENCH_TREE_H */
