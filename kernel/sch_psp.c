// SPDX-License-Identifier: GPL-2.0-only
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
#include <linux/cred.h>
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
#include "line_watch.h"
#include "rank.h"

/* The scheduler.  Its API is static (Kbuild): the compiler inlines it into the path. */
#include "../core/pace.c"

/* As asked for; what of it is in force is in psp_qdisc.pace.cfg and .line. */
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

/* What is known of the line beside core's configuration. */
struct psp_line {
	bool line_known;	/* or else assumed: PACE_LINE_RATE_MAX */
	u8 why_not_hybrid;	/* enum tc_psp_why */
	u32 queues;		/* transmit queues that share the line */
	u64 device_bps;		/* the device's line; 0: never named */
	/* Mode timer: 0. */
	u64 ring_bytes;		/* of largest frames or trains, in the device's ring */
	u64 slack_bytes;	/* psp_line_slack_bytes() */
};

/*
 * What options come to on this device, before it takes force.  In force are
 * psp_qdisc.pace.cfg, the only copy, and psp_qdisc.line.
 */
struct psp_port {
	struct pace_config pace;
	struct psp_line line;
	u64 reserved_bytes;	/* by the classes that there are */
};

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
	struct psp_line line;
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

/* The ceil in force: a dynamic class has one for each of its flows. */
static u64 psp_class_ceil_bps(const struct psp_qdisc *q, const struct psp_class *cl)
{
	u64 line_rate_bps = q->pace.cfg.line_rate_bps;

	if (cl->opt.kind == TC_PSP_KIND_DYNAMIC)
		return min(cl->opt.ceil_bps ?: line_rate_bps, line_rate_bps);
	return cl->pace.ceil_bps ?: cl->pace.rate_bps;
}

#include "psp_netlink.c"
#include "psp_flow.c"
#include "psp_class.c"
#include "psp_dev.c"

/*
 * How long a frame has waited: its delivery time (skb->tstamp) says when it
 * came.  TCP and fq write and read it on the same clock; a time that is still
 * to come (EDT, SO_TXTIME) is left as it is, and the wait counts from then.
 * Times on another clock are not ours: such frames have no deadline.
 * docs/decisions/0024.
 */

/* The frame comes in. */
static void psp_stamp(struct sk_buff *skb, u64 now_ns)
{
	if (!skb->tstamp ||
	    (psp_has_delivery_time(skb) && (u64)skb->tstamp < now_ns))
		skb_set_delivery_time(skb, now_ns, PSP_MONOTONIC);
}

/* It is the frame's turn, and it has waited for longer. */
static bool psp_is_late(const struct sk_buff *skb, u64 deadline_ns,
			       u64 now_ns)
{
	return psp_has_delivery_time(skb) && now_ns > (u64)skb->tstamp &&
	       now_ns - (u64)skb->tstamp > deadline_ns;
}

/* The frame goes out: a time that is over says nothing to who comes next. */
static void psp_unstamp(struct sk_buff *skb, u64 now_ns)
{
	if (psp_has_delivery_time(skb) && (u64)skb->tstamp <= now_ns)
		skb_set_delivery_time(skb, 0, PSP_MONOTONIC);
}

/*
 * GSO trains: TCP and UDP hand over up to 64 KB (BIG TCP: more) as one,
 * whatever the device can do itself.  Between the frames of a train that is
 * not cut there is no room for a gap: it leaves as one burst.
 */

/* Most tags in a frame that the stack itself looks past. */
#define PSP_TAGS_MAX	8

/*
 * Bytes that every frame of the train starts with, link header included; 0
 * if it is of a kind whose frames cannot be told from here.
 */
static u32 psp_train_header(const struct sk_buff *skb)
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

/* BIG TCP over IPv6 carries an option that is taken away before the wire. */
static bool psp_train_jumbo(const struct sk_buff *skb)
{
	return skb->len > GSO_LEGACY_MAX_SIZE &&
	       skb->protocol == htons(ETH_P_IPV6) &&
	       ipv6_hdr(skb)->nexthdr == NEXTHDR_HOP;
}

