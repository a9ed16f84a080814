// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A ring of classes that are served in round robin.  A pointer to its head, the
 * class to serve next, names the ring; NULL is an empty ring.  All operations
 * are O(1).
 */
#include <pace/pace_sched.h>

/* Adds a class at the end of the round. */
static inline void pace_ring_add(struct pace_class **ring, struct pace_class *c)
{
	if (!*ring) {
		c->next = c;
		c->prev = c;
		*ring = c;
		return;
	}
	c->next = *ring;
	c->prev = (*ring)->prev;
	c->prev->next = c;
	c->next->prev = c;
}

/* Removes a class; if it was the head, the next class becomes the head. */
static inline void pace_ring_remove(struct pace_class **ring,
				    struct pace_class *c)
{
	if (c->next == c) {
		*ring = NULL;
	} else {
		c->prev->next = c->next;
		c->next->prev = c->prev;
		if (*ring == c)
			*ring = c->next;
	}
	c->next = NULL;
	c->prev = NULL;
}

/* Moves all classes of `from` to the end of `to` and keeps their order. */
static inline void pace_ring_join(struct pace_class **to,
				  struct pace_class **from)
{
	struct pace_class *last;

	if (!*from)
		return;
	if (!*to) {
		*to = *from;
	} else {
		last = (*from)->prev;
		(*to)->prev->next = *from;
		(*from)->prev = (*to)->prev;
		last->next = *to;
		(*to)->prev = last;
	}
	*from = NULL;
}
