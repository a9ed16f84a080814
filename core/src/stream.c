// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Classes that go by the period (paper 004, 2.2.1 and 3.1).
 *
 * RT.  What has come by the start of a period goes out in it; what comes during
 * a period waits for the next.  A class sends what it has reserved; what it has
 * beyond that ("late-first", figure 9) goes next, ahead of all nrt and normal
 * frames, and is paid from what the budget then has left; beyond that it waits
 * for the next period.  Classes take turns by frame.
 *
 * When in the period: deadline first.  Paced frames have theirs at their clocks,
 * all rt frames at the period's end.  So a paced frame that is due goes before
 * them, until what rt classes have left would no more end in time: then they go
 * first.  A class that is paced sees an rt frame at most where it would have seen
 * a normal one, and rt frames end within their period whatever the paced
 * classes ask for.
 *
 * NRT.  A class sends its share of each period while the budget lasts, after all
 * rt frames of that period; the rest waits.
 *
 * The length of a frame is not known before it is sent: it goes if something is
 * left of what pays for it.  What an rt frame takes beyond the reservation the
 * budget pays; what an nrt frame takes beyond the share the class owes to its next
 * period.  So over any n periods a class that is nrt sends at most n shares and
 * one longest train.
 *
 * Error bound: none; bytes are exact.  What is gated is known in wire bytes, as the
 * host tells (pace_arrived()); a class that is active with nothing known of what
 * came has one frame.  decisions/0141.
 */
#include "period.h"
#include "ring.h"

/* No train takes as much: after so much of its share a class owes nothing. */
#define DEBT_MAX	((u64)PACE_TRAIN_WIRE_MAX)