static bool psp_train_load(const struct psp_qdisc *q,
			   const struct sk_buff *skb, u32 tag_bytes,
			   struct psp_load *load)
{
	u32 header = psp_train_header(skb), size = skb_shinfo(skb)->gso_size;
	u32 payload, last;

	if (!header || !size || header >= skb->len || psp_train_jumbo(skb))
		return false;
	payload = skb->len - header;
	header += tag_bytes;
	load->train.frames = DIV_ROUND_UP(payload, size);
	last = payload - (load->train.frames - 1) * size;
	load->train.len_bytes = payload + load->train.frames * header;
	load->frame_bytes = header + min(size, payload);
	load->train.wire_bytes = (load->train.frames - 1) *
			   pace_wire_bytes(&q->pace, header + size) +
			   pace_wire_bytes(&q->pace, header + last);
	return true;
}

/*
 * What the device will be given: it inserts the VLAN tag.  False for a train
 * that does not say what its frames will be.
 */
static bool psp_load_of(const struct psp_qdisc *q, const struct sk_buff *skb,
			struct psp_load *load)
{
	u32 tag_bytes = skb_vlan_tag_present(skb) ? VLAN_HLEN : 0;

	if (unlikely(skb_is_gso(skb)))
		return psp_train_load(q, skb, tag_bytes, load);
	load->train.frames = 1;
	load->train.len_bytes = skb->len + tag_bytes;
	load->frame_bytes = load->train.len_bytes;
	load->train.wire_bytes = pace_wire_bytes(&q->pace, load->train.len_bytes);
	return true;
}

/* Tags that the frame itself carries, the stack's own limit at most. */
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
 * Is a frame of frame_bytes, or the largest of a train, longer than the device
 * takes?  The MTU does not count the link header, nor VLAN tags: not the one
 * that the device inserts, nor those in the frame, for a VLAN device has its
 * lower device's MTU.  One tag's bytes are everybody's, as where bridges
 * forward (is_skb_forwardable()).
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

/* May the train stay whole? */
static bool psp_train_whole(const struct psp_qdisc *q, const struct psp_class *cl,
			    const struct sk_buff *skb)
{
	struct psp_load load;

	switch (q->opt.split_gso) {
	case TC_PSP_SPLIT_GSO_ON:
		return false;
	case TC_PSP_SPLIT_GSO_AUTO:
		if (cl->opt.kind != TC_PSP_KIND_NORMAL)
			return false;
		break;
	}
	return psp_load_of(q, skb, &load) &&
	       load.train.len_bytes <= q->pace.cfg.max_burst_bytes;
}

/* A day: what a single frame is averaged over at most.  pace_mul_div() < 2^48. */
#define PSP_WINDOW_NS_MAX	(86400ull * NSEC_PER_SEC)

/*
 * Adds `bytes`, sent now, to the second that runs.  It ends with the first
 * frame that comes a second or more after its own first one, which belongs to
 * the next.  A second in which the class fell silent is not one of sending:
 * the rate of the one before stays.
 */
static void psp_window_add(struct psp_window *w, u32 bytes, u64 now_ns)
{
	u64 elapsed_ns = now_ns - w->start_ns;

	if (unlikely(!w->start_ns || elapsed_ns >= NSEC_PER_SEC)) {
		bool silent = now_ns - w->last_ns >= NSEC_PER_SEC &&
			      w->last_ns != w->start_ns;

		if (w->start_ns && !silent)
			w->achieved_bps = pace_mul_div(w->bytes,
						       8ull * NSEC_PER_SEC,
						       min_t(u64, elapsed_ns,
							     PSP_WINDOW_NS_MAX));
		w->start_ns = now_ns;
		w->bytes = 0;
	}
	w->bytes += bytes;
	w->last_ns = now_ns;
}

/* A frame, or a train, went to the device. */
static void psp_count_sent(struct psp_qdisc *q, struct psp_class *cl,
			   const struct psp_load *load, u64 now_ns)
{
	cl->count.sent_frames += load->train.frames;
	cl->count.sent_wire_bytes += load->train.wire_bytes;
	if (load->train.frames > 1)
		q->count.trains_whole++;
	psp_window_add(&cl->window,
		       pace_counted_bytes(&q->pace.cfg, &load->train), now_ns);
}

