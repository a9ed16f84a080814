// SPDX-License-Identifier: GPL-2.0-only
/*
 * psp, precise pacing: the qdisc.  Papers: PSPacer (IPSJ Trans. ACS 14,
 * 2006), PSPacer+ (2009).
 *
 *   psp_enqueue(): psp_classify() finds the class of a packet.  A burst (GSO packet)
 *   is cut into frames unless it may leave whole.  Each frame is queued,
 *       of a dynamic class in the flow of its socket:	psp_flow_enqueue(),
 *       else in the FIFO of the class:			psp_enqueue_fifo(),
 *       or in the child qdisc that was grafted:	psp_enqueue_child(),
 *       or by its launch time:				psp_launch_enqueue();
 *   the first one makes the class, or flow, active in core/.
 *
 *   psp_dequeue(): pace_next() decides,
 *       SEND  a class or flow:	psp_serve() takes its frame and reports it,
 *       GAP   of some bytes:	psp_send_gap() makes a gap frame of that length,
 *       WAIT  until a time:	psp_timer() runs the root then,
 *       IDLE			nothing is queued.
 *
 *   State of a class:
 *
 *     INACTIVE -- frame queued -> ACTIVE -- child holds frames, gives none -> THROTTLED
 *         ^---- last frame sent ----'  ^------- asked again, gives a frame -------'
 *
 * core/ decides which class sends next and how long the wire stays silent
 * before.  Frames, memory, locks and timers are here.  This file includes the
 * others from the lowest to the highest, and no file declares a function
 * before it is defined, so calls only go down (docs/decisions/qdisc.md,
 * "The qdisc in one translation unit").
 *
 * Locking.  Configuration holds the RTNL.  It takes the tree lock
 * (sch_tree_lock()) where it changes what enqueue and dequeue read; they hold
 * the root lock, which is the same one.  Memory is allocated, and child
 * qdiscs are released, without it.  All of it is charged to the control group
 * of whoever configures or sends: the root of a user namespace may do both.
 */
#include <linux/cred.h>
#include <linux/errqueue.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/hash.h>
#include <linux/hrtimer.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/ipv6.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/pm_runtime.h>
#include <linux/rbtree.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>
#include <net/gen_stats.h>
#include <net/inet_connection_sock.h>
#include <net/ipv6.h>
#include <net/netlink.h>
#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "../uapi/sch_psp.h"
#include "compat/alias.h"
#include "compat/dequeue_drop.h"
#include "compat/extack.h"
#include "compat/gso.h"
#include "compat/hrtimer.h"
#include "compat/link_speed.h"
#include "compat/pkt_len.h"
#include "compat/tstamp.h"
#include "counters.h"
#include "line_watch.h"
#include "rank.h"

/*
 * The scheduler.  Kbuild makes its API static: the compiler inlines it into
 * the path.
 */
#include "../core/pace.c"

/*
 * Options of the qdisc as asked for.  In force are psp_qdisc.pace.cfg and
 * .line.
 */
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
	bool shared;		/* classes are the device's: psp_queues.c */
	u64 period_ns;
	u64 budget_bytes;	/* 0: budget_percent */
	u32 budget_percent;
	u64 align_ns;		/* on CLOCK_TAI; TC_PSP_ALIGN_OFF: none */
};

/* What the qdisc knows of the line beside core's configuration. */
struct psp_line {
	bool line_known;	/* else PACE_LINE_RATE_MAX is assumed */
	u8 why_not_hybrid;	/* enum tc_psp_why */
	u8 gap;			/* enum tc_psp_gap: psp_gap_in_force() */
	u32 queues;		/* including the queue of this qdisc */
	u64 device_bps;		/* line rate of the device; 0: never known */
	/* Both are 0 in mode timer. */
	u64 ring_bytes;		/* largest bursts that fill the transmit ring */
	u64 slack_bytes;	/* psp_line_slack_bytes() */
	bool gaps;		/* gap frames are in force, or will be when the wire is proved */
};

/* What a trial of gap frames is doing: psp_trial(). */
enum psp_trial_state {
	PSP_TRIAL_OFF,
	PSP_TRIAL_SEND,
	PSP_TRIAL_FLUSH,	/* the driver gets the last frame */
	PSP_TRIAL_DRAIN,	/* until the driver has released all */
	PSP_TRIAL_HOST,		/* single frames: how fast is the host? */
	PSP_TRIAL_HOST_FLUSH,	/* the driver gets one */
};

/* Trials of gap frames that prove that the wire is a clock: psp_proof.c. */
struct psp_trial {
	u8 state;		/* enum psp_trial_state */
	bool second;		/* of two: three times as long as the first */
	u8 fails;
	u8 tries;		/* more pairs of the same length */
	u8 longest;		/* pairs of the longest trials so far */
	u64 first_bytes;	/* length of the first */
	u64 left_bytes;		/* of this trial */
	u64 begin_handed;	/* psp_handed_bytes() when it began */
	u64 begin_ns;
	u64 line_ns;		/* what it takes on the line */
	u64 first_ns;		/* what the first took, and takes on the line */
	u64 first_line_ns;
	u64 early_ns;		/* of both: the most by which it was released early */
	u8 host_left;		/* single frames that are yet to be handed out */
	u64 host_ns;		/* when the last one was; 0: none yet */
	u64 host_least_ns;	/* until the driver had one, at the least */
	u64 next_ns;		/* no other pair begins before this */
	u64 line_bps;		/* line rate at the last proof or try */
	u32 link;		/* carrier changes then */
	u8 gap;			/* enum tc_psp_gap then */
};

/*
 * What the options come to on this device, before they take force.  In force
 * are psp_qdisc.pace.cfg, the only copy, and psp_qdisc.line.
 */
struct psp_port {
	struct pace_config pace;
	struct psp_line line;
	u64 reserved_bytes;	/* of all classes */
};

#define PSP_FLOWS_DEFAULT	16384u
#define PSP_FLOWS_MAX		65536u
/*
 * Most classes and flows of one qdisc: 15 dynamic classes with flows of the
 * default, or three with the most and any number of others.  core/ needs 116
 * bytes for each, 30 MB.
 */
#define PSP_IDS_MAX		(1u << 18)
/*
 * Most frames in all flows of a class.  TCP keeps at least two frames of a
 * flow in a queue; this is two for each flow of the default.  75 MB of full
 * frames.
 */
#define PSP_LIMIT_DEFAULT	32768u
/*
 * Most frames in one flow.  TCP limits itself to tcp_limit_output_bytes, 4
 * MB, and datagrams are limited by the send buffer.  This is above either.
 */
#define PSP_FLOW_LIMIT_DEFAULT	4096u
/* Longest wait of a frame in a flow, as in fq. */
#define PSP_HORIZON_DEFAULT	(10ull * NSEC_PER_SEC)

/*
 * What pace_next() returns: the schedule entry of a class or of one of its
 * flows, and what waits there.  It is the first member of both, which are
 * aligned to cache lines.  A frame touches the first two lines of `pace`, and
 * the line that begins with `queue`; what finds the class or flow of a frame is
 * in the rest of that line.
 */
struct psp_entity {
	struct pace_class pace;
	struct qdisc_skb_head queue;
	u64 backlog;			/* bytes in the queue */
	u32 limit;			/* of a class: most frames in the queue */
	/*
	 * Of a class: its frames wait in the queue, and it has no child, no
	 * flows, no deadline and no launch times.
	 */
	bool is_plain;
	bool is_flow;
	/* Bits: the line has no byte left. */
	bool is_shared : 1;	/* of a class: it is the device's */
	bool is_node : 1;	/* of a group: struct psp_group */
	bool in_group : 1;
};

/*
 * The owner of sockets that have flows in a class.  It lives as long as one
 * of these flows.
 */
struct psp_user {
	struct hlist_node node;		/* in psp_bucket.users */
	kuid_t uid;
	struct psp_ranked flows;
	struct psp_ranked frames;
	struct list_head idle;		/* flows without frames, oldest first */
	struct list_head busy;		/* flows with frames */
};

/*
 * The frames of one socket.  psp compares `sk` but never dereferences it:
 * frames hold references on their socket, a flow holds none.
 */
struct psp_flow {
	union {
		struct psp_entity entity;
		struct pace_class pace;
	};
	/* The line of the queue ends with these. */
	struct hlist_node node;		/* in psp_bucket.flows */
	const struct sock *sk;

	u32 hash;			/* sk_hash of the socket: tells a reused address */
	bool slow;			/* its clock may be more than half a second ahead */
	struct psp_class *cl;
	struct psp_user *user;
	struct list_head mine;		/* in psp_user.idle or .busy */
	/* While the queue is empty: */
	struct list_head idle;		/* in psp_flows.idle */
	unsigned long idle_since;	/* jiffies, when it became idle or last had a debt */
} ____cacheline_aligned;

struct psp_bucket {
	struct hlist_head flows;	/* by address of the socket */
	struct hlist_head users;	/* by uid */
};

/* The flows of one class. */
struct psp_flows {
	u32 max;			/* most flows at a time */
	u32 reserved;			/* ids of core/ reserved for them */
	u32 count;
	u32 active;			/* flows with frames */
	u32 qlen;			/* frames in all flows */
	u32 backlog;
	u32 users;
	u64 seen;
	u64 refused;			/* frames whose flow found no id or no memory */
	u64 evicted;			/* flows removed to make room for another user's */
	struct list_head idle;		/* flows without frames, oldest first */
	struct psp_rank by_flows;	/* ranks the users */
	struct psp_rank by_frames;
	u32 bits;
	struct psp_bucket *bucket;	/* 1 << bits */
};

