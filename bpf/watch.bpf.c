// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reports the state of this host's TCP senders: at each acknowledgement it
 * writes a record of the socket's variables to a ring buffer (docs/use/watch.md).
 * It attaches to tracepoints by their BTF types, needs neither kprobes nor
 * ftrace, and changes no kernel state.
 *
 * Records are submitted without waking the reader, which polls often enough: a
 * wake-up costs more than a record. A record for which there is no room is
 * counted as lost, by CPU and by socket.
 */
#include "filter.h"
#include "helpers.h"
#include "kernel.h"
#include "lost.h"
#include "records.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	MAP_NUMBER(max_entries, 16 << 20);
} records SEC(".maps");

/* The state of a watched socket; it is freed with the socket. */
struct followed {
	u64 cookie;
	u64 peer_data_ns;
	u32 lost;
	u8 is_introduced;
	u8 has_inode;
	u8 is_closed;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_SK_STORAGE);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct followed);
} sockets SEC(".maps");

/* Reserves a record. The next reading reports how many readings were lost. */
INLINE void *reserve(struct followed *followed, u32 kind, u32 size)
{
	struct record_head *head = bpf_ringbuf_reserve(&records, size, 0);

	if (!head) {
		count_lost(LOST_RECORDS);
		return 0;
	}
	head->time_ns = bpf_ktime_get_ns();
	head->cookie = followed->cookie;
	head->kind = kind;
	head->lost = 0;
	return head;
}

/*
 * Reports a connection's ends and whose it is, once, and again when the socket
 * has got its file. If there is no room, the next record retries.
 */
INLINE void introduce(struct sock *sk, struct followed *followed)
{
	struct connection_record *record;
	struct opener *opener;
	u64 inode;

	if (followed->has_inode)
		return;
	inode = socket_inode(sk);
	if (followed->is_introduced && !inode)
		return;
	record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (!record)
		return;
	record->head.time_ns = bpf_ktime_get_ns();
	record->head.cookie = followed->cookie;
	record->head.kind = RECORD_CONNECTION;
	record->head.lost = 0;
	local_address(sk, (u64 *)record->local);
	remote_address(sk, (u64 *)record->remote);
	record->local_port = sk->__sk_common.skc_num;
	record->remote_port = __builtin_bswap16(sk->__sk_common.skc_dport);
	record->cgroup = cgroup_id(sk);
	record->inode = inode;
	opener = bpf_sk_storage_get(&openers, sk, 0, 0);
	record->pid = opener ? opener->pid : 0;
	__builtin_memset(record->comm, 0, sizeof(record->comm));
	if (opener)
		__builtin_memcpy(record->comm, opener->comm, sizeof(record->comm));
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	followed->is_introduced = 1;
	followed->has_inode = inode != 0;
}

/* Returns the state of a socket that is to be watched, else NULL. */
INLINE struct followed *follow(struct sock *sk)
{
	struct followed *followed = bpf_sk_storage_get(&sockets, sk, 0, 0);

	if (!followed) {
		if (!is_wanted(sk))
			return 0;
		followed = bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
		if (!followed) {
			count_lost(LOST_SOCKETS);
			return 0;
		}
		followed->cookie = bpf_get_socket_cookie(sk);
	}
	introduce(sk, followed);
	return followed;
}

/*
 * Reads how long, in ticks, the sender had data to send, and how long the
 * peer's window or the send buffer limited it (the kernel's
 * tcp_get_info_chrono_stats).
 */
INLINE void read_limits(struct state_record *record, struct tcp_sock *tp)
{
	u32 running = READ_BITS(tp, chrono_type);
	u32 since = (u32)bpf_jiffies64() - tp->chrono_start;
	u32 busy = tp->chrono_stat[0] + (running == 1 ? since : 0);
	u32 window = tp->chrono_stat[1] + (running == 2 ? since : 0);
	u32 buffer = tp->chrono_stat[2] + (running == 3 ? since : 0);

	record->busy_ticks = busy + window + buffer;
	record->window_limited_ticks = window;
	record->buffer_limited_ticks = buffer;
}

INLINE struct state_record *read_state(struct followed *followed, struct sock *sk,
				       struct tcp_sock *tp, u32 kind)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;
	struct state_record *record = reserve(followed, kind, sizeof(*record));

	if (!record) {
		__sync_fetch_and_add(&followed->lost, 1);
		return 0;
	}
	record->head.lost = followed->lost;
	followed->lost = 0;
	record->peer_data_ns = followed->peer_data_ns;
	record->una = tp->snd_una;
	record->nxt = tp->snd_nxt;
	record->high_seq = tp->high_seq;
	record->ack = tp->snd_una;
	record->seq = 0;
	record->end_seq = 0;
	record->window_bytes = tp->snd_wnd;
	record->cwnd = tp->snd_cwnd;
	record->ssthresh = tp->snd_ssthresh;
	record->packets_out = tp->packets_out;
	record->sacked_out = tp->sacked_out;
	record->lost_out = tp->lost_out;
	record->retrans_out = tp->retrans_out;
	record->reordering = tp->reordering;
	record->sack_start = tp->recv_sack_cache[3].start_seq;
	record->sack_end = tp->recv_sack_cache[3].end_seq;
	record->srtt_8us = tp->srtt_us;
	record->rto_ticks = icsk->icsk_rto;
	record->mss_bytes = tp->mss_cache;
	record->delivered = tp->delivered;
	record->dsacks = tp->dsack_dups;
	read_limits(record, tp);
	record->ca_state = READ_BITS(icsk, icsk_ca_state);
	record->tcp_state = sk->__sk_common.skc_state;
	record->backoff = icsk->icsk_backoff;
	record->window_probes = icsk->icsk_probes_out;
	record->tail_probe = tp->tlp_high_seq;
	return record;
}

