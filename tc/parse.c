// SPDX-License-Identifier: GPL-2.0-only
/* Turns the words of a command line into netlink attributes. */
#include <stdio.h>
#include <string.h>

#include "psp.h"
#include "quantity.h"

/* Bytes that tc leaves for options in its request. */
#define REQUEST_MAX	1024

/* Parses one option.  Returns 0, or -1 after a message on standard error. */
typedef int (*parse_fn)(struct nlmsghdr *n, const char *key, const char *value);

struct option {
	const char *key;
	parse_fn parse;
};

static void explain_qdisc(void)
{
	fputs("Usage: ... psp [ default MINOR ] [ line { RATE | auto } ]\n"
	      "               [ mode { auto | gap | timer | hybrid } ] [ overhead BYTES ]\n"
	      "               [ layer { link | wire | ip } ] [ order { next | clock | rate } ]\n"
	      "               [ gap { pause | multicast } ] [ guard { on | off } ]\n"
	      "               [ split-gso { auto | on | off } ] [ period TIME ]\n"
	      "               [ budget { BYTES | PERCENT% } ] [ align { TIME | off } ]\n"
	      "               [ shared { on | off } ]\n"
	      "default   class of unclassified frames, hexadecimal; 0: none (best effort)\n"
	      "line      line rate; auto: what the device reports {auto}\n"
	      "mode      how gaps pass: gap frames, a timer, or a timer and then gap frames\n"
	      "          {auto: hybrid where the device has a wire, else timer}\n"
	      "overhead  bytes on the wire beyond the frame {24 on Ethernet}\n"
	      "layer     what rates count {link}\n"
	      "order     which of several due classes goes first {next}\n"
	      "gap       kind of gap frame {multicast}\n"
	      "guard     normal frames only where they fit before a paced one {off}\n"
	      "split-gso GSO packets are cut into frames {auto: where pacing needs it}\n"
	      "period    of rt and nrt classes, 125us to 1s {10ms}\n"
	      "budget    what the port sends in a period, or how much of the line {70%}\n"
	      "align     periods begin so long after multiples of theirs on CLOCK_TAI {off}\n"
	      "shared    below mq: classes are those of the device, by minor number {off}\n"
	      "See tc-psp(8).\n", stderr);
}

static void explain_class(void)
{
	fputs("Usage: ... psp [ mode paced ] rate RATE [ ceil RATE ] [ deadline TIME ]\n"
	      "               [ txtime { monotonic | tai | off } ] [ txtime-late TIME ]\n"
	      "               [ txtime-deadline { on | off } ] [ horizon TIME ]\n"
	      "       ... psp mode normal [ quantum BYTES ] [ deadline TIME ]\n"
	      "       ... psp mode dynamic [ rate RATE ] [ ceil RATE ] [ floor RATE ]\n"
	      "               [ total RATE ] [ flows NUMBER ] [ limit FRAMES ] [ flow-limit FRAMES ]\n"
	      "               [ horizon TIME ] [ pacing-floor RATE ] [ deadline TIME ]\n"
	      "       ... psp mode { rt | nrt } reserve BYTES [ deadline TIME ]\n"
	      "       ... psp mode group rate RATE [ ceil RATE ]\n"
	      "rate      of a paced class; what it counts is the qdisc's layer\n"
	      "ceil      up to where the class shares what others leave {rate}\n"
	      "mode      paced (or 1): evenly spaced; normal (or 0): best effort;\n"
	      "          dynamic: each TCP flow at packet size x cwnd / RTT, between floor\n"
	      "          and ceil; rate: of what has no socket;\n"
	      "          rt: what came before a period goes out in it; nrt: so much of each;\n"
	      "          group: classes below it (parent CLASSID) share its rate and ceil\n"
	      "reserve   bytes in a period, as the qdisc's layer counts\n"
	      "quantum   bytes a normal class sends in its turn {one largest frame}\n"
	      "total     all flows together are no faster\n"
	      "flows     most flows at a time\n"
	      "limit     most frames in all flows {32768}; flow-limit: in one {4096}\n"
	      "horizon   frames that would wait for longer are dropped {10s}\n"
	      "pacing-floor  no flow is slower {one largest frame in a horizon}\n"
	      "deadline  frames that waited for longer are dropped; 0: none {0}\n"
	      "txtime    frames leave at the time that their sockets say (SO_TXTIME) {off}\n"
	      "txtime-late      those that would leave so much later are dropped {1ms}\n"
	      "txtime-deadline  they may leave earlier {off}\n"
	      "See tc-psp(8).\n", stderr);
}