/* Options of a class as asked for; 0: not given, or not of this type. */
struct psp_class_options {
	u8 type;		/* enum tc_psp_type */
	u32 quantum_bytes;
	u32 flows;
	u64 rate_bps;
	u64 ceil_bps;
	u64 floor_bps;
	u64 deadline_ns;
	u64 reserve_bytes;
	/* Type dynamic: */
	u64 total_bps;
	u32 limit;			/* most frames in all flows */
	u32 flow_limit;			/* most frames in one flow */
	u64 horizon_ns;			/* also with txtime */
	u64 pacing_floor_bps;
	/* Type paced: */
	u8 txtime;			/* enum tc_psp_txtime */
	bool txtime_deadline;
	u64 txtime_late_ns;		/* 0: psp_launch_late_ns() */
};

/*
 * A group: classes that share a rate and a ceil, or the flows of a dynamic class that
 * share its total.  Its owner is the class of type group, or that dynamic class; the
 * owner's own queue is one of the classes of the group.
 */
struct psp_group {
	struct psp_entity node;		/* stands for the group in the port's scheduler */
	struct pace_group pace;
	struct psp_class *owner;
	struct list_head members;	/* classes below the owner */
	bool is_shared;			/* its node is the device's */
	void *storage;			/* memory of pace.inner, for `capacity` classes */
	u32 capacity;
	u32 reserved;			/* ids of pace.inner in use or reserved */
} ____cacheline_aligned;

/*
 * A frame of a plain class touches four cache lines of 64 bytes: three of
 * struct psp_entity, and one of statistics.  psp_check_lines() keeps it so;
 * docs/decisions/qdisc.md, "Cache lines of a class".
 */
struct psp_class {
	union {
		struct psp_entity entity;
		struct pace_class pace;
	};
	/* The line of the queue ends with this: by it the class is found. */
	struct Qdisc_class_common common;

	/* What each frame changes: one line, up to count.borrowed_frames. */
	struct gnet_stats_basic_sync bstats ____cacheline_aligned;
	struct psp_class_counters count;

	/*
	 * No frame of a plain class touches what follows, unless it is borrowed or
	 * fills a byte of count.late_recent.
	 */
	struct Qdisc *sch;
	struct Qdisc *child;		/* grafted, holds the frames; else NULL */
	/*
	 * The next frame, if it has been taken out of the child already:
	 * psp_pull().
	 */
	struct sk_buff *head;
	struct psp_flows *flows;	/* type dynamic; else NULL */
	struct rb_root_cached launch;	/* option txtime: the frames, instead of the FIFO */
	unsigned int filters;		/* number of filters that name this class */
	struct psp_lateness *lateness;	/* NULL: has never been paced */
	struct psp_parts *parts;	/* is_shared: of this queue; else NULL, or unused */
	struct psp_class_options opt;
	/*
	 * Link in psp_qdisc.throttled while the child holds frames but gives
	 * none (netem, tbf). The class is inactive then, and psp asks the
	 * child again later.
	 */
	struct list_head throttled;
	struct pace_reservation *reservation;	/* NULL: has never been of type rt or nrt */
	struct psp_group *group;	/* that it is in; NULL: in none */
	struct list_head member;	/* link in psp_group.members; not of an owner */
} ____cacheline_aligned;

/*
 * Keeps what a frame touches in the lines that struct psp_class names.  Another
 * length of a line, and what debuggers add to a lock, make others of them.
 */
static inline void psp_check_lines(void)
{
#if defined(CONFIG_64BIT) && L1_CACHE_BYTES == 64 && \
	!defined(CONFIG_DEBUG_SPINLOCK) && !defined(CONFIG_DEBUG_LOCK_ALLOC) && \
	!defined(CONFIG_PREEMPT_RT)
	const size_t line = 64;

	/* By pace.h: the clock and what moves it, then what order next adds. */
	BUILD_BUG_ON(offsetofend(struct pace_class, head_wire_bytes) != line);
	BUILD_BUG_ON(offsetof(struct pace_class, max_cost_ps) != line);
	BUILD_BUG_ON(offsetofend(struct pace_class, left_at) > 2 * line);
	BUILD_BUG_ON(offsetofend(struct pace_class, ceil_bps) > 2 * line);
	/* The queue, and what finds it. */
	BUILD_BUG_ON(offsetof(struct psp_entity, queue) != 4 * line);
	BUILD_BUG_ON(offsetofend(struct psp_class, common) != 5 * line);
	BUILD_BUG_ON(offsetofend(struct psp_flow, sk) != 5 * line);
	/* Statistics. */
	BUILD_BUG_ON(offsetof(struct psp_class, bstats) != 5 * line);
	BUILD_BUG_ON(offsetof(struct psp_class, count.borrowed_frames) != 6 * line);
	BUILD_BUG_ON(sizeof(struct psp_class) > 1024);
#endif
}

struct psp_qdisc {
	struct pace_sched pace;
	struct psp_line line;
	struct psp_options opt;
	struct Qdisc *sch;
	struct list_head link;		/* in psp_qdiscs */

	void *storage;			/* memory of `pace`, for `capacity` classes */
	u32 capacity;
	/*
	 * Ids of core/ in use or reserved, including that of the default
	 * class.
	 */
	u32 reserved;
	u32 reserved_in_groups;		/* of those: in the schedulers of groups */
	struct Qdisc_class_hash classes;
	/*
	 * The class of frames that no filter and no option `default`
	 * assigns.  It is best effort, and uses the byte clock like any other
	 * class.
	 */
	struct psp_class default_class;

	struct tcf_proto __rcu *filters;
	struct tcf_block *block;
	bool walks_for_filters;	/* psp_walk() */

	struct psp_class *serving;	/* class whose child is being asked for a frame */
	struct list_head throttled;	/* the first is asked next */
	u32 throttled_count;
	u32 tai_classes;	/* whose launch times are on CLOCK_TAI */
	s64 tai_ns;		/* CLOCK_TAI less CLOCK_MONOTONIC */
	u32 launch_classes;	/* with the option txtime */
	/* What the stack got since the driver got anything: psp_handover(). */
	u32 batch_frames;
	bool batch_ended;		/* the stack gets nothing more */
	u8 batch_mode;
	unsigned int batch_queued;	/* psp_driver_bytes() before it */
	unsigned int batch_completed;	/* psp_completed_bytes() then */
	u64 batch_line_bps;
	u64 batch_until_ns;		/* it ends after this */
	u64 batch_handed_ns;		/* the driver gets it after this */
	/* The least time from then until the stack asks again, if the wire waits. */
	u64 handover_ns;
	u64 doubt_ns;			/* the wire may have waited for so much longer; 0: none */
	u64 doubt_since_ns;
	u64 drained_ns;			/* nothing goes before this; 0: psp does not wait */
	u64 drained_last_ns;		/* when it began to wait last */
	u32 ask_left;		/* throttled classes that ask_timer has yet to ask */
	struct hrtimer ask_timer;
	struct hrtimer timer;		/* runs the root: psp_timer() */
	spinlock_t timer_lock;		/* whoever sets the timer holds it */
	u64 timer_ns;			/* the timer is set to it; 0: it has run out */
	u64 after_ns;			/* then psp_timer() sets it to this; 0: to nothing */
	bool ahead;		/* psp waits after each frame: psp_decides_ahead() */
	struct sk_buff *gap;		/* template: the largest gap frame */
	u16 queue;			/* transmit queue for all frames */
	struct psp_device *device;	/* option shared; else NULL */
	struct psp_parts *line_parts;	/* of its line, and in which of its slots */
	u32 slot;
	u64 aligned_at;			/* pace.stats.periods when the clocks were read */

	/* Is the wire a clock?  psp_proof.c */
	struct psp_line_watch watch;
	u64 handed_bytes;		/* wire bytes handed to the device, gaps included */
	u32 link_changes;		/* carrier changes when the watch began */
	bool suspect;			/* psp_watch_check() is scheduled */
	u64 suspect_ns;			/* time of the previous suspicion; 0: none */
	u64 suspect_raw_ns;		/* the same instant on CLOCK_MONOTONIC_RAW */
	bool no_clock;			/* verdict: the wire is no clock; RTNL */
	u64 proved_bps;			/* line rate at which a trial took its time; 0: none */
	u32 proved_link;		/* carrier changes then */
	u8 proved_gap;			/* enum tc_psp_gap */
	bool trial_asked;		/* the next dequeue begins a trial */
	bool proof_work;		/* psp_port_work_fn() has to look at the proof */
	u64 proved_ns;			/* when the trial ended */
	bool host_is_slow;		/* it makes gap frames hardly faster than the line takes them */
	u64 early_max_ns;		/* more is no packet buffer: psp_proof_check() */
	unsigned int seen_queued;	/* psp_driver_bytes() at the last frame */
	unsigned int mark_queued;	/* when the driver has released so many, ... */
	u64 mark_ns;			/* ... this should have come; 0: nothing to see */
	struct psp_trial trial;

	struct psp_counters count;
};

/* What core/ has to know of a frame, or of a burst that leaves whole. */
struct psp_packet_info {
	struct pace_burst burst;
	u32 frame_bytes;	/* length of the largest frame */
};

static inline struct psp_entity *psp_entity_of(struct pace_class *c)
{
	return container_of(c, struct psp_entity, pace);
}

/* Returns the flow of a schedule entry, or NULL if the entry is of a class. */
static inline struct psp_flow *psp_flow_at(struct psp_entity *e)
{
	return e->is_flow ? container_of(e, struct psp_flow, entity) : NULL;
}

/* Returns the class of a schedule entry, or that of its flow. */
static inline struct psp_class *psp_class_of(struct psp_entity *e)
{
	return unlikely(e->is_flow) ? container_of(e, struct psp_flow, entity)->cl :
				      container_of(e, struct psp_class, entity);
}

