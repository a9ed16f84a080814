// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Configuration of the port and of its classes: check all, then change. */
#include "internal.h"
#include "line.h"

#define OVERHEAD_MAX	256u

enum pace_error pace_check_config(const struct pace_config *cfg)
{
	if (cfg->line_rate_bps < PACE_LINE_RATE_MIN ||
	    cfg->line_rate_bps > PACE_LINE_RATE_MAX)
		return PACE_ERR_LINE_RATE;
	if (!cfg->max_frame_bytes || cfg->max_frame_bytes > PACE_FRAME_MAX ||
	    cfg->max_frame_bytes < cfg->min_frame_bytes)
		return PACE_ERR_FRAME;
	if (cfg->overhead_bytes > OVERHEAD_MAX)
		return PACE_ERR_OVERHEAD;
	return PACE_OK;
}

/* Whole bytes and remainder by which len_bytes move a clock at rate_bps. */
static u64 advance_of(const struct pace_config *cfg, u64 rate_bps,
		      u32 len_bytes, u64 *rem)
{
	return pace_div_rem(pace_counted_bytes(cfg, len_bytes) *
			    cfg->line_rate_bps, rate_bps, rem);
}

static enum pace_error check_class(const struct pace_config *cfg,
				   enum pace_kind kind, u64 rate_bps,
				   u32 quantum_bytes)
{
	u64 quot, rem;

	if (kind == PACE_KIND_NORMAL) {
		if (quantum_bytes && (quantum_bytes < PACE_QUANTUM_MIN ||
				      quantum_bytes > PACE_QUANTUM_MAX))
			return PACE_ERR_QUANTUM;
		return PACE_OK;
	}
	if (!rate_bps)
		return PACE_ERR_RATE_ZERO;
	if (rate_bps > cfg->line_rate_bps)
		return PACE_ERR_RATE_LINE;
	quot = advance_of(cfg, rate_bps, cfg->max_frame_bytes, &rem);
	if (quot + (rem != 0) >= PACE_LEAD_MAX)
		return PACE_ERR_RATE_LOW;
	return PACE_OK;
}

enum pace_error pace_class_check(const struct pace_sched *s,
				 const struct pace_class_config *cfg)
{
	return check_class(&s->cfg, cfg->kind, cfg->rate_bps,
			   cfg->quantum_bytes);
}

/* Wire bit/s at len_bytes a frame, rounded up; more than the line is enough. */
static u64 demand_of(const struct pace_sched *s, u64 rate_bps, u32 len_bytes)
{
	u64 counted = pace_counted_bytes(&s->cfg, len_bytes);
	u64 quot, rem;

	quot = pace_div_rem(rate_bps * pace_wire_bytes(s, len_bytes), counted,
			    &rem);
	quot += rem != 0;
	return quot > s->cfg.line_rate_bps ? s->cfg.line_rate_bps + 1 : quot;
}

/* One largest frame at the class's rate; PACE_LEAD_MAX is not reached. */
static void set_period(const struct pace_sched *s, struct pace_class *c)
{
	u64 rem;
	u64 quot = advance_of(&s->cfg, c->rate_bps, s->cfg.max_frame_bytes,
			      &rem);

	c->period = quot + (rem != 0);
}

/*
 * Works out what frames of len_bytes cost a paced class: the divisions that
 * pace_sent() would otherwise do for each frame.
 */
void pace_class_price(const struct pace_sched *s, struct pace_class *c,
		      u32 len_bytes)
{
	u64 rem;
	u64 quot = advance_of(&s->cfg, c->rate_bps, len_bytes, &rem);

	/* Only a frame beyond max_frame gets here; clocks must stay close. */
	if (quot >= PACE_LEAD_MAX) {
		quot = PACE_LEAD_MAX - 1;
		rem = 0;
	}
	c->cached_len = len_bytes;
	c->cached_quot = quot;
	c->cached_rem = rem;
	c->demand_bps = demand_of(s, c->rate_bps, len_bytes);
}

static void set_kind(struct pace_sched *s, struct pace_class *c,
		     const struct pace_class_config *cfg)
{
	c->kind = cfg->kind;
	if (cfg->kind == PACE_KIND_NORMAL) {
		c->quantum_bytes = cfg->quantum_bytes;
		return;
	}
	if (c->rate_bps != cfg->rate_bps)
		pace_clock_round_up(c);
	c->rate_bps = cfg->rate_bps;
	set_period(s, c);
	pace_class_price(s, c, c->cached_len);
}

enum pace_error pace_class_add(struct pace_sched *s, struct pace_class *c,
			       const struct pace_class_config *cfg)
{
	enum pace_error err = pace_class_check(s, cfg);

	if (err)
		return err;
	if (pace_id_held(s, c))
		return PACE_ERR_BUSY;
	pace_memset(c, 0, sizeof(*c));
	c->id = PACE_ID_NONE;
	if (!pace_id_take(s, c))
		return PACE_ERR_FULL;
	/* It owes nothing: its turn is behind where it may start. */
	pace_clock_set(c, pace_schedule_clock(s) - PACE_LEAD_WINDOW);
	c->cached_len = s->cfg.max_frame_bytes;
	set_kind(s, c, cfg);
	return PACE_OK;
}

