// SPDX-License-Identifier: GPL-2.0-only
/*
 * Matches packets whose sender is in a cgroup of the unified hierarchy, or below it: for
 * the kernel's filter `bpf`, which gives them the class that it names.
 */
#include "helpers.h"
#include "edt_skb.h"

char LICENSE[] SEC("license") = "GPL";

/* The cgroup, and how deep it is; 0 is the root.  The loader sets both. */
const volatile u64 cgroup_id;
const volatile u32 cgroup_level;

/* What cls_bpf is told: the filter's own class, or that the next filter is asked. */
#define MATCHES		(-1)
#define DIFFERS		0

SEC("classifier")
int match_sender(struct __sk_buff *skb)
{
	u64 id = bpf_skb_ancestor_cgroup_id(skb, cgroup_level);

	return id == cgroup_id ? MATCHES : DIFFERS;
}