/* Returns the child that holds the frames of a class, or NULL: the queue does. */
static inline struct Qdisc *psp_child_of(struct psp_entity *e)
{
	if (likely(e->is_plain) || e->is_flow)
		return NULL;
	return container_of(e, struct psp_class, entity)->child;
}

/* Returns the number of frames in the queue of a class, cl->head not counted. */
static inline u32 psp_class_qlen(const struct psp_class *cl)
{
	return cl->child ? cl->child->q.qlen : cl->entity.queue.qlen;
}

/* Returns the bytes in the queue of a class, cl->head not counted. */
static inline u64 psp_class_backlog(const struct psp_class *cl)
{
	return cl->child ? cl->child->qstats.backlog : cl->entity.backlog;
}

/* Returns the bytes of frames and gap frames that were handed to the device. */
static inline u64 psp_handed_bytes(const struct psp_qdisc *q)
{
	return q->pace.stats.sent_wire_bytes + q->pace.stats.gap_wire_bytes;
}

/* Returns how many bytes the line carries in so many ps. */
static u64 psp_line_bytes(const struct psp_qdisc *q, u64 ps)
{
	return pace_mul_div(ps, q->pace.cfg.line_rate_bps, PACE_BYTE_PS);
}

/*
 * Dumps and the fast path of the stack read qlen and backlog without the
 * lock.
 */
static inline void psp_qlen_add(struct Qdisc *sch, int frames, int bytes)
{
	WRITE_ONCE(sch->q.qlen, sch->q.qlen + frames);
	WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog + bytes);
}

/*
 * Counts a frame that begins to wait: in the queue of `e`, a class or a flow, or in the
 * child of a class, which counts it itself.
 */
static inline void psp_count_waiting(struct Qdisc *sch, struct psp_entity *e,
				     bool in_child, unsigned int bytes)
{
	if (!in_child)
		e->backlog += bytes;
	psp_qlen_add(sch, 1, bytes);
}

/* Does the class own the group that it is in? */
static inline bool psp_owns_group(const struct psp_class *cl)
{
	return cl->group && cl->group->owner == cl;
}

/* Returns the scheduler that a class and its flows are in. */
static inline struct pace_sched *psp_sched_of(struct psp_qdisc *q,
					      const struct psp_class *cl)
{
	return cl->group ? &cl->group->pace.inner : &q->pace;
}

/* Counts a class or flow whose next frame has to wait for its clock. */
static inline void psp_count_throttled(struct psp_qdisc *q, struct psp_class *cl,
				       const struct psp_entity *e)
{
	const struct pace_sched *s = unlikely(e->in_group) ? psp_sched_of(q, cl) :
							     &q->pace;

	if (pace_is_throttled(s, &e->pace))
		cl->count.throttled++;
}

static inline bool psp_child_is_throttled(const struct psp_class *cl)
{
	return !list_empty(&cl->throttled);
}

static inline bool psp_type_reserves(u8 type)
{
	return type == TC_PSP_TYPE_RT || type == TC_PSP_TYPE_NRT;
}

static inline void psp_count_drops(struct Qdisc *sch, u32 frames)
{
	WRITE_ONCE(sch->qstats.drops, sch->qstats.drops + frames);
}

/*
 * Has the kernel made this qdisc by itself (net.core.default_qdisc)?  Only
 * such a qdisc has no handle.
 */
static inline bool psp_is_default(const struct Qdisc *sch)
{
	return !sch->handle;
}

/*
 * An interrupt is a reader of RCU anyway, but lockdep does not know that, and with
 * PREEMPT_RT timers run in threads.
 */
#define PSP_TIMER_LOCKS_RCU	(IS_ENABLED(CONFIG_PREEMPT_RT) || \
				 IS_ENABLED(CONFIG_PROVE_RCU))

/*
 * The timer that runs the root when a frame is due.  docs/decisions/qdisc.md,
 * "The timer sets itself again".
 *
 * Before it runs out, dequeue has mostly told it for when to set itself again
 * (psp_timer_continue()).  The kernel programs the clock of the processor at
 * the end of that interrupt anyhow; hrtimer_start() would do so again.
 *
 * psp_timer() runs in the interrupt, without the root lock, beside a dequeue
 * of any processor.  So it reads nothing but the three members below, and
 *
 *   - `timer_lock` is held by whoever sets the timer.  While psp_timer() runs
 *     dequeue may set the timer: then it is queued, and psp_timer() leaves it.
 *   - `timer_ns` is what the timer is set to.  Dequeue reads it without the
 *     lock.  It changes before the root is run: a dequeue that still reads the
 *     instant that has come is followed by another one.
 *   - `after_ns` is used once, so a stale one cannot keep the timer running.
 *     One that is wrong runs the root in vain, or is replaced in time, because
 *     dequeue compares what it waits for with `timer_ns`.
 */
static enum hrtimer_restart psp_timer(struct hrtimer *timer)
{
	struct psp_qdisc *q = container_of(timer, struct psp_qdisc, timer);
	enum hrtimer_restart restart = HRTIMER_NORESTART;
	u64 after_ns;

	spin_lock(&q->timer_lock);
	if (likely(!hrtimer_is_queued(timer))) {
		after_ns = READ_ONCE(q->after_ns);
		WRITE_ONCE(q->after_ns, 0);
		WRITE_ONCE(q->timer_ns, after_ns);
		if (after_ns) {
			hrtimer_set_expires(timer, ns_to_ktime(after_ns));
			restart = HRTIMER_RESTART;
		}
	}
	spin_unlock(&q->timer_lock);

	if (PSP_TIMER_LOCKS_RCU)
		rcu_read_lock();
	__netif_schedule(qdisc_root(q->sch));
	if (PSP_TIMER_LOCKS_RCU)
		rcu_read_unlock();
	return restart;
}

/* Sets the timer, unless the device is going down. */
static void psp_timer_start(struct psp_qdisc *q, u64 at_ns)
{
	unsigned long flags;
	bool going_down;

	rcu_read_lock();
	going_down = test_bit(__QDISC_STATE_DEACTIVATED,
			      &qdisc_root_sleeping(q->sch)->state);
	rcu_read_unlock();
	if (going_down)
		return;
	spin_lock_irqsave(&q->timer_lock, flags);
	WRITE_ONCE(q->after_ns, 0);
	WRITE_ONCE(q->timer_ns, at_ns);
	hrtimer_start(&q->timer, ns_to_ktime(at_ns), HRTIMER_MODE_ABS_PINNED);
	spin_unlock_irqrestore(&q->timer_lock, flags);
}

/* Is the timer set to an instant, which has not come? */
static inline bool psp_timer_is_at(const struct psp_qdisc *q, u64 at_ns)
{
	return at_ns && READ_ONCE(q->timer_ns) == at_ns;
}

/* Sets the timer, if it is not set to that instant already. */
static inline void psp_timer_set(struct psp_qdisc *q, u64 at_ns)
{
	if (!psp_timer_is_at(q, at_ns))
		psp_timer_start(q, at_ns);
}

/* The timer is to set itself to after_ns when it runs out. */
static inline void psp_timer_continue(struct psp_qdisc *q, u64 after_ns)
{
	WRITE_ONCE(q->after_ns, after_ns);
}

static void psp_timer_init(struct psp_qdisc *q)
{
	spin_lock_init(&q->timer_lock);
	psp_hrtimer_setup(&q->timer, psp_timer, HRTIMER_MODE_ABS_PINNED);
}

/* With the root lock, or when nothing dequeues any more. */
static void psp_timer_cancel(struct psp_qdisc *q)
{
	hrtimer_cancel(&q->timer);
	WRITE_ONCE(q->after_ns, 0);
	WRITE_ONCE(q->timer_ns, 0);
}

/*
 * Makes the device ask again at once, because the order of frames has
 * changed.
 */
static inline void psp_run_root(struct psp_qdisc *q)
{
	psp_timer_start(q, ktime_get_ns());
}

/* Returns the ceil in force.  In a dynamic class each flow has this ceil. */
static u64 psp_class_ceil_bps(const struct psp_qdisc *q, const struct psp_class *cl)
{
	u64 line_rate_bps = q->pace.cfg.line_rate_bps;

	if (cl->opt.type == TC_PSP_TYPE_DYNAMIC) {
		line_rate_bps = min(line_rate_bps, cl->opt.total_bps ?: U64_MAX);
		return min(cl->opt.ceil_bps ?: line_rate_bps, line_rate_bps);
	}
	return cl->pace.ceil_bps ?: cl->pace.rate_bps;
}

#include "psp_netlink.c"
#include "psp_queues.c"
#include "psp_group.c"
#include "psp_flow.c"
#include "psp_launch.c"
#include "psp_class.c"
#include "psp_dev.c"
#include "psp_proof.c"

/*
 * Deadlines.  The delivery time of a frame (skb->tstamp) says when it
 * arrived.  TCP and fq use the same field on the same clock.  A delivery time
 * in the future (EDT, SO_TXTIME) is kept, and the wait counts from then.
 * Frames whose time is on another clock have no deadline.
 * docs/decisions/qdisc.md, "Deadlines: when a frame came".
 */

/* Notes the arrival of a frame. */
static void psp_set_arrival(struct sk_buff *skb, u64 now_ns)
{
	if (!skb->tstamp ||
	    (psp_has_delivery_time(skb) && (u64)skb->tstamp < now_ns))
		skb_set_delivery_time(skb, now_ns, PSP_MONOTONIC);
}

/* Has the frame waited for longer than the deadline of its class? */
static bool psp_deadline_passed(const struct sk_buff *skb, u64 deadline_ns,
				u64 now_ns)
{
	return psp_has_delivery_time(skb) && now_ns > (u64)skb->tstamp &&
	       now_ns - (u64)skb->tstamp > deadline_ns;
}

