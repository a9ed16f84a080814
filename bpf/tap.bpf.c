// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shows frames that leave a device to whoever verifies what classes counted
 * (crates/monitor/verify): their first bytes, and what the kernel knows beside them.
 * It is a filter of a packet socket that keeps nothing, so no frame is copied or queued.
 *
 * Each processor shows so many frames in a spell.  Beyond, it shows one of N, chosen by
 * chance, N from the spell before; each record says how many frames it stands for.
 */
#include "edt_skb.h"

char LICENSE[] SEC("license") = "GPL";

/* Bytes of a frame that are shown.  crates/monitor/verify/src/tap.rs knows it. */
#define SHOWN_BYTES	160
#define SPELL_NS	1000000u

enum {
	PACKET_OUTGOING = 4,
	/* EtherTypes of psp's gap frames: of MAC control, and for local experiments. */
	ETH_MAC_CONTROL = 0x8808,
	ETH_EXPERIMENTAL = 0x88b5,
};

/* Where psp's gap frames go. */
static const u8 gap_address[6] = { 0x01, 0x80, 0xc2, 0, 0, 1 };

/* The loader sets them: the device, and the frames of a processor in a spell. */
const volatile u32 device;
const volatile u32 frames_max;

struct tap_record {
	u64 time_ns;		/* CLOCK_MONOTONIC */
	u32 len_bytes;
	u32 weight;		/* frames that it stands for */
	u32 mark;
	u32 priority;
	u32 interface;		/* that it came in through */
	u32 tag;		/* 1 << 16 | tag, if one is beside it */
	u32 protocol;		/* EtherType */
	u32 segments;		/* of a GSO packet */
	u32 segment_bytes;
	u32 shown_bytes;
	u8 bytes[SHOWN_BYTES];
};

struct tap_state {
	u64 frames;		/* packets as the device gets them */
	u64 bytes;
	u64 shown;
	u64 lost;		/* no room in the ring */
	u64 gaps;		/* psp's gap frames, which are none of those */
	u64 spell_ns;
	u32 of_spell;
	u32 one_in;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_RINGBUF);
	MAP_NUMBER(max_entries, 8 << 20);
} tap_records SEC(".maps");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct tap_state);
	MAP_NUMBER(max_entries, 1);
} tap_states SEC(".maps");

static u32 (*bpf_get_prandom_u32)(void) = (void *)7;

/* Is this one of psp's gap frames? */
INLINE int is_gap(struct __sk_buff *skb)
{
	u32 protocol = __builtin_bswap16(skb->protocol), differ = 0;
	u8 to[sizeof(gap_address)];

	if (protocol != ETH_MAC_CONTROL && protocol != ETH_EXPERIMENTAL)
		return 0;
	if (bpf_skb_load_bytes(skb, 0, to, sizeof(to)))
		return 0;
	for (u32 i = 0; i < sizeof(to); i++)
		differ |= to[i] ^ gap_address[i];
	return !differ;
}

/* Returns how many frames this one stands for; 0: it is not shown. */
INLINE u32 weight_of(struct tap_state *state, u64 now_ns)
{
	u32 one_in;

	if (now_ns - state->spell_ns >= SPELL_NS) {
		/* A spell may have lasted longer than it should, so silence lowers N at once. */
		state->one_in = state->of_spell / (frames_max ? frames_max : 1);
		if (now_ns - state->spell_ns >= 2 * SPELL_NS)
			state->one_in = 1;
		state->spell_ns = now_ns;
		state->of_spell = 0;
	}
	state->of_spell++;
	one_in = state->one_in;
	if (one_in <= 1)
		return 1;
	return bpf_get_prandom_u32() % one_in ? 0 : one_in;
}

SEC("socket")
int tap_frame(struct __sk_buff *skb)
{
	u32 zero = 0, len = skb->len, weight;
	struct tap_state *state;
	struct tap_record *r;
	u64 now_ns;
	long failed;

	if (skb->pkt_type != PACKET_OUTGOING || skb->ifindex != device)
		return 0;
	state = bpf_map_lookup_elem(&tap_states, &zero);
	if (!state)
		return 0;
	if (is_gap(skb)) {
		state->gaps++;
		return 0;
	}
	now_ns = bpf_ktime_get_ns();
	state->frames++;
	state->bytes += len;
	weight = weight_of(state, now_ns);
	if (!weight || !len)
		return 0;
	r = bpf_ringbuf_reserve(&tap_records, sizeof(*r), 0);
	if (!r) {
		state->lost += weight;
		return 0;
	}
	state->shown++;
	r->time_ns = now_ns;
	r->len_bytes = len;
	r->weight = weight;
	r->mark = skb->mark;
	r->priority = skb->priority;
	r->interface = skb->ingress_ifindex;
	r->tag = skb->vlan_present ? 1u << 16 | (skb->vlan_tci & 0xffff) : 0;
	r->protocol = __builtin_bswap16(skb->protocol);
	r->segments = skb->gso_segs;
	r->segment_bytes = skb->gso_size;
	if (len >= SHOWN_BYTES) {
		r->shown_bytes = SHOWN_BYTES;
		failed = bpf_skb_load_bytes(skb, 0, r->bytes, SHOWN_BYTES);
	} else {
		/* Linux 6.1 has to see both bounds here, and does not see one of "not 0". */
		__asm__ __volatile__("" : "+r"(len));
		r->shown_bytes = len;
		failed = -1;
		if (len > 13)
			failed = bpf_skb_load_bytes(skb, 0, r->bytes, len);
	}
	if (failed)
		r->shown_bytes = 0;
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}
