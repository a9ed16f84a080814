// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The core with a host of mbufs: a ring of packets per class with the length
 * beside each pointer, so that a decision touches no packet.
 *
 * An unshaped run is not less work here: every class is paced exactly, in byte
 * times, and gaps advance the byte clock as fast as they are decided.
 */
#include <rte_cycles.h>
#include <rte_malloc.h>

#include "side.h"

#define RING	4u	/* packets; a power of two, above BACKLOG */
/* Decisions by which a class's packets are prefetched ahead of its own. */
#define COMING_AHEAD	8u

struct host_class {
	struct pace_class pace;
	/* One cache line. */
	struct rte_mbuf *mbuf[RING] __rte_cache_aligned;
	u32 len_bytes[RING];
	u8 head, tail;
} __rte_cache_aligned;

static struct pace_sched sched;
static struct host_class *classes;
static void *storage;
static bool real_time;
static double ns_per_cycle;
static u64 first_cycle;

static u64 now_ns(void)
{
	return real_time ? (u64)((double)(rte_rdtsc() - first_cycle) *
				 ns_per_cycle) : 0;
}

static bool add_classes(const struct setup *s)
{
	u32 id;

	for (id = 0; id < s->classes; id++) {
		const struct pace_class_config cfg = {
			.type = PACE_TYPE_PACED,
			.rate_bps = s->rate_bps[s->profile[id]],
		};

		if (pace_class_add(&sched, &classes[id].pace, &cfg))
			return false;
	}
	return true;
}

static void close_ours(void)
{
	rte_free(classes);
	rte_free(storage);
	classes = NULL;
	storage = NULL;
}

static bool open_ours(const struct setup *s)
{
	const struct pace_config cfg = {
		.line_rate_bps = LINE_BPS,
		.overhead_bytes = PACE_ETH_OVERHEAD,
		.min_frame_bytes = PACE_ETH_MIN_FRAME,
		.max_frame_bytes = FRAME_BYTES,
		.link_header_bytes = PACE_ETH_HEADER,
		.layer = PACE_LAYER_WIRE,
		.order = PACE_ORDER_CLOCK,
		.mode = s->shaped ? PACE_MODE_TIMER : PACE_MODE_GAP,
	};
	size_t bytes = pace_storage_bytes(s->classes);

	real_time = s->shaped;
	ns_per_cycle = 1e9 / (double)rte_get_tsc_hz();
	first_cycle = rte_rdtsc();
	storage = rte_zmalloc(NULL, bytes, RTE_CACHE_LINE_SIZE);
	classes = rte_zmalloc(NULL, (size_t)s->classes * sizeof(*classes),
			      RTE_CACHE_LINE_SIZE);
	ours.bytes_per_class = (double)bytes / s->classes + sizeof(*classes);
	if (storage && classes &&
	    !pace_init(&sched, &cfg, storage, s->classes, now_ns()) &&
	    add_classes(s))
		return true;
	close_ours();
	return false;
}

static void address(struct rte_mbuf *m, u32 class)
{
	m->hash.usr = class;
}

/*
 * Enqueues in three passes, so that the cache misses of packets and classes
 * overlap.
 */
static void enqueue(struct rte_mbuf **m, u32 n)
{
	u64 now = now_ns();
	u32 i;

	for (i = 0; i < n; i++)
		rte_prefetch0(m[i]);
	for (i = 0; i < n; i++) {
		struct host_class *c = &classes[m[i]->hash.usr];

		rte_prefetch0(&c->pace);
		rte_prefetch0(&c->mbuf);
	}
	for (i = 0; i < n; i++) {
		struct host_class *c = &classes[m[i]->hash.usr];

		c->mbuf[c->tail % RING] = m[i];
		c->len_bytes[c->tail++ % RING] = m[i]->pkt_len;
		pace_activate(&sched, &c->pace, now);
	}
}

/* Removes and returns the class's first packet, and charges its length. */
static struct rte_mbuf *take(struct pace_class *pace, u64 now)
{
	struct host_class *c = container_of(pace, struct host_class, pace);
	u32 slot = c->head++ % RING;
	struct pace_class *coming;

	pace_sent(&sched, pace, c->len_bytes[slot], c->head != c->tail, now);
	coming = pace_coming(&sched, COMING_AHEAD);
	if (coming)
		rte_prefetch0(&container_of(coming, struct host_class,
					    pace)->mbuf);
	return c->mbuf[slot];
}

static u32 dequeue(struct rte_mbuf **m, u32 n)
{
	u64 now = now_ns();
	u32 sent = 0;

	while (sent < n) {
		struct pace_decision d = pace_next(&sched, now);

		if (d.verdict == PACE_GAP) {
			pace_gap_sent(&sched, d.gap_bytes);
			continue;
		}
		if (d.verdict != PACE_SEND)
			break;
		m[sent++] = take(d.cls, now);
	}
	return sent;
}

struct side ours = {
	.name = "ours",
	.title = "pspacer's core",
	.open = open_ours,
	.close = close_ours,
	.address = address,
	.enqueue = enqueue,
	.dequeue = dequeue,
};