/* Removes a delivery time that has passed: the device has no use for it. */
static void psp_clear_arrival(struct sk_buff *skb, u64 now_ns)
{
	if (psp_has_delivery_time(skb) && (u64)skb->tstamp <= now_ns)
		skb_set_delivery_time(skb, 0, PSP_MONOTONIC);
}

/*
 * Bursts.  TCP and UDP hand over GSO packets of up to 64 KB (BIG TCP: more),
 * whatever the device can do.  A burst that is not cut leaves at once: no gap
 * fits between its frames.
 */

/* Most VLAN tags that the stack itself parses. */
#define PSP_TAGS_MAX	8

/*
 * Returns the length of the headers of each frame in the burst, link header
 * included.  0: this type of burst does not tell.
 */
static u32 psp_burst_header(const struct sk_buff *skb)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	struct tcphdr buffer;
	const struct tcphdr *tcp;
	int offset;

	offset = skb->encapsulation ? skb_inner_transport_offset(skb)
				    : skb_transport_offset(skb);
	if (offset <= 0)
		return 0;
	if (info->gso_type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6)) {
		tcp = skb_header_pointer(skb, offset, sizeof(buffer), &buffer);
		return tcp ? offset + __tcp_hdrlen(tcp) : 0;
	}
	if (info->gso_type & SKB_GSO_UDP_L4)
		return offset + sizeof(struct udphdr);
	return 0;
}

/* BIG TCP over IPv6 carries an option that the device removes. */
static bool psp_burst_is_jumbo(const struct sk_buff *skb)
{
	return skb->len > GSO_LEGACY_MAX_SIZE &&
	       skb->protocol == htons(ETH_P_IPV6) &&
	       ipv6_hdr(skb)->nexthdr == NEXTHDR_HOP;
}

static noinline bool psp_get_burst_info(const struct psp_qdisc *q,
					const struct sk_buff *skb, u32 tag_bytes,
					struct psp_packet_info *info)
{
	u32 header = psp_burst_header(skb), size = skb_shinfo(skb)->gso_size;
	u32 payload, last;

	if (!header || !size || header >= skb->len || psp_burst_is_jumbo(skb))
		return false;
	payload = skb->len - header;
	header += tag_bytes;
	info->burst.frames = DIV_ROUND_UP(payload, size);
	last = payload - (info->burst.frames - 1) * size;
	info->burst.len_bytes = payload + info->burst.frames * header;
	info->frame_bytes = header + min(size, payload);
	info->burst.wire_bytes = (info->burst.frames - 1) *
			   pace_wire_bytes(&q->pace, header + size) +
			   pace_wire_bytes(&q->pace, header + last);
	return true;
}

/*
 * Fills in *info as the device sends the packet: with the VLAN tag that it
 * inserts. Returns false for a burst that does not tell the lengths of its
 * frames.
 */
static inline bool psp_get_packet_info(const struct psp_qdisc *q,
				       const struct sk_buff *skb,
				       struct psp_packet_info *info)
{
	u32 tag_bytes = skb_vlan_tag_present(skb) ? VLAN_HLEN : 0;

	if (unlikely(skb_is_gso(skb)))
		return psp_get_burst_info(q, skb, tag_bytes, info);
	info->burst.frames = 1;
	info->burst.len_bytes = skb->len + tag_bytes;
	info->frame_bytes = info->burst.len_bytes;
	info->burst.wire_bytes = pace_wire_bytes(&q->pace, info->burst.len_bytes);
	return true;
}

/* Counts the VLAN tags in the frame itself, up to PSP_TAGS_MAX. */
static u32 psp_tags_within(const struct sk_buff *skb)
{
	const u32 offset = offsetof(struct ethhdr, h_proto);
	__be16 buffer;
	const __be16 *proto;
	u32 tags;

	for (tags = 0; tags < PSP_TAGS_MAX; tags++) {
		proto = skb_header_pointer(skb, offset + tags * VLAN_HLEN,
					   sizeof(buffer), &buffer);
		if (!proto || !eth_type_vlan(*proto))
			break;
	}
	return tags;
}

/*
 * Is the frame, or the largest frame of a burst, longer than the device
 * takes?  The MTU counts neither the link header nor VLAN tags: neither the
 * tag that the device inserts nor tags in the frame, because a VLAN device
 * has the MTU of its lower device.  Every frame may be longer by one tag, as
 * is_skb_forwardable() allows.
 */
static bool psp_is_long(const struct psp_qdisc *q, const struct sk_buff *skb,
			u32 frame_bytes)
{
	u32 max = q->pace.cfg.max_frame_bytes + VLAN_HLEN;
	u32 tags;

	if (likely(frame_bytes <= max))
		return false;
	if (qdisc_dev(q->sch)->type != ARPHRD_ETHER)
		return true;
	tags = psp_tags_within(skb) + !!skb_vlan_tag_present(skb);
	return !tags || frame_bytes > max + (tags - 1) * VLAN_HLEN;
}

/* May the burst leave whole? */
static bool psp_burst_stays_whole(const struct psp_qdisc *q, const struct psp_class *cl,
				  const struct sk_buff *skb)
{
	struct psp_packet_info info;

	switch (q->opt.split_gso) {
	case TC_PSP_SPLIT_GSO_ON:
		return false;
	case TC_PSP_SPLIT_GSO_AUTO:
		if (cl->pace.type != PACE_TYPE_NORMAL || cl->entity.in_group)
			return false;
		break;
	}
	return psp_get_packet_info(q, skb, &info) &&
	       info.burst.len_bytes <= q->pace.cfg.max_burst_bytes;
}

/* Counts a frame or a burst that was handed to the device: counters.h. */
static void psp_count_sent(struct psp_qdisc *q, struct psp_class *cl,
			   const struct psp_packet_info *info, s64 late_ps)
{
	bool is_paced = cl->pace.type == PACE_TYPE_PACED;
	s64 late_bytes = late_ps > 0 ? psp_line_bytes(q, late_ps) : 0;

	psp_class_count_sent(&cl->count, is_paced ? &cl->lateness : NULL,
			     &info->burst, late_bytes);
	psp_port_count_sent(&q->count, &info->burst);
}

/*
 * Queues.  A class is active in core/ while it can be asked for a frame.  Its
 * frames wait in its own FIFO, or in the child that was grafted.
 *
 * psp does not peek at children (see below).  It takes a frame out
 * early, to psp_class.head, in two cases: core/ has to know the length of the
 * next frame (guard on, type normal or nrt), or a throttled child was asked
 * and gave one. Such a frame counts in qlen and backlog of the qdisc until it
 * is sent or dropped, and no longer in those of the child.
 */

/*
 * Returns the next frame from the child of a class, or NULL.  The child may
 * drop frames meanwhile and report them (codel): psp_qlen_notify() ignores
 * the class in `serving`, and the caller sets its state.
 */
static struct sk_buff *psp_pull_child(struct psp_qdisc *q, struct psp_class *cl)
{
	struct sk_buff *skb = cl->head;

	if (skb) {
		cl->head = NULL;
		return skb;
	}
	q->serving = cl;
	skb = cl->child->dequeue(cl->child);
	q->serving = NULL;
	return skb;
}

/* Returns the next frame of a class, or NULL. */
static inline struct sk_buff *psp_pull(struct psp_qdisc *q, struct psp_entity *e)
{
	struct sk_buff *skb;

	if (psp_child_of(e))
		return psp_pull_child(q, psp_class_of(e));
	skb = __qdisc_dequeue_head(&e->queue);
	if (unlikely(!skb) && e->queue.qlen)
		skb = psp_launch_pull(e);
	if (likely(skb))
		e->backlog -= qdisc_pkt_len(skb);
	return skb;
}

/* Has core/ to know the length of the next frame of the class? */
static inline bool psp_reports_head(const struct psp_qdisc *q, const struct psp_class *cl)
{
	return unlikely(q->pace.cfg.guard_band) && !cl->entity.in_group &&
	       (cl->pace.type == PACE_TYPE_NORMAL || cl->pace.type == PACE_TYPE_NRT);
}

static bool psp_child_has_more(struct psp_qdisc *q, struct psp_class *cl)
{
	if (cl->head)
		return true;
	if (!psp_reports_head(q, cl))
		return cl->child->q.qlen > 0;
	if (cl->child->q.qlen)
		cl->head = psp_pull_child(q, cl);
	return cl->head;
}

/*
 * Has the class or flow another frame?  With guard on, takes it out of the
 * child.
 */
static inline bool psp_has_more(struct psp_qdisc *q, struct psp_entity *e)
{
	return psp_child_of(e) ? psp_child_has_more(q, psp_class_of(e)) :
				 e->queue.qlen > 0;
}

/* Reports the length of the next frame to core/, if it is known. */
static void psp_report_head(struct psp_qdisc *q, struct psp_class *cl)
{
	const struct sk_buff *skb = NULL;
	struct psp_packet_info info;

	if (cl->entity.in_group)
		return;
	if (psp_child_of(&cl->entity))
		skb = cl->head;
	else if (psp_reports_head(q, cl))
		skb = cl->entity.queue.head;
	if (skb && psp_get_packet_info(q, skb, &info))
		pace_set_head(&q->pace, &cl->pace, info.burst.wire_bytes);
}

