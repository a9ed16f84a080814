// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Configures the port and its classes.  Each call checks everything before it
 * changes anything.
 */
#include <pace/pace_sched.h>

enum pace_error pace_class_check(const struct pace_sched *s,
				 const struct pace_class *c,
				 const struct pace_class_config *cfg)
{
	enum pace_error err = check_class(&s->cfg, cfg);

	if (!err && pace_type_reserves(cfg->type) &&
	    cfg->reserve_bytes + pace_reserved_bytes(s, c) > s->cfg.budget_bytes)
		return PACE_ERR_RESERVED;
	return err;
}

static void set_max_cost(struct pace_sched *s, struct pace_class *c)
{
	c->max_cost_ps = class_max_cost(s, c);
	if (c->max_cost_ps < s->least_cost_ps)
		s->least_cost_ps = c->max_cost_ps;
}

static void configure_class(struct pace_sched *s, struct pace_class *c,
			    const struct pace_class_config *cfg)
{
	const struct pace_burst last = c->last;
	u64 now = pace_schedule_clock(s);
	u64 ceil_bps = 0;

	if (c->reservation && c->type != cfg->type)
		pace_reservation_end(s, c);
	if (cfg->type != PACE_TYPE_PACED)
		pace_class_leave(s, c);
	c->type = cfg->type;
	c->launches = cfg->type == PACE_TYPE_PACED && cfg->launches;
	if (!c->launches)
		c->launch_ns = 0;
	c->head_wire_bytes = 0;
	if (pace_type_reserves(cfg->type)) {
		pace_reservation_begin(s, c, cfg);
		return;
	}
	if (cfg->type == PACE_TYPE_NORMAL) {
		c->quantum_bytes = cfg->quantum_bytes;
		return;
	}
	/* A ceil at the rate leaves nothing to borrow. */
	if (cfg->ceil_bps > cfg->rate_bps)
		ceil_bps = cfg->ceil_bps;
	pace_clock_rescale(&c->clock, now, c->rate_bps, cfg->rate_bps);
	pace_clock_rescale(&c->borrow_clock, s->borrow_time_ps, c->rate_bps, cfg->rate_bps);
	if (ceil_bps)
		pace_clock_rescale(&c->ceil_clock, now, c->ceil_bps, ceil_bps);
	if (!c->ceil_bps)
		pace_ceil_return(s, c);
	c->rate_bps = cfg->rate_bps;
	c->ceil_bps = ceil_bps;
	c->has_ceil = ceil_bps != 0;
	set_max_cost(s, c);
	pace_class_set_frame_cost(s, c, &last);
	pace_eligible_update(c);
}

enum pace_error pace_class_add(struct pace_sched *s, struct pace_class *c,
			       const struct pace_class_config *cfg)
{
	enum pace_error err = pace_class_check(s, NULL, cfg);

	if (err)
		return err;
	if (pace_id_held(s, c))
		return PACE_ERR_BUSY;
	pace_invalidate(s);
	pace_memset(c, 0, sizeof(*c));
	c->id = PACE_ID_NONE;
	if (!pace_id_alloc(s, c))
		return PACE_ERR_FULL;
	pace_class_forget(s, c);
	c->left_at = silent_unit(s->asked_ns);
	c->last = frame_of(&s->cfg, s->cfg.max_frame_bytes);
	configure_class(s, c, cfg);
	return PACE_OK;
}

enum pace_error pace_class_change(struct pace_sched *s, struct pace_class *c,
				  const struct pace_class_config *cfg, u64 now_ns)
{
	enum pace_error err = pace_class_check(s, c, cfg);
	bool was_over, had_ceil;

	if (err)
		return err;
	/* The new rate counts from now on. */
	pace_invalidate(s);
	pace_advance_clock(s, now_ns);
	if (!c->active) {
		pace_part_rescale(s, c, cfg);
		configure_class(s, c, cfg);
		return PACE_OK;
	}
	if (c->type != cfg->type || pace_is_launching(c) || pace_is_resting(c) ||
	    (c->type == PACE_TYPE_PACED && c->part)) {
		pace_unschedule_class(s, c);
		pace_part_rescale(s, c, cfg);
		configure_class(s, c, cfg);
		pace_schedule_class(s, c, now_ns);
		return PACE_OK;
	}
	if (c->type != PACE_TYPE_PACED) {
		configure_class(s, c, cfg);
		return PACE_OK;
	}
	was_over = pace_over_subscribed(s);
	had_ceil = c->ceil_bps;
	pace_load_sub(s, c);
	if (had_ceil)
		pace_borrow_leave(s, c);
	configure_class(s, c, cfg);
	pace_load_add(s, c);
	if (s->cfg.order == PACE_ORDER_NEXT)
		pace_paced_return(s, c);
	if (c->ceil_bps)
		pace_borrow_join(s, c);
	pace_paced_update(s, c);
	pace_lag_settle(s, was_over, NULL);
	return PACE_OK;
}