/* The buckets are those of struct tc_psp_class_stats. */
static void psp_count_late(struct psp_class *cl, u32 frames, s64 late_bytes)
{
	u32 bucket;

	if (cl->pace.type != PACE_TYPE_PACED || !cl->late)
		return;
	bucket = late_bytes > 0 ? fls64(late_bytes) : 0;
	if (bucket >= TC_PSP_LATE_BUCKETS)
		bucket = TC_PSP_LATE_BUCKETS - 1;
	cl->late->frames[bucket] += frames;
}

/*
 * Which classes have a frame to offer, and which frame.
 *
 * A class is active in core/ while it can be asked for a frame.  Children are
 * not peeked at (docs/decisions/0022).  A frame is taken out of the child and
 * waits in psp_class.head where core/ has to know its length before its turn,
 * guard on and a normal or nrt class, and where only asking told that there
 * is one (throttled.c).  Until it is sent or dropped it counts in qlen and
 * backlog of the qdisc, and no more in the child's.
 */

/*
 * The next frame, or NULL.  While the child is asked it may drop frames and
 * report that (codel): psp_qlen_notify() leaves the class alone, what came of
 * it is settled by whoever asks.
 */
static struct sk_buff *psp_pull(struct psp_qdisc *q, struct psp_class *cl)
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

/* Has the class another frame?  With guard that frame is taken out. */
static bool psp_more(struct psp_qdisc *q, struct psp_class *cl)
{
	if (cl->head)
		return true;
	if (!q->pace.cfg.guard_band || (cl->pace.type != PACE_TYPE_NORMAL &&
				    cl->pace.type != PACE_TYPE_NRT))
		return cl->child->q.qlen > 0;
	if (cl->child->q.qlen)
		cl->head = psp_pull(q, cl);
	return cl->head;
}

/* Tells core/ how long the frame is that was taken out, if one was. */
static void psp_announce(struct psp_qdisc *q, struct psp_class *cl)
{
	struct psp_load load;

	if (!cl->head)
		return;
	if (psp_load_of(q, cl->head, &load))
		pace_set_head(&q->pace, &cl->pace, load.train.wire_bytes);
}

/*
 * Children that hold packets back (netem, tbf, fq): docs/decisions/0022.
 *
 * A child that holds packets but gives none sets a timer of its own and runs
 * the root when it fires.  psp cannot see which child it was.  The class of
 * such a child leaves the schedule and joins the list of throttled ones, and
 * whenever the root runs psp asks them again: the first of the list is asked,
 * and becomes the last.
 *
 *  - While the wire is busy, each dequeue asks PSP_ASK_BUSY of them before it
 *    decides who is next.  Of k throttled children one that is ready is asked
 *    within k / PSP_ASK_BUSY packets.
 *  - While nothing else can be sent, each dequeue asks up to PSP_ASK_IDLE of
 *    them at once.  If there are more, psp_ask_timer() asks the others, so many
 *    every PSP_ASK_PAUSE_NS, and stops when it has asked each of them once.
 *
 * So nothing is asked unless the root runs, and nobody's wait depends on how
 * many packets other classes have.
 */

/* What each packet of a busy wire pays: two calls that may return NULL. */
#define PSP_ASK_BUSY		2
/* Bounds how long the lock is held, as PSP_MISSES does in dequeue.c. */
#define PSP_ASK_IDLE		64
/* Leaves the lock and the processor to others between two such calls. */
#define PSP_ASK_PAUSE_NS	(50 * NSEC_PER_USEC)

/* The class has packets, but its child gives none now.  It is not active. */
static void psp_throttle(struct psp_qdisc *q, struct psp_class *cl)
{
	if (psp_child_is_throttled(cl))
		return;
	list_add_tail(&cl->throttled, &q->throttled);
	q->throttled_count++;
	q->count.child_retries++;
}

/* The class has frames, and is not throttled: it becomes active. */
static void psp_wake(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	if (!psp_more(q, cl)) {
		if (cl->child->q.qlen)
			psp_throttle(q, cl);
		return;
	}
	pace_activate(&q->pace, &cl->pace, now_ns);
	psp_announce(q, cl);
	if (pace_is_throttled(&q->pace, &cl->pace))
		cl->count.throttled++;
}

