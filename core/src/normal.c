// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Normal classes share what the paced ones leave: deficit round robin
 * (Shreedhar and Varghese, "Efficient fair queueing using deficit round
 * robin", 1995) in its surplus form.  A class is served while its deficit is
 * positive and pays afterwards, so the length of a frame need not be known
 * before it is sent.
 *
 * Deficits count wire bytes.  Error bound: over any time in which two classes
 * stay active, their service divided by their quanta differs by less than one
 * quantum and one largest frame.  Cost per frame: one visit, or as many as
 * quanta make up one frame when quanta are smaller than frames.
 */
#include "internal.h"
#include "ring.h"

u32 pace_quantum(const struct pace_sched *s, const struct pace_class *c)
{
	return c->quantum_bytes ? c->quantum_bytes : s->cfg.max_frame_bytes;
}

/*
 * Whose turn it is; at least one class is active.  The class found is found
 * again until it has been served.
 */
struct pace_class *pace_normal_turn(struct pace_sched *s)
{
	struct pace_class *c = s->ring;

	while (c->deficit_bytes <= 0) {
		c->deficit_bytes += pace_quantum(s, c);
		if (c->deficit_bytes > 0)
			break;
		c = c->next;
	}
	s->ring = c;
	return c;
}

/* Last in the round.  A debt of an earlier stay is kept, a surplus is not. */
void pace_normal_put(struct pace_sched *s, struct pace_class *c)
{
	if (c->deficit_bytes > 0)
		c->deficit_bytes = 0;
	c->passed = false;
	pace_ring_add(&s->ring, c);
	s->active_normal++;
}

void pace_normal_take(struct pace_sched *s, struct pace_class *c)
{
	pace_ring_take(&s->ring, c);
	s->active_normal--;
}
