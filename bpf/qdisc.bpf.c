// SPDX-License-Identifier: GPL-2.0-only
/*
 * The qdisc without a module (Linux 6.16): the core's own files as BPF, in mode
 * timer.  No gap frames: nothing in BPF makes or clones a packet.
 *
 * The way of a packet.
 *
 *   enqueue   its priority names the class (a class id), or the first match of the
 *             port's, or its sender's cgroup, or the default -> the class's list ->
 *             the core, if it is the first there
 *   dequeue   the core names a class -> the head of its list, measured as the
 *             device sends it -> the core; or it says until when to wait -> watchdog
 *
 * Lists hold packets in the kernel's memory, one list for each slot of each port;
 * all else is in the arena (port.h).  The qdisc's own lock serialises all of this; the
 * lists' locks are there because the verifier asks for them.
 */
#include "arena.h"
#include "port_image.h"
#include "qdisc_skb.h"

char LICENSE[] SEC("license") = "GPL";

#define NET_XMIT_SUCCESS	0
#define NET_XMIT_DROP		1

/*
 * Bounds one call of dequeue: classes that gave no packet, and packets dropped at their
 * time.  The next call goes on.
 */
#define MISSES			64
/* While packets wait a newer image is looked for so often, also if none comes or goes. */
#define LOOK_NS			10000000u

#define __kptr	__attribute__((btf_type_tag("kptr")))
#define CONTAINS(type, field) \
	__attribute__((btf_decl_tag("contains:" #type ":" #field)))

struct bpf_list_head {
	u64 words[2];
} __attribute__((aligned(8)));

struct bpf_list_node {
	u64 words[3];
} __attribute__((aligned(8)));

struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
};

KFUNC void *bpf_obj_new_impl(u64 type, void *meta);
KFUNC void bpf_obj_drop_impl(void *object, void *meta);
KFUNC int bpf_list_push_back_impl(struct bpf_list_head *head, struct bpf_list_node *node,
				  void *meta, u64 offset);
KFUNC struct bpf_list_node *bpf_list_pop_front(struct bpf_list_head *head);
KFUNC void bpf_kfree_skb(struct sk_buff *skb);
KFUNC void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free);
KFUNC void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 delta_ns);
KFUNC void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb);

static void *(*bpf_kptr_xchg)(void *place, void *pointer) = (void *)194;

/* A packet in a list. */
struct waiting {
	struct sk_buff __kptr *skb;
	u64 came_ns;
	struct bpf_list_node node;
};

struct list {
	struct bpf_spin_lock lock;
	struct bpf_list_head head CONTAINS(waiting, node);
};

/* By port and slot; the loader sets how many. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct list);
	MAP_NUMBER(max_entries, 1);
} psp_lists SEC(".maps");

/* The loader sets how many pages, and that it begins at ARENA_START (map_extra). */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARENA);
	MAP_NUMBER(map_flags, BPF_F_MMAPABLE);
	MAP_NUMBER(max_entries, 1);
} psp_arena SEC(".maps");

/* A program may use an arena that it names. */
#define USE_ARENA()	__asm__ __volatile__("" : : "r"(&psp_arena))

/* Takes the first packet of a list, and when it came; or NULL. */
INLINE struct sk_buff *take(struct list *list, u64 *came_ns)
{
	struct sk_buff *skb = NULL;
	struct bpf_list_node *node;
	struct waiting *waiting;

	bpf_spin_lock(&list->lock);
	node = bpf_list_pop_front(&list->head);
	bpf_spin_unlock(&list->lock);
	if (!node)
		return NULL;
	waiting = (struct waiting *)((char *)node - __builtin_offsetof(struct waiting, node));
	*came_ns = waiting->came_ns;
	skb = bpf_kptr_xchg(&waiting->skb, skb);
	bpf_obj_drop_impl(waiting, NULL);
	return skb;
}

INLINE struct list *list_of(u32 port, u32 slot)
{
	u32 key = port * port_slots() + slot;

	return bpf_map_lookup_elem(&psp_lists, &key);
}

/* Drops all packets of a slot. */
INLINE void drop_slot(struct Qdisc *sch, u32 port, u32 slot)
{
	struct list *list = list_of(port, slot);
	struct sk_buff *skb;
	u32 packets = 0, bytes = 0, len;
	u64 came_ns;

	if (!list)
		return;
	while (CAN_LOOP) {
		skb = take(list, &came_ns);
		if (!skb)
			break;
		len = control_block(skb)->pkt_len;
		bytes += len;
		packets++;
		bpf_kfree_skb(skb);
	}
	sch->q.qlen -= packets;
	sch->qstats.backlog -= bytes;
	sch->qstats.drops += packets;
	port_dropped(port, slot, packets, bytes);
}