static int put(struct nlmsghdr *n, int type, const void *data, int len)
{
	return addattr_l(n, REQUEST_MAX, type, data, len) ? -1 : 0;
}

static int put_u8(struct nlmsghdr *n, int type, __u8 value)
{
	return put(n, type, &value, sizeof(value));
}

static int put_u32(struct nlmsghdr *n, int type, __u32 value)
{
	return put(n, type, &value, sizeof(value));
}

static int put_u64(struct nlmsghdr *n, int type, __u64 value)
{
	return put(n, type, &value, sizeof(value));
}

static int put_word(struct nlmsghdr *n, int type, const char *key,
		    const char *value, const struct psp_words *words)
{
	__u8 i;

	for (i = 0; words->word[i]; i++)
		if (!strcmp(value, words->word[i]))
			return put_u8(n, type, i);
	return psp_bad_value(key, value, words->expected);
}

static int parse_default(struct nlmsghdr *n, const char *key, const char *value)
{
	uint64_t minor;

	if (!psp_parse_number(value, 16, &minor) || minor > 0xffff)
		return psp_bad_value(key, value,
				     "a class minor of 1 to ffff, or 0 for none");
	return put_u32(n, TCA_PSP_DEFAULT, minor);
}

static int parse_line(struct nlmsghdr *n, const char *key, const char *value)
{
	uint64_t rate_bps = 0;

	if (strcmp(value, "auto") &&
	    (!psp_parse_rate(value, &rate_bps) || !rate_bps))
		return psp_bad_value(key, value,
				     "a rate such as 1gbit, or auto");
	return put_u64(n, TCA_PSP_LINE_RATE, rate_bps);
}

static int parse_mode(struct nlmsghdr *n, const char *key, const char *value)
{
	return put_word(n, TCA_PSP_MODE, key, value, &psp_modes);
}

static int parse_overhead(struct nlmsghdr *n, const char *key,
			  const char *value)
{
	uint64_t bytes;

	if (!psp_parse_number(value, 10, &bytes) || bytes > TC_PSP_OVERHEAD_MAX)
		return psp_bad_value(key, value, "0 to 256 bytes");
	return put_u32(n, TCA_PSP_OVERHEAD, bytes);
}

static int parse_layer(struct nlmsghdr *n, const char *key, const char *value)
{
	return put_word(n, TCA_PSP_LAYER, key, value, &psp_layers);
}

static int parse_order(struct nlmsghdr *n, const char *key, const char *value)
{
	return put_word(n, TCA_PSP_ORDER, key, value, &psp_orders);
}

static int parse_gap(struct nlmsghdr *n, const char *key, const char *value)
{
	if (!strcmp(value, "self"))
		return psp_bad_value(key, value,
				     "multicast: gap self was removed");
	return put_word(n, TCA_PSP_GAP, key, value, &psp_gaps);
}

static int parse_guard(struct nlmsghdr *n, const char *key, const char *value)
{
	return put_word(n, TCA_PSP_GUARD, key, value, &psp_switches);
}

static int parse_shared(struct nlmsghdr *n, const char *key, const char *value)
{
	return put_word(n, TCA_PSP_SHARED, key, value, &psp_switches);
}

static int parse_split(struct nlmsghdr *n, const char *key, const char *value)
{
	return put_word(n, TCA_PSP_SPLIT_GSO, key, value, &psp_splits);
}

static int parse_period(struct nlmsghdr *n, const char *key, const char *value)
{
	uint64_t time_ns;

	if (!psp_parse_time(value, &time_ns) || time_ns < TC_PSP_PERIOD_MIN ||
	    time_ns > TC_PSP_PERIOD_MAX)
		return psp_bad_value(key, value, "125us to 1s");
	return put_u64(n, TCA_PSP_PERIOD, time_ns);
}

static int parse_budget_percent(struct nlmsghdr *n, const char *key,
				const char *value, size_t digits)
{
	uint64_t percent;
	char text[4];

	if (digits >= sizeof(text))
		return psp_bad_value(key, value, "1% to 100%");
	memcpy(text, value, digits);
	text[digits] = '\0';
	if (!psp_parse_number(text, 10, &percent) || !percent || percent > 100)
		return psp_bad_value(key, value, "1% to 100%");
	return put_u64(n, TCA_PSP_BUDGET, 0) ||
	       put_u32(n, TCA_PSP_BUDGET_PERCENT, percent) ? -1 : 0;
}

