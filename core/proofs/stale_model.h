/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What stale.c offers, without stale keys: queue_model.h. */
#ifndef LIVE_MODEL_H
#define LIVE_MODEL_H

static void pace_key_add(const struct pace_sched *port, struct pace_queue *q,
			 struct pace_class *c)
{
	set_place(port, q, c, place_in(port, q));
	MODEL_CALL(model_add, q, key_in(port, q, c));
}

static void pace_key_remove(const struct pace_sched *port, struct pace_queue *q,
			    struct pace_class *c)
{
	set_place(port, q, c, PACE_NOWHERE);
	MODEL_CALL(model_remove, q, c->id);
}

static void pace_key_move_first(const struct pace_sched *port,
				struct pace_queue *q, struct pace_class *c)
{
	MODEL_CALL(model_move_first, q, key_in(port, q, c));
}

#endif /* LIVE_MODEL_H */
