// SPDX-License-Identifier: GPL-2.0-only
/* Builds requests that are mostly valid. */
#include <string.h>
#include <net/if.h>
#include <linux/if_link.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_gact.h>

#include "fuzz.h"
#include "../../uapi/sch_psp.h"

#define ETH_P_ALL_BE	0x0300
#define COUNT(array)	(sizeof(array) / sizeof(*(array)))

static const uint16_t makes[] = {
	NLM_F_CREATE | NLM_F_EXCL,		/* add */
	NLM_F_CREATE | NLM_F_REPLACE,		/* replace */
	0,					/* change */
};

static uint16_t make_flags(struct random *r)
{
	return makes[random_below(r, COUNT(makes))];
}

static uint32_t some_class(struct random *r)
{
	return HANDLE | (1 + random_below(r, MINORS));
}

static void put_u8(struct message *m, uint16_t type, uint8_t value)
{
	message_put(m, type, &value, sizeof(value));
}

static void put_u32(struct message *m, uint16_t type, uint32_t value)
{
	message_put(m, type, &value, sizeof(value));
}

static void put_u64(struct message *m, uint16_t type, uint64_t value)
{
	message_put(m, type, &value, sizeof(value));
}

/* Returns a rate, in most cases one that is possible on a line of 1 Gbit/s. */
static uint64_t some_rate(struct random *r)
{
	if (random_percent(r, 85))
		return 1000000ULL + random_next(r) % 999000000;
	return random_value(r, 64);
}

/* Returns a value below @n, or rarely one that is not valid. */
static uint8_t some_word(struct random *r, uint32_t n)
{
	return random_below(r, random_percent(r, 3) ? n + 1 : n);
}

/* ---- psp ---- */

static void period_options(struct random *r, struct message *m)
{
	uint64_t period_ns = TC_PSP_PERIOD_MIN + random_below(r, 20000000);

	if (random_percent(r, 20))
		put_u64(m, TCA_PSP_PERIOD,
			random_percent(r, 90) ? period_ns : random_value(r, 64));
	if (random_percent(r, 15))
		put_u64(m, TCA_PSP_BUDGET,
			random_percent(r, 90) ? random_below(r, 500000) : random_value(r, 64));
	if (random_percent(r, 15))
		put_u32(m, TCA_PSP_BUDGET_PERCENT, random_value(r, 7));
	if (random_percent(r, 15))
		put_u64(m, TCA_PSP_ALIGN,
			random_percent(r, 60) ? random_below(r, TC_PSP_PERIOD_MIN)
					      : random_percent(r, 80) ? TC_PSP_ALIGN_OFF
								      : random_value(r, 64));
}

static void psp_options(struct random *r, struct message *m)
{
	size_t nest = message_nest(m, TCA_OPTIONS);

	if (random_percent(r, 60))
		put_u32(m, TCA_PSP_DEFAULT, random_percent(r, 97) ? random_below(r, 4)
								  : random_value(r, 32));
	if (random_percent(r, 30))
		put_u64(m, TCA_PSP_LINE_RATE, random_percent(r, 90) ? 0 : some_rate(r));
	if (random_percent(r, 40))
		put_u8(m, TCA_PSP_MODE, some_word(r, __TC_PSP_MODE_MAX));
	if (random_percent(r, 20))
		put_u32(m, TCA_PSP_OVERHEAD, random_value(r, 8));
	if (random_percent(r, 20))
		put_u8(m, TCA_PSP_LAYER, some_word(r, __TC_PSP_LAYER_MAX));
	if (random_percent(r, 30))
		put_u8(m, TCA_PSP_ORDER, some_word(r, __TC_PSP_ORDER_MAX));
	if (random_percent(r, 15))
		put_u8(m, TCA_PSP_GAP, some_word(r, __TC_PSP_GAP_MAX));
	if (random_percent(r, 15))
		put_u8(m, TCA_PSP_GUARD, some_word(r, 2));
	if (random_percent(r, 15))
		put_u8(m, TCA_PSP_SPLIT_GSO, some_word(r, __TC_PSP_SPLIT_GSO_MAX));
	period_options(r, m);
	message_nest_end(m, nest);
}

