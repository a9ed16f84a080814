/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What programs read and write of a port themselves.  A call into .text costs more than
 * most of it; and a program's own accesses the compiler writes for an arena, which .text
 * needs to have rewritten (arena.h).
 *
 * Packets that wait are in a map, one in each place, since an arena cannot hold a packet.
 * Which of them follow each other is in the arena: a list for each slot, and one of the
 * places that are free.  A process has laid them out (crates/host/backend/src/qdisc/ports.rs), as
 * many as all classes of a port share.
 */
#ifndef BPF_PORT_VIEW_H
#define BPF_PORT_VIEW_H

#include "port_image.h"

#define IN_ARENA	__attribute__((address_space(1)))
/* Two readings of the clock may differ by as much, on two processors or while it is set. */
#define CLOCK_NS	1000u

typedef struct port IN_ARENA port_view;
typedef struct port_image IN_ARENA image_view;
typedef struct port_class IN_ARENA class_view;
typedef struct port_slot IN_ARENA slot_view;
typedef struct port_packet IN_ARENA packet_view;

INLINE port_view *view_port(u32 at)
{
	return (port_view *)(u64)at;
}

INLINE image_view *view_image(const port_view *p)
{
	return (image_view *)(u64)p->image[p->current & 1];
}

INLINE class_view *view_class(const image_view *image, u32 slot)
{
	return (class_view *)(u64)image->classes + slot;
}

INLINE slot_view *view_slot(const port_view *p, u32 slot)
{
	return (slot_view *)(u64)p->slot + slot;
}

INLINE packet_view *view_packet(const port_view *p, u32 place)
{
	return (packet_view *)(u64)p->packet + place;
}

/* Is another image wanted than that in use?  port_newer_image() says whether it can be. */
INLINE bool view_wants_image(const port_view *p)
{
	u32 wanted = *(const volatile u32 IN_ARENA *)&p->wanted;

	return wanted != p->current && wanted != PORT_STAYS;
}

/* Returns the slot of a class by its minor number, or PORT_NO_SLOT. */
INLINE u32 view_slot_of(const image_view *image, u32 minor)
{
	return ((const u32 IN_ARENA *)(u64)image->slots)[minor & (PORT_MINORS - 1)];
}

/* Puts the first free place behind those of a slot.  Whoever calls has seen that there is one. */
INLINE void view_push(port_view *p, slot_view *s, u64 now_ns)
{
	u32 place = p->free;
	packet_view *packet = view_packet(p, place);

	p->free = packet->next;
	packet->came_ns = now_ns;
	if (s->packets)
		view_packet(p, s->last)->next = place;
	else
		s->first = place;
	s->last = place;
}

/* Frees the first place of a slot, and returns when its packet came. */
INLINE u64 view_pop(port_view *p, slot_view *s)
{
	u32 place = s->first;
	packet_view *packet = view_packet(p, place);

	s->first = packet->next;
	packet->next = p->free;
	p->free = place;
	return packet->came_ns;
}

/*
 * Does the watchdog run out before the instant until which nothing leaves?  One that has just
 * run out may look as if it still ran.
 */
INLINE bool view_is_armed(const port_view *p, u64 until_ns, u64 now_ns)
{
	return now_ns + CLOCK_NS < p->armed_ns && p->armed_ns <= until_ns;
}

#endif