/* Takes a newer image of the configuration, if there is one. */
INLINE void take_image(struct Qdisc *sch, u32 port)
{
	u32 wanted = port_newer_image(port), slot = 0;

	if (wanted == PORT_STAYS)
		return;
	while (CAN_LOOP) {
		slot = port_next_waiting(port, slot);
		if (slot == PORT_NO_SLOT)
			break;
		if (port_is_removed(port, wanted, slot))
			drop_slot(sch, port, slot);
		slot++;
	}
	port_take_image(port, wanted, bpf_ktime_get_ns());
}

/* Returns the minor number of the class that the rules of a port say; 0: none. */
INLINE u32 match_packet(struct sk_buff *skb, u32 port)
{
	u64 rules = port_rules(port);
	u32 addresses = port_addresses(port);
	struct search search;
	struct bpf_dynptr bytes;

	if (!(u32)rules && !addresses)
		return 0;
	__builtin_memset(&search, 0, sizeof(search));
	search.skb = skb;
	search.mark = skb->mark;
	search.interface = skb->skb_iif;
	search.base = rules >> 32;
	search.rules = rules;
	search.addresses = addresses;
	search.packet.len_bytes = skb->len;
	if (skb->vlan_all) {
		search.packet.fields = MATCH_VLAN;
		search.packet.vlan = skb->vlan_tci & 0xfff;
	}
	bpf_dynptr_from_skb(skb, 0, &bytes);
	read_packet(&bytes, &search.packet, __builtin_bswap16(skb->protocol),
		    port_link_bytes(port));
	return match_class(&search);
}

/* Returns the slot of a class by its id, or PORT_NO_SLOT. */
INLINE u32 slot_of(u32 port, u32 id)
{
	return id >> 16 == PORT_MAJOR ? port_slot_of(port, id & 0xffff) : PORT_NO_SLOT;
}

/*
 * Returns the slot of the packet's class: the one that the socket names
 * (SO_PRIORITY), else that of the first rule that matches, else the cgroup's, else
 * the default; or PORT_NO_SLOT.
 */
INLINE u32 classify(struct sk_buff *skb, u32 port)
{
	u32 slot = slot_of(port, skb->priority), minor;

	if (slot != PORT_NO_SLOT)
		return slot;
	minor = match_packet(skb, port);
	if (minor)
		slot = port_slot_of(port, minor);
	if (slot == PORT_NO_SLOT && port_net_cls(port))
		slot = slot_of(port, classid_of(skb));
	return slot == PORT_NO_SLOT ? port_default_slot(port) : slot;
}

/* The number of the qdisc's port is where others keep their limit; 0: it has none. */
INLINE u32 port_number(const struct Qdisc *sch)
{
	return sch->limit - 1;
}

SEC("struct_ops/psp_enqueue")
int psp_enqueue(u64 *arguments)
{
	struct sk_buff *skb = (struct sk_buff *)arguments[0];
	struct Qdisc *sch = (struct Qdisc *)arguments[1];
	struct bpf_sk_buff_ptr *to_free = (struct bpf_sk_buff_ptr *)arguments[2];
	u32 port = port_number(sch), slot, bytes, arrived_bytes = 0;
	u64 now_ns = bpf_ktime_get_ns();
	struct waiting *waiting;
	struct list *list;
	struct burst b;

	USE_ARENA();
	take_image(sch, port);
	slot = classify(skb, port);
	if (slot == PORT_NO_SLOT || !port_has_room(port, slot))
		goto drop;
	list = list_of(port, slot);
	waiting = bpf_obj_new_impl(__builtin_btf_type_id(*(struct waiting *)0, 0), NULL);
	if (!list || !waiting) {
		if (waiting)
			bpf_obj_drop_impl(waiting, NULL);
		port_count_lost(port);
		goto drop;
	}
	bytes = control_block(skb)->pkt_len;
	if (port_reports_arrivals(port, slot)) {
		measure_packet(skb, &b, port_frame_rule(port, slot));
		arrived_bytes = b.wire_bytes;
	}
	waiting->came_ns = now_ns;
	skb = bpf_kptr_xchg(&waiting->skb, skb);
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);
	bpf_spin_lock(&list->lock);
	bpf_list_push_back_impl(&list->head, &waiting->node, NULL, 0);
	bpf_spin_unlock(&list->lock);
	sch->q.qlen++;
	sch->qstats.backlog += bytes;
	if (arrived_bytes)
		port_arrived(port, slot, arrived_bytes, now_ns);
	if (port_enqueued(port, slot, bytes))
		port_activate(port, slot, now_ns);
	return NET_XMIT_SUCCESS;
drop:
	bpf_qdisc_skb_drop(skb, to_free);
	sch->qstats.drops++;
	return NET_XMIT_DROP;
}

/*
 * Is a frame longer than the device takes?  Every frame may be longer by one tag, and the
 * MTU by now another than the configuration was made for.
 */
INLINE bool is_too_long(const struct Qdisc *sch, struct sk_buff *skb, u32 port, u32 bytes,
			u32 longest_bytes)
{
	u32 link_bytes = port_link_bytes(port), tags;

	if (bytes <= longest_bytes + VLAN_BYTES ||
	    bytes <= sch->dev_queue->dev->mtu + link_bytes + VLAN_BYTES)
		return false;
	tags = link_bytes ? tags_of(skb) : 0;
	return !tags || bytes > longest_bytes + tags * VLAN_BYTES;
}

