/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The cable module's structures, and the functions that its files share. Calls go down: wire_main.c,
 * wire_control.c, wire_cable.c, wire_debugfs.c, then what changes a cable (wire_fault.c, wire_impair.c),
 * then wire_dev.c, wire_tx.c, wire_share.c, and below them what knows no cable.
 */
#ifndef WIRE_H
#define WIRE_H

#include <linux/debugfs.h>
#include <linux/hrtimer.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>

#include "wire_math.h"

#define WIRE_NAME_LEN		32
#define WIRE_NEVER		U64_MAX		/* later than any instant */

/* ---- wire_log.c: an append-only log of elements of one size ---- */

struct wire_chunk;

struct wire_log {
	struct wire_chunk *first, *last;
	u32 element_bytes;
	u32 chunk_elements;
	u32 used;			/* elements in the last chunk */
	unsigned long count;		/* store-released after the element is complete */
};

void wire_log_init(struct wire_log *log, u32 element_bytes);
bool wire_log_grow(struct wire_log *log);
void *wire_log_tail(struct wire_log *log);
struct wire_chunk *wire_log_take(struct wire_log *log);
void wire_chunks_free(struct wire_chunk *chunk);
ssize_t wire_log_read(struct wire_log *log, char __user *buf, size_t len, loff_t *pos);

/*
 * Returns true if the log has room for one more element; allocates a chunk,
 * without sleeping, when the last one is full.
 */
static inline bool wire_log_ready(struct wire_log *log)
{
	return likely(log->last && log->used < log->chunk_elements) || wire_log_grow(log);
}

/* Makes the element at the tail, now filled in, visible to readers. */
static inline void wire_log_commit(struct wire_log *log)
{
	log->used++;
	/*
	 * Pairs with the acquire in wire_log_read(): the element precedes the
	 * count.
	 */
	smp_store_release(&log->count, log->count + 1);
}

/* ---- wire_frame.c: the kind of a frame, and the flow it belongs to ---- */

#define WIRE_FLOWS_MAX		12288
#define WIRE_FLOW_HASH		(2 * WIRE_FLOWS_MAX)
#define WIRE_FLOW_NONE		0xffffffffU	/* gap frames */
#define WIRE_FLOW_LOST		0xfffffffeU	/* the flow table was full */

enum wire_kind { WIRE_DATA = 0, WIRE_PAUSE = 1, WIRE_GAP = 2 };

struct wire_flow_key {
	__be32 saddr, daddr;
	__be16 sport, dport;
	__be16 ethertype;
	u8 proto;			/* TCP or UDP; 0: the EtherType alone is the key */
	u8 zero;
};

struct wire_flows {
	u32 count;			/* store-released after the key is complete */
	u16 bucket[WIRE_FLOW_HASH];	/* index + 1, or 0 */
	struct wire_flow_key key[WIRE_FLOWS_MAX];
};

enum wire_kind wire_frame_kind(const struct sk_buff *skb);
void wire_frame_key(const struct sk_buff *skb, struct wire_flow_key *key);
u32 wire_flow_index(struct wire_flows *flows, const struct wire_flow_key *key);

/* ---- one end of a cable ---- */

enum wire_counter {
	WIRE_N_DATA_FRAMES, WIRE_N_DATA_BYTES, WIRE_N_PAUSE_FRAMES, WIRE_N_GAP_FRAMES,
	WIRE_N_GAP_BYTES, WIRE_N_WIRE_BYTES, WIRE_N_DELIVERED, WIRE_N_SUNK, WIRE_N_ENDED,
	WIRE_N_DROPPED_FIFO, WIRE_N_DROPPED_POLICER, WIRE_N_RECORDS, WIRE_N_RECORDS_LOST,
	WIRE_N_FLOWS_LOST, WIRE_N_RING_FULL, WIRE_N_BQL_STOPS, WIRE_N_COMPLETIONS,
	WIRE_N_POLLS, WIRE_N_RX_FRAMES, WIRE_N_BUSY_FAULTS, WIRE_N_DROPPED_CARRIER,
	WIRE_N_LOST, WIRE_N_LATE, WIRE_N_FILTERED,
	WIRE_N_COUNTERS
};

/* One record of the timeline, little endian; format in docs/use/formats.md. */
struct wire_record {
	__le64 start_ps;
	__le64 arrive_ps;
	__le32 frame_bytes;
	__le32 wire_bytes;
	__le32 flow;
	u8 kind;
	u8 fate;
	__le16 queue;
};

