/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sch_psp - the qdisc: an adapter between sk_buff and core/.
 *
 * core/ decides who is next and how long the wire stays silent before; here
 * are the frames, the memory, the locks and the timer.
 *
 * Locking.  Configuration holds the RTNL and, where it touches what enqueue
 * and dequeue read, the tree lock (sch_tree_lock()).  Enqueue and dequeue
 * hold the root lock, which is the same one.  Memory is allocated outside of
 * it; nothing is put (qdisc_put()) inside of it.
 */
#ifndef SCH_PSP_H
#define SCH_PSP_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#include <pace/pace.h>
#include <pace/pace_sched.h>

#include "../uapi/sch_psp.h"
#include "compat/extack.h"
#include "flows.h"
#include "line_watch.h"

/* As configured; what of it is in force is in psp_qdisc.port. */
struct psp_options {
	u32 default_minor;	/* 0: none */
	u64 line_rate_bps;	/* 0: follow the device */
	u32 overhead_bytes;
	u8 mode;		/* enum tc_psp_mode */
	u8 layer;		/* enum tc_psp_layer */
	u8 order;		/* enum tc_psp_order */
	u8 gap;			/* enum tc_psp_gap */
	u8 split_gso;		/* enum tc_psp_split_gso */
	bool guard;
	u64 period_ns;
	u64 budget_bytes;	/* 0: budget_percent */
	u32 budget_percent;
	u64 align_ns;		/* on CLOCK_TAI; TC_PSP_ALIGN_OFF: none */
};

/* What the options come to on this device, now. */
struct psp_port {
	struct pace_config pace;
	bool line_known;	/* or else assumed: PACE_LINE_RATE_MAX */
	u8 why_not_hybrid;	/* enum tc_psp_why */
	u32 queues;		/* transmit queues that share the line */
	u64 device_bps;		/* the device's line; 0: never named */
	u64 reserved_bytes;	/* by the classes that there are */
	/* Mode timer: 0. */
	u64 ring_bytes;		/* of largest frames or trains, in the device's ring */
	u64 slack_bytes;	/* psp_line_slack_bytes() */
};

/* A class as configured; 0 where nothing was said or it does not apply. */
struct psp_class_options {
	u8 kind;		/* enum tc_psp_kind */
	u32 quantum_bytes;
	u32 flows;
	u64 rate_bps;
	u64 ceil_bps;
	u64 floor_bps;
	u64 deadline_ns;
	u64 reserve_bytes;
	/* Kind dynamic: */
	u32 limit;			/* frames of all flows */
	u32 flow_limit;			/* frames of one */
	u64 horizon_ns;
	u64 pacing_floor_bps;
};

struct psp_class_counters {
	u64 sent_frames;
	u64 sent_wire_bytes;
	u64 spare_frames;
	u64 throttled;
	u64 drop_child;
	u64 drop_segment;
	u64 drop_long;
	u64 drop_late;
	u64 drop_flow;
	u64 drop_limit;
	u64 drop_horizon;
	u64 drop_evicted;
};

/* What a class sends, second by second: psp_window_add(). */
struct psp_window {
	u64 start_ns;		/* 0: nothing sent yet */
	u64 last_ns;		/* of the latest frame in it */
	u64 bytes;		/* as the layer counts */
	u64 achieved_bps;	/* over the last whole second */
};

/* Apart from the class: only paced ones have it. */
struct psp_lateness {
	u64 frames[TC_PSP_LATE_BUCKETS];
};

struct psp_class {
	struct Qdisc_class_common common;
	union {
		struct psp_turn turn;
		struct pace_class pace;
	};
	struct psp_flows *flows;	/* kind dynamic; else NULL */
	struct Qdisc *child;
	/* The next frame if it has been taken out of the child: ready.c. */
	struct sk_buff *head;
	/*
	 * In psp_qdisc.throttled while the child holds frames but gave none
	 * (netem, tbf): not active, asked again later.
	 */
	struct list_head throttled;
	struct psp_class_options opt;
	unsigned int filters;		/* filters that name this class */
	struct gnet_stats_basic_sync bstats;
	struct psp_class_counters count;
	struct psp_window window;
	struct psp_lateness *late;	/* NULL: never was paced */
	struct pace_reservation *stream;	/* NULL: never was of kind rt or nrt */
};

struct psp_counters {
	u64 unclassified_frames;
	u64 drop_filter;
	u64 drop_child;
	u64 drop_segment;
	u64 drop_long;
	u64 drop_late;
	u64 drop_flow;
	u64 drop_limit;
	u64 drop_horizon;
	u64 drop_evicted;
	u64 gap_failed;
	u64 child_retries;
	u64 trains_cut;
	u64 trains_whole;
	u64 no_clock;
};

struct psp_qdisc {
	struct pace_sched pace;
	struct psp_port port;
	struct psp_options opt;
	struct Qdisc *sch;
	struct list_head link;		/* in the list of all psp qdiscs */

