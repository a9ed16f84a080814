/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A scheduler of mbufs: ours or DPDK's, behind the same two bursts that a
 * forwarding loop of DPDK has.
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

/* Rates are of so many kinds: rte_sched's table of profiles holds no more. */
#define PROFILES	256u

struct setup {
	u32 classes;		/* a power of two, for rte_sched's sake */
	bool shaped;		/* real time paces; else as fast as it goes */
	double spread;		/* fastest rate / slowest rate */
	u64 rate_bps[PROFILES];	/* on the wire */
	u8 *profile;		/* of each class */
};

struct side {
	const char *name;
	const char *title;

	/* False if memory is short or the library refuses. */
	bool (*open)(const struct setup *s);
	void (*close)(void);
	/* Where packets of this class go is written into them, once. */
	void (*address)(struct rte_mbuf *m, u32 class);
	/* All are taken; classes hold BACKLOG packets and one burst more. */
	void (*enqueue)(struct rte_mbuf **m, u32 n);
	/* Up to n; fewer if no more may be sent now. */
	u32 (*dequeue)(struct rte_mbuf **m, u32 n);
	/* Memory per class: what it grew by when opened. */
	double bytes_per_class;
};

extern struct side ours;
extern struct side theirs;

#endif /* BENCH_SIDE_H */