static int parse_budget(struct nlmsghdr *n, const char *key, const char *value)
{
	size_t last = strlen(value);
	uint64_t bytes;

	if (last && value[last - 1] == '%')
		return parse_budget_percent(n, key, value, last - 1);
	if (!psp_parse_size(value, &bytes) || !bytes)
		return psp_bad_value(key, value,
				     "bytes a period such as 50kb, or 70% of the line");
	return put_u64(n, TCA_PSP_BUDGET, bytes);
}

static int parse_align(struct nlmsghdr *n, const char *key, const char *value)
{
	uint64_t time_ns = TC_PSP_ALIGN_OFF;

	if (strcmp(value, "off") && !psp_parse_time(value, &time_ns))
		return psp_bad_value(key, value,
				     "a time below the period such as 0 or 2ms, or off");
	return put_u64(n, TCA_PSP_ALIGN, time_ns);
}

static int parse_reserve(struct nlmsghdr *n, const char *key, const char *value)
{
	uint64_t bytes;

	if (!psp_parse_size(value, &bytes) || !bytes)
		return psp_bad_value(key, value,
				     "bytes a period above 0, such as 15kb");
	return put_u64(n, TCA_PSP_CLASS_RESERVE, bytes);
}

static int parse_rate(struct nlmsghdr *n, const char *key, const char *value)
{
	uint64_t rate_bps;

	if (!psp_parse_rate(value, &rate_bps) || !rate_bps)
		return psp_bad_value(key, value,
				     "whole bits per second above 0, such as 500mbit");
	return put_u64(n, TCA_PSP_CLASS_RATE, rate_bps);
}

/* Adds a rate to the request; 0 removes the setting. */
static int put_rate(struct nlmsghdr *n, int type, const char *key,
		    const char *value)
{
	uint64_t rate_bps;

	if (!psp_parse_rate(value, &rate_bps))
		return psp_bad_value(key, value,
				     "whole bits per second, such as 500mbit, or 0 for none");
	return put_u64(n, type, rate_bps);
}

static int parse_ceil(struct nlmsghdr *n, const char *key, const char *value)
{
	return put_rate(n, TCA_PSP_CLASS_CEIL, key, value);
}

static int parse_total(struct nlmsghdr *n, const char *key, const char *value)
{
	return put_rate(n, TCA_PSP_CLASS_TOTAL, key, value);
}

static int parse_floor(struct nlmsghdr *n, const char *key, const char *value)
{
	return put_rate(n, TCA_PSP_CLASS_FLOOR, key, value);
}

static int parse_flows(struct nlmsghdr *n, const char *key, const char *value)
{
	uint64_t flows;

	if (!psp_parse_number(value, 10, &flows) || !flows ||
	    flows > UINT32_MAX)
		return psp_bad_value(key, value, "a number of flows above 0");
	return put_u32(n, TCA_PSP_CLASS_FLOWS, flows);
}

static int put_limit(struct nlmsghdr *n, int type, const char *key,
		     const char *value)
{
	uint64_t frames;

	if (!psp_parse_number(value, 10, &frames) || !frames ||
	    frames > TC_PSP_LIMIT_MAX)
		return psp_bad_value(key, value, "1 to 1048576 frames");
	return put_u32(n, type, frames);
}

static int parse_limit(struct nlmsghdr *n, const char *key, const char *value)
{
	return put_limit(n, TCA_PSP_CLASS_LIMIT, key, value);
}

static int parse_flow_limit(struct nlmsghdr *n, const char *key,
			    const char *value)
{
	return put_limit(n, TCA_PSP_CLASS_FLOW_LIMIT, key, value);
}

static int parse_horizon(struct nlmsghdr *n, const char *key, const char *value)
{
	uint64_t time_ns;

	if (!psp_parse_time(value, &time_ns) || time_ns < TC_PSP_HORIZON_MIN ||
	    time_ns > TC_PSP_HORIZON_MAX)
		return psp_bad_value(key, value, "1s to 3600s");
	return put_u64(n, TCA_PSP_CLASS_HORIZON, time_ns);
}

static int parse_pacing_floor(struct nlmsghdr *n, const char *key,
			      const char *value)
{
	return put_rate(n, TCA_PSP_CLASS_PACING_FLOOR, key, value);
}

static int parse_txtime(struct nlmsghdr *n, const char *key, const char *value)
{
	return put_word(n, TCA_PSP_CLASS_TXTIME, key, value, &psp_txtimes);
}

static int parse_txtime_deadline(struct nlmsghdr *n, const char *key,
				 const char *value)
{
	return put_word(n, TCA_PSP_CLASS_TXTIME_DEADLINE, key, value,
			&psp_switches);
}

