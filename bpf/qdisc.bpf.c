// SPDX-License-Identifier: GPL-2.0-only
/*
 * The qdisc without a module (Linux 6.16): the core's own files as BPF, in mode
 * timer.  No gap frames: nothing in BPF makes or clones a packet.
 *
 * The way of a packet.
 *
 *   enqueue   its priority names the class (a class id), or the first match of the
 *             port's, or its sender's cgroup, or the default -> a place of the port's,
 *             behind the others of the class -> the core, if it is the first there
 *   dequeue   the core names a class -> its first packet, measured as the
 *             device sends it -> the core; or it says until when to wait -> watchdog
 *
 * A map holds packets; all else is in the arena (port.h).  The qdisc's own lock
 * serialises all of this.
 */
#include "arena.h"
#include "port_view.h"
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

struct bpf_sk_buff_ptr {
	struct sk_buff *skb;
};

KFUNC void bpf_kfree_skb(struct sk_buff *skb);
KFUNC void bpf_qdisc_skb_drop(struct sk_buff *skb, struct bpf_sk_buff_ptr *to_free);
KFUNC void bpf_qdisc_watchdog_schedule(struct Qdisc *sch, u64 expire, u64 delta_ns);
KFUNC void bpf_qdisc_bstats_update(struct Qdisc *sch, const struct sk_buff *skb);

static void *(*bpf_kptr_xchg)(void *place, void *pointer) = (void *)194;

/* A place, and the packet in it. */
struct waiting {
	struct sk_buff __kptr *skb;
};

/* By the ports' places; the loader sets how many. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct waiting);
	MAP_NUMBER(max_entries, 1);
} psp_packets SEC(".maps");

/* The loader sets how many pages, and that it begins at ARENA_START (map_extra). */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARENA);
	MAP_NUMBER(map_flags, BPF_F_MMAPABLE);
	MAP_NUMBER(max_entries, 1);
} psp_arena SEC(".maps");

/* A program may use an arena that it names. */
#define USE_ARENA()	__asm__ __volatile__("" : : "r"(&psp_arena))

INLINE struct waiting *waiting_at(const port_view *p, u32 place)
{
	u32 key = p->packets_from + place;

	return bpf_map_lookup_elem(&psp_packets, &key);
}

/* Takes the first packet of a slot in which one waits, and when it came; or NULL. */
INLINE struct sk_buff *take(port_view *p, slot_view *s, u64 *came_ns)
{
	struct waiting *waiting = waiting_at(p, s->first);

	*came_ns = view_pop(p, s);
	return waiting ? bpf_kptr_xchg(&waiting->skb, NULL) : NULL;
}