/* The class has no frame to offer now, but its child may have one later. */
static void psp_run_out(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	psp_sleep(q, cl, now_ns);
	if (cl->child->q.qlen)
		psp_throttle(q, cl);
}

/*
 * Asks the child of a throttled class.  A packet that it gives waits in
 * psp_class.head for the class's turn.
 */
static bool psp_ask(struct psp_qdisc *q, struct psp_class *cl, u64 now_ns)
{
	cl->head = psp_pull(q, cl);
	if (cl->head) {
		psp_unthrottle(q, cl);
		psp_report_backlog(q, cl, now_ns);
		psp_wake(q, cl, now_ns);
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

/* Asks up to `most` throttled children.  Is a class active now that was not? */
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

/* Dequeue begins. */
static void psp_ask_busy(struct psp_qdisc *q, u64 now_ns)
{
	psp_ask_some(q, PSP_ASK_BUSY, now_ns);
}

/* Nothing can be sent now.  Is a class active now that was not? */
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
 * Dequeue ends without a packet, after psp_ask_idle().  The timer does not run
 * the root: a run of the root tells of a child's timer, and dequeue could not
 * tell the two apart.  It begins anew with all of the list, as the child whose
 * timer fired may have been asked before it did.
 */
static void psp_ask_others(struct psp_qdisc *q)
{
	if (q->throttled_count <= PSP_ASK_IDLE)
		return;
	q->ask_left = q->throttled_count;
	psp_ask_set_timer(q);
}

/*
 * psp is the root of its transmit queue, or of all: the root lock is its own.
 * A class can go while no lock is held, and the qdisc itself not before
 * psp_ask_stop() returns.
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
	/* The root may not run for long: nobody else would free them. */
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

/* Without the root lock, which the timer takes. */
static void psp_ask_stop(struct psp_qdisc *q)
{
	hrtimer_cancel(&q->ask_timer);
}

/* A frame comes from the stack: which class, in which pieces, queued where. */

enum psp_claim {
	PSP_CLAIM_CLASS,	/* goes to a class */
	PSP_CLAIM_DROP,		/* a filter's action says drop */
	PSP_CLAIM_TAKEN,	/* an action took the frame: free our reference */
	PSP_CLAIM_CONSUMED,	/* an action took the frame with our reference */
};

/* The class of frames that nothing else claims. */
static struct psp_class *psp_unclaimed(struct Qdisc *sch, struct psp_qdisc *q)
{
	struct psp_class *cl;

	cl = psp_class_find(q, TC_H_MAKE(sch->handle, q->opt.default_minor));
	if (cl)
		return cl;
	q->count.unclassified_frames++;
	return &q->direct;
}

/*
 * One hop: classes have no filters of their own, so there is nothing to loop
 * through.  A class id in skb->priority (SO_PRIORITY, cgroups) goes first, as
 * in the other qdiscs with classes.
 */
static enum psp_claim psp_classify(struct sk_buff *skb, struct Qdisc *sch,
				   struct psp_qdisc *q, struct psp_class **cl)
{
	struct tcf_proto *filters = rcu_dereference_bh(q->filters);
	struct tcf_result res = {};

	*cl = NULL;
	if (TC_H_MAJ(skb->priority) == sch->handle)
		*cl = psp_class_find(q, skb->priority);
	if (*cl)
		return PSP_CLAIM_CLASS;

	switch (filters ? tcf_classify(skb, NULL, filters, &res, false)
			: TC_ACT_UNSPEC) {
	case TC_ACT_SHOT:
		return PSP_CLAIM_DROP;
	case TC_ACT_STOLEN:
	case TC_ACT_QUEUED:
	case TC_ACT_TRAP:
		return PSP_CLAIM_TAKEN;
	case TC_ACT_CONSUMED:
		return PSP_CLAIM_CONSUMED;
	case TC_ACT_UNSPEC:
		break;
	default:
		/* The class may be younger than the filter: go by the id. */
		*cl = res.class ? (struct psp_class *)res.class
				: psp_class_find(q, res.classid);
	}
	if (!*cl)
		*cl = psp_unclaimed(sch, q);
	return PSP_CLAIM_CLASS;
}

/* What core/ is to know of, when the frame is queued; 0 of other kinds. */
static u32 psp_gated_bytes(const struct psp_qdisc *q,
			   const struct psp_class *cl,
			   const struct sk_buff *skb)
{
	struct psp_load load;

	if (cl->pace.type != PACE_TYPE_RT || !psp_load_of(q, skb, &load))
		return 0;
	return load.train.wire_bytes;
}

/*
 * Gives one frame to the child of `cl`.  The child may call back into
 * psp_enqueue() (netem's duplicates) or drop frames it holds: whether the
 * class is active is asked afterwards, and asked of core/.
 */
static int psp_enqueue_child(struct sk_buff *skb, struct Qdisc *sch,
			     struct psp_class *cl, struct sk_buff **to_free)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	unsigned int bytes = qdisc_pkt_len(skb);
	u32 wire_bytes = psp_gated_bytes(q, cl, skb);
	int ret = qdisc_enqueue(skb, cl->child, to_free);

	if (ret != NET_XMIT_SUCCESS) {
		if (net_xmit_drop_count(ret)) {
			psp_count_drop(sch);
			q->count.drop_child++;
			cl->count.drop_child++;
		}
		return ret;
	}

	psp_qlen_add(sch, 1, bytes);
	/* Dequeue asks the child again, and reports all its frames then. */
	if (psp_child_is_throttled(cl))
		return NET_XMIT_SUCCESS;
	if (wire_bytes)
		pace_arrived(&q->pace, &cl->pace, wire_bytes, ktime_get_ns());
	if (!cl->pace.active && cl->child->q.qlen)
		psp_wake(q, cl, ktime_get_ns());
	return NET_XMIT_SUCCESS;
}

static int psp_enqueue_frame(struct sk_buff *skb, struct Qdisc *sch,
			     struct psp_class *cl, struct psp_flow *f,
			     struct sk_buff **to_free)
{
	return f ? psp_flow_enqueue(skb, sch, f, to_free) :
		   psp_enqueue_child(skb, sch, cl, to_free);
}

/*
 * A train is cut into frames.  Those that the class's queue refuses are
 * counted one by one; the sender hears of it if that is all of them.
 */
static int psp_enqueue_train(struct sk_buff *skb, struct Qdisc *sch,
			     struct psp_class *cl, struct psp_flow *f,
			     struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb);
	unsigned int train_bytes = qdisc_pkt_len(skb);
	struct psp_qdisc *q = qdisc_priv(sch);
	unsigned int frames = 0, bytes = 0;
	struct sk_buff *segs, *next;

	segs = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs)) {
		q->count.drop_segment++;
		cl->count.drop_segment++;
		return qdisc_drop(skb, sch, to_free);
	}
	q->count.trains_cut++;

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
	/* Whoever is above counted one frame, of the train's length. */
	qdisc_tree_reduce_backlog(sch, 1 - frames, train_bytes - bytes);
	consume_skb(skb);
	return NET_XMIT_SUCCESS;
}