static int parse_txtime_late(struct nlmsghdr *n, const char *key,
			     const char *value)
{
	uint64_t time_ns;

	if (!psp_parse_time(value, &time_ns) ||
	    time_ns > TC_PSP_TXTIME_LATE_MAX)
		return psp_bad_value(key, value,
				     "at most 1s, or 0 for the default");
	return put_u64(n, TCA_PSP_CLASS_TXTIME_LATE, time_ns);
}

static int parse_deadline(struct nlmsghdr *n, const char *key,
			  const char *value)
{
	uint64_t time_ns;

	if (!psp_parse_time(value, &time_ns))
		return psp_bad_value(key, value,
				     "a time such as 10ms, or 0 for none");
	return put_u64(n, TCA_PSP_CLASS_DEADLINE, time_ns);
}

/* Parses a class's type.  Paper 003 writes `mode 0` and `mode 1`. */
static int parse_type(struct nlmsghdr *n, const char *key, const char *value)
{
	if (!strcmp(value, "0"))
		return put_u8(n, TCA_PSP_CLASS_TYPE, TC_PSP_TYPE_NORMAL);
	if (!strcmp(value, "1"))
		return put_u8(n, TCA_PSP_CLASS_TYPE, TC_PSP_TYPE_PACED);
	return put_word(n, TCA_PSP_CLASS_TYPE, key, value, &psp_types);
}

static int parse_quantum(struct nlmsghdr *n, const char *key, const char *value)
{
	uint64_t bytes;

	if (!psp_parse_size(value, &bytes) || bytes < TC_PSP_QUANTUM_MIN ||
	    bytes > TC_PSP_QUANTUM_MAX)
		return psp_bad_value(key, value, "256 to 1048576 bytes");
	return put_u32(n, TCA_PSP_CLASS_QUANTUM, bytes);
}

static const struct option qdisc_options[] = {
	{ "default", parse_default },
	{ "line", parse_line },
	{ "mode", parse_mode },
	{ "overhead", parse_overhead },
	{ "layer", parse_layer },
	{ "order", parse_order },
	{ "gap", parse_gap },
	{ "guard", parse_guard },
	{ "split-gso", parse_split },
	{ "period", parse_period },
	{ "budget", parse_budget },
	{ "align", parse_align },
	{ "shared", parse_shared },
	{ NULL, NULL },
};

static const struct option class_options[] = {
	{ "rate", parse_rate },
	{ "mode", parse_type },
	{ "quantum", parse_quantum },
	{ "ceil", parse_ceil },
	{ "total", parse_total },
	{ "floor", parse_floor },
	{ "flows", parse_flows },
	{ "deadline", parse_deadline },
	{ "reserve", parse_reserve },
	{ "limit", parse_limit },
	{ "flow-limit", parse_flow_limit },
	{ "horizon", parse_horizon },
	{ "pacing-floor", parse_pacing_floor },
	{ "txtime", parse_txtime },
	{ "txtime-deadline", parse_txtime_deadline },
	{ "txtime-late", parse_txtime_late },
	{ NULL, NULL },
};

/* Parses options: each may occur at most once and has one value. */
static int parse_options(int argc, char **argv, struct nlmsghdr *n,
			 const struct option *options, void (*explain)(void))
{
	unsigned int seen = 0, i;
	struct rtattr *nest;

	nest = addattr_nest(n, REQUEST_MAX, TCA_OPTIONS | NLA_F_NESTED);
	for (; argc > 0; argc -= 2, argv += 2) {
		if (!strcmp(*argv, "help")) {
			explain();
			return -1;
		}
		for (i = 0; options[i].key; i++)
			if (!strcmp(*argv, options[i].key))
				break;
		if (!options[i].key) {
			fprintf(stderr, "psp: unknown option \"%s\"\n", *argv);
			explain();
			return -1;
		}
		if (argc == 1)
			return psp_bad_value(*argv, NULL, "one, see `help`");
		if (seen & 1u << i)
			return psp_bad_value(*argv, argv[1],
					     "the option only once");
		seen |= 1u << i;
		if (options[i].parse(n, *argv, argv[1]))
			return -1;
	}
	addattr_nest_end(n, nest);
	return 0;
}

int psp_parse_qopt(const struct qdisc_util *qu, int argc, char **argv,
		   struct nlmsghdr *n, const char *dev)
{
	(void)qu;
	(void)dev;
	return parse_options(argc, argv, n, qdisc_options, explain_qdisc);
}

int psp_parse_copt(const struct qdisc_util *qu, int argc, char **argv,
		   struct nlmsghdr *n, const char *dev)
{
	(void)qu;
	(void)dev;
	return parse_options(argc, argv, n, class_options, explain_class);
}
