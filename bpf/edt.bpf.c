// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stamps the departure time of each packet of a paced class, below which fq holds
 * it back: earliest departure time.  A classifier at a device's egress (clsact).
 *
 * A class has one clock, which is the core's (edt_clock.h), whatever the number of
 * transmit queues.  A packet leaves when its class's clock says, or at the time
 * that its own socket has stamped if that is later; then it does not move the
 * clock any further.  Packets of no class keep what they have.
 *
 * The loader (crates/host/backend/src/edt) writes classes and rules into the half of the maps that
 * is not in use, and changes halves with one store.
 */
#include "classify.h"
#include "edt_clock.h"

char LICENSE[] SEC("license") = "GPL";

/* linux/pkt_cls.h */
enum {
	TC_ACT_UNSPEC = -1,	/* the next filter is asked */
	TC_ACT_SHOT = 2,
};

/* The numbers that the loader knows, too: crates/host/backend/src/edt/layout.rs. */
#define EDT_VERSION	4
#define HALVES		2

/* The class of no class. */
#define NO_SLOT		(~0u)

/*
 * A time this far ahead, more than a year, is none of CLOCK_MONOTONIC, which begins
 * with the host, but of CLOCK_TAI or CLOCK_REALTIME, which began in 1970.
 */
#define OTHER_CLOCK_NS	(1ull << 55)

/* The clock of bpf_skb_set_tstamp(): CLOCK_MONOTONIC. */
#define SKB_MONOTONIC	1

/* fq may send what has this priority (modulo 16) at once, whatever its time; 6.12's does not. */
#define PRIORITY_BITS	0xfu
#define PRIORITY_CONTROL 7u

enum edt_layer {
	EDT_LAYER_LINK,
	EDT_LAYER_WIRE,
	EDT_LAYER_IP,
};

struct edt_config {
	u32 version;
	u32 rules;		/* in the list, from rules_base on */
	u32 rules_base;
	u32 addresses;		/* in the tables */
	u32 default_slot;	/* class of packets that no rule claims; NO_SLOT */
	u32 net_cls;		/* whether senders' net_cls.classid counts */
	u32 layer;		/* enum edt_layer */
	u32 overhead_bytes;
	u32 min_bytes;
	u32 link_bytes;		/* of the link header */
	u32 text_bytes;		/* that the loader keeps of this half */
};

/* A class as it runs. */
struct edt_state {
	struct bpf_spin_lock lock;
	u32 unused;
	struct edt_time time;
	u64 frames;
	u64 bytes;		/* with the headers of each frame, without FCS */
	u64 wire_bytes;
	u64 dropped_frames;
	u64 later_frames;	/* sent at a time that their own socket has stamped */
	u64 marked_frames;	/* CE-marked; counted without the lock */
};

/* How far CLOCK_TAI is ahead of CLOCK_REALTIME.  The loader sets it. */
const volatile u64 tai_ahead_ns;

/* Classes that there is room for.  The loader sets it, and the sizes of maps by it. */
const volatile u32 slots_max;

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
	MAP_NUMBER(max_entries, 1);
} edt_active SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct edt_config);
	MAP_NUMBER(max_entries, HALVES);
} edt_config SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct edt_class);
	MAP_NUMBER(max_entries, HALVES);
} edt_classes SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct edt_state);
	MAP_NUMBER(max_entries, 1);
} edt_states SEC(".maps");	/* the last one counts packets of no class */

/* Slots of classes by half << 16 | minor number. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
	MAP_NUMBER(max_entries, HALVES);
} edt_minors SEC(".maps");

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
} edt_text SEC(".maps");

/* Returns the slot of a class by its id, or NO_SLOT. */
INLINE u32 slot_of(u32 half, u32 id)
{
	u32 key = half << 16 | (id & 0xffff);
	const u32 *slot;

	if (id >> 16 != ROOT_MAJOR)
		return NO_SLOT;
	slot = bpf_map_lookup_elem(&edt_minors, &key);
	return slot ? *slot : NO_SLOT;
}

/*
 * Returns the slot of the packet's class: the one that the socket names
 * (SO_PRIORITY), else that of the first rule that matches, else the cgroup's, else
 * the default.
 */
INLINE u32 classify(struct __sk_buff *skb, struct search *s, u32 half,
		    const struct edt_config *config)
{
	u32 slot = slot_of(half, skb->priority), minor;

	if (slot != NO_SLOT)
		return slot;
	s->base = config->rules_base;
	s->rules = config->rules;
	s->addresses = config->addresses;
	minor = match_class(s);
	if (minor)
		slot = slot_of(half, ROOT_MAJOR << 16 | minor);
	if (slot == NO_SLOT && config->net_cls)
		slot = slot_of(half, bpf_get_cgroup_classid(skb));
	return slot == NO_SLOT ? config->default_slot : slot;
}