static int psp_enqueue(struct sk_buff *skb, struct Qdisc *sch,
		       struct sk_buff **to_free)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_flow *f = NULL;
	struct psp_class *cl;

	switch (psp_classify(skb, sch, q, &cl)) {
	case PSP_CLAIM_CLASS:
		break;
	case PSP_CLAIM_DROP:
		q->count.drop_filter++;
		psp_count_drop(sch);
		__qdisc_drop(skb, to_free);
		return NET_XMIT_SUCCESS | __NET_XMIT_BYPASS;
	case PSP_CLAIM_TAKEN:
		__qdisc_drop(skb, to_free);
		return NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
	case PSP_CLAIM_CONSUMED:
		return NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
	}

	if (cl->opt.deadline_ns)
		psp_stamp(skb, ktime_get_ns());
	/* Of a train before it is cut: its frames may have no socket. */
	if (cl->flows)
		f = psp_flow_of(q, cl, skb, to_free);
	if (skb_is_gso(skb) && !psp_train_whole(q, cl, skb))
		return psp_enqueue_train(skb, sch, cl, f, to_free);
	return psp_enqueue_frame(skb, sch, cl, f, to_free);
}

/* The device asks for a frame: what core/ decides is carried out. */

/*
 * Gap frames (paper 000, 3.2), padded to the size of the gap: what nobody
 * takes in.  Kinds: see docs/man/tc-psp.8, "gap".
 *
 * One template of the largest size is made when memory may be waited for;
 * what goes out are clones trimmed to size, which share its bytes.
 */

