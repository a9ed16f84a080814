// SPDX-License-Identifier: GPL-2.0-only
/* Prints options as text, or as JSON for `tc -j`. */
#include <inttypes.h>
#include <string.h>

#include "psp.h"
#include "quantity.h"

void psp_show_word(FILE *f, const char *key, const char *value)
{
	if (is_json_context())
		jsonw_string_field(get_json_writer(), key, value);
	else
		fprintf(f, "%s %s ", key, value);
}

void psp_show_number(FILE *f, const char *key, uint64_t value)
{
	if (is_json_context())
		jsonw_u64_field(get_json_writer(), key, value);
	else
		fprintf(f, "%s %" PRIu64 " ", key, value);
}

void psp_show_rate(FILE *f, const char *key, uint64_t rate_bps)
{
	char text[PSP_QUANTITY_TEXT], json_key[32];

	if (is_json_context()) {
		snprintf(json_key, sizeof(json_key), "%s_bps", key);
		jsonw_u64_field(get_json_writer(), json_key, rate_bps);
	} else {
		fprintf(f, "%s %s ", key, psp_rate_text(text, rate_bps));
	}
}

void psp_show_time(FILE *f, const char *key, uint64_t time_ns)
{
	char text[PSP_QUANTITY_TEXT], json_key[32];

	if (is_json_context()) {
		snprintf(json_key, sizeof(json_key), "%s_ns", key);
		jsonw_u64_field(get_json_writer(), json_key, time_ns);
	} else {
		fprintf(f, "%s %s ", key, psp_time_text(text, time_ns));
	}
}

void psp_show_truth(FILE *f, const char *key, bool value)
{
	if (is_json_context())
		jsonw_bool_field(get_json_writer(), key, value);
	else
		fprintf(f, "%s %s ", key, value ? "on" : "off");
}

/*
 * Returns an unsigned attribute.  Those of newer kernels may be longer than
 * what is read.
 */
static uint64_t get_uint(const struct rtattr *attr)
{
	uint64_t u64;
	uint32_t u32;
	uint8_t u8;

	switch (RTA_PAYLOAD(attr)) {
	case sizeof(u8):
		memcpy(&u8, RTA_DATA(attr), sizeof(u8));
		return u8;
	case sizeof(u32):
		memcpy(&u32, RTA_DATA(attr), sizeof(u32));
		return u32;
	case sizeof(u64):
		memcpy(&u64, RTA_DATA(attr), sizeof(u64));
		return u64;
	default:
		return 0;
	}
}

static void print_period(FILE *f, struct rtattr **tb)
{
	if (tb[TCA_PSP_PERIOD])
		psp_show_time(f, "period", get_uint(tb[TCA_PSP_PERIOD]));
	if (tb[TCA_PSP_BUDGET])
		psp_show_number(f, "budget", get_uint(tb[TCA_PSP_BUDGET]));
	if (tb[TCA_PSP_BUDGET_PERCENT]) {
		uint64_t percent = get_uint(tb[TCA_PSP_BUDGET_PERCENT]);

		if (is_json_context())
			psp_show_number(f, "budget_percent", percent);
		else
			fprintf(f, "budget %" PRIu64 "%% ", percent);
	}
	if (tb[TCA_PSP_ALIGN])
		psp_show_time(f, "align", get_uint(tb[TCA_PSP_ALIGN]));
}

int psp_print_qopt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_PSP_MAX + 1];

	(void)qu;
	if (!opt)
		return 0;
	parse_rtattr(tb, TCA_PSP_MAX, RTA_DATA(opt), RTA_PAYLOAD(opt));

	if (tb[TCA_PSP_DEFAULT]) {
		if (is_json_context())
			psp_show_number(f, "default_minor",
					get_uint(tb[TCA_PSP_DEFAULT]));
		else
			fprintf(f, "default %" PRIx64 " ",
				get_uint(tb[TCA_PSP_DEFAULT]));
	}
	if (tb[TCA_PSP_LINE_RATE]) {
		uint64_t line_rate_bps = get_uint(tb[TCA_PSP_LINE_RATE]);

		if (line_rate_bps)
			psp_show_rate(f, "line", line_rate_bps);
		else
			psp_show_word(f, "line", "auto");
	}
	if (tb[TCA_PSP_MODE])
		psp_show_word(f, "mode",
			      psp_word(&psp_modes, get_uint(tb[TCA_PSP_MODE])));
	if (tb[TCA_PSP_OVERHEAD])
		psp_show_number(f, "overhead", get_uint(tb[TCA_PSP_OVERHEAD]));
	if (tb[TCA_PSP_LAYER])
		psp_show_word(f, "layer",
			      psp_word(&psp_layers,
				       get_uint(tb[TCA_PSP_LAYER])));
	if (tb[TCA_PSP_ORDER])
		psp_show_word(f, "order",
			      psp_word(&psp_orders,
				       get_uint(tb[TCA_PSP_ORDER])));
	if (tb[TCA_PSP_GAP])
		psp_show_word(f, "gap",
			      psp_word(&psp_gaps, get_uint(tb[TCA_PSP_GAP])));
	if (tb[TCA_PSP_GUARD])
		psp_show_truth(f, "guard", get_uint(tb[TCA_PSP_GUARD]));
	if (tb[TCA_PSP_SPLIT_GSO])
		psp_show_word(f, "split-gso",
			      psp_word(&psp_splits,
				       get_uint(tb[TCA_PSP_SPLIT_GSO])));
	print_period(f, tb);
	if (tb[TCA_PSP_SHARED])
		psp_show_truth(f, "shared", get_uint(tb[TCA_PSP_SHARED]));
	return 0;
}

