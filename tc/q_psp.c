// SPDX-License-Identifier: GPL-2.0-only
/*
 * The plugin of psp for tc(8).  tc loads it as q_psp.so from its library
 * directory or from $TC_LIB_DIR, and looks up the symbol below.
 */
#include <stdio.h>

#include "psp.h"

static const char *const modes[] = { "auto", "gap", "timer", "hybrid", NULL };
static const char *const layers[] = { "link", "wire", "ip", NULL };
static const char *const orders[] = { "clock", "rate", "next", NULL };
static const char *const gaps[] = { "pause", "multicast", NULL };
static const char *const switches[] = { "off", "on", NULL };
static const char *const splits[] = { "auto", "on", "off", NULL };
static const char *const types[] = { "normal", "paced", "dynamic", "rt", "nrt",
				     "group", NULL };
static const char *const txtimes[] = { "off", "monotonic", "tai", NULL };
/* The words of enum tc_psp_why: the reason why mode auto is not hybrid. */
static const char *const whys[] = {
	"", "not_ethernet", "no_transmit_queue", "software_device",
	"line_unknown", "line_shared", "no_wire_clock", "not_proved",
	"host_slow", NULL
};

const struct psp_words psp_modes = { modes, "auto, gap, timer or hybrid" };
const struct psp_words psp_layers = { layers, "link, wire or ip" };
const struct psp_words psp_orders = { orders, "clock, rate or next" };
const struct psp_words psp_gaps = { gaps, "pause or multicast" };
const struct psp_words psp_switches = { switches, "on or off" };
const struct psp_words psp_splits = { splits, "auto, on or off" };
const struct psp_words psp_types = { types,
				     "paced, normal, dynamic, rt, nrt, group, 1 or 0" };
const struct psp_words psp_txtimes = { txtimes, "monotonic, tai or off" };
const struct psp_words psp_whys = { whys, "" };

const char *psp_word(const struct psp_words *words, unsigned int value)
{
	unsigned int i;

	for (i = 0; words->word[i]; i++)
		if (i == value)
			return words->word[i];
	return "?";
}

int psp_bad_value(const char *key, const char *value, const char *expected)
{
	if (value)
		fprintf(stderr, "psp: %s \"%s\": expected %s\n", key, value,
			expected);
	else
		fprintf(stderr, "psp: %s: value missing: expected %s\n", key,
			expected);
	return -1;
}

/* tc looks up KIND_qdisc_util in q_KIND.so. */
__attribute__((visibility("default")))
struct qdisc_util psp_qdisc_util = {
	.id		= "psp",
	.parse_qopt	= psp_parse_qopt,
	.print_qopt	= psp_print_qopt,
	.print_xstats	= psp_print_xstats,
	.parse_copt	= psp_parse_copt,
	.print_copt	= psp_print_copt,
};
