// SPDX-License-Identifier: GPL-2.0-only
/*
 * The qdisc without a module (Linux 6.16): the core's own files as BPF, in mode
 * timer.  No gap frames: nothing in BPF makes or clones a packet.
 *
 * The way of a packet.
 *
 *   enqueue   its priority names the class (a class id; bpf/classify.bpf.c sets it by
 *             rules) -> the class's list -> the core, if it is the first there
 *   dequeue   the core names a class -> the head of its list, measured as the
 *             device sends it -> the core; or it says until when to wait -> watchdog
 *
 * Lists hold packets in the kernel's memory, one list for each slot of each port;
 * all else is in the arena (port.h).  The qdisc's own lock serialises all of this; the
 * lists' locks are there because the verifier asks for them.
 */
#include "arena.h"
#include "port.h"

char LICENSE[] SEC("license") = "GPL";

#define NET_XMIT_SUCCESS	0
#define NET_XMIT_DROP		1
#define VLAN_BYTES		4
#define ETH_P_IPV6		0x86dd
#define NEXTHDR_HOP		0
#define LEGACY_GSO_MAX		65536u
#define UDP_HEADER		8
/* linux/skbuff.h */
#define SKB_GSO_TCPV4		(1u << 0)
#define SKB_GSO_TCPV6		(1u << 4)
#define SKB_GSO_UDP_L4		(1u << 17)

/* Bounds one call of dequeue: classes that gave no packet.  The next call goes on. */
#define MISSES			64

#define KFUNC	extern __attribute__((section(".ksyms")))
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

INLINE struct qdisc_skb_cb *control_block(const struct sk_buff *skb)
{
	return (struct qdisc_skb_cb *)skb->cb;
}

/* How long a packet is as the device sends it. */
struct measure {
	u32 frames;
	u32 len_bytes;
	u32 wire_bytes;
};

INLINE u32 on_wire(u32 bytes, u32 rule)
{
	u32 min_bytes = rule >> 16;

	return (bytes < min_bytes ? min_bytes : bytes) + (rule & 0xffff);
}

/*
 * Returns the length of the headers of each frame in a burst, link header included.
 * 0: this type of burst does not tell.
 */
INLINE u32 burst_header(const struct sk_buff *skb, u32 type)
{
	const unsigned char *head = skb->head;
	u32 transport = skb->encapsulation ? skb->inner_transport_header :
					     skb->transport_header;
	u32 offset = transport - (u32)(skb->data - head);
	u8 words = 0;

	if ((int)offset <= 0)
		return 0;
	if (type & SKB_GSO_UDP_L4)
		return offset + UDP_HEADER;
	if (!(type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6)) ||
	    bpf_probe_read_kernel(&words, sizeof(words), head + transport + 12))
		return 0;
	return offset + (words >> 4) * 4;
}

/* BIG TCP over IPv6 carries an option that the device removes. */
INLINE bool is_jumbo(const struct sk_buff *skb)
{
	u8 next = 0;

	if (skb->len <= LEGACY_GSO_MAX || skb->protocol != __builtin_bswap16(ETH_P_IPV6))
		return false;
	bpf_probe_read_kernel(&next, sizeof(next), skb->head + skb->network_header + 6);
	return next == NEXTHDR_HOP;
}

/*
 * Measures a packet as the device sends it: a GSO packet as the frames that it
 * becomes, each with its headers; a VLAN tag that the device inserts counts.  Of a
 * burst whose headers are not known the kernel's own estimate counts.
 */
