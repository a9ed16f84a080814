/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Shows Rust the core's memory.  Schedulers and classes are opaque to it but
 * for their size.  What is passed by value or read has the layout that
 * layout.rs says too: if one side is changed alone, that side does not compile.
 */
#include "pace.c"

#define SAME_SIZE(type, bytes) \
	_Static_assert(sizeof(type) == (bytes), "size of " #type)
#define SAME_OFFSET(type, field, at) \
	_Static_assert(offsetof(struct type, field) == (at), #type "." #field)

SAME_SIZE(struct pace_config, 72);
SAME_OFFSET(pace_config, line_rate_bps, 0);
SAME_OFFSET(pace_config, overhead_bytes, 8);
SAME_OFFSET(pace_config, min_frame_bytes, 12);
SAME_OFFSET(pace_config, max_frame_bytes, 16);
SAME_OFFSET(pace_config, max_burst_bytes, 20);
SAME_OFFSET(pace_config, link_header_bytes, 24);
SAME_OFFSET(pace_config, layer, 28);
SAME_OFFSET(pace_config, order, 32);
SAME_OFFSET(pace_config, mode, 36);
SAME_OFFSET(pace_config, guard_band, 40);
SAME_OFFSET(pace_config, aligned, 41);
SAME_OFFSET(pace_config, period_ns, 48);
SAME_OFFSET(pace_config, budget_bytes, 56);
SAME_OFFSET(pace_config, align_ns, 64);

SAME_SIZE(struct pace_class_config, 48);
SAME_OFFSET(pace_class_config, type, 0);
SAME_OFFSET(pace_class_config, launches, 4);
SAME_OFFSET(pace_class_config, rate_bps, 8);
SAME_OFFSET(pace_class_config, ceil_bps, 16);
SAME_OFFSET(pace_class_config, quantum_bytes, 24);
SAME_OFFSET(pace_class_config, reserve_bytes, 32);
SAME_OFFSET(pace_class_config, reservation, 40);

SAME_SIZE(struct pace_reservation, 104);
SAME_OFFSET(pace_reservation, reserve_bytes, 0);
SAME_OFFSET(pace_reservation, period, 8);
SAME_OFFSET(pace_reservation, left_bytes, 16);
SAME_OFFSET(pace_reservation, late_left_bytes, 24);
SAME_OFFSET(pace_reservation, credit_bytes, 32);
SAME_OFFSET(pace_reservation, backlog_wire_bytes, 40);
SAME_OFFSET(pace_reservation, gated_wire_bytes, 48);
SAME_OFFSET(pace_reservation, ring, 56);
SAME_OFFSET(pace_reservation, over, 64);
SAME_OFFSET(pace_reservation, deferred, 72);
SAME_OFFSET(pace_reservation, overrun, 80);
SAME_OFFSET(pace_reservation, excess, 88);
SAME_OFFSET(pace_reservation, catchup_bytes, 96);

SAME_SIZE(struct pace_burst, 12);
SAME_OFFSET(pace_burst, len_bytes, 0);
SAME_OFFSET(pace_burst, frames, 4);
SAME_OFFSET(pace_burst, wire_bytes, 8);

SAME_SIZE(struct pace_decision, 40);
SAME_OFFSET(pace_decision, verdict, 0);
SAME_OFFSET(pace_decision, cls, 8);
SAME_OFFSET(pace_decision, gap_bytes, 16);
SAME_OFFSET(pace_decision, until_ns, 24);
SAME_OFFSET(pace_decision, late_ps, 32);

SAME_SIZE(struct pace_stats, 168);
SAME_OFFSET(pace_stats, sent_frames, 0);
SAME_OFFSET(pace_stats, sent_wire_bytes, 8);
SAME_OFFSET(pace_stats, gap_frames, 16);
SAME_OFFSET(pace_stats, gap_wire_bytes, 24);
SAME_OFFSET(pace_stats, early_max_ps, 32);
SAME_OFFSET(pace_stats, late_max_ps, 40);
SAME_OFFSET(pace_stats, rebases, 48);
SAME_OFFSET(pace_stats, rebased_ps, 56);
SAME_OFFSET(pace_stats, borrowed_frames, 64);
SAME_OFFSET(pace_stats, guard_band_held, 72);
SAME_OFFSET(pace_stats, waits, 80);
SAME_OFFSET(pace_stats, wait_late_max_ns, 88);
SAME_OFFSET(pace_stats, lead_ns, 96);
SAME_OFFSET(pace_stats, periods, 104);
SAME_OFFSET(pace_stats, periods_spent, 112);
SAME_OFFSET(pace_stats, rt_over, 120);
SAME_OFFSET(pace_stats, rt_deferred, 128);
SAME_OFFSET(pace_stats, rt_overrun, 136);
SAME_OFFSET(pace_stats, rt_catchup_bytes, 144);
SAME_OFFSET(pace_stats, nrt_deferred, 152);
SAME_OFFSET(pace_stats, rt_excess, 160);

SAME_SIZE(enum pace_layer, 4);
SAME_SIZE(enum pace_order, 4);
SAME_SIZE(enum pace_mode, 4);
SAME_SIZE(enum pace_type, 4);
SAME_SIZE(enum pace_verdict, 4);
SAME_SIZE(enum pace_error, 4);


/* Both are made of u64 and narrower: allocated as u64. */
_Static_assert(_Alignof(struct pace_sched) <= 8, "alignment");
_Static_assert(_Alignof(struct pace_class) <= 8, "alignment");

/* The enumerators in the order of layout.rs, whose test compares them. */
const u32 pace_shim_values[] = {
	PACE_LAYER_LINK, PACE_LAYER_WIRE, PACE_LAYER_IP, PACE_ORDER_CLOCK,
	PACE_ORDER_RATE, PACE_ORDER_NEXT, PACE_MODE_GAP, PACE_MODE_TIMER,
	PACE_MODE_HYBRID, PACE_TYPE_PACED, PACE_TYPE_NORMAL, PACE_TYPE_RT,
	PACE_TYPE_NRT, PACE_SEND, PACE_GAP, PACE_WAIT, PACE_ERR_LINE_RATE,
	PACE_ERR_RATE_ZERO, PACE_ERR_RATE_LINE, PACE_ERR_RATE_LOW,
	PACE_ERR_FRAME, PACE_ERR_OVERHEAD, PACE_ERR_FULL, PACE_ERR_BUSY,
	PACE_ERR_QUANTUM, PACE_ERR_CEIL, PACE_ERR_BURST, PACE_ERR_PERIOD,
	PACE_ERR_BUDGET, PACE_ERR_RESERVE, PACE_ERR_RESERVED,
};

const u32 pace_shim_values_count =
	sizeof(pace_shim_values) / sizeof(*pace_shim_values);

const size_t pace_shim_sched_bytes = sizeof(struct pace_sched);
const size_t pace_shim_class_bytes = sizeof(struct pace_class);
const size_t pace_shim_group_bytes = sizeof(struct pace_group);
_Static_assert(offsetof(struct pace_group, inner) == 0, "a group is its scheduler, too");

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
	return s->global_ps;
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
	return c->clock.ps + s->offset_ps;
}

/* What queues of a device share, its slots and all parts in one block. */
size_t pace_shim_device_bytes(u32 slots);
size_t pace_shim_common_bytes(u32 slots);
void pace_shim_device_init(struct pace_device *d, u32 slots);
void pace_shim_common_init(struct pace_common *k, u32 slots);
struct pace_part *pace_shim_device_part(struct pace_device *d, u32 slot);
struct pace_part *pace_shim_common_part(struct pace_common *k, u32 slot);
u64 pace_shim_common_clock_ps(const struct pace_common *k);
u64 pace_shim_device_loads_bps(const struct pace_device *d);
void pace_shim_backlog(struct pace_class *c, u64 bytes);

static size_t parts_bytes(u32 slots)
{
	return slots * (sizeof(struct pace_part *) + sizeof(struct pace_part));
}

size_t pace_shim_device_bytes(u32 slots)
{
	return sizeof(struct pace_device) + parts_bytes(slots);
}

size_t pace_shim_common_bytes(u32 slots)
{
	return sizeof(struct pace_common) + parts_bytes(slots);
}

void pace_shim_common_init(struct pace_common *k, u32 slots)
{
	struct pace_part *parts = (struct pace_part *)(k->part + slots);
	u32 i;

	k->slots = slots;
	for (i = 0; i < slots; i++) {
		k->part[i] = &parts[i];
		parts[i].common = k;
	}
}

void pace_shim_device_init(struct pace_device *d, u32 slots)
{
	pace_shim_common_init(&d->line, slots);
	d->queues = slots;
}

struct pace_part *pace_shim_common_part(struct pace_common *k, u32 slot)
{
	return k->part[slot];
}

u64 pace_shim_common_clock_ps(const struct pace_common *k)
{
	return pace_atomic_read(&k->clock_ps);
}

u64 pace_shim_device_loads_bps(const struct pace_device *d)
{
	return pace_atomic_read(&d->line.loads_bps);
}

struct pace_part *pace_shim_device_part(struct pace_device *d, u32 slot)
{
	return d->line.part[slot];
}

void pace_shim_backlog(struct pace_class *c, u64 bytes)
{
	if (c->type == PACE_TYPE_PACED && c->part)
		c->part->backlog_bytes = bytes;
}

/* The queue alone, for tests. */
size_t pace_shim_pool_bytes(u32 capacity);
struct pace_pool *pace_shim_pool_init(void *memory, u32 capacity);
size_t pace_shim_queue_bytes(u32 capacity);
u32 pace_shim_queue_gather(struct pace_queue *q);
void pace_shim_queue_resize(struct pace_queue *q, struct pace_pool *pool,
			    void *memory, u32 capacity, const u64 *key, u32 keys);
void pace_shim_queue_wheel_from(struct pace_queue *q, u32 keys);
void pace_shim_queue_insert(struct pace_queue *q, u64 key);
void pace_shim_queue_pop(struct pace_queue *q);
void pace_shim_queue_replace_min(struct pace_queue *q, u64 key);
u64 pace_shim_queue_second(const struct pace_queue *q);
u32 pace_shim_queue_coming(const struct pace_queue *q, u32 ahead);

size_t pace_shim_pool_bytes(u32 capacity)
{
	return pace_pool_bytes(capacity);
}

struct pace_pool *pace_shim_pool_init(void *memory, u32 capacity)
{
	return pace_pool_init(memory, capacity);
}

size_t pace_shim_queue_bytes(u32 capacity)
{
	return pace_queue_bytes(capacity);
}

u32 pace_shim_queue_gather(struct pace_queue *q)
{
	return pace_queue_gather(q);
}

void pace_shim_queue_resize(struct pace_queue *q, struct pace_pool *pool,
			    void *memory, u32 capacity, const u64 *key, u32 keys)
{
	pace_queue_resize(q, pool, memory, capacity, key, keys);
}

void pace_shim_queue_wheel_from(struct pace_queue *q, u32 keys)
{
	pace_queue_wheel_from(q, keys);
}

void pace_shim_queue_insert(struct pace_queue *q, u64 key)
{
	pace_queue_insert(q, key);
}

void pace_shim_queue_pop(struct pace_queue *q)
{
	pace_queue_pop(q);
}

void pace_shim_queue_replace_min(struct pace_queue *q, u64 key)
{
	pace_queue_replace_min(q, key);
}

u64 pace_shim_queue_second(const struct pace_queue *q)
{
	return pace_queue_second(q);
}

u32 pace_shim_queue_coming(const struct pace_queue *q, u32 ahead)
{
	return pace_queue_coming(q, ahead);
}
