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
#include "edt_packet.h"
#include "edt_clock.h"

char LICENSE[] SEC("license") = "GPL";

/* linux/pkt_cls.h */
enum {
	TC_ACT_UNSPEC = -1,	/* the next filter is asked */
	TC_ACT_SHOT = 2,
};

/* The numbers that the loader knows, too: crates/host/backend/src/edt/layout.rs. */
#define EDT_VERSION	1
#define CLASSES_MAX	4096
#define RULES_MAX	1024
#define HALVES		2

/* The class of no class. */
#define NO_SLOT		(~0u)

/* Major number of the ids of classes: minor.rs of crates/host/host-config. */
#define EDT_MAJOR	0x7073u

/* fq sends what has this priority (modulo 16) at once, whatever its time. */
#define PRIORITY_BITS	0xfu
#define PRIORITY_CONTROL 7u

enum edt_layer {
	EDT_LAYER_LINK,
	EDT_LAYER_WIRE,
	EDT_LAYER_IP,
};

struct edt_config {
	u32 version;
	u32 rules;		/* how many */
	u32 default_slot;	/* class of packets that no rule claims; NO_SLOT */
	u32 net_cls;		/* whether senders' net_cls.classid counts */
	u32 layer;		/* enum edt_layer */
	u32 overhead_bytes;
	u32 min_bytes;
	u32 link_bytes;		/* of the link header */
};

/* Packets of a class: all fields that are named must be these. */
struct edt_rule {
	u32 fields;		/* enum edt_field */
	u32 slot;
	u32 family;
	u32 protocol;
	u32 from[4];
	u32 from_mask[4];
	u32 to[4];
	u32 to_mask[4];
	u32 from_ports;		/* the first << 16 | the last */
	u32 to_ports;
	u32 dscp;
	u32 vlan;
	u32 interface;
	u32 mark;
};

/* A class as it runs. */
struct edt_state {
	struct bpf_spin_lock lock;
	u32 unused;
	struct edt_time time;
	u64 frames;
	u64 bytes;		/* as the layer counts */
	u64 dropped_frames;
	u64 dropped_bytes;
	u64 later_frames;	/* sent at a time that their own socket has stamped */
};

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
	MAP_TYPE(value, struct edt_rule);
	MAP_NUMBER(max_entries, HALVES * RULES_MAX);
} edt_rules SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct edt_class);
	MAP_NUMBER(max_entries, HALVES * CLASSES_MAX);
} edt_classes SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct edt_state);
	MAP_NUMBER(max_entries, CLASSES_MAX);
} edt_states SEC(".maps");

/* Slots of classes by half << 16 | minor number. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
	MAP_NUMBER(max_entries, HALVES * CLASSES_MAX);
} edt_minors SEC(".maps");

INLINE int is_in(u32 port, u32 ports)
{
	return port >= ports >> 16 && port <= (ports & 0xffff);
}

INLINE int is_prefix(const u32 *address, const u32 *prefix, const u32 *mask)
{
	u32 differ = 0;

	for (int i = 0; i < 4; i++)
		differ |= (address[i] & mask[i]) ^ prefix[i];
	return !differ;
}

INLINE int matches(const struct edt_rule *r, const struct edt_packet *p,
		   u32 mark, u32 interface)
{
	u32 fields = r->fields;

	if (fields & ~p->fields)
		return 0;
	return (!(fields & EDT_FAMILY) || r->family == p->family) &&
	       (!(fields & EDT_PROTOCOL) || r->protocol == p->protocol) &&
	       (!(fields & EDT_FROM) || is_prefix(p->from, r->from, r->from_mask)) &&
	       (!(fields & EDT_TO) || is_prefix(p->to, r->to, r->to_mask)) &&
	       (!(fields & EDT_FROM_PORT) || is_in(p->from_port, r->from_ports)) &&
	       (!(fields & EDT_TO_PORT) || is_in(p->to_port, r->to_ports)) &&
	       (!(fields & EDT_DSCP) || r->dscp == p->dscp) &&
	       (!(fields & EDT_VLAN) || r->vlan == p->vlan) &&
	       (!(fields & EDT_INTERFACE) || r->interface == interface) &&
	       (!(fields & EDT_MARK) || r->mark == mark);
}

struct search {
	struct edt_packet packet;
	u32 mark;
	u32 interface;
	u32 half;
	u32 slot;
};

/* Looks at a rule; the search ends with the first that the packet matches. */
static long look(u32 number, void *context)
{
	struct search *s = context;
	u32 key = s->half * RULES_MAX + number;
	const struct edt_rule *rule = bpf_map_lookup_elem(&edt_rules, &key);

	if (!rule)
		return 1;
	if (!matches(rule, &s->packet, s->mark, s->interface))
		return 0;
	s->slot = rule->slot;
	return 1;
}

