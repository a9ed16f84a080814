// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints statistics as text, or as JSON for `tc -j`, by the table
 * uapi/sch_psp_stats.h.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "psp.h"

/* Begins a line of text. */
static void start_line(FILE *f)
{
	if (!is_json_context())
		fputs("\n  ", f);
}

static void show_assumed(FILE *f, const char *key, bool known)
{
	if (is_json_context())
		jsonw_bool_field(get_json_writer(), key, known);
	else if (!known)
		fputs("(assumed) ", f);
}

/*
 * Prints the histogram of lateness, byte times and frames: only the buckets in use,
 * "late_frames 0:9910 1-1:3 2-3:87".  In JSON all buckets.
 */
static void show_histogram(FILE *f, const char *key, const __u64 *late_frames)
{
	unsigned int i, last = TC_PSP_LATE_BUCKETS - 1;

	if (is_json_context()) {
		jsonw_name(get_json_writer(), key);
		jsonw_start_array(get_json_writer());
		for (i = 0; i <= last; i++)
			jsonw_u64(get_json_writer(), late_frames[i]);
		jsonw_end_array(get_json_writer());
		return;
	}
	fprintf(f, "%s ", key);
	for (i = 0; i <= last; i++) {
		if (!late_frames[i])
			continue;
		if (!i)
			fprintf(f, "0:");
		else if (i == last)
			fprintf(f, "%u+:", 1u << (i - 1));
		else
			fprintf(f, "%u-%u:", 1u << (i - 1), (1u << i) - 1);
		fprintf(f, "%" PRIu64 " ", (uint64_t)late_frames[i]);
	}
}

/* How the table's units are printed. */
#define SHOW_FRAMES(key, value)		psp_show_number(f, key, value)
#define SHOW_BYTES(key, value)		psp_show_number(f, key, value)
#define SHOW_COUNT(key, value)		psp_show_number(f, key, value)
#define SHOW_RATE(key, value)		psp_show_rate(f, key, value)
#define SHOW_TIME(key, value)		psp_show_time(f, key, value)
#define SHOW_MODE(key, value)		psp_show_word(f, key, psp_word(&psp_modes, value))
#define SHOW_WHY(key, value)		psp_show_word(f, key, psp_word(&psp_whys, value))
#define SHOW_ASSUMED(key, value)	show_assumed(f, key, value)
#define SHOW_HISTOGRAM(key, value)	show_histogram(f, key, value)
#define SHOW_HIDDEN(key, value)		((void)0)

/* When the table's members are printed. */
#define SHOWN_always(value)	true
#define SHOWN_nonzero(value)	((value) != 0)
#define SHOWN_hybrid(value)	(is_json_context() || st->mode == TC_PSP_MODE_HYBRID)
#define SHOWN_periods(value)	(is_json_context() || st->period_ns)
#define SHOWN_reserved(value)	(st->reserve_bytes != 0)
#define SHOWN_paced(value)	(st->rate_bps != 0)
#define SHOWN_dynamic(value)	(st->flows_seen != 0)

static void print_qdisc_stats(FILE *f, const struct tc_psp_qdisc_stats *st)
{
	if (!is_json_context())
		fputs("  ", f);
#define PSP_QDISC_LINE(shown)				\
	if (SHOWN_##shown(0))				\
		start_line(f);
#define PSP_QDISC_STAT(member, key, unit, metric, total, shown, source, meaning)	\
	if (SHOWN_##shown(st->member))					\
		SHOW_##unit(key, st->member);
#include "../uapi/sch_psp_stats.h"
}

static void print_class_stats(FILE *f, const struct tc_psp_class_stats *st)
{
	if (!is_json_context())
		fputs("  ", f);
#define PSP_CLASS_LINE(shown)				\
	if (SHOWN_##shown(0))				\
		start_line(f);
#define PSP_CLASS_STAT(member, key, unit, metric, total, shown, source, meaning)	\
	if (SHOWN_##shown(st->member))					\
		SHOW_##unit(key, st->member);
#include "../uapi/sch_psp_stats.h"
}

/* Prints the fields that both sides know; a field that the kernel does not send is 0. */
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
