// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Configuration of the port and of its classes: check all, then change. */
#include "internal.h"
#include "line.h"
#include "period.h"

#define OVERHEAD_MAX	256u

static u32 padded(const struct pace_config *cfg, u32 len_bytes)
{
	return len_bytes < cfg->min_frame_bytes ? cfg->min_frame_bytes :
						  len_bytes;
}

u32 pace_wire_bytes(const struct pace_sched *s, u32 len_bytes)
{
	return padded(&s->cfg, len_bytes) + s->cfg.overhead_bytes;
}

static struct pace_train frame_of(const struct pace_config *cfg, u32 len_bytes)
{
	return (struct pace_train){
		.len_bytes = len_bytes,
		.frames = 1,
		.wire_bytes = padded(cfg, len_bytes) + cfg->overhead_bytes,
	};
}

/* The longest train, made of largest frames. */
static struct pace_train longest_train(const struct pace_config *cfg)
{
	struct pace_train t;

	if (!cfg->max_train_bytes)
		return frame_of(cfg, cfg->max_frame_bytes);
	t.len_bytes = cfg->max_train_bytes;
	t.frames = (t.len_bytes + cfg->max_frame_bytes - 1) /
		   cfg->max_frame_bytes;
	t.wire_bytes = t.len_bytes + t.frames * cfg->overhead_bytes;
	return t;
}

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
	if (cfg->max_train_bytes &&
	    (cfg->max_train_bytes < cfg->max_frame_bytes ||
	     cfg->max_train_bytes > PACE_FRAME_MAX ||
	     longest_train(cfg).wire_bytes > PACE_TRAIN_WIRE_MAX))
		return PACE_ERR_TRAIN;
	if (cfg->period_ns && (cfg->period_ns < PACE_PERIOD_NS_MIN ||
			       cfg->period_ns > PACE_PERIOD_NS_MAX))
		return PACE_ERR_PERIOD;
	if (cfg->budget_bytes > PACE_BUDGET_MAX)
		return PACE_ERR_BUDGET;
	return PACE_OK;
}

/* Whole bytes and remainder by which a train moves a clock of rate_bps. */
static u64 advance_of(const struct pace_config *cfg, u64 rate_bps,
		      const struct pace_train *t, u64 *rem)
{
	return pace_div_rem(pace_counted_bytes(cfg, t) * cfg->line_rate_bps,
			    rate_bps, rem);
}

/* The same for the longest train, rounded up: a period. */
static u64 period_of(const struct pace_config *cfg, u64 rate_bps)
{
	const struct pace_train t = longest_train(cfg);
	u64 rem;
	u64 quot = advance_of(cfg, rate_bps, &t, &rem);

	return quot + (rem != 0);
}

static enum pace_error check_stream(const struct pace_config *cfg,
				    const struct pace_class_config *c)
{
	if (!cfg->period_ns ||
	    pace_line_bytes(cfg->line_rate_bps, cfg->period_ns) <
	    longest_train(cfg).wire_bytes)
		return PACE_ERR_PERIOD;
	if (!cfg->budget_bytes)
		return PACE_ERR_BUDGET;
	if (!c->reserve_bytes || c->reserve_bytes > cfg->budget_bytes)
		return PACE_ERR_RESERVE;
	return PACE_OK;
}

static enum pace_error check_class(const struct pace_config *cfg,
				   const struct pace_class_config *c)
{
	if (c->kind == PACE_KIND_NORMAL) {
		if (c->quantum_bytes &&
		    (c->quantum_bytes < PACE_QUANTUM_MIN ||
		     c->quantum_bytes > PACE_QUANTUM_MAX))
			return PACE_ERR_QUANTUM;
		return PACE_OK;
	}
	if (pace_kind_has_stream(c->kind))
		return check_stream(cfg, c);
	if (!c->rate_bps)
		return PACE_ERR_RATE_ZERO;
	if (c->rate_bps > cfg->line_rate_bps)
		return PACE_ERR_RATE_LINE;
	if (period_of(cfg, c->rate_bps) >= PACE_LEAD_MAX)
		return PACE_ERR_RATE_LOW;
	if (c->ceil_bps && (c->ceil_bps < c->rate_bps ||
			    c->ceil_bps > cfg->line_rate_bps))
		return PACE_ERR_CEIL;
	return PACE_OK;
}