/* Returns the slot of a class by its id, or NO_SLOT. */
INLINE u32 slot_of(u32 half, u32 id)
{
	u32 key = half << 16 | (id & 0xffff);
	const u32 *slot;

	if (id >> 16 != EDT_MAJOR)
		return NO_SLOT;
	slot = bpf_map_lookup_elem(&edt_minors, &key);
	return slot ? *slot : NO_SLOT;
}

/*
 * Returns the slot of the packet's class: the one that the socket names
 * (SO_PRIORITY), else that of the first rule that matches, else the cgroup's, else
 * the default.
 */
INLINE u32 classify(struct __sk_buff *skb, struct search *s, const struct edt_config *config)
{
	u32 slot = slot_of(s->half, skb->priority);

	if (slot != NO_SLOT)
		return slot;
	bpf_loop(config->rules, look, s, 0);
	slot = s->slot;
	if (slot == NO_SLOT && config->net_cls)
		slot = slot_of(s->half, bpf_get_cgroup_classid(skb));
	return slot == NO_SLOT ? config->default_slot : slot;
}

INLINE u32 counted_bytes(const struct edt_config *config, const struct edt_burst *b)
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

SEC("classifier")
int set_departure(struct __sk_buff *skb)
{
	u32 zero = 0, key;
	const u32 *active = bpf_map_lookup_elem(&edt_active, &zero);
	const struct edt_config *config;
	const struct edt_class *class;
	struct edt_state *state;
	struct search search;
	struct edt_burst burst;
	u64 now_ns, departure;
	u32 bytes, slot;

	if (!active)
		return TC_ACT_UNSPEC;
	search.half = *active & 1;
	config = bpf_map_lookup_elem(&edt_config, &search.half);
	if (!config || config->version != EDT_VERSION)
		return TC_ACT_UNSPEC;
	read_packet(skb, &search.packet, config->link_bytes);
	search.packet.fields |= EDT_MARK | EDT_INTERFACE;
	search.mark = skb->mark;
	search.interface = skb->ingress_ifindex;
	search.slot = NO_SLOT;
	slot = classify(skb, &search, config);
	if (slot >= CLASSES_MAX)
		return TC_ACT_UNSPEC;
	key = search.half * CLASSES_MAX + slot;
	class = bpf_map_lookup_elem(&edt_classes, &key);
	state = bpf_map_lookup_elem(&edt_states, &slot);
	if (!class || !state || !class->minor || !class->rate_bps)
		return TC_ACT_UNSPEC;

	measure(skb, &search.packet, &burst, config->min_bytes, config->overhead_bytes);
	bytes = counted_bytes(config, &burst);
	now_ns = bpf_ktime_get_ns();
	bpf_spin_lock(&state->lock);
	departure = edt_depart(&state->time, class, now_ns, bytes);
	if (departure == EDT_TOO_LATE) {
		state->dropped_frames += burst.frames;
		state->dropped_bytes += bytes;
	} else {
		state->frames += burst.frames;
		state->bytes += bytes;
		if (skb->tstamp > departure)
			state->later_frames += burst.frames;
	}
	bpf_spin_unlock(&state->lock);
	if (departure == EDT_TOO_LATE)
		return TC_ACT_SHOT;
	if (skb->tstamp <= departure)
		skb->tstamp = departure;
	if ((skb->priority & PRIORITY_BITS) == PRIORITY_CONTROL)
		skb->priority = 0;
	return TC_ACT_UNSPEC;
}
