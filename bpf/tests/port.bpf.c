// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a list of calls on a port of an arena, without a qdisc: a test compares the
 * answers with those of the same core outside BPF (crates/host/backend).
 */
#include "../arena.h"
#include "../port_view.h"

char LICENSE[] SEC("license") = "GPL";

enum call_kind {
	CALL_ENQUEUED,		/* slot, bytes, wire bytes */
	CALL_NEXT,
	CALL_SENT,		/* slot, length and wire, frames and queued */
	CALL_DROPPED,		/* slot, bytes and wire */
	CALL_MUL_DIV,		/* first x second / now_ns */
	CALL_TAKE_IMAGE,
};

struct call {
	u64 now_ns;
	u32 kind;
	u32 slot;
	u64 first;
	u64 second;
	u64 answer;		/* NEXT: what port_next() returns; MUL_DIV: the quotient */
	u64 until_ns;		/* NEXT: as of PORT_WAIT */
};

/* The calls: where in the arena, and how many. */
struct calls {
	struct call *call;
	u64 count;
};

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARENA);
	MAP_NUMBER(map_flags, BPF_F_MMAPABLE);
	MAP_NUMBER(max_entries, 1);
} psp_arena SEC(".maps");

SAME_OFFSET(pace_class, active, 5);

ARENA_CODE void call_mul_div(u64 call)
{
	struct call *c = (struct call *)call;

	c->answer = pace_mul_div(c->first, c->second, c->now_ns);
}

/* Not in .text: the core's calls are as deep as BPF allows. */
INLINE void run_call(u32 port, struct call IN_ARENA *call)
{
	port_view *p = view_port(port);
	u32 slot = call->slot, answer;
	u64 now_ns = call->now_ns;
	slot_view *s = view_slot(p, slot);

	switch (call->kind) {
	case CALL_ENQUEUED:
		if (view_class(view_image(p), slot)->pace.type == PACE_TYPE_RT)
			port_arrived(port, slot, call->second, now_ns);
		s->bytes += (u32)call->first;
		if (++s->packets == 1)
			port_activate(port, slot, now_ns);
		break;
	case CALL_NEXT:
		call->answer = port_next(port, now_ns);
		call->until_ns = p->until_ns;
		break;
	case CALL_SENT:
		port_sent(port, slot, call->first, call->second, now_ns);
		break;
	case CALL_DROPPED:
		port_dropped_due(port, slot, call->first, PORT_LATE, now_ns);
		break;
	case CALL_MUL_DIV:
		call_mul_div((u64)call);
		break;
	case CALL_TAKE_IMAGE:
		answer = port_newer_image(port);
		if (answer != PORT_STAYS)
			port_take_image(port, answer, now_ns);
		break;
	}
}

INLINE u32 first_port(void)
{
	return (u32)(u64)((const struct port_table IN_ARENA *)ARENA_START)->port;
}

SEC("syscall")
int begin(void)
{
	__asm__ __volatile__("" : : "r"(&psp_arena));
	return port_begin(first_port());
}

SEC("syscall")
int run(struct calls *calls)
{
	struct call IN_ARENA *call = (struct call IN_ARENA *)(u64)calls->call;
	u64 count = calls->count;
	u32 port;

	__asm__ __volatile__("" : : "r"(&psp_arena));
	port = first_port();
	for (u64 number = 0; number < count && CAN_LOOP; number++)
		run_call(port, call + number);
	return 0;
}
