/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds whose socket it is: its cgroup, the inode of its file, and the process
 * that connected it. An accepted socket has the cgroup of the listening one; its
 * process is found by the inode, by the reader of the records.
 */
#ifndef WATCH_OWNER_H
#define WATCH_OWNER_H

#include "helpers.h"
#include "kernel.h"

const volatile u64 pid_space_dev;	/* device of the reader's PID name space */
const volatile u64 pid_space_ino;

/* Cgroups above each other that are searched; Linux's own users have some ten. */
#define CGROUP_LEVELS_MOST	64

/* The process that connected a socket; it is freed with the socket. */
struct opener {
	u32 pid;
	char comm[16];
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_SK_STORAGE);
	MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct opener);
} openers SEC(".maps");

/* Returns the current process's number in the reader's name space; 0: it has none. */
INLINE u32 current_pid(void)
{
	struct bpf_pidns_info who = {};

	if (bpf_get_ns_current_pid_tgid(pid_space_dev, pid_space_ino, &who, sizeof(who)))
		return 0;
	return who.tgid;
}

/* Notes who connects a socket. This state change occurs in the process's context. */
INLINE void note_opener(struct sock *sk, int from, int to)
{
	struct task_struct *task;
	struct opener *opener;

	if (from != TCP_CLOSE || to != TCP_SYN_SENT)
		return;
	opener = bpf_sk_storage_get(&openers, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!opener)
		return;
	task = bpf_get_current_task_btf();
	opener->pid = current_pid();
	bpf_probe_read_kernel(opener->comm, sizeof(opener->comm), task->group_leader->comm);
}

/* Returns the socket's cgroup of the unified hierarchy; NULL: not known. */
INLINE struct cgroup *cgroup_of(struct sock *sk)
{
	if (!FIELD(sk, sk_cgrp_data, FIELD_EXISTS))
		return 0;
	return sk->sk_cgrp_data.cgroup;
}

INLINE u64 cgroup_id(struct sock *sk)
{
	struct cgroup *cgroup = cgroup_of(sk);

	return cgroup ? cgroup->kn->id : 0;
}

/* Returns whether the socket's cgroup is this one or one below. */
INLINE int is_in_cgroup(struct sock *sk, u64 id)
{
	struct cgroup *cgroup = cgroup_of(sk);
	struct cgroup_subsys_state *parent;

	for (int i = 0; i < CGROUP_LEVELS_MOST && cgroup; i++) {
		if (cgroup->kn->id == id)
			return 1;
		parent = cgroup->self.parent;
		cgroup = parent ? parent->cgroup : 0;
	}
	return 0;
}

/* Returns the inode of the socket's file; 0 before it is accepted and after it is closed. */
INLINE u64 socket_inode(struct sock *sk)
{
	struct socket *socket = sk->sk_socket;
	struct file *file = socket ? socket->file : 0;

	return file ? file->f_inode->i_ino : 0;
}

#endif