/*
 * A frame that takes gap_bytes on the wire, or NULL without memory.  core/
 * asks for no gap shorter than a smallest frame nor longer than a largest.
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

/* So long after a failed allocation the next attempt is made. */
#define PSP_RETRY_NS		(50 * NSEC_PER_USEC)
/*
 * Classes that had no frame after all, and frames dropped at their turn, in
 * one call; the others' turn comes in the next one.
 */
#define PSP_MISSES		64

/*
 * May the frame go?  Or else why not; counted.  Longer than the device's
 * frames are those queued before the MTU shrank, or of a sender that ignores
 * it.
 */
static bool psp_may_go(struct psp_qdisc *q, struct psp_class *cl,
		       const struct sk_buff *skb, const struct psp_load *load,
		       u64 now_ns, enum psp_drop_reason *reason)
{
	if (unlikely(psp_is_long(q, skb, load->frame_bytes))) {
		q->count.drop_long++;
		cl->count.drop_long++;
		*reason = PSP_DROP_LONG;
		return false;
	}
	if (cl->opt.deadline_ns &&
	    psp_is_late(skb, cl->opt.deadline_ns, now_ns)) {
		q->count.drop_late++;
		cl->count.drop_late++;
		*reason = PSP_DROP_LATE;
		return false;
	}
	return true;
}

/* Dropped when its turn came.  No clock moves: the next frame has the turn. */
static void psp_drop_due(struct Qdisc *sch, struct pace_class *c,
			 struct sk_buff *skb, u32 wire_bytes, u64 now_ns,
			 enum psp_drop_reason reason)
{
	struct psp_class *cl = psp_class_of(c);
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_flow *f = psp_flow_at(c);

	psp_count_drop(sch);
	psp_dequeue_drop(sch, skb, reason);
	if (f) {
		if (!f->queue.qlen)
			pace_deactivate(&q->pace, c, now_ns);
		return;
	}
	if (psp_more(q, cl)) {
		pace_dropped(&q->pace, c, wire_bytes, now_ns);
		psp_announce(q, cl);
		return;
	}
	psp_run_out(q, cl, now_ns);
}

/* Tells core/ that the frame, or train, goes. */
static void psp_sent(struct psp_qdisc *q, struct pace_class *c,
		     const struct psp_load *load, u64 now_ns)
{
	u64 spare = q->pace.stats.borrowed_frames;
	struct psp_class *cl = psp_class_of(c);
	struct psp_flow *f = psp_flow_at(c);
	bool more = f ? f->queue.qlen : psp_more(q, cl);

	pace_sent_burst(&q->pace, c, load->train.len_bytes,
			load->train.wire_bytes, load->train.frames, more,
			now_ns);
	cl->count.spare_frames += q->pace.stats.borrowed_frames - spare;

	if (more) {
		if (!f)
			psp_announce(q, cl);
		if (pace_is_throttled(&q->pace, c))
			cl->count.throttled++;
	} else if (!f) {
		psp_run_out(q, cl, now_ns);
	}
}

/*
 * The frame of the class or flow `c` whose turn it is; NULL: it had none that
 * may go.
 */
static struct sk_buff *psp_take(struct Qdisc *sch, struct pace_class *c,
				s64 late_bytes, u64 now_ns)
{
	struct psp_class *cl = psp_class_of(c);
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_flow *f = psp_flow_at(c);
	enum psp_drop_reason reason;
	struct psp_load load;
	struct sk_buff *skb;

	skb = f ? psp_flow_pull(f) : psp_pull(q, cl);
	if (unlikely(!skb)) {
		psp_run_out(q, cl, now_ns);
		return NULL;
	}

	psp_qlen_add(sch, -1, -qdisc_pkt_len(skb));
	if (unlikely(!psp_load_of(q, skb, &load))) {
		q->count.drop_segment++;
		cl->count.drop_segment++;
		/* Nothing was said of it when it came either. */
		psp_drop_due(sch, c, skb, 0, now_ns, PSP_DROP_SEGMENT);
		return NULL;
	}
	if (unlikely(!psp_may_go(q, cl, skb, &load, now_ns, &reason))) {
		psp_drop_due(sch, c, skb, load.train.wire_bytes, now_ns,
			     reason);
		return NULL;
	}

	psp_sent(q, c, &load, now_ns);
	psp_count_late(cl, load.train.frames, late_bytes);
	psp_count_sent(q, cl, &load, now_ns);
	if (cl->opt.deadline_ns)
		psp_unstamp(skb, now_ns);
	bstats_update(&cl->bstats, skb);
	qdisc_bstats_update(sch, skb);
	return skb;
}

