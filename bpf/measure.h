/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures a packet as the device sends it: how many frames, of how many bytes.
 */
#ifndef MEASURE_H
#define MEASURE_H

#include "helpers.h"

/* Bytes of a VLAN tag. */
#define VLAN_BYTES	4
/* Up to this length a packet is no burst of BIG TCP. */
#define LEGACY_GSO_MAX	65536u
/* BIG TCP over IPv6 carries an option of this length that the device removes. */
#define JUMBO_BYTES	8

struct burst {
	u32 frames;
	u32 len_bytes;		/* with the headers of each frame */
	u32 wire_bytes;		/* padded, plus overhead */
};

/* What the kernel says of a burst of GSO. */
struct gso {
	u32 size;		/* payload of a frame; 0: the packet is one frame */
	u32 header_bytes;	/* of the packet; 0: not known (a tunnel's) */
	u32 jumbo_bytes;	/* of these, what the device removes */
	u32 segs;
	u32 estimate_bytes;	/* the kernel's, of all frames with their headers */
};

INLINE u32 on_wire(u32 bytes, u32 min_bytes, u32 overhead_bytes)
{
	return (bytes < min_bytes ? min_bytes : bytes) + overhead_bytes;
}

/*
 * Measures a packet: a burst as the frames that it becomes, each with its headers; a
 * VLAN tag of tag_bytes that the device inserts counts.  Of a burst whose headers are
 * not known the kernel's own estimate counts.
 */
INLINE void measure(struct burst *b, u32 len, u32 tag_bytes, const struct gso *gso,
		    u32 min_bytes, u32 overhead_bytes)
{
	u32 size = gso->size, header = gso->header_bytes, payload, last, frames;

	b->frames = 1;
	b->len_bytes = len + tag_bytes;
	b->wire_bytes = on_wire(b->len_bytes, min_bytes, overhead_bytes);
	if (!size)
		return;
	if (header && header < len) {
		payload = len - header;
		header += tag_bytes - gso->jumbo_bytes;
		frames = (payload + size - 1) / size;
		last = payload - (frames - 1) * size;
		b->frames = frames;
		b->len_bytes = payload + frames * header;
		b->wire_bytes = (frames - 1) *
				on_wire(header + size, min_bytes, overhead_bytes) +
				on_wire(header + last, min_bytes, overhead_bytes);
		return;
	}
	b->frames = gso->segs ? gso->segs : 1;
	b->len_bytes = gso->estimate_bytes + b->frames * tag_bytes;
	b->wire_bytes = b->len_bytes + b->frames * overhead_bytes;
}

#endif
