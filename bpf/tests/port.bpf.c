// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a list of calls on a port of an arena, without a qdisc: a test compares the
 * answers with those of the same core outside BPF (crates/host/backend).
 */
#include "../arena.h"
#include "../port_image.h"

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

ARENA_CODE u64 call_now_ns(u64 call)
{
	return ((const struct call *)call)->now_ns;
}

/* Returns what a call is << 32 | its slot. */
ARENA_CODE u64 call_kind(u64 call)
{
	const struct call *c = (const struct call *)call;

	return (u64)c->kind << 32 | c->slot;
}

ARENA_CODE u64 call_first(u64 call)
{
	return ((const struct call *)call)->first;
}

ARENA_CODE u64 call_second(u64 call)
{
	return ((const struct call *)call)->second;
}

ARENA_CODE void call_answer(u64 call, u64 answer, u64 until_ns)
{
	struct call *c = (struct call *)call;

	c->answer = answer;
	c->until_ns = until_ns;
}

ARENA_CODE void call_mul_div(u64 call)
{
	struct call *c = (struct call *)call;

	c->answer = pace_mul_div(c->first, c->second, c->now_ns);
}

/* Not in .text: the core's calls are as deep as BPF allows. */
INLINE void run_call(u64 call)
{
	u64 kind = call_kind(call), now_ns = call_now_ns(call);
	u32 slot = (u32)kind, answer;

	switch (kind >> 32) {
	case CALL_ENQUEUED:
		if (port_reports_arrivals(0, slot))
			port_arrived(0, slot, (u32)call_second(call), now_ns);
		if (port_enqueued(0, slot, (u32)call_first(call)))
			port_activate(0, slot, now_ns);
		break;
	case CALL_NEXT:
		answer = port_next(0, now_ns);
		call_answer(call, answer, port_until_ns(0));
		break;
	case CALL_SENT:
		port_sent(0, slot, call_first(call), call_second(call), now_ns);
		break;
	case CALL_DROPPED:
		port_dropped_due(0, slot, call_first(call), PORT_LATE, now_ns);
		break;
	case CALL_MUL_DIV:
		call_mul_div(call);
		break;
	case CALL_TAKE_IMAGE:
		answer = port_newer_image(0);
		if (answer != PORT_STAYS)
			port_take_image(0, answer, now_ns);
		break;
	}
}

SEC("syscall")
int begin(void)
{
	__asm__ __volatile__("" : : "r"(&psp_arena));
	return port_begin(0);
}

SEC("syscall")
int run(struct calls *calls)
{
	u64 call = (u64)calls->call, end = call + calls->count * sizeof(struct call);

	__asm__ __volatile__("" : : "r"(&psp_arena));
	for (; call < end && CAN_LOOP; call += sizeof(struct call))
		run_call(call);
	return 0;
}
