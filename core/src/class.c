// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A class: which configurations are valid, and what a frame costs it. */
#include <pace/pace_sched.h>

#define OVERHEAD_MAX	256u

static inline bool pace_type_reserves(enum pace_type type)
{
	return type == PACE_TYPE_RT || type == PACE_TYPE_NRT;
}

static u32 padded_bytes(const struct pace_config *cfg, u32 len_bytes)
{
	return len_bytes < cfg->min_frame_bytes ? cfg->min_frame_bytes :
						  len_bytes;
}

u32 pace_wire_bytes(const struct pace_sched *s, u32 len_bytes)
{
	return padded_bytes(&s->cfg, len_bytes) + s->cfg.overhead_bytes;
}

static struct pace_burst frame_of(const struct pace_config *cfg, u32 len_bytes)
{
	return (struct pace_burst){
		.len_bytes = len_bytes,
		.frames = 1,
		.wire_bytes = padded_bytes(cfg, len_bytes) +
			      cfg->overhead_bytes,
	};
}

/* Returns the longest burst, made of largest frames. */
static struct pace_burst longest_burst(const struct pace_config *cfg)
{
	struct pace_burst t;

	if (!cfg->max_burst_bytes)
		return frame_of(cfg, cfg->max_frame_bytes);
	t.len_bytes = cfg->max_burst_bytes;
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
	if (cfg->max_burst_bytes &&
	    (cfg->max_burst_bytes < cfg->max_frame_bytes ||
	     cfg->max_burst_bytes > PACE_FRAME_MAX ||
	     longest_burst(cfg).wire_bytes > PACE_BURST_WIRE_MAX))
		return PACE_ERR_BURST;
	if (cfg->period_ns && (cfg->period_ns < PACE_PERIOD_NS_MIN ||
			       cfg->period_ns > PACE_PERIOD_NS_MAX))
		return PACE_ERR_PERIOD;
	if (cfg->budget_bytes > PACE_BUDGET_MAX)
		return PACE_ERR_BUDGET;
	return PACE_OK;
}

/* Returns by how many whole ps a burst moves a clock of rate_bps, and *rem. */
static u64 advance_of(const struct pace_config *cfg, u64 rate_bps,
		      const struct pace_burst *t, u64 *rem)
{
	return pace_div_rem(pace_counted_bytes(cfg, t) * PACE_BYTE_PS, rate_bps,
			    rem);
}

/* Returns the frame cost of the longest burst, rounded up. */
static u64 max_cost(const struct pace_config *cfg, u64 rate_bps)
{
	const struct pace_burst t = longest_burst(cfg);
	u64 rem;
	u64 quot = advance_of(cfg, rate_bps, &t, &rem);

	return quot + (rem != 0);
}

/*
 * Returns by how much the virtual finish time of a class is ahead of its clock.  A
 * class that launches is ordered as if its rate were the line's.
 */
static u64 class_max_cost(const struct pace_sched *s, const struct pace_class *c)
{
	return max_cost(&s->cfg, c->launches ? s->cfg.line_rate_bps : c->rate_bps);
}

/* Solves max_cost() < PACE_LEAD_MAX_PS for the rate. */
u64 pace_least_rate_bps(const struct pace_config *cfg)
{
	const struct pace_burst t = longest_burst(cfg);
	u64 rem;
	u64 quot = advance_of(cfg, PACE_LEAD_MAX_PS - 1, &t, &rem);

	return quot + (rem != 0);
}

/* Returns how long the line takes for the longest burst, rounded up. */
static u64 longest_burst_ps(const struct pace_config *cfg)
{
	u64 rem;
	u64 quot = pace_div_rem(longest_burst(cfg).wire_bytes * PACE_BYTE_PS,
				cfg->line_rate_bps, &rem);

	return quot + (rem != 0);
}

static enum pace_error check_reservation(const struct pace_config *cfg,
					 const struct pace_class_config *c)
{
	if (!cfg->period_ns ||
	    longest_burst_ps(cfg) > cfg->period_ns * PACE_PS_PER_NS)
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
	if (c->type == PACE_TYPE_NORMAL) {
		if (c->quantum_bytes &&
		    (c->quantum_bytes < PACE_QUANTUM_MIN ||
		     c->quantum_bytes > PACE_QUANTUM_MAX))
			return PACE_ERR_QUANTUM;
		return PACE_OK;
	}
	if (pace_type_reserves(c->type))
		return check_reservation(cfg, c);
	if (!c->rate_bps)
		return PACE_ERR_RATE_ZERO;
	if (c->rate_bps > cfg->line_rate_bps)
		return PACE_ERR_RATE_LINE;
	if (c->rate_bps < pace_least_rate_bps(cfg))
		return PACE_ERR_RATE_LOW;
	if (c->ceil_bps && (c->ceil_bps < c->rate_bps ||
			    c->ceil_bps > cfg->line_rate_bps))
		return PACE_ERR_CEIL;
	return PACE_OK;
}

