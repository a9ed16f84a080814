/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declares the fields of the kernel's structures that are read. The loader
 * takes their offsets from the running kernel's BTF (CO-RE), so their order and
 * padding here have no meaning.
 */
#ifndef WATCH_KERNEL_H
#define WATCH_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

enum {
	AF_INET = 2,
	AF_INET6 = 10,
};

enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT,
	TCP_SYN_RECV,
	TCP_FIN_WAIT1,
	TCP_FIN_WAIT2,
	TCP_TIME_WAIT,
	TCP_CLOSE,
	TCP_CLOSE_WAIT,
	TCP_LAST_ACK,
	TCP_LISTEN,
	TCP_NEW_SYN_RECV = 12,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), \
			     apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		u8 u6_addr8[16];
	} in6_u;
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile u8 skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct kernfs_node {
	u64 id;
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
	u32 classid;		/* CONFIG_CGROUP_NET_CLASSID */
};

struct inode {
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct socket {
	struct file *file;
};

struct task_struct {
	struct task_struct *group_leader;
	char comm[16];
};

struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
	struct sock_cgroup_data sk_cgrp_data;	/* CONFIG_SOCK_CGROUP_DATA */
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	u32 icsk_rto;
	u8 icsk_ca_state : 5;
	u8 icsk_backoff;
	u8 icsk_probes_out;
};

struct tcp_sack_block {
	u32 start_seq;
	u32 end_seq;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 rcv_nxt;
	u32 copied_seq;
	u32 rcv_wnd;
	u32 rcv_wup;
	u32 snd_una;
	u32 snd_nxt;
	u32 high_seq;
	u32 tlp_high_seq;
	u32 snd_wnd;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 reordering;
	u32 srtt_us;
	u32 mss_cache;
	u32 delivered;
	u32 dsack_dups;
	u32 chrono_start;
	u32 chrono_stat[3];
	u8 chrono_type : 2;
	struct tcp_sack_block recv_sack_cache[4];
};

struct tcp_skb_cb {
	u32 seq;
	u32 end_seq;
	u32 ack_seq;
};

struct skb_shared_info {
	unsigned short gso_size;
	unsigned short gso_segs;
	unsigned int gso_type;
};

struct sk_buff {
	struct sock *sk;
	unsigned int len;
	u8 encapsulation : 1;
	u32 priority;
	u16 protocol;
	u32 vlan_all;		/* Linux 6.2 */
	u16 vlan_tci;
	u32 mark;
	int skb_iif;
	u16 inner_transport_header;
	u16 transport_header;
	u16 network_header;
	unsigned int end;
	unsigned char *head;
	unsigned char *data;
	char cb[48];
};

struct net_device {
	int ifindex;
	unsigned int mtu;
	possible_net_t nd_net;
};

struct netdev_queue {
	struct net_device *dev;
};

struct qdisc_skb_head {
	u32 qlen;
};

struct gnet_stats_queue {
	u32 backlog;
	u32 drops;
};

struct Qdisc {
	u32 limit;
	u32 parent;
	struct netdev_queue *dev_queue;
	struct qdisc_skb_head q;
	struct gnet_stats_queue qstats;
};

struct qdisc_skb_cb {
	struct {
		unsigned int pkt_len;
	};
};

#pragma clang attribute pop

#endif