/* Prints the bounds of flows. */
static void print_bounds(FILE *f, struct rtattr **tb)
{
	if (tb[TCA_PSP_CLASS_LIMIT])
		psp_show_number(f, "limit", get_uint(tb[TCA_PSP_CLASS_LIMIT]));
	if (tb[TCA_PSP_CLASS_FLOW_LIMIT])
		psp_show_number(f, "flow-limit",
				get_uint(tb[TCA_PSP_CLASS_FLOW_LIMIT]));
	if (tb[TCA_PSP_CLASS_HORIZON])
		psp_show_time(f, "horizon",
			      get_uint(tb[TCA_PSP_CLASS_HORIZON]));
	if (tb[TCA_PSP_CLASS_PACING_FLOOR])
		psp_show_rate(f, "pacing-floor",
			      get_uint(tb[TCA_PSP_CLASS_PACING_FLOOR]));
}

static void print_txtime(FILE *f, struct rtattr **tb)
{
	if (tb[TCA_PSP_CLASS_TXTIME])
		psp_show_word(f, "txtime",
			      psp_word(&psp_txtimes,
				       get_uint(tb[TCA_PSP_CLASS_TXTIME])));
	if (tb[TCA_PSP_CLASS_TXTIME_DEADLINE])
		psp_show_truth(f, "txtime-deadline",
			       get_uint(tb[TCA_PSP_CLASS_TXTIME_DEADLINE]));
	if (tb[TCA_PSP_CLASS_TXTIME_LATE])
		psp_show_time(f, "txtime-late",
			      get_uint(tb[TCA_PSP_CLASS_TXTIME_LATE]));
}

int psp_print_copt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_PSP_CLASS_MAX + 1];

	(void)qu;
	if (!opt)
		return 0;
	parse_rtattr(tb, TCA_PSP_CLASS_MAX, RTA_DATA(opt), RTA_PAYLOAD(opt));

	if (tb[TCA_PSP_CLASS_TYPE])
		psp_show_word(f, "mode",
			      psp_word(&psp_types,
				       get_uint(tb[TCA_PSP_CLASS_TYPE])));
	if (tb[TCA_PSP_CLASS_RATE])
		psp_show_rate(f, "rate", get_uint(tb[TCA_PSP_CLASS_RATE]));
	if (tb[TCA_PSP_CLASS_CEIL])
		psp_show_rate(f, "ceil", get_uint(tb[TCA_PSP_CLASS_CEIL]));
	if (tb[TCA_PSP_CLASS_TOTAL])
		psp_show_rate(f, "total", get_uint(tb[TCA_PSP_CLASS_TOTAL]));
	if (tb[TCA_PSP_CLASS_FLOOR])
		psp_show_rate(f, "floor", get_uint(tb[TCA_PSP_CLASS_FLOOR]));
	if (tb[TCA_PSP_CLASS_FLOWS])
		psp_show_number(f, "flows", get_uint(tb[TCA_PSP_CLASS_FLOWS]));
	print_bounds(f, tb);
	print_txtime(f, tb);
	if (tb[TCA_PSP_CLASS_RESERVE])
		psp_show_number(f, "reserve",
				get_uint(tb[TCA_PSP_CLASS_RESERVE]));
	if (tb[TCA_PSP_CLASS_QUANTUM])
		psp_show_number(f, "quantum",
				get_uint(tb[TCA_PSP_CLASS_QUANTUM]));
	if (tb[TCA_PSP_CLASS_DEADLINE])
		psp_show_time(f, "deadline",
			      get_uint(tb[TCA_PSP_CLASS_DEADLINE]));
	return 0;
}
