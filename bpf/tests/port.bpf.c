// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a list of calls on a port of an arena, without a qdisc: a test compares the
 * answers with those of the same core outside BPF (crates/host/backend).
 */
#include "../arena.h"
#include "../port.h"

char LICENSE[] SEC("license") = "GPL";

enum call_kind {
	CALL_ENQUEUED,		/* slot, bytes */
	CALL_NEXT,
	CALL_SENT,		/* slot, length and wire, frames and queued */
	CALL_TAKE_IMAGE,
};

struct call {
	u64 now_ns;
	u32 kind;
	u32 slot;
	u64 first;
	u64 second;
	u64 answer;		/* NEXT: what port_next() returns */
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

SAME_OFFSET(pace_sched, global_ps, 72);
SAME_OFFSET(pace_sched, offset_ps, 80);
SAME_OFFSET(pace_class, active, 5);
SAME_OFFSET(pace_class, clock, 8);

static inline __attribute__((always_inline)) void run_call(struct call *c)
{
	switch (c->kind) {
	case CALL_ENQUEUED:
		if (port_enqueued(0, c->slot, (u32)c->first))
			port_activate(0, c->slot, c->now_ns);
		break;
	case CALL_NEXT:
		c->answer = port_next(0, c->now_ns);
		c->until_ns = port_until_ns(0);
		break;
	case CALL_SENT:
		port_sent(0, c->slot, c->first, c->second, c->now_ns);
		break;
	case CALL_TAKE_IMAGE:
		c->answer = port_newer_image(0);
		if (c->answer != PORT_STAYS)
			port_take_image(0, c->answer, c->now_ns);
		break;
	}
}

ARENA_CODE void run_calls(u64 start, u64 count)
{
	struct call *call = (struct call *)start;

	for (u64 n = 0; n < count; n++)
		run_call(&call[n]);
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
	__asm__ __volatile__("" : : "r"(&psp_arena));
	run_calls((u64)calls->call, calls->count);
	return 0;
}