/* Drops all packets of a slot. */
INLINE void drop_slot(struct Qdisc *sch, u32 port, u32 slot)
{
	port_view *p = view_port(port);
	slot_view *s = view_slot(p, slot);
	u32 packets = 0, bytes = 0;
	struct sk_buff *skb;
	u64 came_ns;

	while (packets < s->packets && CAN_LOOP) {
		skb = take(p, s, &came_ns);
		if (!skb)
			break;
		bytes += control_block(skb)->pkt_len;
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
	u32 wanted, slot = 0;

	if (!view_wants_image(view_port(port)))
		return;
	wanted = port_newer_image(port);
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
INLINE u32 match_packet(struct sk_buff *skb, const image_view *image)
{
	struct search search;
	struct bpf_dynptr bytes;

	if (!image->rules && !image->addresses)
		return 0;
	__builtin_memset(&search, 0, sizeof(search));
	search.skb = skb;
	search.mark = skb->mark;
	search.interface = skb->skb_iif;
	search.base = image->rules_base;
	search.rules = image->rules;
	search.addresses = image->addresses;
	search.packet.len_bytes = skb->len;
	if (skb->vlan_all) {
		search.packet.fields = MATCH_VLAN;
		search.packet.vlan = skb->vlan_tci & 0xfff;
	}
	bpf_dynptr_from_skb(skb, 0, &bytes);
	read_packet(&bytes, &search.packet, __builtin_bswap16(skb->protocol),
		    image->link_bytes);
	return match_class(&search);
}

/* Returns the slot of a class by its id, or PORT_NO_SLOT. */
INLINE u32 slot_of(const image_view *image, u32 id)
{
	return id >> 16 == PORT_MAJOR ? view_slot_of(image, id & 0xffff) : PORT_NO_SLOT;
}

/*
 * Returns the slot of the packet's class: the one that the socket names
 * (SO_PRIORITY), else that of the first rule that matches, else the cgroup's, else
 * the default; or PORT_NO_SLOT.
 */
INLINE u32 classify(struct sk_buff *skb, const image_view *image)
{
	u32 slot = slot_of(image, skb->priority), minor;

	if (slot != PORT_NO_SLOT)
		return slot;
	minor = match_packet(skb, image);
	if (minor)
		slot = view_slot_of(image, minor);
	if (slot == PORT_NO_SLOT && image->net_cls)
		slot = slot_of(image, classid_of(skb));
	return slot == PORT_NO_SLOT ? image->default_slot : slot;
}

/* What measures a packet of a port. */
INLINE u32 frame_rule(const image_view *image)
{
	return image->sched.cfg.min_frame_bytes << 16 | image->sched.cfg.overhead_bytes;
}

/* The address of the qdisc's port is where others keep their limit; 0: it has none. */
INLINE u32 port_at(const struct Qdisc *sch)
{
	return sch->limit;
}

SEC("struct_ops/psp_enqueue")
int psp_enqueue(u64 *arguments)
{
	struct sk_buff *skb = (struct sk_buff *)arguments[0];
	struct Qdisc *sch = (struct Qdisc *)arguments[1];
	struct bpf_sk_buff_ptr *to_free = (struct bpf_sk_buff_ptr *)arguments[2];
	u32 port = port_at(sch), slot, bytes;
	u64 now_ns = bpf_ktime_get_ns();
	struct waiting *waiting;
	const image_view *image;
	class_view *class;
	slot_view *s;
	port_view *p;
	struct burst b;

	USE_ARENA();
	take_image(sch, port);
	slot = classify(skb, view_image(view_port(port)));
	/* They are not kept meanwhile: the stack is as deep as it may be. */
	__asm__ __volatile__("" : "+r"(port));
	p = view_port(port);
	image = view_image(p);
	if (slot == PORT_NO_SLOT) {
		p->dropped_unclassified++;
		goto drop;
	}
	class = view_class(image, slot);
	s = view_slot(p, slot);
	if (s->packets >= class->limit || p->free == PORT_NO_PLACE) {
		s->dropped_full++;
		goto drop;
	}
	waiting = waiting_at(p, p->free);
	if (!waiting) {
		p->dropped_lost++;
		goto drop;
	}
	bytes = control_block(skb)->pkt_len;
	b.wire_bytes = 0;
	if (class->pace.type == PACE_TYPE_RT)
		measure_packet(skb, &b, frame_rule(image));
	skb = bpf_kptr_xchg(&waiting->skb, skb);
	if (skb)
		bpf_qdisc_skb_drop(skb, to_free);
	view_push(p, s, now_ns);
	sch->q.qlen++;
	sch->qstats.backlog += bytes;
	if (b.wire_bytes)
		port_arrived(port, slot, b.wire_bytes, now_ns);
	s->bytes += bytes;
	if (++s->packets == 1)
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
INLINE bool is_too_long(const struct Qdisc *sch, struct sk_buff *skb,
			const image_view *image, u32 bytes)
{
	u32 longest_bytes = image->sched.cfg.max_frame_bytes, tags;

	if (bytes <= longest_bytes + VLAN_BYTES ||
	    bytes <= sch->dev_queue->dev->mtu + image->link_bytes + VLAN_BYTES)
		return false;
	tags = image->link_bytes ? tags_of(skb) : 0;
	return !tags || bytes > longest_bytes + tags * VLAN_BYTES;
}

/* May a packet leave that waited for so long?  Returns PORT_SENDS, or why not. */
INLINE u32 verdict_of(const struct Qdisc *sch, struct sk_buff *skb, const struct burst *b,
		      const image_view *image, u32 slot, u64 waited_ns)
{
	u64 deadline_ns = view_class(image, slot)->deadline_ns;

	/* Of a burst the kernel has checked the frames. */
	if (b->frames == 1 && is_too_long(sch, skb, image, b->len_bytes))
		return PORT_LONG;
	if (deadline_ns && waited_ns > deadline_ns)
		return PORT_LATE;
	return PORT_SENDS;
}

/* Nothing leaves before until_ns. */
INLINE void wait(struct Qdisc *sch, port_view *p, u64 until_ns, u64 now_ns)
{
	if (view_is_armed(p, until_ns, now_ns))
		return;
	if (until_ns > now_ns + LOOK_NS)
		until_ns = now_ns + LOOK_NS;
	p->armed_ns = until_ns;
	bpf_qdisc_watchdog_schedule(sch, until_ns, 0);
}

SEC("struct_ops/psp_dequeue")
struct sk_buff *psp_dequeue(u64 *arguments)
{
	struct Qdisc *sch = (struct Qdisc *)arguments[0];
	u32 port = port_at(sch), slot = 0, misses = 0, bytes, verdict;
	struct sk_buff *skb = NULL;
	u64 now_ns, came_ns = 0;
	const image_view *image;
	struct burst b;
	port_view *p;
	slot_view *s;

	USE_ARENA();
	if (!sch->q.qlen)
		return NULL;
	take_image(sch, port);
	p = view_port(port);
	image = view_image(p);
	now_ns = bpf_ktime_get_ns();
	/* The core would repeat its answer, and bring its clock up to here next time. */
	if (now_ns < image->sched.quiet_until_ns) {
		wait(sch, p, image->sched.quiet_until_ns, now_ns);
		return NULL;
	}
	while (CAN_LOOP) {
		if (misses++ == MISSES) {
			p->armed_ns = now_ns;
			bpf_qdisc_watchdog_schedule(sch, now_ns, 0);
			return NULL;
		}
		slot = port_next(port, now_ns);
		if (slot == PORT_IDLE)
			return NULL;
		if (slot == PORT_WAIT) {
			wait(sch, p, p->until_ns, now_ns);
			return NULL;
		}
		s = view_slot(p, slot);
		skb = s->packets ? take(p, s, &came_ns) : NULL;
		if (!skb) {
			port_emptied(port, slot, now_ns);
			continue;
		}
		measure_packet(skb, &b, frame_rule(image));
		bytes = control_block(skb)->pkt_len;
		sch->q.qlen--;
		sch->qstats.backlog -= bytes;
		verdict = verdict_of(sch, skb, &b, image, slot, now_ns - came_ns);
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
	if (!port)
		return -2;	/* ENOENT: nobody has configured a port there */
	error = port_begin(port);
	if (error)
		return error;
	sch->limit = port;
	return 0;
}

SEC("struct_ops/psp_reset")
void psp_reset(u64 *arguments)
{
	struct Qdisc *sch = (struct Qdisc *)arguments[0];
	u32 port = port_at(sch), slot = 0;

	USE_ARENA();
	if (!sch->limit)
		return;
	/* The kernel has stopped the watchdog. */
	view_port(port)->armed_ns = 0;
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
		port_end(port_at(sch));
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
