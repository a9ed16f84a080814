// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Implements a red-black tree.  The cases are those of Cormen, Leiserson,
 * Rivest and Stein, "Introduction to Algorithms", chapter 13; left and right
 * are child[0] and child[1], so that mirrored cases are one.
 */
#include <stddef.h>

#include "tree.h"

#define BLACK	1ul

static inline struct tree_node *parent_of(const struct tree_node *n)
{
	return (struct tree_node *)((uintptr_t)n->parent & ~BLACK);
}

static inline bool is_black(const struct tree_node *n)
{
	return (uintptr_t)n->parent & BLACK;
}

/* Returns true if the node is red; NULL counts as black. */
static inline bool is_red(const struct tree_node *n)
{
	return n && !is_black(n);
}

static inline void set(struct tree_node *n, struct tree_node *parent,
		       uintptr_t colour)
{
	n->parent = (struct tree_node *)((uintptr_t)parent | colour);
}

static inline void set_parent(struct tree_node *n, struct tree_node *parent)
{
	set(n, parent, (uintptr_t)n->parent & BLACK);
}

static inline void set_black(struct tree_node *n)
{
	set(n, parent_of(n), BLACK);
}

static inline void set_red(struct tree_node *n)
{
	set(n, parent_of(n), 0);
}

/* Returns which child of its parent n is: 0 or 1. */
static inline int side_of(const struct tree_node *n,
			  const struct tree_node *parent)
{
	return parent->child[1] == n;
}

/* Replaces the child `old` of `parent`, or the root, by `new`. */
static inline void change_child(struct tree *t, struct tree_node *parent,
				struct tree_node *old, struct tree_node *new)
{
	if (parent)
		parent->child[side_of(old, parent)] = new;
	else
		t->root = new;
}

/*
 * Rotates `top` down to `side` and its other child up.  Each keeps its own
 * colour.
 */
static inline void rotate(struct tree *t, struct tree_node *top, int side)
{
	struct tree_node *up = top->child[!side];
	struct tree_node *inner = up->child[side];
	struct tree_node *parent = parent_of(top);

	top->child[!side] = inner;
	if (inner)
		set_parent(inner, top);
	up->child[side] = top;
	set_parent(up, parent);
	change_child(t, parent, top, up);
	set_parent(top, up);
}

void tree_link(struct tree *t, struct tree_node *node, struct tree_node *parent,
	       struct tree_node **at)
{
	node->child[0] = NULL;
	node->child[1] = NULL;
	set(node, parent, 0);
	*at = node;
	if (!parent || (parent == t->leftmost && at == &parent->child[0]))
		t->leftmost = node;

	while (is_red(parent)) {
		struct tree_node *top = parent_of(parent);
		int side = side_of(parent, top);
		struct tree_node *uncle = top->child[!side];

		if (is_red(uncle)) {
			set_black(parent);
			set_black(uncle);
			set_red(top);
			node = top;
			parent = parent_of(node);
			continue;
		}
		if (side_of(node, parent) != side) {
			rotate(t, parent, side);
			parent = node;
		}
		set_black(parent);
		set_red(top);
		rotate(t, top, !side);
		break;
	}
	set_black(t->root);
}

/*
 * Rebalances after a removal: below `parent`, on `side`, one black node is
 * missing.
 */
static void restore(struct tree *t, struct tree_node *parent, int side)
{
	struct tree_node *node = parent->child[side];

	while (parent && !is_red(node)) {
		struct tree_node *other = parent->child[!side];

		if (is_red(other)) {
			set_black(other);
			set_red(parent);
			rotate(t, parent, side);
			other = parent->child[!side];
		}
		if (!is_red(other->child[0]) && !is_red(other->child[1])) {
			set_red(other);
			node = parent;
			parent = parent_of(node);
			if (parent)
				side = side_of(node, parent);
			continue;
		}
		if (!is_red(other->child[!side])) {
			set_black(other->child[side]);
			set_red(other);
			rotate(t, other, !side);
			other = parent->child[!side];
		}
		set(other, parent_of(other),
		    (uintptr_t)parent->parent & BLACK);
		set_black(parent);
		set_black(other->child[!side]);
		rotate(t, parent, side);
		node = t->root;
		break;
	}
	if (node)
		set_black(node);
}

static inline struct tree_node *leftmost_below(struct tree_node *n)
{
	while (n->child[0])
		n = n->child[0];
	return n;
}

/*
 * Replaces `node` by its successor `next`, which takes its position and colour.
 */
static void unlink_inner(struct tree *t, struct tree_node *node,
			 struct tree_node *next)
{
	bool was_black = is_black(next);
	struct tree_node *below = next->child[1];
	struct tree_node *parent = parent_of(next);
	int side = 1;

	if (parent == node) {
		parent = next;
	} else {
		side = 0;
		parent->child[0] = below;
		if (below)
			set_parent(below, parent);
		next->child[1] = node->child[1];
		set_parent(next->child[1], next);
	}
	next->child[0] = node->child[0];
	set_parent(next->child[0], next);
	change_child(t, parent_of(node), node, next);
	next->parent = node->parent;
	if (was_black)
		restore(t, parent, side);
}

void tree_unlink(struct tree *t, struct tree_node *node)
{
	struct tree_node *parent = parent_of(node);
	struct tree_node *below;
	int side = 0;

	/*
	 * The leftmost has no left child: its successor is on its right, or its
	 * parent.
	 */
	if (t->leftmost == node)
		t->leftmost = node->child[1] ? leftmost_below(node->child[1]) :
					       parent;
	if (node->child[0] && node->child[1]) {
		unlink_inner(t, node, leftmost_below(node->child[1]));
		return;
	}
	below = node->child[node->child[0] ? 0 : 1];
	if (parent)
		side = side_of(node, parent);
	change_child(t, parent, node, below);
	if (below) {
		/* An only child is red, and its parent was black. */
		set(below, parent, BLACK);
		return;
	}
	if (is_black(node) && parent)
		restore(t, parent, side);
}

/* Returns the black nodes on each path down, n included; -1 if paths differ. */
static int black_height(const struct tree_node *n,
			const struct tree_node *parent, u32 *count)
{
	int left, right;

	if (!n)
		return 0;
	if (parent_of(n) != parent || (is_red(n) && is_red(parent)))
		return -1;
	left = black_height(n->child[0], n, count);
	right = black_height(n->child[1], n, count);
	++*count;
	if (left < 0 || left != right)
		return -1;
	return left + is_black(n);
}

bool tree_valid(const struct tree *t, u32 *count)
{
	*count = 0;
	if (is_red(t->root) || black_height(t->root, NULL, count) < 0)
		return false;
	return t->root ? t->leftmost == leftmost_below(t->root) : !t->leftmost;
}