void pace_class_del(struct pace_sched *s, struct pace_class *c)
{
	if (!PACE_ASSERT(pace_id_held(s, c)))
		return;
	pace_invalidate(s);
	if (c->active)
		pace_unschedule_class(s, c);
	pace_class_leave(s, c);
	if (c->reservation)
		pace_reservation_end(s, c);
	pace_id_free(s, c);
}

static void set_config(struct pace_sched *s, const struct pace_config *cfg)
{
	u64 rate = cfg->line_rate_bps;

	s->cfg = *cfg;
	s->load_most_bps = rate;
	pace_set_plain(s);
	s->byte_ps = pace_div_rem(PACE_BYTE_PS, rate, &s->byte_rem);
	s->line_frac = 0;	/* in units of the old rate */
	s->max_wire_bytes = pace_wire_bytes(s, cfg->max_frame_bytes);
	s->max_wire_ps = pace_line_takes_ps(s, s->max_wire_bytes);
	s->burst_wire_bytes = longest_burst(cfg).wire_bytes;
	s->least_head_bytes = 0;	/* unknown ones are as long */
	s->burst_ps = longest_burst_ps(cfg);
	s->min_gap_bytes = pace_wire_bytes(s, cfg->min_frame_bytes);
	if (!s->min_gap_bytes)
		s->min_gap_bytes = 1;
	s->min_gap_ps = pace_line_takes_ps(s, s->min_gap_bytes);
	s->half_gap_ps = pace_mul_div(s->min_gap_bytes / 2, PACE_BYTE_PS, rate) +
			 pace_rounding_ps(s);
	s->timer_ps = 0;
	if (cfg->mode == PACE_MODE_TIMER)
		s->timer_ps = PACE_STALL_PS;
	else if (cfg->mode == PACE_MODE_HYBRID)
		s->timer_ps = PACE_LEAD_NS_MAX * PACE_PS_PER_NS;
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
	s->line.ns = now_ns;
	s->asked_ns = now_ns;
	s->least_cost_ps = PACE_LEAD_MAX_PS;
	return PACE_OK;
}

void pace_set_global(struct pace_sched *s, u64 global_ps)
{
	if (!PACE_ASSERT(!s->id_end))
		return;
	s->global_ps = global_ps;
	s->last_finish_ps = global_ps;
	s->idled_ps = global_ps;
	s->busy_until_ps = global_ps;
	s->line.ps = global_ps;
}

/* Returns the first class that does not fit `cfg`, or NULL.  O(classes). */
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
					.type = c->type,
					.rate_bps = c->rate_bps,
					.ceil_bps = c->ceil_bps,
					.quantum_bytes = c->quantum_bytes,
					.reserve_bytes = c->reservation ?
						c->reservation->reserve_bytes : 0,
				   });
		if (*err)
			return c;
	}
	*err = s->period.classes && s->period.reserved_bytes > cfg->budget_bytes ?
	       PACE_ERR_RESERVED : PACE_OK;
	return NULL;
}

/* Sets all frame costs under a configuration that was just set.  O(classes). */
static void set_all_frame_costs(struct pace_sched *s)
{
	u32 id;

	s->offered_load_bps = 0;
	s->least_cost_ps = PACE_LEAD_MAX_PS;
	for (id = 0; id < s->id_end; id++) {
		struct pace_class *c = s->by_id[id];

		struct pace_burst t;

		if (!c)
			continue;
		/* One frame: the next burst sets the cost anew. */
		t = frame_of(&s->cfg, c->last.len_bytes);
		if (t.len_bytes > s->cfg.max_frame_bytes)
			t = frame_of(&s->cfg, s->cfg.max_frame_bytes);
		c->last = t;
		if (c->type != PACE_TYPE_PACED)
			continue;
		set_max_cost(s, c);
		pace_class_set_frame_cost(s, c, &t);
		if (c->active && !pace_is_launching(c))
			pace_load_add(s, c);
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

	pace_invalidate(s);
	s->advanced = false;
	/* Until now the line ran at its old rate. */
	pace_advance_clock(s, now_ns);
	pace_line_advance(&s->line, now_ns);
	if (cfg->mode != s->cfg.mode)
		pace_mode_change(s, cfg->mode);
	if (cfg->mode != s->cfg.mode || cfg->line_rate_bps != s->cfg.line_rate_bps)
		pace_handover_forget(s);
	/* A new largest frame changes every virtual finish time. */
	if (cfg->order != s->cfg.order || cfg->order == PACE_ORDER_NEXT)
		pace_paced_reorder(s, cfg->order);
	set_config(s, cfg);
	set_all_frame_costs(s);
	pace_lag_settle(s, was_over, NULL);
	return PACE_OK;
}