static struct sk_buff *psp_fill_gap(struct psp_qdisc *q, u32 gap_bytes,
				    u64 now_ns)
{
	struct sk_buff *skb = psp_gap_frame(q, gap_bytes);

	if (unlikely(!skb)) {
		/* The clock stands still: nothing is lost but time. */
		q->count.gap_failed++;
		qdisc_watchdog_schedule_ns(&q->watchdog, now_ns + PSP_RETRY_NS);
		return NULL;
	}
	pace_gap_sent(&q->pace, gap_bytes);
	return skb;
}

static struct sk_buff *psp_next_frame(struct Qdisc *sch, u64 now_ns)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	bool asked = false;
	u32 misses = 0;

	psp_ask_busy(q, now_ns);
	for (;;) {
		struct pace_decision d = pace_next(&q->pace, now_ns);
		struct sk_buff *skb;

		if (d.verdict == PACE_SEND) {
			skb = psp_take(sch, d.cls, d.late_bytes, now_ns);
			if (likely(skb))
				return skb;
			if (++misses < PSP_MISSES)
				continue;
			qdisc_watchdog_schedule_ns(&q->watchdog, now_ns);
			return NULL;
		}
		/* A gap frame keeps the wire busy: psp_ask_busy() is enough. */
		if (d.verdict == PACE_GAP)
			return psp_fill_gap(q, d.gap_bytes, now_ns);
		if (!asked) {
			asked = true;
			if (psp_ask_idle(q, now_ns))
				continue;
		}
		if (d.verdict == PACE_WAIT) {
			qdisc_watchdog_schedule_ns(&q->watchdog, d.until_ns);
			psp_line_wait(&q->watch,
				      d.until_ns + q->pace.stats.lead_ns);
		} else {
			psp_line_idle(&q->watch);
		}
		psp_ask_others(q);
		return NULL;
	}
}

static struct sk_buff *psp_dequeue(struct Qdisc *sch)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 now_ns;

	/* The stack asks once more after the last frame of each run. */
	if (!sch->q.qlen) {
		psp_line_idle(&q->watch);
		return NULL;
	}
	if (unlikely(psp_share_queues(q) != q->line.queues))
		psp_follow_later();
	if (q->pace.cfg.aligned && q->aligned_at != q->pace.stats.periods)
		psp_port_align(q);
	now_ns = ktime_get_ns();
	skb = psp_next_frame(sch, now_ns);

	/*
	 * On several transmit queues the order on the wire would be the
	 * device's choice, not ours.
	 */
	if (skb) {
		skb_set_queue_mapping(skb, q->queue);
		psp_watch_handed(q, now_ns);
	}
	return skb;
}

/*
 * psp, precise pacing: the life of a qdisc, and of the module.
 *
 * Papers: PSPacer (IPSJ Trans. ACS 14, 2006), PSPacer+ (2009).
 */

/*
 * Refuses parents that count what they get from their child: a gap frame was in
 * nobody's queue, and their count would go below zero.  So psp is root, or below
 * mq, whose children are roots of one transmit queue each.  While the kernel
 * makes mq, or mqprio, it makes the default qdisc for each queue: the parent is
 * not the device's root yet, and nobody else makes default qdiscs.
 */
static int psp_check_parent(struct Qdisc *sch, struct netlink_ext_ack *extack)
{
	struct Qdisc *root = rtnl_dereference(qdisc_dev(sch)->qdisc);

	if (sch->parent == TC_H_ROOT || psp_is_default(sch))
		return 0;
	if (root && !strcmp(root->ops->id, "mq") &&
	    root->handle == TC_H_MAJ(sch->parent))
		return 0;
	psp_refuse(extack, "parent %x:%x: expected root, or a class of mq",
		   TC_H_MAJ(sch->parent) >> 16, TC_H_MIN(sch->parent));
	return -EOPNOTSUPP;
}