static void psp_root(struct random *r, const struct port *port, struct message *m)
{
	if (random_percent(r, 5)) {
		message_tc(m, RTM_DELQDISC, 0, port->ifindex, TC_H_ROOT, HANDLE);
		return;
	}
	message_tc(m, RTM_NEWQDISC, make_flags(r), port->ifindex, TC_H_ROOT, HANDLE);
	message_put_text(m, TCA_KIND, "psp");
	psp_options(r, m);
}

/* Adds the bounds of a dynamic class. */
static void psp_bounds(struct random *r, struct message *m)
{
	if (random_percent(r, 50))
		put_u32(m, TCA_PSP_CLASS_LIMIT, random_value(r, 21));
	if (random_percent(r, 50))
		put_u32(m, TCA_PSP_CLASS_FLOW_LIMIT, random_value(r, 21));
	if (random_percent(r, 50))
		put_u64(m, TCA_PSP_CLASS_HORIZON, random_value(r, 42));
	if (random_percent(r, 50))
		put_u64(m, TCA_PSP_CLASS_PACING_FLOOR, random_value(r, 30));
}

/* Adds what a class says of launch times. */
static void psp_txtime(struct random *r, struct message *m)
{
	if (random_percent(r, 80))
		put_u8(m, TCA_PSP_CLASS_TXTIME, some_word(r, __TC_PSP_TXTIME_MAX));
	if (random_percent(r, 30))
		put_u8(m, TCA_PSP_CLASS_TXTIME_DEADLINE, some_word(r, 2));
	if (random_percent(r, 30))
		put_u64(m, TCA_PSP_CLASS_TXTIME_LATE, random_value(r, 31));
	if (random_percent(r, 30))
		put_u64(m, TCA_PSP_CLASS_HORIZON, random_value(r, 42));
}

static void psp_class(struct random *r, const struct port *port, struct message *m)
{
	uint32_t kind = random_below(r, __TC_PSP_TYPE_MAX);
	bool paced = kind == TC_PSP_TYPE_PACED || kind == TC_PSP_TYPE_DYNAMIC ||
		     kind == TC_PSP_TYPE_GROUP;
	bool stream = kind == TC_PSP_TYPE_RT || kind == TC_PSP_TYPE_NRT;
	uint64_t rate_bps = some_rate(r);
	size_t nest;

	if (random_percent(r, 20)) {
		message_tc(m, RTM_DELTCLASS, 0, port->ifindex, HANDLE, some_class(r));
		return;
	}
	message_tc(m, RTM_NEWTCLASS, make_flags(r), port->ifindex,
		   random_percent(r, 75) ? HANDLE : some_class(r), some_class(r));
	message_put_text(m, TCA_KIND, "psp");
	nest = message_nest(m, TCA_OPTIONS);
	if (random_percent(r, 70))
		put_u8(m, TCA_PSP_CLASS_TYPE, kind);
	if (random_percent(r, paced ? 95 : 3))
		put_u64(m, TCA_PSP_CLASS_RATE, rate_bps);
	if (random_percent(r, kind == TC_PSP_TYPE_NORMAL ? 50 : 3))
		put_u32(m, TCA_PSP_CLASS_QUANTUM, random_value(r, 21));
	if (random_percent(r, paced ? 25 : 3))
		put_u64(m, TCA_PSP_CLASS_CEIL,
			random_percent(r, 80) ? rate_bps / 2 + 500000000 : some_rate(r));
	if (random_percent(r, kind == TC_PSP_TYPE_DYNAMIC ? 40 : 3))
		put_u64(m, TCA_PSP_CLASS_FLOOR, random_value(r, 30));
	if (random_percent(r, kind == TC_PSP_TYPE_DYNAMIC ? 40 : 3))
		put_u32(m, TCA_PSP_CLASS_FLOWS, random_value(r, 12));
	if (random_percent(r, kind == TC_PSP_TYPE_DYNAMIC ? 40 : 3))
		put_u64(m, TCA_PSP_CLASS_TOTAL, some_rate(r));
	if (random_percent(r, kind == TC_PSP_TYPE_DYNAMIC ? 40 : 3))
		psp_bounds(r, m);
	if (random_percent(r, stream ? 95 : 3))
		put_u64(m, TCA_PSP_CLASS_RESERVE,
			random_percent(r, 90) ? 1 + random_below(r, 100000) : random_value(r, 64));
	if (random_percent(r, kind == TC_PSP_TYPE_GROUP ? 3 : 15))
		put_u64(m, TCA_PSP_CLASS_DEADLINE, random_value(r, 34));
	if (random_percent(r, kind == TC_PSP_TYPE_PACED ? 20 : 3))
		psp_txtime(r, m);
	message_nest_end(m, nest);
}