INLINE void measure_packet(const struct sk_buff *skb, struct measure *m, u32 rule)
{
	u32 tag_bytes = skb->vlan_all ? VLAN_BYTES : 0;
	const struct skb_shared_info *info =
		(const struct skb_shared_info *)(skb->head + skb->end);
	u32 len = skb->len, header, payload, last, type = 0;
	u16 size = 0, segs = 0;

	m->frames = 1;
	m->len_bytes = len + tag_bytes;
	m->wire_bytes = on_wire(m->len_bytes, rule);
	bpf_probe_read_kernel(&size, sizeof(size), &info->gso_size);
	if (!size)
		return;
	bpf_probe_read_kernel(&segs, sizeof(segs), &info->gso_segs);
	bpf_probe_read_kernel(&type, sizeof(type), &info->gso_type);
	header = burst_header(skb, type);
	if (header && header < len && !is_jumbo(skb)) {
		payload = len - header;
		header += tag_bytes;
		m->frames = (payload + size - 1) / size;
		last = payload - (m->frames - 1) * size;
		m->len_bytes = payload + m->frames * header;
		m->wire_bytes = (m->frames - 1) * on_wire(header + size, rule) +
				on_wire(header + last, rule);
		return;
	}
	m->frames = segs ? segs : 1;
	m->len_bytes = control_block(skb)->pkt_len + m->frames * tag_bytes;
	m->wire_bytes = m->len_bytes + m->frames * (rule & 0xffff);
}

/* Takes the first packet of a list, or NULL. */
INLINE struct sk_buff *take(struct list *list)
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

	if (!list)
		return;
	while (CAN_LOOP) {
		skb = take(list);
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
	u32 slot = 0;

	if (!port_has_image(port))
		return;
	while (CAN_LOOP) {
		slot = port_next_waiting(port, slot);
		if (slot == PORT_NO_SLOT)
			break;
		if (port_is_removed(port, slot))
			drop_slot(sch, port, slot);
		slot++;
	}
	port_take_image(port, bpf_ktime_get_ns());
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
	u32 port = port_number(sch), slot, bytes;
	struct waiting *waiting;
	struct list *list;

	USE_ARENA();
	take_image(sch, port);
	slot = port_classify(port, skb->priority);
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
	skb = bpf_kptr_xchg(&waiting->skb, skb);
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);
	bpf_spin_lock(&list->lock);
	bpf_list_push_back_impl(&list->head, &waiting->node, NULL, 0);
	bpf_spin_unlock(&list->lock);
	sch->q.qlen++;
	sch->qstats.backlog += bytes;
	if (port_enqueued(port, slot, bytes))
		port_activate(port, slot, bpf_ktime_get_ns());
	return NET_XMIT_SUCCESS;
drop:
	bpf_qdisc_skb_drop(skb, to_free);
	sch->qstats.drops++;
	return NET_XMIT_DROP;
}

SEC("struct_ops/psp_dequeue")
struct sk_buff *psp_dequeue(u64 *arguments)
{
	struct Qdisc *sch = (struct Qdisc *)arguments[0];
	u32 port = port_number(sch), slot = 0, misses = 0, bytes;
	struct sk_buff *skb = NULL;
	struct measure m;
	struct list *list;
	u64 now_ns;

	USE_ARENA();
	if (!sch->q.qlen)
		return NULL;
	take_image(sch, port);
	now_ns = bpf_ktime_get_ns();
	while (CAN_LOOP) {
		slot = port_next(port, now_ns);
		if (slot == PORT_IDLE)
			return NULL;
		if (slot == PORT_WAIT) {
			bpf_qdisc_watchdog_schedule(sch, port_until_ns(port), 0);
			return NULL;
		}
		list = list_of(port, slot);
		if (!list)
			return NULL;
		skb = take(list);
		if (skb)
			break;
		port_emptied(port, slot, now_ns);
		if (++misses == MISSES) {
			bpf_qdisc_watchdog_schedule(sch, now_ns, 0);
			return NULL;
		}
	}
	if (!skb)
		return NULL;
	measure_packet(skb, &m, port_wire_rule(port));
	bytes = control_block(skb)->pkt_len;
	port_sent(port, slot, (u64)m.len_bytes << 32 | m.wire_bytes,
		  (u64)m.frames << 32 | bytes, now_ns);
	sch->q.qlen--;
	sch->qstats.backlog -= bytes;
	bpf_qdisc_bstats_update(sch, skb);
	return skb;
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

/* The loader gives it a name of its own. */
SEC(".struct_ops")
struct Qdisc_ops psp_ops = {
	.enqueue = psp_enqueue,
	.dequeue = psp_dequeue,
	.init = psp_init,
	.reset = psp_reset,
	.destroy = psp_destroy,
	.id = "psp_bpf",
};