enum pace_error pace_class_check(const struct pace_sched *s,
				 const struct pace_class *c,
				 const struct pace_class_config *cfg)
{
	enum pace_error err = check_class(&s->cfg, cfg);

	if (!err && pace_kind_has_stream(cfg->kind) &&
	    cfg->reserve_bytes + pace_reserved_bytes(s, c) > s->cfg.budget_bytes)
		return PACE_ERR_RESERVED;
	return err;
}

/* Wire bit/s in such trains, rounded up; more than the line is enough. */
static u64 demand_of(const struct pace_sched *s, u64 rate_bps,
		     const struct pace_train *t)
{
	u64 quot, rem;

	quot = pace_div_rem(rate_bps * t->wire_bytes,
			    pace_counted_bytes(&s->cfg, t), &rem);
	quot += rem != 0;
	return quot > s->cfg.line_rate_bps ? s->cfg.line_rate_bps + 1 : quot;
}

/* What a train moves a clock of rate_bps by; such that clocks stay close. */
static u64 price_of(const struct pace_sched *s, u64 rate_bps,
		    const struct pace_train *t, u64 *rem)
{
	u64 quot = advance_of(&s->cfg, rate_bps, t, rem);

	/* Only a frame beyond max_frame, or a train of tiny ones, gets here. */
	if (quot >= PACE_LEAD_MAX) {
		quot = PACE_LEAD_MAX - 1;
		*rem = 0;
	}
	return quot;
}

/*
 * Works out what such trains cost a paced class: the divisions that
 * pace_sent() would otherwise do for each.
 */
void pace_class_price(const struct pace_sched *s, struct pace_class *c,
		      const struct pace_train *t)
{
	c->last = *t;
	c->rate_quot = price_of(s, c->rate_bps, t, &c->rate_rem);
	if (c->ceil_bps)
		c->ceil_quot = price_of(s, c->ceil_bps, t, &c->ceil_rem);
	c->demand_bps = demand_of(s, c->rate_bps, t);
}

static void set_kind(struct pace_sched *s, struct pace_class *c,
		     const struct pace_class_config *cfg)
{
	const struct pace_train last = c->last;
	u64 ceil_bps = 0;

	if (c->stream && c->kind != cfg->kind)
		pace_stream_end(s, c);
	c->kind = cfg->kind;
	c->head_wire_bytes = 0;
	if (pace_kind_has_stream(cfg->kind)) {
		pace_stream_begin(s, c, cfg);
		return;
	}
	if (cfg->kind == PACE_KIND_NORMAL) {
		c->quantum_bytes = cfg->quantum_bytes;
		return;
	}
	/* At its rate already, a ceil leaves nothing to share. */
	if (cfg->ceil_bps > cfg->rate_bps)
		ceil_bps = cfg->ceil_bps;
	if (c->rate_bps != cfg->rate_bps) {
		pace_clock_round_up(&c->clock);
		pace_clock_round_up(&c->spare_clock);
	}
	if (c->ceil_bps != ceil_bps)
		pace_clock_round_up(&c->ceil_clock);
	if (!c->ceil_bps)
		pace_ceil_return(s, c);
	c->rate_bps = cfg->rate_bps;
	c->ceil_bps = ceil_bps;
	c->sharing = ceil_bps != 0;
	c->period = period_of(&s->cfg, c->rate_bps);
	pace_class_price(s, c, &last);
	pace_start_follow(c);
}

enum pace_error pace_class_add(struct pace_sched *s, struct pace_class *c,
			       const struct pace_class_config *cfg)
{
	enum pace_error err = pace_class_check(s, NULL, cfg);

	if (err)
		return err;
	if (pace_id_held(s, c))
		return PACE_ERR_BUSY;
	pace_stir(s);
	pace_memset(c, 0, sizeof(*c));
	c->id = PACE_ID_NONE;
	if (!pace_id_take(s, c))
		return PACE_ERR_FULL;
	/* It owes nothing: its turn is behind where it may start. */
	pace_clock_set(&c->clock, pace_schedule_clock(s) - PACE_LEAD_WINDOW);
	pace_clock_set(&c->ceil_clock, c->clock.bytes);
	pace_clock_set(&c->spare_clock, s->spare_time);
	c->last = frame_of(&s->cfg, s->cfg.max_frame_bytes);
	set_kind(s, c, cfg);
	return PACE_OK;
}