	void *storage;			/* of pace, for `capacity` classes */
	u32 capacity;
	/* Ids of pace in use, the direct class's included, or set aside. */
	u32 reserved;
	struct Qdisc_class_hash classes;
	/*
	 * Frames that no filter and no default class claims: best effort, and
	 * through the byte clock like every other frame.
	 */
	struct psp_class direct;

	struct tcf_proto __rcu *filters;
	struct tcf_block *block;

	struct psp_class *serving;	/* whose child is being asked */
	struct list_head throttled;	/* whoever is to be asked next first */
	u32 throttled_count;
	u32 ask_left;		/* of those, by ask_timer */
	struct hrtimer ask_timer;
	struct qdisc_watchdog watchdog;
	struct sk_buff *gap;		/* template, the largest gap frame */
	u16 queue;			/* transmit queue of every frame */
	u64 aligned_at;			/* pace.stats.periods when clocks were read */

	/* watch.c */
	struct psp_line_watch watch;
	u64 handed_bytes;		/* frames and gap frames */
	u32 link_changes;		/* when the watch began */
	bool suspect;			/* psp_watch_judge() is to come */
	u64 suspect_ns;			/* when it came before; 0: never */
	u64 suspect_raw_ns;		/* the same instant, on a clock never slewed */
	bool no_clock;			/* it has found so; RTNL */

	struct psp_counters count;
};

/* What a frame, or a train of frames that leave as one, is to core/. */
struct psp_load {
	struct pace_burst train;
	u32 frame_bytes;	/* the largest frame */
};

/* The flow that `c` is, or NULL: it is a class. */
static inline struct psp_flow *psp_flow_at(struct pace_class *c)
{
	struct psp_turn *turn = container_of(c, struct psp_turn, pace);

	return turn->is_flow ? container_of(turn, struct psp_flow, turn) : NULL;
}

/* The class that `c` is, or whose flow it is. */
static inline struct psp_class *psp_class_of(struct pace_class *c)
{
	struct psp_flow *f = psp_flow_at(c);

	return f ? f->cl : container_of(c, struct psp_class, pace);
}

/*
 * qlen and backlog are read without the lock by dumps and by the stack's
 * fast path.
 */
static inline void psp_qlen_add(struct Qdisc *sch, int frames, int bytes)
{
	WRITE_ONCE(sch->q.qlen, sch->q.qlen + frames);
	WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog + bytes);
}

static inline bool psp_child_is_throttled(const struct psp_class *cl)
{
	return !list_empty(&cl->throttled);
}

static inline bool psp_kind_has_stream(u8 kind)
{
	return kind == TC_PSP_KIND_RT || kind == TC_PSP_KIND_NRT;
}

static inline void psp_count_drop(struct Qdisc *sch)
{
	WRITE_ONCE(sch->qstats.drops, sch->qstats.drops + 1);
}

/*
 * The kernel made this qdisc by itself (net.core.default_qdisc), with no options:
 * only such a qdisc has no handle.
 */
static inline bool psp_is_default(const struct Qdisc *sch)
{
	return !sch->handle;
}

/* Lets the device ask again at once, after a change of who is due when. */
static inline void psp_kick(struct psp_qdisc *q)
{
	qdisc_watchdog_schedule_ns(&q->watchdog, ktime_get_ns());
}

/* enqueue.c */
int psp_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		struct sk_buff **to_free);

/* dequeue.c */
struct sk_buff *psp_dequeue(struct Qdisc *sch);

/* ready.c */
void psp_wake(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns);
void psp_sleep(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns);
void psp_run_out(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns);
struct sk_buff *psp_pull(struct psp_qdisc *q, struct psp_class *cl);
bool psp_more(struct psp_qdisc *q, struct psp_class *cl);
void psp_announce(struct psp_qdisc *q, struct psp_class *cl);
void psp_report_backlog(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns);
void psp_drop_head(struct psp_qdisc *q, struct psp_class *cl);

/* throttled.c */
void psp_throttle(struct psp_qdisc *q, struct psp_class *cl);
void psp_unthrottle(struct psp_qdisc *q, struct psp_class *cl);
void psp_ask_busy(struct psp_qdisc *q, u64 now_ns);
bool psp_ask_idle(struct psp_qdisc *q, u64 now_ns);
void psp_ask_others(struct psp_qdisc *q);
void psp_ask_init(struct psp_qdisc *q);
void psp_ask_stop(struct psp_qdisc *q);

/* train.c */
bool psp_load_of(const struct psp_qdisc *q, const struct sk_buff *skb,
		 struct psp_load *load);
bool psp_is_long(const struct psp_qdisc *q, const struct sk_buff *skb,
		 u32 frame_bytes);
bool psp_train_whole(const struct psp_qdisc *q, const struct psp_class *cl,
		     const struct sk_buff *skb);