/* ---- children ---- */

static void fifo_options(struct random *r, struct message *m)
{
	struct tc_fifo_qopt limit = { .limit = random_below(r, 3000) };

	message_put(m, TCA_OPTIONS, &limit, sizeof(limit));
}

static void codel_options(struct random *r, struct message *m)
{
	size_t nest = message_nest(m, TCA_OPTIONS);

	put_u32(m, TCA_FQ_CODEL_TARGET, 1 + random_below(r, 1000));
	put_u32(m, TCA_FQ_CODEL_LIMIT, 1 + random_below(r, 100));
	put_u32(m, TCA_FQ_CODEL_INTERVAL, 10 + random_below(r, 10000));
	message_nest_end(m, nest);
}

static void netem_options(struct random *r, struct message *m)
{
	struct tc_netem_qopt netem = {
		.latency = random_below(r, 1000000),	/* ticks of 64 ns */
		.limit = 1 + random_below(r, 200),
		.loss = random_percent(r, 30) ? random_next(r) : 0,
		.duplicate = random_percent(r, 30) ? random_next(r) : 0,
		.jitter = random_percent(r, 30) ? random_below(r, 1000) : 0,
	};

	message_put(m, TCA_OPTIONS, &netem, sizeof(netem));
}

static void tbf_options(struct random *r, struct message *m)
{
	struct tc_tbf_qopt tbf = {
		.rate = { .rate = 100000 + random_below(r, 100000000),
			  .linklayer = TC_LINKLAYER_ETHERNET },
		.limit = 2000 + random_below(r, 100000),
		.buffer = 1000000,
	};
	size_t nest = message_nest(m, TCA_OPTIONS);

	message_put(m, TCA_TBF_PARMS, &tbf, sizeof(tbf));
	put_u32(m, TCA_TBF_BURST, 2000 + random_below(r, 30000));
	message_nest_end(m, nest);
}

static void prio_options(struct random *r, struct message *m)
{
	struct tc_prio_qopt prio = { .bands = 2 + random_below(r, 4) };

	message_put(m, TCA_OPTIONS, &prio, sizeof(prio));
}

static void no_options(struct random *r, struct message *m)
{
	(void)r;
	(void)m;
}

static const struct child {
	const char *kind;
	void (*options)(struct random *r, struct message *m);
} children[] = {
	{ "pfifo", fifo_options }, { "bfifo", fifo_options },
	{ "fq_codel", codel_options }, { "codel", codel_options },
	{ "netem", netem_options }, { "tbf", tbf_options },
	{ "prio", prio_options }, { "sfq", no_options }, { "fq", no_options },
	{ "drr", no_options }, { "blackhole", no_options },
	{ "pie", no_options }, { "cake", no_options }, { "psp", psp_options },
};

static void child(struct random *r, const struct port *port, struct message *m)
{
	const struct child *c = &children[random_below(r, COUNT(children))];
	uint32_t parent = some_class(r);
	uint32_t handle = (0x20 + (parent & 0xffff)) << 16;

	/* Add a child to a class of the child, two levels deep. */
	if (random_percent(r, 15)) {
		parent = handle | (1 + random_below(r, 3));
		handle += 0x200000;
	}
	if (random_percent(r, 30)) {
		message_tc(m, RTM_DELQDISC, 0, port->ifindex, parent, handle);
		return;
	}
	message_tc(m, RTM_NEWQDISC, make_flags(r), port->ifindex, parent, handle);
	message_put_text(m, TCA_KIND, c->kind);
	c->options(r, m);
}

