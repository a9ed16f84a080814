/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ports of a device in the arena: what the qdisc knows of its classes, and the
 * core that schedules them.
 *
 * A process lays an image out: the core's scheduler, its storage and its classes as
 * pace_init() and pace_class_add() leave them.  A port has room for two.  To change
 * the configuration the process writes the image that is not in use and says so;
 * the qdisc takes it at the next packet that comes or goes, or while packets wait within
 * 10 ms, under the lock that it holds then (port_image.h).  A class is known by its slot,
 * which it keeps from image to image, so packets that wait go on waiting.
 *
 * crates/host/backend/src/qdisc/layout.rs says the same layout.
 */
#ifndef BPF_PORT_H
#define BPF_PORT_H

#include "arena.h"
#include "core.h"

#define PORT_VERSION		6u
#define PORT_NO_SLOT		(~0u)
#define PORT_NO_PLACE		(~0u)
/* In place of the number of an image that is wanted: the one in use stays. */
#define PORT_STAYS		2u
#define PORT_MINORS		65536u
/* Major number of the ids of classes: minor.rs of crates/host/host-config. */
#define PORT_MAJOR		0x7073u
/* TC_PSP_LATE_BUCKETS of uapi/sch_psp.h */
#define PORT_LATE_BUCKETS	24u

/* What the qdisc counts of a class, and what waits.  It outlives images. */
struct port_slot {
	u32 packets;		/* that wait */
	u32 first;		/* place of the first of them */
	u64 bytes;
	u64 sent_packets;
	u64 sent_frames;
	u64 sent_bytes;		/* of frames, link header included */
	u64 sent_wire_bytes;
	u64 dropped_full;	/* packets that found the limit reached */
	u64 dropped_removed;	/* that waited when their class went */
	u64 dropped_late;	/* that waited for longer than the class's deadline */
	u64 dropped_long;	/* longer than the device takes */
	u64 borrowed_frames;	/* sent above the class's rate, below its ceil */
	u64 throttled;		/* times its next packet had to wait for its clock */
	u64 late_frames[PORT_LATE_BUCKETS];	/* struct tc_psp_class_stats */
	u32 last;		/* place of the last packet that waits */
	u32 unused;
};

/* A place for a packet that waits: port_view.h. */
struct port_packet {
	u64 came_ns;
	u32 next;		/* of its class, or of those that are free; or PORT_NO_PLACE */
	u32 unused;
};

/* A class in an image. */
struct port_class {
	struct pace_class pace;
	u32 minor;		/* 0: no class has this slot */
	u32 limit;		/* packets */
	u64 deadline_ns;	/* packets that waited for longer are dropped; 0: none */
	struct pace_reservation reservation;	/* of type rt or nrt */
	u64 unused;
};

struct port_image {
	struct pace_sched sched;
	u64 ready;		/* this image can be used */
	u32 default_slot;	/* of packets that nothing else gives a class */
	u32 rules;		/* of match.h, from rules_base on */
	u32 rules_base;
	u32 addresses;
	u32 net_cls;		/* whether senders' net_cls.classid counts */
	u32 link_bytes;		/* of the link header; 0: not Ethernet */
	u32 text_bytes;
	u32 unused;
	struct port_class *classes;	/* as many as the port has slots */
	u32 *slots;		/* by minor number: PORT_MINORS of them */
	/* The text follows, which belongs to processes alone. */
};

/*
 * A qdisc: the root's, or one of a transmit queue's below mq.  Its first members, up to
 * in_use, are where they are in any version.
 */
struct port {
	u64 netns;		/* number of the device's network namespace */
	u32 ifindex;
	u32 parent;		/* class id that the qdisc is at */
	u32 in_use;		/* by a qdisc */
	u32 current;		/* number of the image in use */
	u32 wanted;		/* and of the one that is to be, or PORT_STAYS */
	u32 free;		/* the first place that no packet has, or PORT_NO_PLACE */
	u64 images_taken;
	u64 dropped_unclassified;
	u64 dropped_lost;	/* without memory */
	u64 until_ns;		/* the last answer WAIT */
	struct port_image *image[2];
	struct port_slot *slot;
	s64 late_ps;		/* of the last answer SEND: struct pace_decision */
	struct port_packet *packet;	/* places */
	u64 armed_ns;		/* the watchdog runs out then */
	u32 packets_from;	/* in the map, that of the first place */
	u32 unused;
};