/* Does the same for any socket; returns 0 if it is not watched. */
INLINE struct state_record *read_followed(struct followed *followed, struct sock *sk,
					  u32 kind)
{
	struct tcp_sock *tp = followed ? bpf_skc_to_tcp_sock(sk) : 0;

	return tp ? read_state(followed, sk, tp, kind) : 0;
}

/*
 * Reads a field of a segment's control block; no other part of the packet is
 * read.
 */
#define READ_SEGMENT(to, skb, field)						\
	bpf_probe_read_kernel(&(to), sizeof(to),				\
			      &((const struct tcp_skb_cb *)&(skb)->cb)->field)

/*
 * Reports that a segment meets a closed window because the application has not
 * read, and the first segment after that. It runs before the time of the peer's
 * last data changes: data that meets a closed window is not taken.
 */
INLINE void report_receiver(struct followed *followed, struct sock *sk, struct tcp_sock *tp)
{
	u32 unread = tp->rcv_nxt - tp->copied_seq;
	s32 window = tp->rcv_wup + tp->rcv_wnd - tp->rcv_nxt;
	u8 is_closed = window <= 0 && unread;
	struct state_record *record;

	if (!is_closed && !followed->is_closed)
		return;
	record = read_state(followed, sk, tp, RECORD_RECEIVE);
	if (!record)
		return;
	followed->is_closed = is_closed;
	record->seq = unread;
	record->end_seq = window > 0 ? window : 0;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* Runs when a segment arrives on an established connection. */
SEC("tp_btf/tcp_probe")
int on_segment(u64 *args)
{
	struct sock *sk = (void *)args[0];
	const struct sk_buff *skb = (void *)args[1];
	struct state_record *record;
	struct followed *followed;
	u32 seq, end_seq, ack_seq;
	struct tcp_sock *tp;

	followed = follow(sk);
	if (!followed)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	report_receiver(followed, sk, tp);
	READ_SEGMENT(seq, skb, seq);
	READ_SEGMENT(end_seq, skb, end_seq);
	if (end_seq != seq) {
		followed->peer_data_ns = bpf_ktime_get_ns();
		/* No data is in flight: the segment acknowledges nothing. */
		if (!tp->packets_out)
			return 0;
	}
	READ_SEGMENT(ack_seq, skb, ack_seq);
	record = read_state(followed, sk, tp, RECORD_ACK);
	if (!record)
		return 0;
	record->ack = ack_seq;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int on_retransmit(u64 *args)
{
	struct sock *sk = (void *)args[0];
	const struct sk_buff *skb = (void *)args[1];
	struct state_record *record = read_followed(follow(sk), sk, RECORD_RETRANSMIT);

	if (!record)
		return 0;
	READ_SEGMENT(record->seq, skb, seq);
	READ_SEGMENT(record->end_seq, skb, end_seq);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/tcp_cong_state_set")
int on_ca_state(u64 *args)
{
	struct sock *sk = (void *)args[0];
	u8 ca_state = args[1];
	struct state_record *record = read_followed(follow(sk), sk, RECORD_CA_STATE);

	if (!record)
		return 0;
	record->ca_state = ca_state;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int on_state(u64 *args)
{
	struct sock *sk = (void *)args[0];
	int from = args[1], to = args[2];
	struct state_record *record;

	if (!bpf_skc_to_tcp_sock(sk))
		return 0;
	note_opener(sk, from, to);
	note_owner(sk, from, to);
	forget_listening(sk, from);
	/*
	 * The ports may not be chosen yet; a listening socket carries no data.
	 */
	if (to == TCP_SYN_SENT || to == TCP_LISTEN || from == TCP_LISTEN)
		return 0;
	record = read_followed(follow(sk), sk, RECORD_STATE);
	if (!record)
		return 0;
	record->tcp_state = to;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/tcp_destroy_sock")
int on_destroy(u64 *args)
{
	struct sock *sk = (void *)args[0];
	struct followed *followed = bpf_sk_storage_get(&sockets, sk, 0, 0);
	struct state_record *record;

	forget_owner(sk);
	record = read_followed(followed, sk, RECORD_END);
	if (record)
		bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}

/*
 * Runs when this host drops any packet. Few are dropped, but some hosts drop many
 * that belong to no socket: those are left at once.
 */
SEC("tp_btf/kfree_skb")
int on_drop(u64 *args)
{
	const struct sk_buff *skb = (void *)args[0];
	const struct skb_shared_info *shared;
	struct drop_record *record;
	struct followed *followed;
	struct sock *sk;
	u16 segments;
	u64 raw;

	/*
	 * Kernels without 18685451fc4e ("inet: inet_defrag: prevent sk release while still in
	 * use") keep the offset of an IP fragment in the place of skb->sk: no pointer of the
	 * kernel is so small.
	 */
	if (bpf_probe_read_kernel(&raw, sizeof(raw), &skb->sk) || !(raw >> 32))
		return 0;
	sk = skb->sk;
	if (!sk)
		return 0;
	followed = bpf_sk_storage_get(&sockets, sk, 0, 0);
	if (!followed)
		return 0;
	record = reserve(followed, RECORD_DROP, sizeof(*record));
	if (!record)
		return 0;
	shared = (void *)(skb->head + skb->end);
	bpf_probe_read_kernel(&segments, sizeof(segments), &shared->gso_segs);
	record->reason = args[2];
	record->segments = segments ? segments : 1;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
	return 0;
}