u32 psp_train_max(const struct net_device *dev, const struct psp_options *opt,
		  u64 line_rate_bps, u32 max_frame_bytes);

/* gap.c */
struct sk_buff *psp_gap_template(struct net_device *dev, u32 frame_bytes,
				 enum tc_psp_gap kind);
struct sk_buff *psp_gap_frame(struct psp_qdisc *q, u32 gap_bytes);

/* classes.c */
struct psp_class *psp_class_find(struct psp_qdisc *q, u32 classid);
struct Qdisc *psp_default_child(struct psp_qdisc *q, u32 classid,
				struct netlink_ext_ack *extack);
int psp_class_setup(struct psp_qdisc *q, struct psp_class *cl, u32 classid,
		    const struct psp_class_options *opt,
		    struct netlink_ext_ack *extack);
int psp_class_new(struct psp_qdisc *q, u32 classid,
		  const struct psp_class_options *opt, struct psp_class **made,
		  struct netlink_ext_ack *extack);
int psp_class_reconfigure(struct psp_qdisc *q, struct psp_class *cl,
			  const struct psp_class_options *opt,
			  struct netlink_ext_ack *extack);
void psp_class_delete(struct psp_qdisc *q, struct psp_class *cl);
u64 psp_class_ceil_bps(const struct psp_qdisc *q, const struct psp_class *cl);
void psp_class_clear(struct psp_qdisc *q, struct psp_class *cl);
void psp_class_reset(struct psp_qdisc *q, struct psp_class *cl);
void psp_classes_reset(struct psp_qdisc *q);
void psp_classes_destroy(struct psp_qdisc *q);
void psp_classes_cap(struct psp_qdisc *q, u64 line_rate_bps);
void psp_classes_fit_flows(struct psp_qdisc *q, const struct pace_config *cfg);

/* class_ops.c */
extern const struct Qdisc_class_ops psp_class_ops;

/* options.c */
int psp_parse_options(struct nlattr *attr, struct psp_options *opt,
		      struct netlink_ext_ack *extack);
int psp_dump_options(struct Qdisc *sch, struct sk_buff *skb);

/* class_options.c */
int psp_parse_class(struct nlattr *attr, struct psp_class_options *opt,
		    bool is_new, struct netlink_ext_ack *extack);
int psp_class_dump(struct Qdisc *sch, unsigned long arg, struct sk_buff *skb,
		   struct tcmsg *t);

/* stats.c */
void psp_count_sent(struct psp_qdisc *q, struct psp_class *cl,
		    const struct psp_load *load, u64 now_ns);
void psp_count_late(struct psp_class *cl, u32 frames, s64 late_bytes);
int psp_dump_stats(struct Qdisc *sch, struct gnet_dump *d);
int psp_class_dump_stats(struct Qdisc *sch, unsigned long arg,
			 struct gnet_dump *d);

/* port.c */
void psp_default_options(const struct net_device *dev, struct psp_options *opt);
int psp_port_resolve(struct psp_qdisc *q, const struct psp_options *opt,
		     struct psp_port *port, bool follow,
		     struct netlink_ext_ack *extack);
int psp_port_gap(struct psp_qdisc *q, const struct psp_options *opt,
		 const struct psp_port *port, struct sk_buff **gap);
int psp_port_apply(struct psp_qdisc *q, const struct psp_options *opt,
		   const struct psp_port *port, bool follow,
		   struct netlink_ext_ack *extack);

void psp_port_align(struct psp_qdisc *q);

/* share.c */
u32 psp_share_queues(const struct psp_qdisc *q);
int psp_share_line(const struct psp_qdisc *q, const struct psp_options *opt,
		   struct psp_port *port, bool follow,
		   struct netlink_ext_ack *extack);

/* device.c */
bool psp_device_pauses(struct net_device *dev);
void psp_device_holds(struct psp_qdisc *q, struct psp_port *port);
u32 psp_device_link_changes(const struct net_device *dev);

/* watch.c */
void psp_watch_handed(struct psp_qdisc *q, u64 now_ns);
void psp_watch_start(struct psp_qdisc *q);
void psp_watch_judge(struct psp_qdisc *q);

/* refuse.c */
int psp_refuse_port(struct netlink_ext_ack *extack, enum pace_error err,
		    const struct psp_port *port, const struct psp_class *cl);
int psp_refuse_class(struct netlink_ext_ack *extack, enum pace_error err,
		     const struct psp_port *port,
		     const struct psp_class_options *opt);
int psp_refuse_reserve(struct netlink_ext_ack *extack,
		       const struct psp_qdisc *q, const struct psp_class *cl,
		       u64 reserve_bytes);

/* follow.c */
extern struct list_head psp_qdiscs;	/* all there are; RTNL */
void psp_follow_start(struct psp_qdisc *q);
void psp_follow_stop(struct psp_qdisc *q);
void psp_follow_later(void);
int psp_follow_init(void);
void psp_follow_exit(void);

#endif /* SCH_PSP_H */