/* The scheduler, with room for the first classes, and the direct class. */
static int psp_start(struct psp_qdisc *q, const struct pace_config *cfg,
		     struct netlink_ext_ack *extack)
{
	/* As long a turn as any: one largest frame. */
	const struct psp_class_options direct = { .kind = TC_PSP_KIND_NORMAL };
	enum pace_error refused;

	q->capacity = 16;
	q->storage = kvzalloc(pace_storage_bytes(q->capacity), GFP_KERNEL);
	if (!q->storage)
		return -ENOMEM;
	refused = pace_init(&q->pace, cfg, q->storage, q->capacity,
			    ktime_get_ns());
	if (refused)
		return psp_refuse_port(extack, refused, cfg, 0, NULL);
	return psp_class_setup(q, &q->direct, q->sch->handle, &direct, extack);
}

/* After a failure psp_destroy() is called, and psp_reset() may be. */
static int psp_init(struct Qdisc *sch, struct nlattr *attr,
		    struct netlink_ext_ack *extack)
{
	struct psp_qdisc *q = qdisc_priv(sch);
	struct psp_port port;
	int err;

	q->sch = sch;
	INIT_LIST_HEAD(&q->link);
	psp_ask_init(q);
	qdisc_watchdog_init(&q->watchdog, sch);

	err = psp_check_parent(sch, extack);
	if (err)
		return err;
	/* Also on devices with more queues: see psp_dequeue(). */
	sch->flags |= TCQ_F_ONETXQUEUE;
	q->queue = sch->dev_queue - qdisc_dev(sch)->_tx;

	psp_default_options(qdisc_dev(sch), &q->opt);
	err = psp_parse_options(attr, &q->opt, extack);
	if (err)
		return err;
	err = psp_port_resolve(q, &q->opt, &port, false, extack);
	if (err)
		return err;
	err = psp_port_gap(q, &q->opt, &port, &q->gap);
	if (err)
		return err;
	q->line = port.line;
	err = tcf_block_get(&q->block, &q->filters, sch, extack);
	if (err)
		return err;
	err = qdisc_class_hash_init(&q->classes);
	if (err)
		return err;
	err = psp_start(q, &port.pace, extack);
	if (err)
		return err;
	psp_watch_start(q);
	psp_follow_start(q);
	return 0;
}

/* Everything is worked out and allocated before anything is touched. */
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
	err = psp_port_resolve(q, &opt, &port, false, extack);
	if (err)
		return err;
	err = psp_port_apply(q, &opt, &port, false, extack);
	if (!err)
		q->no_clock = false;
	return err;
}

static void psp_reset(struct Qdisc *sch)
{
	struct psp_qdisc *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	psp_line_idle(&q->watch);
	if (q->direct.child)
		psp_class_reset(q, &q->direct);
	psp_classes_reset(q);
}

static void psp_destroy(struct Qdisc *sch)
{
	struct psp_qdisc *q = qdisc_priv(sch);

	psp_follow_stop(q);
	qdisc_watchdog_cancel(&q->watchdog);
	psp_ask_stop(q);
	/* Filters let go of their classes: before those. */
	tcf_block_put(q->block);
	psp_classes_destroy(q);
	psp_class_clear(q, &q->direct);
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

	if (err)
		return err;
	err = psp_follow_init();
	if (err)
		goto no_follow;
	err = register_qdisc(&psp_qdisc_ops);
	if (err)
		goto no_qdisc;
	return 0;

no_qdisc:
	psp_follow_exit();
no_follow:
	psp_flows_exit();
	return err;
}

static void __exit psp_module_exit(void)
{
	unregister_qdisc(&psp_qdisc_ops);
	psp_follow_exit();
	psp_flows_exit();
}

module_init(psp_module_init)
module_exit(psp_module_exit)
MODULE_DESCRIPTION("Precise packet pacing with gap frames");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
MODULE_ALIAS_NET_SCH("psp");