/* ---- filters ---- */

static void gact(struct random *r, struct message *m, uint16_t type)
{
	static const int verdicts[] = { TC_ACT_OK, TC_ACT_SHOT, TC_ACT_PIPE,
					TC_ACT_STOLEN, TC_ACT_UNSPEC };
	struct tc_gact gact = { .action = verdicts[random_below(r, COUNT(verdicts))] };
	size_t list, action, options;

	list = message_nest(m, type);
	action = message_nest(m, 1);
	message_put_text(m, TCA_ACT_KIND, "gact");
	options = message_nest(m, TCA_ACT_OPTIONS);
	message_put(m, TCA_GACT_PARMS, &gact, sizeof(gact));
	message_nest_end(m, options);
	message_nest_end(m, action);
	message_nest_end(m, list);
}

static void filter(struct random *r, const struct port *port, struct message *m)
{
	struct {
		struct tc_u32_sel sel;
		struct tc_u32_key key;
	} u32 = { .sel = { .flags = TC_U32_TERMINAL, .nkeys = 1 } };
	uint32_t pref = 1 + random_below(r, 4);
	struct tcmsg *t = NLMSG_DATA(&m->head);
	bool deletes = random_percent(r, 40);
	/* All filters of one preference have the same kind. */
	bool is_u32 = pref & 1;
	size_t nest;

	message_tc(m, deletes ? RTM_DELTFILTER : RTM_NEWTFILTER,
		   deletes ? 0 : NLM_F_CREATE | (random_percent(r, 50) ? NLM_F_EXCL : 0),
		   port->ifindex, random_percent(r, 95) ? HANDLE : some_class(r), 0);
	t->tcm_info = pref << 16 | ETH_P_ALL_BE;
	if (deletes && random_percent(r, 60))
		return;
	message_put_text(m, TCA_KIND, is_u32 ? "u32" : "matchall");
	nest = message_nest(m, TCA_OPTIONS);
	put_u32(m, is_u32 ? TCA_U32_CLASSID : TCA_MATCHALL_CLASSID,
		random_percent(r, 90) ? some_class(r) : random_value(r, 32));
	if (is_u32) {
		/* The filter matches half of the frames sent. */
		u32.key.mask = 1;
		message_put(m, TCA_U32_SEL, &u32, sizeof(u32));
	}
	if (random_percent(r, 20))
		gact(r, m, is_u32 ? TCA_U32_ACT : TCA_MATCHALL_ACT);
	message_nest_end(m, nest);
}

/* ---- all operations ---- */

static void look(struct random *r, const struct port *port, struct message *m)
{
	static const uint16_t gets[] = { RTM_GETQDISC, RTM_GETTCLASS, RTM_GETTFILTER };
	uint16_t type = gets[random_below(r, COUNT(gets))];
	bool dump = random_percent(r, 60);
	uint32_t parent = type == RTM_GETQDISC ? TC_H_ROOT : HANDLE;

	message_tc(m, type, dump ? NLM_F_DUMP : 0, port->ifindex,
		   dump && type != RTM_GETTFILTER ? 0 : parent,
		   dump ? 0 : some_class(r));
}

bool operate(struct random *r, const struct port *port, struct message *m)
{
	uint32_t dice = random_below(r, 100);

	if (dice < 12)
		psp_root(r, port, m);
	else if (dice < 45)
		psp_class(r, port, m);
	else if (dice < 68)
		child(r, port, m);
	else if (dice < 86)
		filter(r, port, m);
	else if (dice < 98)
		look(r, port, m);
	else
		return false;
	return true;
}

/* ---- the link ---- */

void operate_link(struct random *r, const struct port *port, struct message *m)
{
	message_link(m, port->ifindex, random_percent(r, 70),
		     random_percent(r, 50) ? 576 + random_below(r, 8500) : 0);
	if (random_percent(r, 20))
		put_u32(m, IFLA_TXQLEN, random_below(r, 2000));
}