/*
 * Throttled children (netem, tbf, fq).
 * docs/decisions/qdisc.md, "Children that hold packets back".
 *
 * A child that holds frames but gives none sets a timer of its own, and runs
 * the root when the timer fires.  psp cannot see which child it was.  The
 * class of such a child becomes inactive and joins the list of throttled
 * classes.  psp asks them again, in rotation, whenever the root runs:
 *
 *   - While the wire is busy, each dequeue asks PSP_ASK_BUSY of them before it
 *     decides which class sends.  A ready child among k throttled ones is asked
 *     within k / PSP_ASK_BUSY frames, gap frames included.
 *   - When nothing can be sent, a dequeue asks up to PSP_ASK_IDLE of them at once.
 *     If there are more, psp_ask_timer() asks the others, PSP_ASK_IDLE every
 *     PSP_ASK_PAUSE_NS, until it has asked each of them once.
 *
 * So no child is asked unless the root runs, and the wait of a child does not
 * depend on the backlog of other classes.
 */

/* Cost of each frame on a busy wire: two calls that may return NULL. */
#define PSP_ASK_BUSY		2
/* Bounds the time under the lock, as PSP_MISSES does. */
#define PSP_ASK_IDLE		64
/* Leaves the lock and the processor to others between two rounds. */
#define PSP_ASK_PAUSE_NS	(50 * NSEC_PER_USEC)

/* Marks the class throttled: it has frames, but its child gives none now. */
static void psp_throttle(struct psp_qdisc *q, struct psp_class *cl)
{
	if (psp_child_is_throttled(cl))
		return;
	list_add_tail(&cl->throttled, &q->throttled);
	q->throttled_count++;
	q->count.child_retries++;
}

/* Activates a class that has frames; throttles it if its child gives none. */
static void psp_class_activate(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	if (!psp_has_more(q, &cl->entity)) {
		if (psp_class_qlen(cl))
			psp_throttle(q, cl);
		return;
	}
	if (cl->entity.is_shared)
		psp_report_waiting(cl);
	psp_entity_activate(q, &cl->entity, now_ns);
	psp_report_head(q, cl);
	psp_count_throttled(q, cl, &cl->entity);
}

/*
 * The class has no frame to send now.  Deactivates it, and throttles it if
 * its child still holds some.
 */
static void psp_class_set_empty(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	psp_class_deactivate(q, cl, now_ns);
	if (psp_class_qlen(cl))
		psp_throttle(q, cl);
}

/*
 * Asks the child of a throttled class.  A frame that it gives waits in
 * psp_class.head.
 */
static bool psp_ask(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	cl->head = psp_pull_child(q, cl);
	if (cl->head) {
		psp_unthrottle(q, cl);
		psp_report_backlog(q, cl, now_ns);
		psp_class_activate(q, cl, now_ns);
		return true;
	}
	if (cl->child->q.qlen) {
		list_move_tail(&cl->throttled, &q->throttled);
		q->count.child_retries++;
	} else {
		psp_unthrottle(q, cl);
	}
	return false;
}

/*
 * Asks up to `most` throttled children.  Returns true if a class became
 * active.
 */
static bool psp_ask_some(struct psp_qdisc *q, u32 most, u64 now_ns)
{
	bool ready = false;

	for (most = min(most, q->throttled_count); most; most--) {
		if (list_empty(&q->throttled))
			break;
		ready |= psp_ask(q, list_first_entry(&q->throttled,
						     struct psp_class,
						     throttled), now_ns);
	}
	return ready;
}

/* Called when dequeue begins. */
static void psp_ask_busy(struct psp_qdisc *q, u64 now_ns)
{
	psp_ask_some(q, PSP_ASK_BUSY, now_ns);
}

/* Called when nothing can be sent.  Returns true if a class became active. */
static bool psp_ask_idle(struct psp_qdisc *q, u64 now_ns)
{
	return psp_ask_some(q, PSP_ASK_IDLE, now_ns);
}

static void psp_ask_set_timer(struct psp_qdisc *q)
{
	if (!hrtimer_is_queued(&q->ask_timer))
		hrtimer_start(&q->ask_timer, ns_to_ktime(PSP_ASK_PAUSE_NS),
			      HRTIMER_MODE_REL_PINNED_SOFT);
}

/*
 * Called when dequeue ends without a frame, after psp_ask_idle().  The timer
 * does not run the root: each run of the root may stand for the timer of a
 * child, and dequeue could not tell the two apart.  The round begins with the
 * whole list, because the child whose timer fired may have been asked before
 * it fired.
 */
static void psp_ask_others(struct psp_qdisc *q)
{
	if (q->throttled_count <= PSP_ASK_IDLE)
		return;
	q->ask_left = q->throttled_count;
	psp_ask_set_timer(q);
}

/*
 * psp is the root of the device or of its transmit queue, so the root lock is
 * its own. A class may be deleted while no lock is held; the qdisc stays
 * until psp_ask_stop() returns.
 */
static enum hrtimer_restart psp_ask_timer(struct hrtimer *timer)
{
	struct psp_qdisc *q = container_of(timer, struct psp_qdisc, ask_timer);
	struct sk_buff *dropped;
	u32 most;
	bool ready;

	rcu_read_lock();
	spin_lock(qdisc_lock(q->sch));
	most = min_t(u32, q->ask_left, PSP_ASK_IDLE);
	ready = psp_ask_some(q, most, ktime_get_ns());
	q->ask_left = min(q->ask_left - most, q->throttled_count);
	if (q->ask_left)
		psp_ask_set_timer(q);
	/* Free them here: the root may not run for long. */
	dropped = psp_take_dropped(q->sch);
	spin_unlock(qdisc_lock(q->sch));
	psp_free_dropped(q->sch, dropped);
	if (ready)
		__netif_schedule(qdisc_root(q->sch));
	rcu_read_unlock();
	return HRTIMER_NORESTART;
}

static void psp_ask_init(struct psp_qdisc *q)
{
	INIT_LIST_HEAD(&q->throttled);
	psp_hrtimer_setup(&q->ask_timer, psp_ask_timer,
			  HRTIMER_MODE_REL_PINNED_SOFT);
}

/* Without the root lock, because the timer takes it. */
static void psp_ask_stop(struct psp_qdisc *q)
{
	hrtimer_cancel(&q->ask_timer);
}

/*
 * Enqueue.  The stack hands over a packet: which class, in which frames, in
 * which queue.
 */

/* What filters and their actions say of a packet that goes to no class. */
enum psp_verdict {
	PSP_VERDICT_DROP = 1,	/* an action drops it */
	PSP_VERDICT_TAKEN,	/* an action took it: free our reference */
	PSP_VERDICT_CONSUMED,	/* an action took it with our reference */
};

/* Returns the class of packets that no filter assigns. */
static struct psp_class *psp_default_class(struct Qdisc *sch, struct psp_qdisc *q)
{
	struct psp_class *cl;

	cl = psp_class_find(q, TC_H_MAKE(sch->handle, q->opt.default_minor));
	if (cl)
		return cl;
	q->count.unclassified_frames++;
	return &q->default_class;
}

/*
 * Asks the filters, whose actions may push or pop a tag.  Returns a class,
 * NULL if they know none, or the ERR_PTR() of a verdict below 0.
 */
static noinline struct psp_class *psp_filter(struct sk_buff *skb, struct psp_qdisc *q,
					     const struct tcf_proto *filters)
{
	struct psp_class *cl = NULL;
	struct tcf_result res = {};
	u32 len_bytes = skb->len;

	switch (tcf_classify(skb, NULL, filters, &res, false)) {
	case TC_ACT_SHOT:
		return ERR_PTR(-PSP_VERDICT_DROP);
	case TC_ACT_STOLEN:
	case TC_ACT_QUEUED:
	case TC_ACT_TRAP:
		return ERR_PTR(-PSP_VERDICT_TAKEN);
	case TC_ACT_CONSUMED:
		return ERR_PTR(-PSP_VERDICT_CONSUMED);
	case TC_ACT_UNSPEC:
		break;
	default:
		/*
		 * The class may have been added after the filter: look it up
		 * by its id.
		 */
		cl = res.class ? (struct psp_class *)res.class :
				 psp_class_find(q, res.classid);
	}
	psp_change_pkt_len(skb, skb->len - len_bytes);
	return cl;
}

/*
 * Classifies in one step: classes have no filters of their own.  A class id
 * in skb->priority (SO_PRIORITY, cgroups) comes first, as in other classful
 * qdiscs.  Returns a class, or what psp_filter() says of a packet for none.
 */
static inline struct psp_class *psp_classify(struct sk_buff *skb, struct Qdisc *sch,
					     struct psp_qdisc *q)
{
	const struct tcf_proto *filters;
	struct psp_class *cl = NULL;

	if (TC_H_MAJ(skb->priority) == sch->handle)
		cl = psp_class_find(q, skb->priority);
	if (cl)
		return cl;
	filters = rcu_dereference_bh(q->filters);
	if (filters)
		cl = psp_filter(skb, q, filters);
	return cl ?: psp_default_class(sch, q);
}

/*
 * Returns the wire bytes that core/ has to know at arrival: of type rt; else
 * 0.
 */
static u32 psp_reserved_wire_bytes(const struct psp_qdisc *q,
				   const struct psp_class *cl,
				   const struct sk_buff *skb)
{
	struct psp_packet_info info;

	if (cl->pace.type != PACE_TYPE_RT || !psp_get_packet_info(q, skb, &info))
		return 0;
	return info.burst.wire_bytes;
}

/* Tells core/ of a frame that is now in the FIFO: of type rt, or the first one. */
static noinline void psp_report_arrival(struct psp_qdisc *q, struct psp_class *cl,
					const struct sk_buff *skb)
{
	u32 wire_bytes = psp_reserved_wire_bytes(q, cl, skb);
	u64 now_ns = ktime_get_ns();

	if (wire_bytes)
		pace_arrived(&q->pace, &cl->pace, wire_bytes, now_ns);
	if (!cl->pace.active)
		psp_class_activate(q, cl, now_ns);
}