enum pace_error pace_class_change(struct pace_sched *s, struct pace_class *c,
				  const struct pace_class_config *cfg)
{
	enum pace_error err = pace_class_check(s, cfg);
	bool was_over;

	if (err)
		return err;
	if (!c->active) {
		set_kind(s, c, cfg);
		return PACE_OK;
	}
	if (c->kind != cfg->kind) {
		pace_leave(s, c);
		set_kind(s, c, cfg);
		pace_join(s, c);
		return PACE_OK;
	}
	if (c->kind == PACE_KIND_NORMAL) {
		set_kind(s, c, cfg);
		return PACE_OK;
	}
	was_over = pace_over_subscribed(s);
	pace_demand_sub(s, c);
	set_kind(s, c, cfg);
	pace_demand_add(s, c);
	if (s->cfg.order == PACE_ORDER_NEXT)
		pace_return(s, c);
	if (s->cfg.order != PACE_ORDER_CLOCK)
		pace_paced_moved(s, c);
	pace_lag_settle(s, was_over, NULL);
	return PACE_OK;
}

void pace_class_del(struct pace_sched *s, struct pace_class *c)
{
	if (!PACE_ASSERT(pace_id_held(s, c)))
		return;
	if (c->active)
		pace_leave(s, c);
	pace_id_give_back(s, c);
}

static void set_config(struct pace_sched *s, const struct pace_config *cfg)
{
	s->cfg = *cfg;
	s->max_wire_bytes = pace_wire_bytes(s, cfg->max_frame_bytes);
	s->min_gap_bytes = pace_wire_bytes(s, cfg->min_frame_bytes);
	if (!s->min_gap_bytes)
		s->min_gap_bytes = 1;
	s->slack_bytes = pace_line_bytes(cfg->line_rate_bps, PACE_SLACK_NS);
	s->stall_bytes = pace_line_bytes(cfg->line_rate_bps, PACE_STALL_NS);
}

enum pace_error pace_init(struct pace_sched *s, const struct pace_config *cfg,
			  void *storage, u32 capacity, u64 now_ns)
{
	enum pace_error err = pace_check_config(cfg);

	if (err)
		return err;
	pace_memset(s, 0, sizeof(*s));
	set_config(s, cfg);
	pace_set_storage(s, storage, capacity);
	pace_line_anchor(&s->line, 0, now_ns);
	return PACE_OK;
}

void pace_set_global(struct pace_sched *s, u64 global_bytes)
{
	if (!PACE_ASSERT(!s->id_end))
		return;
	s->global = global_bytes;
	s->served = global_bytes;
	s->idled = global_bytes;
	s->busy_until = global_bytes;
	pace_line_anchor(&s->line, global_bytes, s->line.ns);
}

/* The first class whose rate does not fit, or NULL. O(classes). */
static struct pace_class *find_culprit(const struct pace_sched *s,
				       const struct pace_config *cfg,
				       enum pace_error *err)
{
	u32 id;

	for (id = 0; id < s->id_end; id++) {
		struct pace_class *c = s->by_id[id];

		if (!c)
			continue;
		*err = check_class(cfg, c->kind, c->rate_bps,
				   c->quantum_bytes);
		if (*err)
			return c;
	}
	*err = PACE_OK;
	return NULL;
}

/* Prices all classes anew under the configuration just set. O(classes). */
static void price_all(struct pace_sched *s)
{
	u32 id;

	s->demand_bps = 0;
	for (id = 0; id < s->id_end; id++) {
		struct pace_class *c = s->by_id[id];

		if (!c)
			continue;
		if (c->cached_len > s->cfg.max_frame_bytes)
			c->cached_len = s->cfg.max_frame_bytes;
		if (c->kind != PACE_KIND_PACED)
			continue;
		set_period(s, c);
		pace_class_price(s, c, c->cached_len);
		if (c->active)
			pace_demand_add(s, c);
	}
}

enum pace_error pace_reconfigure(struct pace_sched *s,
				 const struct pace_config *cfg, u64 now_ns,
				 struct pace_class **culprit)
{
	enum pace_error err = pace_check_config(cfg);
	struct pace_class *bad = NULL;
	bool was_over = pace_over_subscribed(s);

	if (!err)
		bad = find_culprit(s, cfg, &err);
	if (culprit)
		*culprit = bad;
	if (err)
		return err;

	/* Up to now the line ran at its old rate. */
	pace_line_follow(&s->line, s->cfg.line_rate_bps, now_ns);
	pace_pass_time(s, now_ns);
	if (cfg->mode != s->cfg.mode) {
		pace_line_anchor(&s->line, s->global, s->line.ns);
		s->busy_until = s->global;
	}
	/* A largest frame may be another, and with it every next clock. */
	if (cfg->order != s->cfg.order || cfg->order == PACE_ORDER_NEXT)
		pace_paced_reorder(s, cfg->order);
	set_config(s, cfg);
	price_all(s);
	pace_lag_settle(s, was_over, NULL);
	return PACE_OK;
}
