// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several queues on one wire, looked at late and irregularly, against a wire that
 * is watched all the time: the same frames at the same picosecond.
 */
#include <stdlib.h>
#include <string.h>

#include "../wire/wire_math.h"
#include "check.h"

#define FRAMES	20000

struct frame {
	u64 given_ps, start_ps;
	u32 queue, wire_bytes;
	bool sent;
};

static struct frame given[FRAMES];
static u32 late_order[FRAMES];

/* Bursts and pauses about the line rate; some frames at one and the same instant. */
static void some_load(u64 seed, u32 queues, u64 byte_ps)
{
	u64 random = seed, at_ps = 1000;

	for (int i = 0; i < FRAMES; i++) {
		u64 r = wire_random(&random);

		given[i] = (struct frame){
			.given_ps = at_ps, .queue = (r >> 40) % queues,
			.wire_bytes = wire_length(14 + (r >> 20) % 1500),
		};
		if (r % 4)
			at_ps += wire_random(&random) % (2 * 1100 * byte_ps);
	}
}

/* By definition: whenever the wire is free, the next queue that has been given a frame. */
static void watch(u32 queues, const struct wire_rate *rate, u32 *order)
{
	struct wire_clock line = { 0 };
	u32 last = 0, head[WIRE_QUEUES_MAX];
	u64 end_ps;
	int sent = 0, first = 0;

	for (int i = 0; i < FRAMES; i++)
		given[i].sent = false;
	for (; sent < FRAMES; sent++) {
		int choice = -1;

		while (given[first].sent)
			first++;
		memset(head, 0xff, sizeof(head));
		for (int i = first; i < FRAMES && given[i].given_ps < line.free_ps; i++)
			if (!given[i].sent && head[given[i].queue] == UINT32_MAX)
				head[given[i].queue] = i;
		for (u32 k = 1; k <= queues && choice < 0; k++)
			if (head[(last + k) % queues] != UINT32_MAX)
				choice = head[(last + k) % queues];
		if (choice < 0)
			choice = first;		/* the wire waits for it */
		last = given[choice].queue;
		given[choice].sent = true;
		given[choice].start_ps = wire_depart(&line, rate, given[choice].given_ps,
						     given[choice].wire_bytes, &end_ps);
		order[sent] = choice;
	}
}

/* As wire_tx.c does: choices are made when a frame is given, and now and then besides. */
struct late {
	struct wire_clock line;
	struct wire_arbiter arbiter;
	const struct wire_rate *rate;
	u32 next[FRAMES], head[WIRE_QUEUES_MAX], tail[WIRE_QUEUES_MAX];
	int sent, wrong;
};

static void late_send(struct late *l, u32 i)
{
	u64 end_ps, start_ps = wire_depart(&l->line, l->rate, given[i].given_ps,
					   given[i].wire_bytes, &end_ps);

	l->wrong += start_ps != given[i].start_ps;
	late_order[l->sent++] = i;
}

static void late_choose(struct late *l, u64 now_ps)
{
	while (wire_arbiter_due(&l->arbiter, &l->line, now_ps)) {
		u32 queue = wire_arbiter_choose(&l->arbiter), i = l->head[queue];

		l->head[queue] = l->next[i];
		if (i == l->tail[queue])
			l->arbiter.waiting &= ~(1ULL << queue);
		late_send(l, i);
	}
}

static void late_give(struct late *l, u32 i)
{
	u32 queue = given[i].queue;

	late_choose(l, given[i].given_ps);
	if (!l->arbiter.waiting && l->line.free_ps <= given[i].given_ps) {
		l->arbiter.last = queue;
		late_send(l, i);
		return;
	}
	if (l->arbiter.waiting >> queue & 1)
		l->next[l->tail[queue]] = i;
	else
		l->head[queue] = i;
	l->tail[queue] = i;
	l->arbiter.waiting |= 1ULL << queue;
}

static void test_late_is_exact(u64 rate_bps, u32 queues)
{
	static u32 order[FRAMES];
	static struct late l;
	struct wire_rate rate = wire_rate_of(rate_bps);
	u64 random = queues;
	int overtaken = 0;

	some_load(rate_bps + queues, queues, rate.ps_per_byte);
	watch(queues, &rate, order);
	memset(&l, 0, sizeof(l));
	l.rate = &rate;
	for (u32 i = 0; i < FRAMES; i++) {
		late_give(&l, i);
		if (wire_random(&random) % 8 == 0 && i + 1 < FRAMES)
			late_choose(&l, (given[i].given_ps + given[i + 1].given_ps) / 2);
	}
	late_choose(&l, UINT64_MAX);
	CHECK(l.sent == FRAMES && !l.wrong, "%u queues: %d frames, %d at another instant",
	      queues, l.sent, l.wrong);
	CHECK(!memcmp(order, late_order, sizeof(order)), "%u queues: another order", queues);
	for (int i = 1; i < FRAMES; i++)
		overtaken += order[i] < order[i - 1];
	CHECK(queues > 1 ? overtaken > 1000 : !overtaken, "%u queues: %d times another queue's turn",
	      queues, overtaken);
}

static void test_turns(void)
{
	struct wire_arbiter a = { .waiting = 1ULL << 0 | 1ULL << 5 | 1ULL << 63, .last = 5 };

	CHECK(wire_arbiter_choose(&a) == 63, "%u", a.last);
	CHECK(wire_arbiter_choose(&a) == 0, "%u: round the end", a.last);
	CHECK(wire_arbiter_choose(&a) == 5, "%u", a.last);
	a.waiting = 1ULL << 5;
	CHECK(wire_arbiter_choose(&a) == 5, "%u: alone", a.last);
}

int main(void)
{
	test_turns();
	test_late_is_exact(1000000000, 1);
	test_late_is_exact(1000000000, 2);
	test_late_is_exact(333333333, 5);
	test_late_is_exact(99999999977ULL, 64);
	return check_result("wire_arbiter");
}