/* Counts a frame that the queue of a class refused. */
static void psp_count_refused(struct Qdisc *sch, struct psp_class *cl)
{
	struct psp_qdisc *q = qdisc_priv(sch);

	psp_count_drops(sch, 1);
	psp_count_cause(q, cl, drop_child);
}

/* Queues a frame in the FIFO of `cl`. */
static inline int psp_enqueue_fifo(struct sk_buff *skb, struct Qdisc *sch,
				   struct psp_class *cl, struct sk_buff **to_free)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	unsigned int bytes = qdisc_pkt_len(skb);
	struct psp_entity *e = &cl->entity;

	if (unlikely(e->queue.qlen >= e->limit)) {
		psp_count_refused(sch, cl);
		__qdisc_drop(skb, to_free);
		return NET_XMIT_DROP;
	}
	__qdisc_enqueue_tail(skb, &e->queue);
	psp_count_waiting(sch, e, false, bytes);
	if (!e->pace.active || e->pace.type == PACE_TYPE_RT)
		psp_report_arrival(q, cl, skb);
	return NET_XMIT_SUCCESS;
}

/*
 * Queues a frame in the child of `cl`.  The child may call psp_enqueue()
 * (netem duplicates) or drop frames it holds, so the state of the class is
 * read afterwards.
 */
static int psp_enqueue_child(struct sk_buff *skb, struct Qdisc *sch,
			     struct psp_class *cl, struct sk_buff **to_free)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	unsigned int bytes = qdisc_pkt_len(skb);
	u32 wire_bytes = psp_reserved_wire_bytes(q, cl, skb);
	int ret = qdisc_enqueue(skb, cl->child, to_free);

	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret))
			psp_count_refused(sch, cl);
		return ret;
	}

	psp_count_waiting(sch, &cl->entity, true, bytes);
	/* Dequeue asks the child again, and then reports all its frames. */
	if (psp_child_is_throttled(cl))
		return NET_XMIT_SUCCESS;
	if (wire_bytes)
		pace_arrived(&q->pace, &cl->pace, wire_bytes, ktime_get_ns());
	if (!cl->pace.active && cl->child->q.qlen)
		psp_class_activate(q, cl, ktime_get_ns());
	return NET_XMIT_SUCCESS;
}

static int psp_enqueue_frame(struct sk_buff *skb, struct Qdisc *sch,
			     struct psp_class *cl, struct psp_flow *f,
			     struct sk_buff **to_free)
{
	if (f)
		return psp_flow_enqueue(skb, sch, f, to_free);
	if (!cl->entity.is_plain && cl->child)
		return psp_enqueue_child(skb, sch, cl, to_free);
	if (!cl->entity.is_plain && cl->opt.txtime)
		return psp_launch_enqueue(skb, sch, cl, to_free);
	return psp_enqueue_fifo(skb, sch, cl, to_free);
}

/*
 * Cuts a burst into frames and queues them.  Each frame that the queue
 * refuses is counted; the sender is told only if all are refused.
 */
static int psp_enqueue_burst(struct sk_buff *skb, struct Qdisc *sch,
			     struct psp_class *cl, struct psp_flow *f,
			     struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb);
	unsigned int burst_bytes = qdisc_pkt_len(skb);
	struct psp_qdisc *q = qdisc_priv(sch);
	unsigned int frames = 0, bytes = 0;
	struct sk_buff *segs, *next;

	segs = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs)) {
		psp_count_cause(q, cl, drop_segment);
		return qdisc_drop(skb, sch, to_free);
	}
	q->count.bursts_cut++;

	skb_list_walk_safe(segs, segs, next) {
		unsigned int seg_bytes = segs->len;

		skb_mark_not_on_list(segs);
		psp_note_pkt_len(segs);
		if (psp_enqueue_frame(segs, sch, cl, f, to_free) ==
		    NET_XMIT_SUCCESS) {
			frames++;
			bytes += seg_bytes;
		}
	}

	if (!frames) {
		kfree_skb(skb);
		return NET_XMIT_DROP;
	}
	/* The qdiscs above counted one packet of the length of the burst. */
	qdisc_tree_reduce_backlog(sch, 1 - frames, burst_bytes - bytes);
	consume_skb(skb);
	return NET_XMIT_SUCCESS;
}

/* Carries out what a filter's action said of a packet for no class. */
static noinline int psp_obey(struct sk_buff *skb, struct Qdisc *sch,
			     enum psp_verdict verdict, struct sk_buff **to_free)
{
	struct psp_qdisc *q = qdisc_priv(sch);

	if (verdict == PSP_VERDICT_CONSUMED)
		return NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
	__qdisc_drop(skb, to_free);
	if (verdict == PSP_VERDICT_TAKEN)
		return NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
	q->count.drop_filter++;
	psp_count_drops(sch, 1);
	return NET_XMIT_SUCCESS | __NET_XMIT_BYPASS;
}

/*
 * Prepares a packet for a class that is not plain: its launch time, its arrival,
 * its flow.  Returns false if it is to be dropped.
 */
static bool psp_prepare(struct sk_buff *skb, struct psp_qdisc *q, struct psp_class *cl,
			struct psp_flow **f, struct sk_buff **to_free)
{
	if (cl->opt.txtime) {
		u64 now_ns = ktime_get_ns();

		psp_launch_follow(q, now_ns);
		if (!psp_launch_accept(q, cl, skb, now_ns))
			return false;
	}
	if (cl->opt.deadline_ns)
		psp_set_arrival(skb, ktime_get_ns());
	/* Before the burst is cut: its frames may have no socket. */
	if (cl->flows)
		*f = psp_flow_of(q, cl, skb, to_free);
	return true;
}

/* Queues a packet of any kind in a class of any type. */
static noinline int psp_enqueue_packet(struct sk_buff *skb, struct Qdisc *sch,
				       struct psp_class *cl, struct sk_buff **to_free)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_flow *f = NULL;

	if (!cl->entity.is_plain && !psp_prepare(skb, q, cl, &f, to_free))
		return qdisc_drop(skb, sch, to_free);
	if (skb_is_gso(skb) && !psp_burst_stays_whole(q, cl, skb))
		return psp_enqueue_burst(skb, sch, cl, f, to_free);
	return psp_enqueue_frame(skb, sch, cl, f, to_free);
}

static int psp_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		       struct sk_buff **to_free)
{
	struct psp_class *cl = psp_classify(skb, sch, qdisc_priv(sch));

	if (IS_ERR(cl))
		return psp_obey(skb, sch, -PTR_ERR(cl), to_free);
	/* Most frames need no more than this; the rest is out of their way. */
	if (likely(!skb_is_gso(skb) && cl->entity.is_plain))
		return psp_enqueue_fifo(skb, sch, cl, to_free);
	return psp_enqueue_packet(skb, sch, cl, to_free);
}

/* Dequeue.  The device asks for a frame: psp carries out what core/ decides. */

/*
 * Gap frames (paper 000, 3.2) fill the wire for the length of a gap, and the
 * next port discards them.  Types: docs/man/tc-psp.8, "gap".
 * psp_gap_template() makes the largest one; what is sent are clones, trimmed
 * to the length of the gap, that share its bytes.
 */

/*
 * Returns a frame that takes gap_bytes on the wire, or NULL without memory.
 * core/ asks for at least a smallest frame and at most a largest.
 */
static struct sk_buff *psp_gap_frame(struct psp_qdisc *q, u32 gap_bytes)
{
	struct sk_buff *skb = skb_clone(q->gap, GFP_ATOMIC);

	if (unlikely(!skb))
		return NULL;

	skb_trim(skb, gap_bytes - q->pace.cfg.overhead_bytes);
	psp_note_pkt_len(skb);
	return skb;
}

/* Time until the next attempt after a failed allocation. */
#define PSP_RETRY_NS		(50 * NSEC_PER_USEC)
/*
 * Bounds one call of dequeue: classes that gave no frame, and frames dropped
 * at their time.  The next call goes on.
 */
#define PSP_MISSES		64

/*
 * May the frame be sent?  If not, counts the drop and gives its reason.
 * Frames longer than the device takes were queued before the MTU shrank, or
 * their sender ignores it.
 */
static bool psp_may_send(struct psp_qdisc *q, struct psp_class *cl,
			 struct sk_buff *skb, const struct psp_packet_info *info,
			 u64 now_ns, enum psp_drop_reason *reason)
{
	if (unlikely(psp_is_long(q, skb, info->frame_bytes))) {
		psp_count_cause(q, cl, drop_long);
		*reason = PSP_DROP_LONG;
		return false;
	}
	if (likely(cl->entity.is_plain))
		return true;
	if (cl->opt.deadline_ns &&
	    psp_deadline_passed(skb, cl->opt.deadline_ns, now_ns)) {
		psp_count_cause(q, cl, drop_late);
		*reason = PSP_DROP_LATE;
		return false;
	}
	if (cl->opt.txtime && psp_launch_missed(q, cl, skb, now_ns)) {
		psp_count_cause(q, cl, drop_txtime_missed);
		*reason = PSP_DROP_LATE;
		return false;
	}
	return true;
}

/*
 * Drops a frame at its time.  No clock advances: the next frame takes its
 * place.
 */
static void psp_drop_due(struct Qdisc *sch, struct psp_entity *e,
			 struct sk_buff *skb, u32 wire_bytes, u64 now_ns,
			 enum psp_drop_reason reason)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_class *cl = psp_class_of(e);

	psp_count_drops(sch, 1);
	psp_dequeue_drop(sch, skb, reason);
	if (e->is_flow) {
		if (!e->queue.qlen)
			psp_entity_deactivate(q, e, now_ns);
		return;
	}
	if (psp_has_more(q, &cl->entity)) {
		pace_dropped(&q->pace, &e->pace, wire_bytes, now_ns);
		psp_report_head(q, cl);
		if (psp_launches(cl))
			psp_launch_activate(q, cl, now_ns);
		return;
	}
	psp_class_set_empty(q, cl, now_ns);
}

