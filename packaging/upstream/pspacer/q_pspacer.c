// SPDX-License-Identifier: GPL-2.0-only
/*
 * pspacer for tc(8), as a plugin: what the selftest and the cases of tdc need.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iproute2.h"

#define TCA_BUF_MAX	(64 * 1024)

#include "pkt_sched_pspacer.h"

/* An option that takes a number. */
struct option {
	const char *name;
	unsigned short type;
	unsigned char bytes;
	unsigned char base;	/* 16: tc's numbers of classes */
@from launch
	bool clock;
@always
};

static const struct option qdisc_options[] = {
	{ "line", TCA_PSPACER_LINE_RATE, 8, 10 },
	{ "default", TCA_PSPACER_DEFAULT, 4, 16 },
	{ "max_packet", TCA_PSPACER_MAX_PACKET, 4, 10 },
@from ceil
	{ "oversubscribe", TCA_PSPACER_OVERSUBSCRIBE, 4, 10 },
@from gap
	{ "gap", TCA_PSPACER_GAP, 4, 10 },
@always
	{ NULL, 0, 0, 0 },
};

static const struct option class_options[] = {
	{ "rate", TCA_PSPACER_CLASS_RATE, 8, 10 },
@from ceil
	{ "ceil", TCA_PSPACER_CLASS_CEIL, 8, 10 },
@from launch
	{ "clockid", TCA_PSPACER_CLASS_CLOCKID, 4, 10, true },
@always
	{ "limit", TCA_PSPACER_CLASS_LIMIT, 4, 10 },
	{ "quantum", TCA_PSPACER_CLASS_QUANTUM, 4, 10 },
	{ NULL, 0, 0, 0 },
};

static const struct option stats[] = {
	{ "reserved", TCA_PSPACER_STATS_RESERVED, 8, 10 },
	{ "classes", TCA_PSPACER_STATS_CLASSES, 4, 10 },
	{ "late_max_ns", TCA_PSPACER_STATS_LATE_MAX, 8, 10 },
	{ "stalls", TCA_PSPACER_STATS_STALLS, 8, 10 },
	{ "stalled_ns", TCA_PSPACER_STATS_STALLED, 8, 10 },
@from ceil
	{ "borrowed", TCA_PSPACER_STATS_BORROWED, 8, 10 },
@from launch
	{ "txtime_invalid", TCA_PSPACER_STATS_TXTIME_INVALID, 8, 10 },
	{ "txtime_missed", TCA_PSPACER_STATS_TXTIME_MISSED, 8, 10 },
@from gap
	{ "gap_packets", TCA_PSPACER_STATS_GAP_PACKETS, 8, 10 },
	{ "gap_bytes", TCA_PSPACER_STATS_GAP_BYTES, 8, 10 },
	{ "gap_held", TCA_PSPACER_STATS_GAP_HELD, 8, 10 },
	{ "gap_failed", TCA_PSPACER_STATS_GAP_FAILED, 8, 10 },
@always
	{ NULL, 0, 0, 0 },
};

@from launch
/* Clocks of launch times, by time.h's numbers */
static const struct {
	const char *name;
	uint32_t id;
} clocks[] = {
	{ "CLOCK_MONOTONIC", 1 },
	{ "CLOCK_TAI", 11 },
};

#define CLOCKS	(sizeof(clocks) / sizeof(clocks[0]))

static const char *clock_name(uint32_t id)
{
	size_t i;

	for (i = 0; i < CLOCKS; i++)
		if (clocks[i].id == id)
			return clocks[i].name;
	return "unknown";
}

