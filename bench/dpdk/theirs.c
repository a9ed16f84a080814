// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * DPDK's rte_sched: port, subport, pipes, traffic classes, queues.  A pipe
 * stands for a class of the core: it is the level with its own rate, a token
 * bucket.
 *
 * These are the fastest settings of those tried: one subport; one queue of the
 * highest traffic class in use, which avoids the weighted round robin of the
 * best-effort queues; queues no longer than needed; no congestion management.
 */
#include <rte_malloc.h>
#include <rte_sched.h>

#include "side.h"

#define QUEUE_SIZE	4u	/* packets; a power of two, above BACKLOG */
#define TC		0
/* Packets of a best-effort queue: it cannot be disabled, only made small. */
#define BEST_EFFORT_SIZE	1u
/*
 * Frames that a bucket holds: a smaller one loses credit when it is served
 * late.
 */
#define BUCKET_FRAMES	4u
/* Frames per traffic-class period: never the limit, the token bucket is. */
#define TC_PERIOD_FRAMES	64u
#define LINE_BYTES	(LINE_BPS / 8)

static struct rte_sched_port *port;
static struct rte_sched_pipe_params profiles[PROFILES];

static void set_profile(struct rte_sched_pipe_params *p, u64 bytes_per_s)
{
	u64 period_ms = TC_PERIOD_FRAMES * WIRE_BYTES * 1000 / bytes_per_s + 1;
	u32 i;

	memset(p, 0, sizeof(*p));
	p->tb_rate = bytes_per_s;
	p->tb_size = BUCKET_FRAMES * WIRE_BYTES;
	p->tc_rate[TC] = bytes_per_s;
	p->tc_rate[RTE_SCHED_TRAFFIC_CLASS_BE] = bytes_per_s;
	p->tc_period = period_ms < 10 ? 10 : period_ms;
	p->tc_ov_weight = 1;
	for (i = 0; i < RTE_SCHED_BE_QUEUES_PER_PIPE; i++)
		p->wrr_weights[i] = 1;
}

/* Sets the pipe profiles.  Unshaped, every pipe may use the whole line. */
static void set_profiles(const struct setup *s)
{
	u32 i;

	for (i = 0; i < PROFILES; i++)
		set_profile(&profiles[i],
			    s->shaped ? s->rate_bps[i] / 8 : LINE_BYTES);
}

static struct rte_sched_port *open_port(const struct setup *s)
{
	struct rte_sched_subport_profile_params subport = {
		.tb_rate = LINE_BYTES,
		.tb_size = 1000000,
		.tc_period = 10,
	};
	struct rte_sched_port_params params = {
		.name = "bench",
		.rate = LINE_BYTES,
		.mtu = FRAME_BYTES,
		.frame_overhead = PACE_ETH_OVERHEAD,
		.n_subports_per_port = 1,
		.n_subport_profiles = 1,
		.n_max_subport_profiles = 1,
		.subport_profiles = &subport,
		.n_pipes_per_subport = s->classes,
	};
	u32 i;

	for (i = 0; i < RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE; i++)
		subport.tc_rate[i] = LINE_BYTES;
	return rte_sched_port_config(&params);
}

static bool add_pipes(const struct setup *s)
{
	struct rte_sched_subport_params subport = {
		.n_pipes_per_subport_enabled = s->classes,
		.pipe_profiles = profiles,
		.n_pipe_profiles = PROFILES,
		.n_max_pipe_profiles = PROFILES,
	};
	u32 id;

	subport.qsize[TC] = QUEUE_SIZE;
	subport.qsize[RTE_SCHED_TRAFFIC_CLASS_BE] = BEST_EFFORT_SIZE;
	if (rte_sched_subport_config(port, 0, &subport, 0))
		return false;
	for (id = 0; id < s->classes; id++)
		if (rte_sched_pipe_config(port, 0, id, s->profile[id]))
			return false;
	return true;
}

static size_t heap_bytes(void)
{
	struct rte_malloc_socket_stats stats;

	return rte_malloc_get_socket_stats(0, &stats) ?
	       0 : stats.heap_allocsz_bytes;
}

static void close_theirs(void)
{
	rte_sched_port_free(port);
	port = NULL;
}

static bool open_theirs(const struct setup *s)
{
	size_t before = heap_bytes();

	set_profiles(s);
	port = open_port(s);
	if (!port)
		return false;
	if (!add_pipes(s)) {
		close_theirs();
		return false;
	}
	theirs.bytes_per_class = (double)(heap_bytes() - before) / s->classes;
	return true;
}

static void address(struct rte_mbuf *m, u32 class)
{
	rte_sched_port_pkt_write(port, m, 0, class, TC, 0, RTE_COLOR_GREEN);
}

static void enqueue(struct rte_mbuf **m, u32 n)
{
	rte_sched_port_enqueue(port, m, n);
}

static u32 dequeue(struct rte_mbuf **m, u32 n)
{
	return (u32)rte_sched_port_dequeue(port, m, n);
}

struct side theirs = {
	.name = "rte_sched",
	.title = "DPDK rte_sched",
	.open = open_theirs,
	.close = close_theirs,
	.address = address,
	.enqueue = enqueue,
	.dequeue = dequeue,
};
