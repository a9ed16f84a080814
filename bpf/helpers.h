/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declares what BPF programs need: sections, maps, and the kernel's helper
 * functions by their numbers in the kernel's interface (linux/bpf.h).
 */
#ifndef WATCH_HELPERS_H
#define WATCH_HELPERS_H

#include "kernel.h"

#define SEC(name)	__attribute__((section(name), used))
#define INLINE		static inline __attribute__((always_inline))

/*
 * Declare members of a map's definition, whose BTF alone holds numbers and
 * types.
 */
#define MAP_NUMBER(name, value)	int (*name)[value]
#define MAP_TYPE(name, type)	type *name

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_XSKMAP = 17,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_F_NO_PREALLOC = 1,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
};

/* The kernel knows it by its name, in the value of a map. */
struct bpf_spin_lock {
	u32 val;
};

struct bpf_pidns_info {
	u32 pid;
	u32 tgid;
};

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value,
				   u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_cgroup_classid)(void *skb) = (void *)17;
static long (*bpf_skb_load_bytes)(const void *skb, u32 offset, void *to, u32 len) = (void *)26;
static u64 (*bpf_get_socket_cookie)(void *sk) = (void *)46;
static long (*bpf_redirect_map)(void *map, u64 key, u64 flags) = (void *)51;
static u64 (*bpf_skb_ancestor_cgroup_id)(void *skb, int level) = (void *)83;
static long (*bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static long (*bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static long (*bpf_skb_ecn_set_ce)(void *skb) = (void *)97;
static void *(*bpf_sk_storage_get)(void *map, void *sk, void *value,
				   u64 flags) = (void *)107;
static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static u64 (*bpf_jiffies64)(void) = (void *)118;
static long (*bpf_get_ns_current_pid_tgid)(u64 dev, u64 ino, struct bpf_pidns_info *info,
					   u32 size) = (void *)120;
static void *(*bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *record, u64 flags) = (void *)132;
static struct tcp_sock *(*bpf_skc_to_tcp_sock)(void *sk) = (void *)137;
static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;
static long (*bpf_skb_set_tstamp)(void *skb, u64 tstamp, u32 tstamp_type) = (void *)192;
static u64 (*bpf_ktime_get_tai_ns)(void) = (void *)208;
static long (*bpf_dynptr_read)(void *to, u32 len, const void *from, u32 offset,
			      u64 flags) = (void *)201;
static long (*bpf_loop)(u32 count, void *call, void *context, u64 flags) = (void *)181;

/* Properties of a field in the kernel's BTF. A bit field has no address. */
enum {
	FIELD_BYTE_OFFSET = 0,
	FIELD_BYTE_SIZE = 1,
	FIELD_EXISTS = 2,
	FIELD_LSHIFT = 4,
	FIELD_RSHIFT = 5,
};

#define FIELD(struct_ptr, field, what) \
	__builtin_preserve_field_info((struct_ptr)->field, what)

/* Reads an unsigned bit field of at most 8 bits. */
#define READ_BITS(struct_ptr, field)					\
	({								\
		const void *at_ = (const char *)(struct_ptr) +		\
				  FIELD(struct_ptr, field, FIELD_BYTE_OFFSET); \
		u64 bits_ = 0;						\
									\
		bpf_probe_read_kernel(&bits_, FIELD(struct_ptr, field, FIELD_BYTE_SIZE), at_); \
		bits_ <<= FIELD(struct_ptr, field, FIELD_LSHIFT);	\
		bits_ >>= FIELD(struct_ptr, field, FIELD_RSHIFT);	\
		(u8)bits_;						\
	})

#endif