/* A transmit descriptor. */
struct wire_slot {
	u64 end_ps;			/* until the wire chooses it: when it was enqueued */
	struct sk_buff *skb;		/* NULL once the far end has received it */
	u32 frame_bytes;
	u32 upto_bytes;			/* wire bytes enqueued up to and including this frame */
	u8 kind;
	bool in_flight;			/* the skb goes to the far end; else completion frees it */
};

/*
 * A transmit queue. Frames tail..sent have a departure time, frames sent..head
 * wait for the wire.
 */
struct wire_queue {
	struct wire_slot *ring;		/* power of two slots, ring_frames used at most */
	u32 head, sent, tail;
	u32 given_bytes, sent_bytes;	/* wire bytes ever enqueued, and sent */
};

struct wire_cable;

/* Injected faults of one end; wire_fault.c. */
struct wire_fault {
	bool any;
	bool no_carrier;
	bool drop_control;		/* the NIC filters EtherType 0x8808 */
	u32 drop_gaps;			/* it drops so many gap frames of 100, in no time */
	u32 drop_gaps_sum;
	u64 busy_every;			/* mean distance in frames; 0: never */
	u64 random;
};

/*
 * One end of a cable: a net device and the direction in which it sends. @lock
 * protects that direction: this end takes it to send and to complete, the far
 * end takes it to receive.
 */
struct wire_end {
	struct net_device *dev;
	struct wire_end *peer;
	struct wire_cable *cable;
	char side;			/* 'a' or 'b' */

	spinlock_t lock;		/* protects everything down to the interrupt */
	struct wire_rate rate;
	struct wire_clock line;
	struct wire_port port;
	u64 delay_ps;
	u64 last_arrive_ps;
	bool peer_up;

	struct wire_queue *queue;
	u32 queues, ring_mask, ring_frames;
	struct wire_arbiter arbiter;	/* if there are several queues */
	u64 complete_ps;		/* when the next completion interrupt is due */

	struct wire_fault fault;

	struct sk_buff *flight, *flight_last;	/* frames in flight, by arrival */

	struct wire_impair *impair;	/* rules to lose or delay frames; wire_impair.c */
	struct sk_buff *late;		/* delayed frames in flight, by arrival */

	/*
	 * The far port, if another cable's frames enter it too; wire_share.c.
	 */
	struct wire_share __rcu *share;
	struct sk_buff *entering, *entering_last; /* in flight to it */

	u64 counter[WIRE_N_COUNTERS];
	u32 snap_bytes;
	u64 records_max;
	struct wire_log timeline;
	struct wire_log snap;
	struct wire_flows *flows;

	/* This end's interrupt: one timer for completions and arrivals. */
	struct napi_struct napi;
	struct hrtimer timer;
	spinlock_t timer_lock;		/* serialises arming and closing */
	u64 armed_ns;			/* WIRE_NEVER: not armed */
	bool up;
};

struct wire_settings {
	char name[WIRE_NAME_LEN];
	char ifname[2][IFNAMSIZ];
	u64 rate_bps, delay_ns, mtu, queues, ring, bql_min;
	u64 coalesce_frames, coalesce_ns, rx_coalesce_ns;
	u64 sink, snap, records_max;
};

struct wire_cable {
	struct list_head list;
	struct wire_settings set;
	u32 number;			/* from 1; the lowest free one at creation */
	struct wire_end *end[2];
	bool cut;			/* injected fault: no carrier; under RTNL */
	bool tx_pause;			/* flow control as ethtool reports it; under RTNL */
	struct dentry *dir;
	struct mutex read_mutex;	/* serialises reading and emptying of records */
};

static inline u64 wire_now_ps(void)
{
	return (u64)ktime_get() * 1000;
}

/* The state of a frame in flight, stored in skb->cb. */
struct wire_cb {
	u64 arrive_ps;			/* until its fate is known: arrival at the shared port */
	struct wire_slot *slot;		/* its transmit descriptor */
	struct wire_record *record;	/* its record of the timeline, or NULL */
};

static inline struct wire_cb *wire_cb(const struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct wire_cb) > sizeof(skb->cb));
	return (struct wire_cb *)skb->cb;
}

/* ---- wire_signal.c ---- */

void wire_interrupt_init(struct wire_end *end);
void wire_arm(struct wire_end *end, u64 due_ps);
void wire_carrier_update(struct wire_cable *cable);

/* ---- wire_tx.c: sending; all but the first two under the sender's lock ---- */

