/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Classes of kind dynamic: one flow for each socket that sends, each on a clock
 * of its own.  Everything here is under the root lock unless it says so.
 */
#ifndef SCH_PSP_FLOWS_H
#define SCH_PSP_FLOWS_H

#include <linux/list.h>
#include <linux/skbuff.h>
#include <net/sch_generic.h>

#include <pace/pace.h>

struct psp_class;
struct psp_qdisc;
struct sock;
struct tc_psp_class_stats;

#define PSP_FLOWS_DEFAULT	16384u
#define PSP_FLOWS_MAX		65536u

/*
 * What pace_next() names: the queue of a class, or that of one of its flows.
 * First in both, so that one leads to the other: psp_class_of().
 */
struct psp_turn {
	struct pace_class pace;
	bool is_flow;
};

/*
 * The frames of one socket.  `sk` is compared, never followed: frames hold
 * their sockets, a flow holds none.
 */
struct psp_flow {
	union {
		struct psp_turn turn;
		struct pace_class pace;
	};
	struct psp_class *cl;
	struct hlist_node node;		/* in psp_flows.bucket */
	const struct sock *sk;
	u32 hash;			/* its sk_hash: tells a reused address */
	struct qdisc_skb_head queue;
	/* While it has no frames: */
	struct list_head idle;		/* in psp_flows.idle */
	unsigned long idle_since;	/* jiffies */
};

/* The flows of one class. */
struct psp_flows {
	u32 max;			/* at a time */
	u32 reserved;			/* ids of core/ kept for them */
	u32 count;
	u32 active;			/* have frames */
	u32 qlen;			/* frames and bytes of all */
	u32 backlog;
	u64 seen;
	u64 refused;			/* frames, for lack of room or memory */
	struct list_head idle;		/* flows without frames, oldest first */
	u32 bits;
	struct hlist_head bucket[];	/* 1 << bits, by address of the socket */
};

/* flows.c */
struct psp_flows *psp_flows_alloc(u32 max);
void psp_flows_move(struct psp_flows *to, struct psp_flows *from);
struct psp_flow *psp_flow_of(struct psp_qdisc *q, struct psp_class *cl,
			     struct sk_buff *skb);
int psp_flow_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		     struct psp_flow *f, struct sk_buff **to_free);
struct sk_buff *psp_flow_pull(struct psp_flow *f);
void psp_flows_clear(struct psp_qdisc *q, struct psp_class *cl);
void psp_flows_clamp(struct psp_qdisc *q, struct psp_class *cl, u64 least_bps,
		     u64 most_bps);
void psp_flows_stats(struct psp_qdisc *q, struct psp_class *cl,
		     struct tc_psp_class_stats *st);
int psp_flows_init(void);
void psp_flows_exit(void);

/* flows_rate.c */
struct sock *psp_flow_socket(const struct sk_buff *skb);
u64 psp_rate_least(const struct pace_config *cfg);
u64 psp_flow_rate(const struct psp_qdisc *q, const struct psp_class *cl,
		  struct sock *sk, bool *exact);

#endif /* SCH_PSP_FLOWS_H */