@always
/* Parses a number; one of 8 bytes is a rate and may have a unit. */
static int parse_number(const struct option *o, const char *text, uint64_t *to)
{
	static const char *const unit[] = { "bit", "kbit", "mbit", "gbit" };
	uint64_t factor = 1;
	char *end;
	size_t i;

@from launch
	for (i = 0; o->clock && i < CLOCKS; i++) {
		if (!strcmp(text, clocks[i].name)) {
			*to = clocks[i].id;
			return 0;
		}
	}
@always
	errno = 0;
	*to = strtoull(text, &end, o->base);
	if (errno || end == text || *text == '-')
		return -1;
	if (o->bytes == 4)
		return *end || *to > UINT32_MAX ? -1 : 0;
	if (!*end)
		return 0;
	for (i = 0; i < sizeof(unit) / sizeof(unit[0]); i++, factor *= 1000) {
		if (strcmp(end, unit[i]))
			continue;
		if (*to > UINT64_MAX / factor)
			return -1;
		*to *= factor;
		return 0;
	}
	return -1;
}

static int parse(const struct option *options, int argc, char **argv,
		 struct nlmsghdr *n)
{
	struct rtattr *nest = addattr_nest(n, TCA_BUF_MAX,
					   TCA_OPTIONS | NLA_F_NESTED);

	for (; argc > 0; argc -= 2, argv += 2) {
		const struct option *o = options;
		uint64_t number;
		uint32_t word;

		while (o->name && strcmp(o->name, *argv))
			o++;
		if (!o->name) {
			fprintf(stderr, "pspacer: unknown option \"%s\"\n",
				*argv);
			return -1;
		}
		if (argc < 2 || parse_number(o, argv[1], &number)) {
			fprintf(stderr, "pspacer: \"%s\" wants a number\n",
				o->name);
			return -1;
		}
		word = number;
		if (o->bytes == 4)
			addattr_l(n, TCA_BUF_MAX, o->type, &word, 4);
		else
			addattr_l(n, TCA_BUF_MAX, o->type, &number, 8);
	}
	addattr_nest_end(n, nest);
	return 0;
}

static int print(const struct option *options, FILE *f, struct rtattr *nest)
{
	struct rtattr *tb[16] = {};
	const struct option *o;

	if (!nest)
		return 0;
	parse_rtattr(tb, 15, RTA_DATA(nest), RTA_PAYLOAD(nest));
	for (o = options; o->name; o++) {
		uint64_t number = 0;
		uint32_t word = 0;

		if (!tb[o->type])
			continue;
		if (o->bytes == 4)
			memcpy(&word, RTA_DATA(tb[o->type]), 4);
		else
			memcpy(&number, RTA_DATA(tb[o->type]), 8);
@from launch
		if (o->clock && is_json_context())
			jsonw_string_field(get_json_writer(), o->name,
					   clock_name(word));
		else if (o->clock)
			fprintf(f, "%s %s ", o->name, clock_name(word));
		else if (is_json_context())
			jsonw_u64_field(get_json_writer(), o->name,
					o->bytes == 4 ? word : number);
		if (o->clock || is_json_context())
			continue;
@always
		fprintf(f, o->base == 16 ? "%s %" PRIx64 " " : "%s %" PRIu64 " ",
			o->name, o->bytes == 4 ? (uint64_t)word : number);
	}
	return 0;
}

static int parse_qdisc(const struct qdisc_util *qu, int argc, char **argv,
		       struct nlmsghdr *n, const char *dev)
{
	return parse(qdisc_options, argc, argv, n);
}

static int parse_class(const struct qdisc_util *qu, int argc, char **argv,
		       struct nlmsghdr *n, const char *dev)
{
	return parse(class_options, argc, argv, n);
}

static int print_qdisc(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	return print(qdisc_options, f, opt);
}

static int print_class(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	return print(class_options, f, opt);
}

static int print_stats(const struct qdisc_util *qu, FILE *f, struct rtattr *app)
{
	return print(stats, f, app);
}

__attribute__((visibility("default")))
struct qdisc_util pspacer_qdisc_util = {
	.id = "pspacer",
	.parse_qopt = parse_qdisc,
	.print_qopt = print_qdisc,
	.print_xstats = print_stats,
	.parse_copt = parse_class,
	.print_copt = print_class,
};