/*
 * Reports a frame or burst that is sent to core/, at one place: the compiler
 * inlines it.
 */
static void psp_sent(struct psp_qdisc *q, struct psp_class *cl, struct psp_entity *e,
		     const struct psp_packet_info *info, u64 now_ns)
{
	u64 borrowed = q->pace.stats.borrowed_frames;
	bool more = psp_has_more(q, e);
	/* The next frame has a time of its own. */
	bool launches = unlikely(!cl->entity.is_plain) && more && psp_launches(cl);

	if (unlikely(e->is_shared))
		psp_report_waiting(cl);
	if (unlikely(e->in_group)) {
		psp_group_sent(q, e, &info->burst, more, now_ns);
		borrowed = q->pace.stats.borrowed_frames;
	} else {
		pace_sent_burst(&q->pace, &e->pace, info->burst.len_bytes,
				info->burst.wire_bytes, info->burst.frames,
				more && !launches, now_ns);
	}
	if (launches) {
		psp_launch_activate(q, cl, now_ns);
		return;
	}
	if (unlikely(q->pace.stats.borrowed_frames != borrowed))
		cl->count.borrowed_frames += q->pace.stats.borrowed_frames - borrowed;

	if (more) {
		if (unlikely(q->pace.cfg.guard_band || !e->is_plain) && !e->is_flow)
			psp_report_head(q, cl);
		psp_count_throttled(q, cl, e);
	} else if (psp_child_of(e)) {
		psp_class_set_empty(q, cl, now_ns);
	}
}

/* Removes times that the device has no use for, of a class that is not plain. */
static void psp_clear_times(const struct psp_class *cl, struct sk_buff *skb, u64 now_ns)
{
	if (cl->opt.deadline_ns)
		psp_clear_arrival(skb, now_ns);
	if (cl->opt.txtime)
		psp_launch_clear(skb);
}

/*
 * Takes the next frame out of a class or flow, or of one of the group whose node `e`
 * is.  Returns NULL if there is none that may be sent.
 */
static struct sk_buff *psp_serve(struct Qdisc *sch, struct psp_entity *e,
				 s64 late_ps, u64 now_ns)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	enum psp_drop_reason reason;
	struct psp_packet_info info;
	struct psp_class *cl;
	struct psp_flow *f;
	struct sk_buff *skb;

	if (unlikely(e->is_node)) {
		e = psp_group_next(q, e, &late_ps);
		if (!e)
			return NULL;
	}
	f = psp_flow_at(e);
	cl = psp_class_of(e);
	skb = f ? psp_flow_pull(f) : psp_pull(q, e);
	if (unlikely(!skb)) {
		psp_class_set_empty(q, cl, now_ns);
		return NULL;
	}

	psp_qlen_add(sch, -1, -qdisc_pkt_len(skb));
	if (unlikely(!psp_get_packet_info(q, skb, &info))) {
		psp_count_cause(q, cl, drop_segment);
		/* Its arrival was not reported either. */
		psp_drop_due(sch, e, skb, 0, now_ns, PSP_DROP_SEGMENT);
		return NULL;
	}
	if (unlikely(!psp_may_send(q, cl, skb, &info, now_ns, &reason))) {
		psp_drop_due(sch, e, skb, info.burst.wire_bytes, now_ns,
			     reason);
		return NULL;
	}

	psp_sent(q, cl, e, &info, now_ns);
	psp_count_sent(q, cl, &info, late_ps);
	if (unlikely(!cl->entity.is_plain))
		psp_clear_times(cl, skb, now_ns);
	bstats_update(&cl->bstats, skb);
	if (unlikely(e->in_group))
		psp_group_count_sent(cl, skb, &info);
	qdisc_bstats_update(sch, skb);
	return skb;
}

static struct sk_buff *psp_send_gap(struct psp_qdisc *q, u32 gap_bytes,
				    u64 now_ns)
{
	struct sk_buff *skb = psp_gap_frame(q, gap_bytes);

	if (unlikely(!skb)) {
		/* The byte clock stands still meanwhile: only time is lost. */
		q->count.gap_failed++;
		psp_timer_set(q, now_ns + PSP_RETRY_NS);
		return NULL;
	}
	pace_gap_sent(&q->pace, gap_bytes);
	return skb;
}

/* Proof that the wire is a clock: psp_proof.c, "Trials". */

/* Wakes the root after pause_ns, or when a frame is due before. */
static void psp_trial_sleep(struct psp_qdisc *q, u64 pause_ns, u64 now_ns)
{
	u64 until_ns = q->sch->q.qlen ? q->pace.quiet_until_ns : 0;

	psp_timer_set(q, until_ns ? min(until_ns, now_ns + pause_ns) : now_ns + pause_ns);
}

static struct sk_buff *psp_trial_frame(struct psp_qdisc *q, u64 now_ns)
{
	u32 gap_bytes = pace_wire_bytes(&q->pace, q->pace.cfg.max_frame_bytes);
	struct sk_buff *skb = psp_gap_frame(q, gap_bytes);
	struct psp_trial *t = &q->trial;

	if (unlikely(!skb)) {
		q->count.gap_failed++;
		psp_trial_sleep(q, PSP_RETRY_NS, now_ns);
		return NULL;
	}
	t->left_bytes -= min_t(u64, t->left_bytes, gap_bytes);
	pace_gap_sent(&q->pace, gap_bytes);
	return skb;
}

/*
 * No frame is due now.  Returns the next gap frame of a trial, or NULL.  The
 * stack flushes what it has collected to the driver before it asks again.
 */
static noinline struct sk_buff *psp_trial(struct psp_qdisc *q, u64 now_ns)
{
	struct psp_trial *t = &q->trial;

	switch (t->state) {
	case PSP_TRIAL_SEND:
		if (!psp_trial_has_room(q, t->left_bytes, now_ns)) {
			psp_trial_abandon(q);
			return NULL;
		}
		if (t->left_bytes)
			return psp_trial_frame(q, now_ns);
		t->state = PSP_TRIAL_FLUSH;
		break;
	case PSP_TRIAL_HOST:
		if (psp_trial_host(q, now_ns))
			return psp_trial_frame(q, now_ns);
		return NULL;
	case PSP_TRIAL_HOST_FLUSH:
		t->state = PSP_TRIAL_HOST;
		break;
	default:
		if (psp_trial_drained(q, now_ns) && psp_trial_ended(q, now_ns))
			return NULL;
		if (t->state == PSP_TRIAL_FLUSH || t->state == PSP_TRIAL_DRAIN) {
			psp_trial_sleep(q, PSP_TRIAL_LOOK_NS, now_ns);
			return NULL;
		}
	}
	__netif_schedule(q->sch);
	return NULL;
}

/*
 * The timer sets itself again only for an instant as far behind the next: the
 * root runs and a frame is sent within this time.
 */
#define PSP_TIMER_APART_NS	(5 * NSEC_PER_USEC)

/* Carries out WAIT: sets the timer that runs the root. */
static void psp_wait(struct psp_qdisc *q, u64 until_ns, u64 now_ns)
{
	const struct pace_config *cfg = &q->pace.cfg;
	u64 after_ns;

	/* Elsewhere a gap frame comes after a frame; guard counts decisions. */
	q->ahead = cfg->mode == PACE_MODE_TIMER && !cfg->guard_band;
	psp_timer_set(q, psp_launch_wait_ns(q, until_ns, now_ns));
	if (q->watch.line_rate_bps && cfg->mode != PACE_MODE_TIMER)
		psp_line_wait(&q->watch, until_ns + q->pace.stats.lead_ns);
	/* The frame for which psp waits now, and one to wait for after it. */
	if (!q->ahead || q->sch->q.qlen < 2)
		return;
	after_ns = pace_after_ns(&q->pace);
	if (after_ns > until_ns + PSP_TIMER_APART_NS)
		psp_timer_continue(q, after_ns);
}

/*
 * Should psp decide what comes after a frame while the clock is at hand?  The
 * stack asks for another one at once, and psp_waits() then answers.  It is in
 * vain where a frame follows a frame, so this is done as long as psp waits
 * after each.
 */
static inline bool psp_decides_ahead(const struct psp_qdisc *q)
{
	return q->ahead && q->sch->q.qlen && !q->throttled_count;
}

/*
 * Returns the frame for the wire, or NULL.  The core is asked at one place, so
 * that the compiler inlines its decision once.
 */
static __always_inline struct sk_buff *psp_next_frame(struct Qdisc *sch, u64 now_ns)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct sk_buff *skb = NULL;
	bool asked = false;
	u32 misses = 0;

	if (q->throttled_count)
		psp_ask_busy(q, now_ns);
	for (;;) {
		struct pace_decision d = pace_next(&q->pace, now_ns);

		if (skb) {
			q->ahead = d.verdict == PACE_WAIT;
			if (q->ahead)
				psp_wait(q, d.until_ns, now_ns);
			return skb;
		}
		if (d.verdict == PACE_SEND) {
			skb = psp_serve(sch, psp_entity_of(d.cls), d.late_ps,
					now_ns);
			if (likely(skb)) {
				if (!psp_decides_ahead(q))
					return skb;
				/* Mostly core/ knows already that it waits. */
				if (likely(q->pace.quiet_until_ns)) {
					psp_wait(q, q->pace.quiet_until_ns, now_ns);
					return skb;
				}
				continue;
			}
			if (++misses < PSP_MISSES)
				continue;
			psp_timer_set(q, now_ns);
			return NULL;
		}
		/*
		 * A gap frame keeps the wire busy: psp_ask_busy() has asked
		 * enough.
		 */
		if (d.verdict == PACE_GAP)
			return psp_send_gap(q, d.gap_bytes, now_ns);
		if (!asked) {
			asked = true;
			if (q->throttled_count && psp_ask_idle(q, now_ns))
				continue;
		}
		if (d.verdict == PACE_WAIT)
			psp_wait(q, d.until_ns, now_ns);
		else
			psp_line_idle(&q->watch);
		psp_ask_others(q);
		return NULL;
	}
}

