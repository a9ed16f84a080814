/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Selects the sockets to watch. The reader writes the selection into read-only
 * data before it loads the program, so filters that are not used
 * cost nothing.
 *
 * Ports, addresses and the cgroup are compared. A socket does not name its process, and
 * most of its events occur in whatever task the softirq interrupts. So the
 * cookies of a process's sockets are collected. The reader of the records adds
 * those open at the start. A connecting socket is added in its process's
 * context. An accepted socket is added by its port, while the process listens
 * there. The reader reports when the process has ended, because another process
 * may get its number.
 */
#ifndef WATCH_FILTER_H
#define WATCH_FILTER_H

#include "helpers.h"
#include "kernel.h"
#include "lost.h"
#include "owner.h"

const volatile u32 want_pid;		/* thread group; 0: any */
const volatile u64 want_cgroup;		/* id; 0: any */
const volatile u16 want_port;		/* of either end; 0: any */
const volatile u64 want_net[2];		/* remote address, in memory order ... */
const volatile u64 want_mask[2];	/* ... compared in these bits */

/* Cookies of the process's sockets. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, u8);
	MAP_NUMBER(max_entries, 1 << 16);
} owned SEC(".maps");

/*
 * The process's listening sockets: cookie to listening_key(). The key is kept
 * because a socket may release its port before it reports that it no longer
 * listens.
 */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, u64);
	MAP_NUMBER(max_entries, 1 << 12);
} listeners SEC(".maps");

/*
 * The number of listening sockets per port, by listening_key(). Entries remain
 * at 0: if two sockets close at once on two CPUs, neither can tell whether it
 * is the last.
 */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_TYPE(key, u64);
	MAP_TYPE(value, s32);
	MAP_NUMBER(max_entries, 1 << 12);
} listening SEC(".maps");

/* One value, which the reader sets to non-zero when the process has ended. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
	MAP_NUMBER(max_entries, 1);
} ended SEC(".maps");

/* An IPv4 address within ::ffff:0:0/96, in memory order. */
#define MAPPED_IPV4(address) ((u64)(address) << 32 | 0xffff0000ULL)

INLINE void read_ipv6(const struct in6_addr *from, u64 *to)
{
	bpf_probe_read_kernel(to, 16, from);
}

INLINE void remote_address(struct sock *sk, u64 *to)
{
	if (sk->__sk_common.skc_family == AF_INET6) {
		read_ipv6(&sk->__sk_common.skc_v6_daddr, to);
	} else {
		to[0] = 0;
		to[1] = MAPPED_IPV4(sk->__sk_common.skc_daddr);
	}
}

INLINE void local_address(struct sock *sk, u64 *to)
{
	if (sk->__sk_common.skc_family == AF_INET6) {
		read_ipv6(&sk->__sk_common.skc_v6_rcv_saddr, to);
	} else {
		to[0] = 0;
		to[1] = MAPPED_IPV4(sk->__sk_common.skc_rcv_saddr);
	}
}

INLINE int has_process_ended(void)
{
	u32 first = 0;
	u32 *value = bpf_map_lookup_elem(&ended, &first);

	return !value || *value;
}

/* Returns the key of a socket's local port in its network name space. */
INLINE u64 listening_key(struct sock *sk)
{
	return (u64)sk->__sk_common.skc_net.net->ns.inum << 32 | sk->__sk_common.skc_num;
}

INLINE int is_owned(struct sock *sk)
{
	u64 key = bpf_get_socket_cookie(sk);
	s32 *count;

	if (bpf_map_lookup_elem(&owned, &key))
		return 1;
	if (has_process_ended())
		return 0;
	key = listening_key(sk);
	count = bpf_map_lookup_elem(&listening, &key);
	return count && *count > 0;
}

INLINE int is_wanted(struct sock *sk)
{
	u64 remote[2];

	if (want_port && sk->__sk_common.skc_num != want_port &&
	    __builtin_bswap16(sk->__sk_common.skc_dport) != want_port)
		return 0;
	if (want_mask[0] | want_mask[1]) {
		remote_address(sk, remote);
		if ((remote[0] & want_mask[0]) != want_net[0] ||
		    (remote[1] & want_mask[1]) != want_net[1])
			return 0;
	}
	if (want_cgroup && !is_in_cgroup(sk, want_cgroup))
		return 0;
	return !want_pid || is_owned(sk);
}

INLINE void note_connecting(struct sock *sk)
{
	u64 cookie = bpf_get_socket_cookie(sk);
	u8 one = 1;

	if (bpf_map_update_elem(&owned, &cookie, &one, 0))
		count_lost(LOST_SOCKETS);
}

INLINE void note_listening(struct sock *sk)
{
	u64 cookie = bpf_get_socket_cookie(sk);
	u64 key = listening_key(sk);
	s32 *count, one = 1;

	if (bpf_map_update_elem(&listeners, &cookie, &key, 0)) {
		count_lost(LOST_SOCKETS);
		return;
	}
	count = bpf_map_lookup_elem(&listening, &key);
	if (count)
		__sync_fetch_and_add(count, 1);
	else if (bpf_map_update_elem(&listening, &key, &one, 0))
		count_lost(LOST_SOCKETS);
}

/*
 * Adds a socket that the process connects or listens on. Both state changes
 * occur in the context of the process that requests them.
 */
INLINE void note_owner(struct sock *sk, int from, int to)
{
	if (!want_pid || from != TCP_CLOSE || (to != TCP_SYN_SENT && to != TCP_LISTEN))
		return;
	if (current_pid() != want_pid)
		return;
	if (has_process_ended())
		return;
	if (to == TCP_SYN_SENT)
		note_connecting(sk);
	else
		note_listening(sk);
}

/* Removes a socket that no longer listens. This may run in any context. */
INLINE void forget_listening(struct sock *sk, int from)
{
	u64 cookie, *found, key;
	s32 *count;

	if (!want_pid || from != TCP_LISTEN)
		return;
	cookie = bpf_get_socket_cookie(sk);
	found = bpf_map_lookup_elem(&listeners, &cookie);
	if (!found)
		return;
	key = *found;
	bpf_map_delete_elem(&listeners, &cookie);
	count = bpf_map_lookup_elem(&listening, &key);
	if (count)
		__sync_fetch_and_add(count, -1);
}

INLINE void forget_owner(struct sock *sk)
{
	u64 cookie;

	if (!want_pid)
		return;
	cookie = bpf_get_socket_cookie(sk);
	bpf_map_delete_elem(&owned, &cookie);
}

#endif
