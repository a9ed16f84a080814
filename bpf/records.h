/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The records in the ring buffer, in the host's byte order. crates/stalls/watch reads
 * them (src/records.rs): change both together.
 */
#ifndef WATCH_RECORDS_H
#define WATCH_RECORDS_H

#include "kernel.h"

enum record_kind {
	RECORD_CONNECTION = 1,	/* struct connection_record */
	RECORD_ACK,		/* an acknowledgement arrived; state before its processing */
	RECORD_RETRANSMIT,	/* a segment was retransmitted */
	RECORD_CA_STATE,	/* the congestion state changes */
	RECORD_STATE,		/* TCP's state changes */
	RECORD_END,		/* the socket is destroyed */
	RECORD_DROP,		/* struct drop_record */
	RECORD_RECEIVE,		/* a segment arrived; this host's window is or was closed */
};

/* The kinds of losses that are counted. */
enum lost_what {
	LOST_RECORDS,		/* the ring buffer had no room */
	LOST_SOCKETS,		/* no memory for a socket's state or its owner */
	LOST_WHATS,
};

/* The head of every record. */
struct record_head {
	u64 time_ns;		/* CLOCK_MONOTONIC */
	u64 cookie;		/* the socket's SO_COOKIE */
	u32 kind;
	u32 lost;		/* of a reading: readings of this socket lost just before it */
};

/*
 * Precedes all other records of a connection. An accepted socket gets its inode
 * later than its first records; then there is a second one.
 */
struct connection_record {
	struct record_head head;
	u8 local[16];		/* IPv4 as ::ffff:a.b.c.d */
	u8 remote[16];
	u16 local_port;
	u16 remote_port;
	u32 pid;		/* of the process that connected it; 0: not known */
	u64 cgroup;		/* id; 0: not known */
	u64 inode;		/* of the socket's file; 0: it has none yet */
	char comm[16];		/* of the process; empty: not known */
};

/* Segments of a followed socket that this host drops. */
struct drop_record {
	struct record_head head;
	u32 reason;		/* the kernel's enum skb_drop_reason */
	u32 segments;
};

struct state_record {
	struct record_head head;
	u64 peer_data_ns;	/* when the peer's data last arrived; 0: never */
	u32 una;
	u32 nxt;
	u32 high_seq;
	u32 ack;		/* of RECORD_ACK: the segment's ACK number */
	u32 seq;		/* of RECORD_RETRANSMIT: first byte, after the last ... */
	u32 end_seq;		/* ... of RECORD_RECEIVE: bytes not read, this host's window */
	u32 window_bytes;	/* the peer's, from una */
	u32 cwnd;		/* in segments, as all down to reordering */
	u32 ssthresh;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 reordering;
	u32 sack_start;		/* highest block of the last acknowledgement with any */
	u32 sack_end;
	u32 srtt_8us;		/* in eighths of a microsecond */
	u32 rto_ticks;		/* doublings included */
	u32 mss_bytes;
	u32 delivered;		/* segments, since the connection began */
	u32 dsacks;		/* segments reported as received twice */
	u32 busy_ticks;		/* time with data to send, of which ... */
	u32 window_limited_ticks;	/* ... limited by the peer's window */
	u32 buffer_limited_ticks;	/* ... limited by the send buffer */
	u8 ca_state;		/* of RECORD_CA_STATE: the new one */
	u8 tcp_state;		/* of RECORD_STATE: the new one */
	u8 backoff;		/* doublings of the timeout */
	u8 window_probes;	/* unanswered probes of a closed window */
	u32 tail_probe;		/* not 0: a tail loss probe is unanswered */
};

_Static_assert(sizeof(struct record_head) == 24, "read by crates/stalls/watch");
_Static_assert(sizeof(struct connection_record) == 96, "read by crates/stalls/watch");
_Static_assert(sizeof(struct drop_record) == 32, "read by crates/stalls/watch");
_Static_assert(sizeof(struct state_record) == 136, "read by crates/stalls/watch");

#endif