/* Returns the wire bit/s of such bursts, rounded up, but no more than line + 1. */
static u64 offered_load(const struct pace_sched *s, u64 rate_bps,
			const struct pace_burst *t)
{
	u64 quot, rem;

	quot = pace_div_rem(rate_bps * t->wire_bytes,
			    pace_counted_bytes(&s->cfg, t), &rem);
	quot += rem != 0;
	return quot > s->cfg.line_rate_bps ? s->cfg.line_rate_bps + 1 : quot;
}

/* Returns the frame cost of a burst, capped so that clocks stay close. */
static u64 frame_cost(const struct pace_sched *s, u64 rate_bps,
		      const struct pace_burst *t, u64 *rem)
{
	u64 quot = advance_of(&s->cfg, rate_bps, t, rem);

	/* Only a frame beyond max_frame, or a burst of tiny ones, gets here. */
	if (quot >= PACE_LEAD_MAX_PS) {
		quot = PACE_LEAD_MAX_PS - 1;
		*rem = 0;
	}
	return quot;
}

/*
 * Clocks wrap, so one that was left behind long enough looks ahead.  After so long,
 * 104 days in units of 2^32 ns, an inactive paced class has no debt, whatever its clock.
 */
#define SILENT_UNIT_SHIFT	32
#define SILENT_UNITS		(1u << 21)

static inline u32 silent_unit(u64 now_ns)
{
	return now_ns >> SILENT_UNIT_SHIFT;
}

static inline bool pace_was_silent(const struct pace_class *c, u64 now_ns)
{
	return c->type == PACE_TYPE_PACED && !c->active &&
	       silent_unit(now_ns) - c->left_at > SILENT_UNITS;
}

/* Makes the class as one that was never served: its clocks are behind. */
static void pace_class_forget(const struct pace_sched *s, struct pace_class *c)
{
	pace_clock_set(&c->clock, pace_schedule_clock(s) - PACE_LEAD_WINDOW_PS);
	pace_clock_set(&c->ceil_clock, c->clock.ps);
	pace_clock_set(&c->borrow_clock, s->borrow_time_ps);
	c->eligible_time = c->clock.ps;
}

static bool is_same_burst(const struct pace_burst *a, const struct pace_burst *b)
{
	return a->len_bytes == b->len_bytes && a->frames == b->frames &&
	       a->wire_bytes == b->wire_bytes;
}

/*
 * Sets the frame cost of such bursts, and forgets that of others.  These are the
 * divisions that pace_sent() would otherwise do for each.
 */
static void pace_class_set_frame_cost(const struct pace_sched *s,
				      struct pace_class *c,
				      const struct pace_burst *t)
{
	c->last = *t;
	c->rate_quot = frame_cost(s, c->rate_bps, t, &c->rate_rem);
	if (c->ceil_bps)
		c->ceil_quot = frame_cost(s, c->ceil_bps, t, &c->ceil_rem);
	c->offered_load_bps = offered_load(s, c->rate_bps, t);
	c->other.burst.frames = 0;
}

/*
 * Changes to the frame cost of another burst, and keeps that of the last: data and
 * acknowledgements in turn cost no division.
 */
static void pace_class_change_burst(const struct pace_sched *s,
				    struct pace_class *c,
				    const struct pace_burst *t)
{
	const struct pace_frame_cost last = {
		.burst = c->last,
		.rate_quot = c->rate_quot,
		.rate_rem = c->rate_rem,
		.ceil_quot = c->ceil_quot,
		.ceil_rem = c->ceil_rem,
		.offered_load_bps = c->offered_load_bps,
	};

	if (is_same_burst(&c->other.burst, t)) {
		c->last = *t;
		c->rate_quot = c->other.rate_quot;
		c->rate_rem = c->other.rate_rem;
		c->ceil_quot = c->other.ceil_quot;
		c->ceil_rem = c->other.ceil_rem;
		c->offered_load_bps = c->other.offered_load_bps;
	} else {
		pace_class_set_frame_cost(s, c, t);
	}
	c->other = last;
}
