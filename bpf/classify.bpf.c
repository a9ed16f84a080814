// SPDX-License-Identifier: GPL-2.0-only
/*
 * Classifies the packets of the module's qdisc: its one filter, the kernel's `bpf`, in the
 * place of filters of the kernel's own kinds.  So the same rules mean the same for every
 * backend.
 *
 * The loader (crates/host/backend/src/classify) writes rules into the half of the maps that is
 * not in use, and changes halves with one store.
 */
#include "classify.h"

char LICENSE[] SEC("license") = "GPL";

/* What the loader knows, too: crates/host/backend/src/classify/maps.rs. */
#define CLASSIFY_VERSION	1
#define HALVES			2

/* What the kernel's filter is told for a packet of no class: the next filter is asked. */
#define NO_CLASS		0

struct classify_config {
	u32 version;
	u32 major;		/* of the classes' ids */
	u32 rules;		/* in the list, from rules_base on */
	u32 rules_base;
	u32 addresses;		/* in the tables */
	u32 net_cls;		/* whether senders' net_cls.classid counts */
	u32 link_bytes;		/* of the link header */
	u32 text_bytes;		/* that the loader keeps of this half */
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
	MAP_NUMBER(max_entries, 1);
} classify_active SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct classify_config);
	MAP_NUMBER(max_entries, HALVES);
} classify_config SEC(".maps");

/*
 * What the loader keeps of each half, in blocks.  The program only names it: a map lives
 * as long as a program that names it.
 */
struct text_block {
	u8 bytes[4096];
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct text_block);
	MAP_NUMBER(max_entries, HALVES);
} classify_text SEC(".maps");

SEC("classifier")
int psp_classify(struct __sk_buff *skb)
{
	u32 zero = 0, half, minor;
	const u32 *active = bpf_map_lookup_elem(&classify_active, &zero);
	const struct classify_config *config;
	struct search search;

	__asm__ __volatile__("" : : "r"(&classify_text));
	if (!active)
		return NO_CLASS;
	half = *active & 1;
	config = bpf_map_lookup_elem(&classify_config, &half);
	if (!config || config->version != CLASSIFY_VERSION)
		return NO_CLASS;
	__builtin_memset(&search, 0, sizeof(search));
	search.base = config->rules_base;
	search.rules = config->rules;
	search.addresses = config->addresses;
	begin_search(&search, skb, config->link_bytes);
	minor = match_class(&search);
	if (minor)
		return config->major << 16 | minor;
	return config->net_cls ? bpf_get_cgroup_classid(skb) : NO_CLASS;
}
