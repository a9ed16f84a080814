// SPDX-License-Identifier: GPL-2.0-only
/* Options and statistics as text, and as JSON for `tc -j`. */
#include <inttypes.h>
#include <stddef.h>
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
	char text[PSP_RATE_TEXT], json_key[32];

	if (is_json_context()) {
		snprintf(json_key, sizeof(json_key), "%s_bps", key);
		jsonw_u64_field(get_json_writer(), json_key, rate_bps);
	} else {
		fprintf(f, "%s %s ", key, psp_rate_text(text, rate_bps));
	}
}

/* Attributes of newer kernels may be longer than what is read of them. */
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
	return 0;
}

int psp_print_copt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_PSP_CLASS_MAX + 1];

	(void)qu;
	if (!opt)
		return 0;
	parse_rtattr(tb, TCA_PSP_CLASS_MAX, RTA_DATA(opt), RTA_PAYLOAD(opt));

	if (tb[TCA_PSP_CLASS_KIND])
		psp_show_word(f, "mode",
			      psp_word(&psp_kinds,
				       get_uint(tb[TCA_PSP_CLASS_KIND])));
	if (tb[TCA_PSP_CLASS_RATE])
		psp_show_rate(f, "rate", get_uint(tb[TCA_PSP_CLASS_RATE]));
	if (tb[TCA_PSP_CLASS_QUANTUM])
		psp_show_number(f, "quantum",
				get_uint(tb[TCA_PSP_CLASS_QUANTUM]));
	return 0;
}

/* One line of text. */
static void start_line(FILE *f, const char *title)
{
	if (!is_json_context())
		fprintf(f, "\n  %s", title);
}

static void print_qdisc_stats(FILE *f, const struct tc_psp_qdisc_stats *st)
{
	if (!is_json_context())
		fputs("  ", f);
	psp_show_word(f, "mode_in_force", psp_word(&psp_modes, st->mode));
	psp_show_rate(f, "line_in_force", st->line_rate_bps);
	if (is_json_context())
		jsonw_bool_field(get_json_writer(), "line_known",
				 st->line_known);
	else if (!st->line_known)
		fputs("(assumed) ", f);
	psp_show_number(f, "max_frame", st->max_frame_bytes);

	start_line(f, "");
	psp_show_number(f, "sent_frames", st->sent_frames);
	psp_show_number(f, "sent_wire_bytes", st->sent_wire_bytes);
	psp_show_number(f, "gap_frames", st->gap_frames);
	psp_show_number(f, "gap_wire_bytes", st->gap_wire_bytes);

	start_line(f, "");
	psp_show_number(f, "early_bytes_max", st->early_bytes_max);
	psp_show_number(f, "late_bytes_max", st->late_bytes_max);
	psp_show_number(f, "shifts", st->shifts);
	psp_show_number(f, "shifted_bytes", st->shifted_bytes);

	start_line(f, "");
	psp_show_number(f, "unclassified", st->unclassified_frames);
	psp_show_number(f, "drop_filter", st->drop_filter);
	psp_show_number(f, "drop_child", st->drop_child);
	psp_show_number(f, "drop_segment", st->drop_segment);
	psp_show_number(f, "drop_long", st->drop_long);
	psp_show_number(f, "gap_failed", st->gap_failed);
	psp_show_number(f, "child_retries", st->child_retries);
}

static void print_class_stats(FILE *f, const struct tc_psp_class_stats *st)
{
	if (!is_json_context())
		fputs("  ", f);
	psp_show_number(f, "active", st->active);
	/* 0: a normal class.  The option's own key is "rate". */
	if (st->rate_bps)
		psp_show_rate(f, "rate_in_force", st->rate_bps);
	psp_show_number(f, "sent_frames", st->sent_frames);
}

/* Takes what both sides know; what the kernel does not send is 0. */
int psp_print_xstats(const struct qdisc_util *qu, FILE *f,
		     struct rtattr *xstats)
{
	union {
		__u32 type;
		struct tc_psp_qdisc_stats qdisc;
		struct tc_psp_class_stats class;
	} st = { 0 };
	size_t bytes;

	(void)qu;
	if (!xstats)
		return 0;
	memset(&st, 0, sizeof(st));
	bytes = RTA_PAYLOAD(xstats);
	memcpy(&st, RTA_DATA(xstats), bytes < sizeof(st) ? bytes : sizeof(st));

	if (st.type == TC_PSP_STATS_QDISC)
		print_qdisc_stats(f, &st.qdisc);
	else if (st.type == TC_PSP_STATS_CLASS)
		print_class_stats(f, &st.class);
	return 0;
}
