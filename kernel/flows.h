/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Classes of kind dynamic: one flow for each socket that sends, each on a clock
 * of its own.  Everything here is under the root lock unless it says so.
 *
 * Users send as they like, so everything is bounded: flows, frames, and how
 * long a frame may wait.  Where a bound is reached, who has most gives way
 * (rank.h): flow_users.c for users, flow_queue.c for frames.
 */
#ifndef SCH_PSP_FLOWS_H
#define SCH_PSP_FLOWS_H

#include <linux/list.h>
#include <linux/skbuff.h>
#include <linux/uidgid.h>
#include <net/sch_generic.h>

#include <pace/pace.h>

#include "rank.h"

struct psp_class;
struct psp_qdisc;
struct sock;
struct tc_psp_class_stats;

#define PSP_FLOWS_DEFAULT	16384u
#define PSP_FLOWS_MAX		65536u
/*
 * Frames of all flows of a class: two for each flow there may be by default,
 * which is what TCP keeps in a queue at the least; 75 MB of full frames.
 */
#define PSP_LIMIT_DEFAULT	32768u
/*
 * Frames of one flow.  TCP holds itself to tcp_limit_output_bytes, 4 MB, and
 * datagrams are held to the socket's send buffer; this is above either.
 */
#define PSP_FLOW_LIMIT_DEFAULT	4096u
/* As fq: nobody waits for longer for what was sent so long ago. */
#define PSP_HORIZON_DEFAULT	(10ull * NSEC_PER_SEC)

/*
 * What pace_next() names: the queue of a class, or that of one of its flows.
 * First in both, so that one leads to the other: psp_class_of().
 */
struct psp_turn {
	struct pace_class pace;
	bool is_flow;
};

/* Who owns the sockets of flows of a class: there as long as one of them is. */
struct psp_user {
	struct hlist_node node;		/* in psp_bucket.users */
	kuid_t uid;
	struct psp_ranked flows;
	struct psp_ranked frames;
	struct list_head idle;		/* its flows without frames, oldest first */
	struct list_head busy;		/* the others */
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
	struct hlist_node node;		/* in psp_bucket.flows */
	const struct sock *sk;
	u32 hash;			/* its sk_hash: tells a reused address */
	bool slow;			/* may owe more than half a second */
	struct psp_user *user;
	struct list_head mine;		/* in psp_user.idle or .busy */
	struct qdisc_skb_head queue;
	u64 backlog;			/* bytes of it */
	/* While it has no frames: */
	struct list_head idle;		/* in psp_flows.idle */
	unsigned long idle_since;	/* jiffies; or was seen to owe something */
};

struct psp_bucket {
	struct hlist_head flows;	/* by address of the socket */
	struct hlist_head users;	/* by uid */
};

/* The flows of one class. */
struct psp_flows {
	u32 max;			/* at a time */
	u32 reserved;			/* ids of core/ kept for them */
	u32 count;
	u32 active;			/* have frames */
	u32 qlen;			/* frames and bytes of all */
	u32 backlog;
	u32 users;
	u64 seen;
	u64 refused;			/* frames, for lack of room or memory */
	u64 evicted;			/* flows that made room for another user's */
	struct list_head idle;		/* flows without frames, oldest first */
	struct psp_rank by_flows;	/* the users */
	struct psp_rank by_frames;
	u32 bits;
	struct psp_bucket *bucket;	/* 1 << bits */
};

/* flows.c */
struct psp_flows *psp_flows_alloc(u32 max, u32 count);
void psp_flows_free(struct psp_flows *flows);
void psp_flows_resize(struct psp_flows *flows, struct psp_flows *size);
u32 psp_flows_ids(const struct psp_flows *flows);
struct psp_flow *psp_flow_of(struct psp_qdisc *q, struct psp_class *cl,
			     struct sk_buff *skb, struct sk_buff **to_free);
void psp_flows_clear(struct psp_qdisc *q, struct psp_class *cl);
void psp_flows_clamp(struct psp_qdisc *q, struct psp_class *cl, u64 least_bps,
		     u64 most_bps);
void psp_flows_stats(struct psp_qdisc *q, struct psp_class *cl,
		     struct tc_psp_class_stats *st);
int psp_flows_init(void);
void psp_flows_exit(void);

/* flow_users.c */
struct psp_user *psp_user_hold(struct psp_flows *flows, kuid_t uid);
void psp_user_put(struct psp_flows *flows, struct psp_user *user);
void psp_users_rehash(struct psp_flows *to, struct psp_flows *from);
struct psp_flow *psp_flow_to_evict(struct psp_flows *flows,
				   const struct psp_user *newcomer);
struct psp_flow *psp_flow_to_shorten(struct psp_flows *flows,
				     struct psp_flow *arriving);
int psp_users_init(void);
void psp_users_exit(void);

/* flow_queue.c */
int psp_flow_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		     struct psp_flow *f, struct sk_buff **to_free);
struct sk_buff *psp_flow_pull(struct psp_flow *f);
void psp_flow_purge(struct psp_qdisc *q, struct psp_flow *f,
		    struct sk_buff **to_free);
void psp_flow_fit(struct psp_qdisc *q, struct psp_flow *f,
		  struct sk_buff **to_free);

/* flows_rate.c */
struct sock *psp_flow_socket(const struct sk_buff *skb);
u64 psp_flow_rate(const struct psp_qdisc *q, const struct psp_class *cl,
		  struct sock *sk, bool *exact);

#endif /* SCH_PSP_FLOWS_H */