enum pace_error pace_class_change(struct pace_sched *s, struct pace_class *c,
				  const struct pace_class_config *cfg)
{
	enum pace_error err = pace_class_check(s, c, cfg);
	bool was_over, had_ceil;

	if (err)
		return err;
	pace_stir(s);
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
	if (c->kind != PACE_KIND_PACED) {
		set_kind(s, c, cfg);
		return PACE_OK;
	}
	was_over = pace_over_subscribed(s);
	had_ceil = c->ceil_bps;
	pace_demand_sub(s, c);
	if (had_ceil)
		pace_spare_take(s, c);
	set_kind(s, c, cfg);
	pace_demand_add(s, c);
	if (s->cfg.order == PACE_ORDER_NEXT)
		pace_return(s, c);
	if (c->ceil_bps)
		pace_spare_put(s, c);
	if (s->cfg.order != PACE_ORDER_CLOCK || had_ceil || c->ceil_bps)
		pace_paced_moved(s, c);
	pace_lag_settle(s, was_over, NULL);
	return PACE_OK;
}

void pace_class_del(struct pace_sched *s, struct pace_class *c)
{
	if (!PACE_ASSERT(pace_id_held(s, c)))
		return;
	pace_stir(s);
	if (c->active)
		pace_leave(s, c);
	if (c->stream)
		pace_stream_end(s, c);
	pace_id_give_back(s, c);
}

static void set_config(struct pace_sched *s, const struct pace_config *cfg)
{
	s->cfg = *cfg;
	s->max_wire_bytes = pace_wire_bytes(s, cfg->max_frame_bytes);
	s->train_wire_bytes = longest_train(cfg).wire_bytes;
	s->min_gap_bytes = pace_wire_bytes(s, cfg->min_frame_bytes);
	if (!s->min_gap_bytes)
		s->min_gap_bytes = 1;
	s->slack_bytes = pace_line_bytes(cfg->line_rate_bps, PACE_SLACK_NS);
	s->stall_bytes = pace_line_bytes(cfg->line_rate_bps, PACE_STALL_NS);
	s->timer_bytes = 0;
	if (cfg->mode == PACE_MODE_TIMER)
		s->timer_bytes = s->stall_bytes;
	else if (cfg->mode == PACE_MODE_HYBRID)
		s->timer_bytes = pace_line_bytes(cfg->line_rate_bps,
						 PACE_LEAD_NS_MAX);
	pace_lead_set(s, s->stats.lead_ns ? s->stats.lead_ns :
					    PACE_LEAD_NS_FIRST);
	pace_period_set(s);
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
		*err = check_class(cfg, &(struct pace_class_config){
					.kind = c->kind,
					.rate_bps = c->rate_bps,
					.ceil_bps = c->ceil_bps,
					.quantum_bytes = c->quantum_bytes,
					.reserve_bytes = c->stream ?
						c->stream->reserve_bytes : 0,
				   });
		if (*err)
			return c;
	}
	*err = s->period.classes && s->period.reserved_bytes > cfg->budget_bytes ?
	       PACE_ERR_RESERVED : PACE_OK;
	return NULL;
}

/* Prices all classes anew under the configuration just set. O(classes). */
static void price_all(struct pace_sched *s)
{
	u32 id;

	s->demand_bps = 0;
	for (id = 0; id < s->id_end; id++) {
		struct pace_class *c = s->by_id[id];

		struct pace_train t;

		if (!c)
			continue;
		/* One frame, until the next train says what it is now. */
		t = frame_of(&s->cfg, c->last.len_bytes);
		if (t.len_bytes > s->cfg.max_frame_bytes)
			t = frame_of(&s->cfg, s->cfg.max_frame_bytes);
		c->last = t;
		if (c->kind != PACE_KIND_PACED)
			continue;
		c->period = period_of(&s->cfg, c->rate_bps);
		pace_class_price(s, c, &t);
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

	pace_stir(s);
	/* Up to now the line ran at its old rate. */
	pace_pass_time(s, now_ns);
	pace_line_follow(&s->line, s->cfg.line_rate_bps, now_ns);
	if (cfg->mode != s->cfg.mode) {
		pace_line_anchor(&s->line, s->global, s->line.ns);
		s->busy_until = s->global;
		pace_handed_out(s);
	}
	/* A largest frame may be another, and with it every next clock. */
	if (cfg->order != s->cfg.order || cfg->order == PACE_ORDER_NEXT)
		pace_paced_reorder(s, cfg->order);
	set_config(s, cfg);
	price_all(s);
	pace_lag_settle(s, was_over, NULL);
	return PACE_OK;
}