/*
 * At the start of the arena.  Its first members, up to port_bytes, are where they are
 * in any version.
 */
struct port_table {
	u32 version;
	u32 ports;
	struct port *port;	/* as many as `ports` */
	u32 port_bytes;
	/* What there is room for, of each port. */
	u32 slots;
	u32 rules;		/* in each image */
	u32 addresses;		/* in each image */
	u32 text_bytes;
	/* The ids of the maps beside the arena. */
	u32 rules_map;
	u32 addresses_map;
	u32 tables_map;
};

#define SAME_OFFSET(type, member, offset) \
	_Static_assert(__builtin_offsetof(struct type, member) == (offset), #type "." #member)
_Static_assert(sizeof(struct pace_sched) == 1104, "sched");
_Static_assert(sizeof(struct pace_class) == 256, "class");
_Static_assert(sizeof(struct port_table) == 48, "table");
_Static_assert(sizeof(struct port) == 120, "port");
_Static_assert(sizeof(struct port_slot) == 296, "slot");
_Static_assert(sizeof(struct port_packet) == 16, "packet");
_Static_assert(sizeof(struct port_class) == 384, "port's class");
_Static_assert(sizeof(struct port_image) == 1160, "image");
SAME_OFFSET(port_table, port, 8);
SAME_OFFSET(port_table, port_bytes, 16);
SAME_OFFSET(port_table, slots, 20);
SAME_OFFSET(port_table, text_bytes, 32);
SAME_OFFSET(port_table, rules_map, 36);
SAME_OFFSET(port_table, addresses_map, 40);
SAME_OFFSET(port_table, tables_map, 44);
SAME_OFFSET(port, parent, 12);
SAME_OFFSET(port, in_use, 16);
SAME_OFFSET(port, current, 20);
SAME_OFFSET(port, wanted, 24);
SAME_OFFSET(port, free, 28);
SAME_OFFSET(port, images_taken, 32);
SAME_OFFSET(port, dropped_unclassified, 40);
SAME_OFFSET(port, dropped_lost, 48);
SAME_OFFSET(port, image, 64);
SAME_OFFSET(port, slot, 80);
SAME_OFFSET(port, packet, 96);
SAME_OFFSET(port, packets_from, 112);
SAME_OFFSET(port_slot, bytes, 8);
SAME_OFFSET(port_slot, sent_packets, 16);
SAME_OFFSET(port_slot, sent_frames, 24);
SAME_OFFSET(port_slot, sent_bytes, 32);
SAME_OFFSET(port_slot, sent_wire_bytes, 40);
SAME_OFFSET(port_slot, dropped_full, 48);
SAME_OFFSET(port_slot, dropped_removed, 56);
SAME_OFFSET(port_slot, dropped_late, 64);
SAME_OFFSET(port_slot, dropped_long, 72);
SAME_OFFSET(port_slot, borrowed_frames, 80);
SAME_OFFSET(port_slot, throttled, 88);
SAME_OFFSET(port_slot, late_frames, 96);
SAME_OFFSET(port_class, minor, 256);
SAME_OFFSET(port_class, limit, 260);
SAME_OFFSET(port_class, deadline_ns, 264);
SAME_OFFSET(port_class, reservation, 272);
SAME_OFFSET(port_image, ready, 1104);
SAME_OFFSET(port_image, default_slot, 1112);
SAME_OFFSET(port_image, rules, 1116);
SAME_OFFSET(port_image, link_bytes, 1132);
SAME_OFFSET(port_image, text_bytes, 1136);
SAME_OFFSET(port_image, classes, 1144);
SAME_OFFSET(port_image, slots, 1152);

/* Of the core, what processes read. */
_Static_assert(sizeof(struct pace_reservation) == 104, "reservation");
_Static_assert(sizeof(struct pace_stats) == 168, "stats");
SAME_OFFSET(pace_sched, stats, 872);
SAME_OFFSET(pace_config, budget_bytes, 56);
SAME_OFFSET(pace_reservation, over, 64);
SAME_OFFSET(pace_reservation, catchup_bytes, 96);
SAME_OFFSET(pace_class, type, 4);
SAME_OFFSET(pace_sched, global_ps, 72);
SAME_OFFSET(pace_sched, offset_ps, 80);
SAME_OFFSET(pace_class, clock, 8);
SAME_OFFSET(pace_class, rate_bps, 24);

#define PORT_TABLE	((struct port_table *)ARENA_START)

static inline __attribute__((always_inline)) struct port *port_of(u32 at)
{
	return (struct port *)(u64)at;
}

static inline __attribute__((always_inline)) struct port_image *
port_image_of(const struct port *p)
{
	return p->image[p->current & 1];
}

/* Returns the number of the image that is wanted, or PORT_STAYS.  A process may change it. */
static inline __attribute__((always_inline)) u32 port_wish(const struct port *p)
{
	u32 wanted = *(const volatile u32 *)&p->wanted;

	return wanted < PORT_STAYS ? wanted : PORT_STAYS;
}

/* Returns the address of the port for a qdisc, which its functions are given; 0: there is none. */
ARENA_CODE u32 port_find(u64 netns, u32 ifindex, u32 parent)
{
	struct port *p = PORT_TABLE->port;
	u32 number;

	if (PORT_TABLE->version != PORT_VERSION)
		return 0;
	for (number = 0; number < PORT_TABLE->ports; number++, p++)
		if (p->netns == netns && p->ifindex == ifindex && p->parent == parent)
			return (u32)(u64)p;
	return 0;
}

/* Begins the use of a port by a qdisc.  Returns 0 or a negative error. */
ARENA_CODE int port_begin(u32 at)
{
	struct port *p = port_of(at);
	u32 wanted;

	if (p->in_use)
		return -16;	/* EBUSY */
	wanted = port_wish(p);
	if (wanted != PORT_STAYS)
		p->current = wanted;
	if (!port_image_of(p)->ready)
		return -22;	/* EINVAL */
	p->in_use = 1;
	return 0;
}

ARENA_CODE void port_end(u32 at)
{
	port_of(at)->in_use = 0;
}

/* Returns the first slot from `from` on in which packets wait, or PORT_NO_SLOT. */
ARENA_CODE u32 port_next_waiting(u32 at, u32 from)
{
	const struct port *p = port_of(at);
	u32 slots = PORT_TABLE->slots;

	for (; from < slots; from++)
		if (p->slot[from].packets)
			return from;
	return PORT_NO_SLOT;
}

/* Before port_activate(). */
ARENA_CODE void port_arrived(u32 at, u32 slot, u32 wire_bytes, u64 now_ns)
{
	struct port_image *image = port_image_of(port_of(at));

	pace_arrived(&image->sched, &image->classes[slot].pace, wire_bytes, now_ns);
}

/*
 * Tells the guard band how long a class's first packet is taken to be: one longest frame.
 * The packet lies in a list of the kernel's, and an unknown one counts as the longest
 * burst, which hardly ever ends before a paced frame is due.
 */
ARENA_CODE void port_note_head(struct port_image *image, struct pace_class *class)
{
	const struct pace_config *cfg = &image->sched.cfg;

	if (class->type == PACE_TYPE_NORMAL || class->type == PACE_TYPE_NRT)
		pace_set_head(&image->sched, class, cfg->max_frame_bytes + cfg->overhead_bytes);
}

ARENA_CODE void port_activate(u32 at, u32 slot, u64 now_ns)
{
	struct port *p = port_of(at);
	struct port_image *image = port_image_of(p);
	struct pace_class *class = &image->classes[slot].pace;

	if (image->sched.cfg.guard_band)
		port_note_head(image, class);
	pace_activate(&image->sched, class, now_ns);
	if (pace_is_throttled(&image->sched, class))
		p->slot[slot].throttled++;
}

/* Notes that packets of a class were dropped from its queue. */
ARENA_CODE void port_dropped(u32 at, u32 slot, u32 packets, u64 bytes)
{
	struct port_slot *s = &port_of(at)->slot[slot];

	s->dropped_removed += packets;
	s->packets -= packets;
	s->bytes -= bytes;
}

/* What becomes of a packet whose class is served. */
#define PORT_SENDS	0
#define PORT_LATE	1	/* it waited for longer than its class's deadline */
#define PORT_LONG	2	/* it is longer than the device takes, but for VLAN tags in it */

/*
 * Notes that a packet was dropped when its class was served.  No clock advances: the
 * next packet takes its place.
 */
ARENA_CODE void port_dropped_due(u32 at, u32 slot, u64 bytes_and_wire, u32 verdict,
				 u64 now_ns)
{
	struct port *p = port_of(at);
	struct port_image *image = port_image_of(p);
	struct port_slot *s = &p->slot[slot];

	if (verdict == PORT_LATE)
		s->dropped_late++;
	else
		s->dropped_long++;
	s->bytes -= bytes_and_wire >> 32;
	if (--s->packets) {
		pace_dropped(&image->sched, &image->classes[slot].pace, (u32)bytes_and_wire,
			     now_ns);
		if (image->sched.cfg.guard_band)
			port_note_head(image, &image->classes[slot].pace);
	} else {
		pace_deactivate(&image->sched, &image->classes[slot].pace, now_ns);
	}
}

/* Takes a class out of the schedule, none of whose packets wait any more. */
ARENA_CODE void port_emptied(u32 at, u32 slot, u64 now_ns)
{
	struct port *p = port_of(at);
	struct port_image *image = port_image_of(p);

	p->slot[slot].packets = 0;
	p->slot[slot].bytes = 0;
	pace_deactivate(&image->sched, &image->classes[slot].pace, now_ns);
}

/* What port_next() returns beside a slot. */
#define PORT_IDLE	(~0u)
#define PORT_WAIT	(~1u)

/* Returns the slot of the class to serve, PORT_WAIT: until port_until_ns(), or PORT_IDLE. */
ARENA_CODE u32 port_next(u32 at, u64 now_ns)
{
	struct port *p = port_of(at);
	struct port_image *image = port_image_of(p);
	struct pace_decision d = pace_next(&image->sched, now_ns);

	p->late_ps = d.late_ps;
	if (d.verdict == PACE_SEND && d.cls)
		return (u32)(((u64)d.cls - (u64)image->classes) / sizeof(struct port_class));
	p->until_ns = d.until_ns;
	return d.verdict == PACE_WAIT ? PORT_WAIT : PORT_IDLE;
}

/* Counts frames of a paced class by how late they left. */
static void port_count_late(const struct pace_sched *s, struct port_slot *slot, s64 late_ps,
			    u32 frames)
{
	u64 late_bytes = 0;
	u32 bucket = 0;

	/* The product fits: rates are at most 10^12 < 2^40. */
	if (late_ps > 0 && late_ps < 1 << 24)
		late_bytes = (u64)late_ps * s->cfg.line_rate_bps / PACE_BYTE_PS;
	else if (late_ps > 0)
		late_bytes = pace_mul_div((u64)late_ps, s->cfg.line_rate_bps, PACE_BYTE_PS);
	if (late_bytes)
		bucket = pace_highest_bit(late_bytes) + 1;
	if (bucket >= PORT_LATE_BUCKETS)
		bucket = PORT_LATE_BUCKETS - 1;
	slot->late_frames[bucket] += frames;
}

/*
 * Notes that a packet left: `frames` of them in len_bytes, wire_bytes on the
 * wire, and `queued_bytes` less wait.
 */
ARENA_CODE void port_sent(u32 at, u32 slot, u64 len_and_wire, u64 frames_and_queued,
			  u64 now_ns)
{
	struct port *p = port_of(at);
	struct port_image *image = port_image_of(p);
	struct port_slot *s = &p->slot[slot];
	u32 len_bytes = len_and_wire >> 32, wire_bytes = (u32)len_and_wire;
	u32 frames = frames_and_queued >> 32;
	u64 borrowed_frames = image->sched.stats.borrowed_frames;

	s->packets--;
	s->bytes -= (u32)frames_and_queued;
	s->sent_packets++;
	s->sent_frames += frames;
	s->sent_bytes += len_bytes;
	s->sent_wire_bytes += wire_bytes;
	pace_sent_burst(&image->sched, &image->classes[slot].pace, len_bytes, wire_bytes,
			frames, s->packets != 0, now_ns);
	if (s->packets && image->sched.cfg.guard_band)
		port_note_head(image, &image->classes[slot].pace);
	if (s->packets && pace_is_throttled(&image->sched, &image->classes[slot].pace))
		s->throttled++;
	s->borrowed_frames += image->sched.stats.borrowed_frames - borrowed_frames;
	if (image->classes[slot].pace.type == PACE_TYPE_PACED)
		port_count_late(&image->sched, s, p->late_ps, frames);
}

#endif