static u64 smaller(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* What is left of an nrt class's share, `periods` after it was worked out. */
static s64 share_left(const struct pace_stream *st, u64 periods)
{
	s64 left = st->left_bytes, reserve = st->reserve_bytes;

	/* No product overflows: fewer than 2^42 x 2^22. */
	if (periods > DEBT_MAX)
		return reserve;
	if (periods > 1)
		left += (s64)((periods - 1) * smaller(reserve, DEBT_MAX));
	return (left < 0 ? left : 0) + reserve;
}

/* Brings the class up to the period that runs. */
static void follow(const struct pace_sched *s, struct pace_class *c)
{
	struct pace_stream *st = c->stream;
	u64 periods = s->stats.periods - st->period;

	if (!periods)
		return;
	st->period = s->stats.periods;
	st->gated_wire_bytes = st->backlog_wire_bytes;
	if (c->kind == PACE_KIND_RT) {
		st->left_bytes = (s64)st->reserve_bytes;
		st->place = PACE_PLACE_RT;
	} else {
		st->left_bytes = share_left(st, periods);
		st->place = PACE_PLACE_NRT;
	}
}

/* Last of those there, also if it is there already. */
static void move(struct pace_sched *s, struct pace_class *c,
		 enum pace_place place)
{
	pace_ring_take(&s->period.ring[c->stream->place], c);
	c->stream->place = place;
	pace_ring_add(&s->period.ring[place], c);
}

/* So many bytes of the first frames wait no more. */
static void spend_backlog(struct pace_sched *s, struct pace_stream *st,
			  u64 wire_bytes)
{
	struct pace_period *p = &s->period;
	u64 known = smaller(wire_bytes, st->backlog_wire_bytes);

	st->backlog_wire_bytes -= known;
	p->backlog_wire_bytes -= known;
	known = smaller(wire_bytes, st->gated_wire_bytes);
	st->gated_wire_bytes -= known;
	/* One byte of a frame that nothing is known of was not counted. */
	p->gated_wire_bytes -= smaller(known, p->gated_wire_bytes);
}

void pace_stream_begin(struct pace_sched *s, struct pace_class *c,
		       const struct pace_class_config *cfg)
{
	struct pace_period *p = &s->period;

	if (!c->stream) {
		c->stream = cfg->stream;
		pace_memset(c->stream, 0, sizeof(*c->stream));
		p->classes++;
	} else {
		follow(s, c);
	}
	p->reserved_bytes += cfg->reserve_bytes - c->stream->reserve_bytes;
	c->stream->reserve_bytes = cfg->reserve_bytes;
}

/* Its frames, if it has any, are not known of any more. */
void pace_stream_end(struct pace_sched *s, struct pace_class *c)
{
	struct pace_period *p = &s->period;

	follow(s, c);
	spend_backlog(s, c->stream, ~0ull);
	p->reserved_bytes -= c->stream->reserve_bytes;
	if (!--p->classes)
		p->running = false;
	c->stream = NULL;
}

/* The class comes; what it has was told before: pace_arrived(). */
void pace_stream_put(struct pace_sched *s, struct pace_class *c)
{
	struct pace_stream *st = c->stream;

	follow(s, c);
	if (c->kind == PACE_KIND_RT)
		st->place = st->gated_wire_bytes ? PACE_PLACE_RT :
						   PACE_PLACE_RT_NEXT;
	else
		st->place = st->left_bytes > 0 ? PACE_PLACE_NRT :
						 PACE_PLACE_NRT_NEXT;
	pace_ring_add(&s->period.ring[st->place], c);
	s->period.active++;
}

void pace_stream_take(struct pace_sched *s, struct pace_class *c)
{
	follow(s, c);
	spend_backlog(s, c->stream, ~0ull);
	pace_ring_take(&s->period.ring[c->stream->place], c);
	s->period.active--;
}

void pace_stream_arrived(struct pace_sched *s, struct pace_class *c,
			 u32 wire_bytes)
{
	follow(s, c);
	c->stream->backlog_wire_bytes += wire_bytes;
	s->period.backlog_wire_bytes += wire_bytes;
}

/* Where an active rt class belongs, by what it has. */
static void settle_rt(struct pace_sched *s, struct pace_class *c)
{
	struct pace_stream *st = c->stream;

	if (!st->gated_wire_bytes) {
		move(s, c, PACE_PLACE_RT_NEXT);
		return;
	}
	if (st->left_bytes > 0) {
		move(s, c, PACE_PLACE_RT);
		return;
	}
	if (st->place == PACE_PLACE_RT) {
		st->over++;
		s->stats.rt_over++;
	}
	move(s, c, PACE_PLACE_RT_LATE);
}

void pace_stream_dropped(struct pace_sched *s, struct pace_class *c,
			 u32 wire_bytes)
{
	follow(s, c);
	spend_backlog(s, c->stream, wire_bytes);
	if (c->active && c->stream->place != PACE_PLACE_RT_NEXT)
		settle_rt(s, c);
}

static void sent_rt(struct pace_sched *s, struct pace_class *c,
		    const struct pace_train *t)
{
	struct pace_stream *st = c->stream;
	u64 counted = pace_counted_bytes(&s->cfg, t);
	u64 own = st->left_bytes > 0 ? smaller(st->left_bytes, counted) : 0;

	st->left_bytes -= (s64)own;
	st->late_bytes += counted - own;
	s->stats.rt_late_bytes += counted - own;
	spend_backlog(s, st, t->wire_bytes);
}

static void settle_nrt(struct pace_sched *s, struct pace_class *c)
{
	if (c->stream->left_bytes > 0) {
		move(s, c, PACE_PLACE_NRT);
		return;
	}
	c->stream->deferred++;
	s->stats.nrt_deferred++;
	move(s, c, PACE_PLACE_NRT_NEXT);
}

void pace_stream_sent(struct pace_sched *s, struct pace_class *c,
		      const struct pace_train *t, bool more)
{
	follow(s, c);
	if (c->kind == PACE_KIND_RT)
		sent_rt(s, c, t);
	else
		c->stream->left_bytes -= pace_counted_bytes(&s->cfg, t);
	if (!more)
		pace_leave(s, c);
	else if (c->kind == PACE_KIND_RT)
		settle_rt(s, c);
	else
		settle_nrt(s, c);
}

/* Whose rt frame may go now, or NULL. */
struct pace_class *pace_rt_turn(struct pace_sched *s)
{
	struct pace_class *c = s->period.ring[PACE_PLACE_RT];

	if (c) {
		follow(s, c);
		if (!c->stream->gated_wire_bytes)
			c->stream->gated_wire_bytes = 1;
		return c;
	}
	return pace_budget_left(s) ? s->period.ring[PACE_PLACE_RT_LATE] : NULL;
}

/* After one more longest train what is gated would not end in the period. */
bool pace_rt_urgent(const struct pace_sched *s)
{
	return s->period.end.bytes - s->global <=
	       s->period.gated_wire_bytes + s->train_wire_bytes;
}

/* Whose nrt frame may go now, or NULL.  O(1) amortised over periods. */
struct pace_class *pace_nrt_turn(struct pace_sched *s)
{
	struct pace_class *c;

	if (!pace_budget_left(s))
		return NULL;
	while ((c = s->period.ring[PACE_PLACE_NRT])) {
		follow(s, c);
		if (c->stream->left_bytes > 0)
			return c;
		/* It still owes more than a share. */
		move(s, c, PACE_PLACE_NRT_NEXT);
	}
	return NULL;
}