INLINE u32 counted_bytes(const struct edt_config *config, const struct burst *b)
{
	u32 headers;

	switch (config->layer) {
	case EDT_LAYER_WIRE:
		return b->wire_bytes;
	case EDT_LAYER_IP:
		headers = b->frames * config->link_bytes;
		return b->len_bytes > headers ? b->len_bytes - headers : 1;
	default:
		return b->len_bytes;
	}
}

/*
 * Returns when the socket wants a packet to leave, on CLOCK_MONOTONIC, and whether its
 * time is another clock's: SO_TXTIME.  Of two clocks a time is the one's that it is
 * nearer to: they are 37 s from each other, or the same.
 */
INLINE bool wanted_ns(u64 tstamp, u64 now_ns, u64 *wanted)
{
	u64 tai_ns, ahead, behind;

	*wanted = tstamp;
	if (tstamp < now_ns + OTHER_CLOCK_NS)
		return false;
	tai_ns = bpf_ktime_get_tai_ns();
	/* CLOCK_REALTIME is behind CLOCK_TAI. */
	if (tstamp < tai_ns && tai_ns - tstamp > tai_ahead_ns / 2)
		tstamp += tai_ahead_ns;
	ahead = tstamp > tai_ns ? tstamp - tai_ns : 0;
	behind = tstamp < tai_ns ? tai_ns - tstamp : 0;
	*wanted = behind < now_ns ? now_ns + ahead - behind : 0;
	return true;
}

/*
 * Gives a packet its time.  fq of older kernels takes that of another clock for one of
 * its own, and drops it; newer ones know the clock of each.
 */
INLINE void stamp(struct __sk_buff *skb, u64 ns, bool is_other)
{
	if (is_other)
		bpf_skb_set_tstamp(skb, ns, SKB_MONOTONIC);
	else
		skb->tstamp = ns;
}

INLINE void count(struct edt_state *state, const struct burst *b)
{
	state->frames += b->frames;
	state->bytes += b->len_bytes;
	state->wire_bytes += b->wire_bytes;
}

SEC("classifier")
int set_departure(struct __sk_buff *skb)
{
	u32 zero = 0, key;
	const u32 *active = bpf_map_lookup_elem(&edt_active, &zero);
	const struct edt_config *config;
	const struct edt_class *class;
	struct edt_state *state;
	struct search search;
	struct burst burst;
	struct gso gso;
	u64 now_ns, departure, wanted;
	u32 bytes, slot, half;
	bool is_other;

	__asm__ __volatile__("" : : "r"(&edt_text));
	if (!active)
		return TC_ACT_UNSPEC;
	half = *active & 1;
	config = bpf_map_lookup_elem(&edt_config, &half);
	if (!config || config->version != EDT_VERSION)
		return TC_ACT_UNSPEC;
	__builtin_memset(&search, 0, sizeof(search));
	begin_search(&search, skb, config->link_bytes);
	slot = classify(skb, &search, half, config);
	if (slot > slots_max)
		slot = slots_max;
	/* No class has no row; any stands for it, and is not looked at. */
	key = slot < slots_max ? half * slots_max + slot : 0;
	class = bpf_map_lookup_elem(&edt_classes, &key);
	state = bpf_map_lookup_elem(&edt_states, &slot);
	if (!class || !state)
		return TC_ACT_UNSPEC;

	gso.size = skb->gso_size;
	gso.header_bytes = search.packet.header_bytes;
	gso.jumbo_bytes = search.packet.jumbo_bytes;
	gso.segs = skb->gso_segs;
	gso.estimate_bytes = skb->wire_len;
	measure(&burst, skb->len, skb->vlan_present ? VLAN_BYTES : 0, &gso, config->min_bytes,
		config->overhead_bytes);
	now_ns = bpf_ktime_get_ns();
	is_other = wanted_ns(skb->tstamp, now_ns, &wanted);
	if (slot == slots_max || !class->rate_bps) {
		bpf_spin_lock(&state->lock);
		count(state, &burst);
		bpf_spin_unlock(&state->lock);
		if (is_other)
			stamp(skb, wanted, true);
		return TC_ACT_UNSPEC;
	}
	bytes = counted_bytes(config, &burst);
	bpf_spin_lock(&state->lock);
	departure = edt_depart(&state->time, class, now_ns, bytes);
	if (departure == EDT_TOO_LATE) {
		state->dropped_frames += burst.frames;
	} else {
		count(state, &burst);
		if (wanted > departure)
			state->later_frames += burst.frames;
	}
	bpf_spin_unlock(&state->lock);
	if (departure == EDT_TOO_LATE)
		return TC_ACT_SHOT;
	/* The kernel marks ECN-capable packets alone. */
	if (departure - now_ns > class->mark_ns && bpf_skb_ecn_set_ce(skb))
		__sync_fetch_and_add(&state->marked_frames, burst.frames);
	if (is_other || wanted <= departure)
		stamp(skb, wanted > departure ? wanted : departure, is_other);
	if ((skb->priority & PRIORITY_BITS) == PRIORITY_CONTROL)
		skb->priority = 0;
	return TC_ACT_UNSPEC;
}