netdev_tx_t wire_xmit(struct sk_buff *skb, struct net_device *dev);
void wire_catch_up(struct wire_end *end);
void wire_choose_until(struct wire_end *end, u64 now_ps);
void wire_complete(struct wire_end *end, u64 now_ps, int budget);
void wire_completion_due(struct wire_end *end);

/* Makes the choices between queues that were due by @now_ps. */
static inline void wire_choose(struct wire_end *end, u64 now_ps)
{
	if (unlikely(wire_arbiter_due(&end->arbiter, &end->line, now_ps)))
		wire_choose_until(end, now_ps);
}

/* Returns when the frames in flight are due to interrupt the receiver. */
static inline u64 wire_arrival_due(const struct wire_end *sender)
{
	const struct sk_buff *first = sender->flight ?: sender->entering;
	u64 arrive_ps = WIRE_NEVER;

	if (first)
		arrive_ps = wire_cb(first)->arrive_ps;
	if (unlikely(sender->late))
		arrive_ps = min(arrive_ps, wire_cb(sender->late)->arrive_ps);
	if (arrive_ps == WIRE_NEVER)
		return WIRE_NEVER;
	return arrive_ps + sender->cable->set.rx_coalesce_ns * 1000;
}

/*
 * Detaches a frame from its descriptor: the completion must not free it,
 * because the far end now owns it.
 */
static inline void wire_slot_leave(struct sk_buff *skb)
{
	struct wire_slot *slot = wire_cb(skb)->slot;

	if (slot->skb == skb)
		slot->skb = NULL;
}

/* Appends a frame to those in flight to the far host. */
static inline void wire_fly(struct wire_end *end, struct sk_buff *skb)
{
	if (end->flight)
		end->flight_last->next = skb;
	else
		end->flight = skb;
	end->flight_last = skb;
}

/* ---- wire_share.c; the first takes the senders' locks, the second needs it held ---- */

void wire_share_settle(struct wire_end *end, u64 now_ps);
struct sk_buff *wire_share_abandon(struct wire_end *end);
int wire_share_join(struct wire_end *into, struct wire_end *from);
void wire_share_leave(struct wire_end *end);

/* ---- wire_impair.c; the first three under the sender's lock ---- */

enum wire_impaired { WIRE_UNIMPAIRED, WIRE_IMPAIR_LOST, WIRE_IMPAIR_LATE };

struct wire_lateness {
	u64 add_ps, until_ps;		/* delay to add, and the earliest arrival */
};

enum wire_impaired wire_impair(struct wire_end *end, const struct sk_buff *skb, u64 start_ps,
			       struct wire_lateness *lateness);
void wire_late_fly(struct wire_end *end, struct sk_buff *skb);
void wire_late_join(struct wire_end *end, u64 now_ps);
int wire_impair_write(struct wire_cable *cable, char *line);
void wire_impair_show(struct wire_cable *cable, struct seq_file *seq);
void wire_impair_free(struct wire_end *end);

/* ---- wire_fault.c ---- */

int wire_fault_write(struct wire_cable *cable, char *line);
void wire_fault_show(struct wire_cable *cable, struct seq_file *seq);

/* ---- wire_dev.c ---- */

struct net_device *wire_dev_create(struct wire_cable *cable, int side);
void wire_dev_free(struct net_device *dev);

/* ---- wire_cable.c ---- */

int wire_cable_create(const struct wire_settings *set);
int wire_cable_delete(const char *name);
int wire_cable_share(const char *into, const char *from, int side);
void wire_cable_delete_all(void);

/* ---- wire_parse.c ---- */

struct wire_key {
	const char *name;
	u64 *value;			/* a number in min..max, or: */
	char *text;			/* a word of less than max characters */
	u64 min, max;
	bool required;
	bool seen;
};

int wire_parse(char *line, struct wire_key *keys, int n);

/* ---- wire_noise.c ---- */

void wire_noise_init(void);
void wire_noise_stop(void);
int wire_noise_write(char *line);
int wire_noise_show(struct seq_file *seq);

/* wire_idle.c */
int wire_idle_init(struct dentry *root);
void wire_idle_exit(void);

/* ---- wire_debugfs.c ---- */

extern struct dentry *wire_root;	/* their folder */

ssize_t wire_line_write(const char __user *buf, size_t len,
			int (*apply)(char *line, void *data), void *data);
void wire_debugfs_add(struct wire_cable *cable);
void wire_debugfs_remove(struct wire_cable *cable);

/* ---- wire_control.c ---- */

int wire_control_init(void);
void wire_control_exit(void);

#endif