/*
 * Does the answer WAIT still stand?  core/ forgets the answer when anything
 * changes, and the timer for it runs.  The stack asks after each frame that
 * it queues and twice after each that it sends, so this reads no clock: if
 * the instant has come, the timer has run out.  A throttled child is asked
 * each time.
 */
static inline bool psp_waits(struct psp_qdisc *q)
{
	return psp_timer_is_at(q, q->pace.quiet_until_ns) && !q->throttled_count;
}

static inline bool psp_is_on_trial(const struct psp_qdisc *q)
{
	return unlikely(q->trial.state != PSP_TRIAL_OFF || q->trial_asked);
}

static noinline struct sk_buff *psp_decide(struct Qdisc *sch)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	bool on_trial = psp_is_on_trial(q);
	struct sk_buff *skb;
	u64 now_ns;

	/* The stack asks once more after the last frame of each run. */
	if (unlikely(q->launch_classes)) {
		if (psp_handover(q) || (!on_trial && psp_waits(q)))
			return NULL;
	}
	if (!sch->q.qlen && !on_trial) {
		psp_line_idle(&q->watch);
		return NULL;
	}
	if (unlikely(psp_share_queues(q) != q->line.queues))
		psp_port_work_schedule();
	if (q->pace.cfg.aligned && q->aligned_at != q->pace.stats.periods)
		psp_port_align(q);
	now_ns = ktime_get_ns();
	if (unlikely(q->tai_classes))
		psp_launch_follow(q, now_ns);
	if (unlikely(psp_is_unproved(q)))
		psp_trial_begin(q, now_ns);
	skb = psp_next_frame(sch, now_ns);
	if (!skb && unlikely(q->trial.state != PSP_TRIAL_OFF))
		skb = psp_trial(q, now_ns);
	if (!skb)
		return NULL;
	/* Among several transmit queues the device would choose the order. */
	skb_set_queue_mapping(skb, q->queue);
	if (q->watch.line_rate_bps)
		psp_watch_handed(q, skb, now_ns);
	if (unlikely(q->launch_classes) && !on_trial)
		psp_handed_over(q);
	return skb;
}

/* Mostly psp waits: the stack asks after each frame that it queues or sends. */
static struct sk_buff *psp_dequeue(struct Qdisc *sch)
{
	struct psp_qdisc *q = qdisc_priv(sch);

	if (psp_waits(q) && likely(!q->launch_classes) && !psp_is_on_trial(q))
		return NULL;
	return psp_decide(sch);
}

/* The life of a qdisc and of the module. */

/*
 * Refuses parents that count the frames they get from their child: no queue
 * holds a gap frame, so their count would drop below zero.  psp may be root,
 * or below mq, whose children are each the root of one transmit queue.  While
 * the kernel makes mq or mqprio it makes default qdiscs as well; the parent
 * is not yet the root of the device, and nothing else makes default qdiscs.
 */
static int psp_check_parent(struct Qdisc *sch, struct netlink_ext_ack *extack)
{
	struct Qdisc *root = rtnl_dereference(qdisc_dev(sch)->qdisc);

	if (sch->parent == TC_H_ROOT || psp_is_default(sch))
		return 0;
	if (root && !strcmp(root->ops->id, "mq") &&
	    root->handle == TC_H_MAJ(sch->parent))
		return 0;
	psp_set_extack(extack, "parent %x:%x: expected root, or a class of mq",
		       TC_H_MAJ(sch->parent) >> 16, TC_H_MIN(sch->parent));
	return -EOPNOTSUPP;
}

/*
 * Initialises the scheduler, with room for the first classes, and the default
 * class.
 */
static int psp_init_core(struct psp_qdisc *q, const struct pace_config *cfg,
			 struct netlink_ext_ack *extack)
{
	/* Quantum 0: one largest frame. */
	const struct psp_class_options best_effort = { .type = TC_PSP_TYPE_NORMAL };
	enum pace_error refused;
	int err;

	q->capacity = 16;
	q->storage = kvzalloc(pace_storage_bytes(q->capacity), GFP_KERNEL_ACCOUNT);
	if (!q->storage)
		return -ENOMEM;
	refused = pace_init(&q->pace, cfg, q->storage, q->capacity,
			    ktime_get_ns());
	if (refused)
		return psp_extack_port(extack, refused, cfg, 0, NULL);
	err = q->opt.shared ? psp_queue_join(q, extack) : 0;
	return err ?: psp_class_setup(q, &q->default_class, q->sch->handle, &best_effort,
				      extack);
}

/* After a failure the kernel calls psp_destroy(), and may call psp_reset(). */
static int psp_init(struct Qdisc *sch, struct nlattr *attr,
		    struct netlink_ext_ack *extack)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_port port;
	int err;

	q->sch = sch;
	INIT_LIST_HEAD(&q->link);
	psp_ask_init(q);
	psp_timer_init(q);


	err = psp_check_parent(sch, extack);
	if (err)
		return err;
	/* Also on a device with several queues: see psp_dequeue(). */
	sch->flags |= TCQ_F_ONETXQUEUE;
	q->queue = sch->dev_queue - qdisc_dev(sch)->_tx;

	psp_default_options(qdisc_dev(sch), &q->opt);
	err = psp_parse_options(attr, &q->opt, extack);
	if (err)
		return err;
	if (q->opt.shared && (sch->parent == TC_H_ROOT || psp_is_default(sch))) {
		psp_set_extack(extack, "shared on: expected a class of mq as parent");
		return -EOPNOTSUPP;
	}
	err = psp_port_resolve(q, &q->opt, &port, false, extack);
	if (err)
		return err;
	err = psp_port_gap(q, &port, &q->gap);
	if (err)
		return err;
	q->line = port.line;
	err = tcf_block_get(&q->block, &q->filters, sch, extack);
	if (err)
		return err;
	err = qdisc_class_hash_init(&q->classes);
	if (err)
		return err;
	err = psp_init_core(q, &port.pace, extack);
	if (err)
		return err;
	psp_watch_start(q);
	psp_list_add(q);
	psp_proof_ask(q, false);
	return 0;
}

/* Computes and allocates everything before it changes anything. */
static int psp_change(struct Qdisc *sch, struct nlattr *attr,
		      struct netlink_ext_ack *extack)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_options opt = q->opt;
	struct psp_port port;
	int err;

	err = psp_parse_options(attr, &opt, extack);
	if (err)
		return err;
	if (opt.shared != q->opt.shared) {
		psp_set_extack(extack, "shared: expected %s, as this psp was made",
			       q->opt.shared ? "on" : "off");
		return -EOPNOTSUPP;
	}
	err = psp_port_resolve(q, &opt, &port, false, extack);
	if (err)
		return err;
	err = psp_port_apply(q, &opt, &port, false, extack);
	if (err)
		return err;
	/* A request by the user is a new try. */
	q->no_clock = false;
	return 0;
}

static void psp_reset(struct Qdisc *sch)
{
	struct psp_qdisc *q = qdisc_priv(sch);

	psp_timer_cancel(q);
	psp_line_idle(&q->watch);
	psp_trial_stop(q);
	psp_launch_reset(q);
	/* Else psp_init() has failed before it made the class. */
	if (q->default_class.sch)
		psp_class_reset(q, &q->default_class);
	psp_classes_reset(q);
}

static void psp_destroy(struct Qdisc *sch)
{
	struct psp_qdisc *q = qdisc_priv(sch);

	psp_list_del(q);
	psp_timer_cancel(q);
	psp_ask_stop(q);
	/* First: filters release their classes. */
	tcf_block_put(q->block);
	psp_classes_destroy(q);
	psp_class_clear(q, &q->default_class);
	psp_queue_leave(q);
	kvfree(q->storage);
	kfree_skb(q->gap);
}

static struct Qdisc_ops psp_qdisc_ops __read_mostly = {
	.id		= "psp",
	.priv_size	= sizeof(struct psp_qdisc),
	.static_flags	= PSP_STATIC_FLAGS,
	.cl_ops		= &psp_class_ops,
	.enqueue	= psp_enqueue,
	.dequeue	= psp_dequeue,
	.peek		= qdisc_peek_dequeued,
	.init		= psp_init,
	.change		= psp_change,
	.reset		= psp_reset,
	.destroy	= psp_destroy,
	.dump		= psp_dump_options,
	.dump_stats	= psp_dump_stats,
	.owner		= THIS_MODULE,
};

static int __init psp_module_init(void)
{
	int err = psp_flows_init();

	psp_check_lines();
	if (err)
		return err;
	err = psp_notifier_init();
	if (err)
		goto no_notifier;
	err = register_qdisc(&psp_qdisc_ops);
	if (err)
		goto no_qdisc;
	return 0;

no_qdisc:
	psp_notifier_exit();
no_notifier:
	psp_flows_exit();
	return err;
}

static void __exit psp_module_exit(void)
{
	unregister_qdisc(&psp_qdisc_ops);
	psp_notifier_exit();
	psp_flows_exit();
}

module_init(psp_module_init)
module_exit(psp_module_exit)
MODULE_DESCRIPTION("Precise packet pacing with gap frames");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.2.0");
MODULE_ALIAS_NET_SCH("psp");
