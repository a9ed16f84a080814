/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What Rust must know of the core's memory.  Schedulers and classes are
 * opaque to it but for their size; what is passed by value or read is laid
 * out as ffi.rs says, or this file does not compile.
 */
#include <pace/pace_sched.h>

#define SAME_SIZE(type, bytes) \
	_Static_assert(sizeof(struct type) == (bytes), "size of " #type)
#define SAME_PLACE(type, field, at) \
	_Static_assert(offsetof(struct type, field) == (at), #type "." #field)

SAME_SIZE(pace_config, 72);
SAME_PLACE(pace_config, overhead_bytes, 8);
SAME_PLACE(pace_config, min_frame_bytes, 12);
SAME_PLACE(pace_config, max_frame_bytes, 16);
SAME_PLACE(pace_config, max_train_bytes, 20);
SAME_PLACE(pace_config, link_header_bytes, 24);
SAME_PLACE(pace_config, layer, 28);
SAME_PLACE(pace_config, order, 32);
SAME_PLACE(pace_config, mode, 36);
SAME_PLACE(pace_config, guard, 40);
SAME_PLACE(pace_config, aligned, 41);
SAME_PLACE(pace_config, period_ns, 48);
SAME_PLACE(pace_config, budget_bytes, 56);
SAME_PLACE(pace_config, align_ns, 64);

SAME_SIZE(pace_class_config, 48);
SAME_PLACE(pace_class_config, rate_bps, 8);
SAME_PLACE(pace_class_config, ceil_bps, 16);
SAME_PLACE(pace_class_config, quantum_bytes, 24);
SAME_PLACE(pace_class_config, reserve_bytes, 32);
SAME_PLACE(pace_class_config, stream, 40);

SAME_SIZE(pace_stream, 80);
SAME_PLACE(pace_stream, left_bytes, 16);
SAME_PLACE(pace_stream, place, 40);
SAME_PLACE(pace_stream, over, 48);
SAME_PLACE(pace_stream, late_bytes, 72);

SAME_SIZE(pace_decision, 40);
SAME_PLACE(pace_decision, cls, 8);
SAME_PLACE(pace_decision, gap_bytes, 16);
SAME_PLACE(pace_decision, until_ns, 24);
SAME_PLACE(pace_decision, late_bytes, 32);

SAME_SIZE(pace_stats, 160);
SAME_PLACE(pace_stats, gap_frames, 16);
SAME_PLACE(pace_stats, early_bytes_max, 32);
SAME_PLACE(pace_stats, shifts, 48);
SAME_PLACE(pace_stats, spare_frames, 64);
SAME_PLACE(pace_stats, waits, 80);
SAME_PLACE(pace_stats, lead_ns, 96);
SAME_PLACE(pace_stats, periods, 104);
SAME_PLACE(pace_stats, nrt_deferred, 152);

/* Both are made of u64 and narrower: allocated as u64. */
_Static_assert(_Alignof(struct pace_sched) <= 8, "alignment");
_Static_assert(_Alignof(struct pace_class) <= 8, "alignment");

const size_t pace_shim_sched_bytes = sizeof(struct pace_sched);
const size_t pace_shim_class_bytes = sizeof(struct pace_class);

void pace_shim_stats(const struct pace_sched *s, struct pace_stats *out);
u64 pace_shim_global(const struct pace_sched *s);
bool pace_shim_quiet(const struct pace_sched *s);
u32 pace_shim_class_id(const struct pace_class *c);
bool pace_shim_class_active(const struct pace_class *c);
u64 pace_shim_class_clock(const struct pace_sched *s,
			  const struct pace_class *c, u64 *frac);

void pace_shim_stats(const struct pace_sched *s, struct pace_stats *out)
{
	*out = s->stats;
}

u64 pace_shim_global(const struct pace_sched *s)
{
	return s->global;
}

bool pace_shim_quiet(const struct pace_sched *s)
{
	return s->quiet_until_ns;
}

u32 pace_shim_class_id(const struct pace_class *c)
{
	return c->id;
}

bool pace_shim_class_active(const struct pace_class *c)
{
	return c->active;
}

/* On the port's clock: with what all clocks were moved forward by. */
u64 pace_shim_class_clock(const struct pace_sched *s,
			  const struct pace_class *c, u64 *frac)
{
	*frac = c->clock.frac;
	return c->clock.bytes + s->offset;
}
