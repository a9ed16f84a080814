/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The interface of a scheduler of mbufs, the core's or DPDK's: the burst
 * enqueue and burst dequeue of a DPDK forwarding loop.
 */
#ifndef BENCH_SIDE_H
#define BENCH_SIDE_H

#include <rte_mbuf.h>

#include <pace/pace.h>

#include "world.h"

#define BURST		64u
/* Packets that wait in each class, always. */
#define BACKLOG		2u
#define FRAME_BYTES	1500u
#define WIRE_BYTES	(FRAME_BYTES + PACE_ETH_OVERHEAD)
#define LOAD		0.9

/* Different rates: rte_sched's table of profiles holds no more. */
#define PROFILES	256u

struct setup {
	u32 classes;		/* a power of two: rte_sched requires it */
	bool shaped;		/* paced by real time; else unpaced */
	double spread;		/* fastest rate / slowest rate */
	u64 rate_bps[PROFILES];	/* on the wire */
	u8 *profile;		/* index of each class's rate */
};

struct side {
	const char *name;
	const char *title;

	/* Returns false if memory is short or the library reports an error. */
	bool (*open)(const struct setup *s);
	void (*close)(void);
	/* Writes the class into a packet, once. */
	void (*address)(struct rte_mbuf *m, u32 class);
	/*
	 * Accepts all n: classes have room for BACKLOG packets and one burst.
	 */
	void (*enqueue)(struct rte_mbuf **m, u32 n);
	/* Returns up to n packets; fewer if no more may be sent now. */
	u32 (*dequeue)(struct rte_mbuf **m, u32 n);
	/* Bytes of memory per class, which open() sets. */
	double bytes_per_class;
};

extern struct side ours;
extern struct side theirs;

#endif /* BENCH_SIDE_H */
