/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The loops around a structure.  A structure's file includes this one and
 * defines the functions declared here, so that every structure has the same
 * loops, compiled around its own operations.
 */
#ifndef BENCH_LOOPS_H
#define BENCH_LOOPS_H

#include "rival.h"
#include "timestamp.h"

/* The structure's operations.  The clock of an id is in w->flow[id]. */
static inline u32 queue_min(struct world *w);
static inline void queue_replace_min(struct world *w, u32 id);
static inline void queue_insert(struct world *w, u32 id);
static inline void queue_remove(struct world *w, u32 id);

/* Decisions after which one class exchanges its rate with another. */
#define RATE_CHANGE_EVERY	8
/* Decisions, on average, between which a class loses its packets unsent. */
#define PURGE_EVERY		16

static inline void ask_port(struct world *w, struct port *p)
{
	u32 id = queue_min(w);

	world_send(w, p, id);
	queue_replace_min(w, id);
}

static inline void run_steady(struct world *w, u64 decisions)
{
	struct port port = w->port;

	while (decisions--)
		ask_port(w, &port);
	w->port = port;
}

static inline void go_away(struct world *w, u32 id)
{
	queue_remove(w, id);
	unset_present(w, id);
	w->away[w->away_count++] = id;
}

/*
 * Reactivates a class without packets; it does not catch up on missed service.
 */
static inline void come_back(struct world *w)
{
	u32 at = random_below(&w->random, w->away_count);
	u32 id = w->away[at];

	w->away[at] = w->away[--w->away_count];
	pace_clock_raise(&w->flow[id].clock, w->port.global);
	set_present(w, id);
	queue_insert(w, id);
}

/* Takes the packets of a random class that waits, and reactivates a class. */
static inline void purge(struct world *w)
{
	u32 id = random_below(&w->random, w->classes);

	if (!is_present(w, id))
		return;
	go_away(w, id);
	come_back(w);
}

/*
 * Runs decisions while half of the classes have no packet.  After half of the
 * frames the class becomes empty and another is activated; on average every
 * PURGE_EVERY decisions a waiting class loses its packets.
 */
static inline void run_coming(struct world *w, u64 decisions)
{
	while (w->away_count < w->classes / 2) {
		u32 id = queue_min(w);

		world_send(w, &w->port, id);
		go_away(w, id);
	}
	while (decisions--) {
		u32 id = queue_min(w);
		u64 dice = random_next(&w->random);

		world_send(w, &w->port, id);
		if (w->away_count && dice >> 63) {
			go_away(w, id);
			come_back(w);
		} else {
			queue_replace_min(w, id);
		}
		if (w->away_count && !(dice % PURGE_EVERY))
			purge(w);
	}
}

static inline void run_rates(struct world *w, u64 decisions)
{
	while (decisions--) {
		u32 a, b;

		ask_port(w, &w->port);
		if (w->classes < 2 || decisions % RATE_CHANGE_EVERY)
			continue;
		a = random_below(&w->random, w->classes - 1);
		b = a + 1 + random_below(&w->random, w->classes - 1 - a);
		queue_remove(w, a);
		queue_remove(w, b);
		world_swap_rates(w, a, b);
		queue_insert(w, a);
		queue_insert(w, b);
	}
}

static inline void loops_run(struct world *w, enum traffic traffic, u64 decisions)
{
	switch (traffic) {
	case TRAFFIC_COMING:
		run_coming(w, decisions);
		break;
	case TRAFFIC_RATES:
		run_rates(w, decisions);
		break;
	case TRAFFIC_STEADY:
		run_steady(w, decisions);
		break;
	}
}

static inline void loops_run_timestamped(struct world *w, u32 decisions, u32 *ticks)
{
	u64 last = timestamp();
	u32 i;

	for (i = 0; i < decisions; i++) {
		u64 now, took;

		ask_port(w, &w->port);
		now = timestamp();
		took = now - last;
		last = now;
		if (took < ticks[i])
			ticks[i] = (u32)took;
	}
}

static inline void loops_insert(struct world *w, u32 id)
{
	set_present(w, id);
	queue_insert(w, id);
}

#endif /* BENCH_LOOPS_H */