/* May a packet leave that waited for so long?  Returns PORT_SENDS, or why not. */
INLINE u32 verdict_of(const struct Qdisc *sch, struct sk_buff *skb, const struct burst *b,
		      u32 port, u32 slot, u64 rule, u64 waited_ns)
{
	/* Of a burst the kernel has checked the frames. */
	u32 bytes = b->frames == 1 ? b->len_bytes : 0;

	if (is_too_long(sch, skb, port, bytes, (rule & ~PORT_HAS_DEADLINE) >> 32))
		return PORT_LONG;
	if (rule & PORT_HAS_DEADLINE && port_is_late(port, slot, waited_ns))
		return PORT_LATE;
	return PORT_SENDS;
}

SEC("struct_ops/psp_dequeue")
struct sk_buff *psp_dequeue(u64 *arguments)
{
	struct Qdisc *sch = (struct Qdisc *)arguments[0];
	u32 port = port_number(sch), slot = 0, misses = 0, bytes, verdict;
	struct sk_buff *skb = NULL;
	u64 now_ns, came_ns = 0, rule, until_ns;
	struct list *list;
	struct burst b;

	USE_ARENA();
	if (!sch->q.qlen)
		return NULL;
	take_image(sch, port);
	now_ns = bpf_ktime_get_ns();
	while (CAN_LOOP) {
		if (misses++ == MISSES) {
			bpf_qdisc_watchdog_schedule(sch, now_ns, 0);
			return NULL;
		}
		slot = port_next(port, now_ns);
		if (slot == PORT_IDLE)
			return NULL;
		if (slot == PORT_WAIT) {
			until_ns = port_until_ns(port);
			if (until_ns > now_ns + LOOK_NS)
				until_ns = now_ns + LOOK_NS;
			bpf_qdisc_watchdog_schedule(sch, until_ns, 0);
			return NULL;
		}
		list = list_of(port, slot);
		if (!list)
			return NULL;
		skb = take(list, &came_ns);
		if (!skb) {
			port_emptied(port, slot, now_ns);
			continue;
		}
		rule = port_frame_rule(port, slot);
		measure_packet(skb, &b, rule);
		bytes = control_block(skb)->pkt_len;
		sch->q.qlen--;
		sch->qstats.backlog -= bytes;
		verdict = verdict_of(sch, skb, &b, port, slot, rule, now_ns - came_ns);
		if (verdict == PORT_SENDS) {
			port_sent(port, slot, (u64)b.len_bytes << 32 | b.wire_bytes,
				  (u64)b.frames << 32 | bytes, now_ns);
			bpf_qdisc_bstats_update(sch, skb);
			return skb;
		}
		bpf_kfree_skb(skb);
		sch->qstats.drops++;
		port_dropped_due(port, slot, (u64)bytes << 32 | b.wire_bytes, verdict, now_ns);
	}
	return NULL;
}

SEC("struct_ops/psp_init")
int psp_init(u64 *arguments)
{
	struct Qdisc *sch = (struct Qdisc *)arguments[0];
	struct net_device *device = sch->dev_queue->dev;
	u32 port;
	int error;

	USE_ARENA();
	port = port_find(device->nd_net.net->ns.inum, device->ifindex, sch->parent);
	if (port == PORT_NO_SLOT)
		return -2;	/* ENOENT: nobody has configured a port there */
	error = port_begin(port);
	if (error)
		return error;
	sch->limit = port + 1;
	return 0;
}

SEC("struct_ops/psp_reset")
void psp_reset(u64 *arguments)
{
	struct Qdisc *sch = (struct Qdisc *)arguments[0];
	u32 port = port_number(sch), slot = 0;

	USE_ARENA();
	if (!sch->limit)
		return;
	while (CAN_LOOP) {
		slot = port_next_waiting(port, slot);
		if (slot == PORT_NO_SLOT)
			break;
		drop_slot(sch, port, slot);
		port_emptied(port, slot, bpf_ktime_get_ns());
		slot++;
	}
}

SEC("struct_ops/psp_destroy")
void psp_destroy(u64 *arguments)
{
	struct Qdisc *sch = (struct Qdisc *)arguments[0];

	USE_ARENA();
	/* The kernel destroys what it could not initialise, too. */
	if (sch->limit)
		port_end(port_number(sch));
}

struct Qdisc_ops {
	char id[16];
	int (*enqueue)(u64 *);
	struct sk_buff *(*dequeue)(u64 *);
	int (*init)(u64 *);
	void (*reset)(u64 *);
	void (*destroy)(u64 *);
};

SEC(".struct_ops.link")
struct Qdisc_ops psp_ops = {
	.enqueue = psp_enqueue,
	.dequeue = psp_dequeue,
	.init = psp_init,
	.reset = psp_reset,
	.destroy = psp_destroy,
	.id = "psp_bpf",
};
