// SPDX-License-Identifier: GPL-2.0-only
/* Prints statistics as text, or as JSON for `tc -j`. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "psp.h"

/* Begins a line of text. */
static void start_line(FILE *f, const char *title)
{
	if (!is_json_context())
		fprintf(f, "\n  %s", title);
}

/* period_ns 0: no class is of type rt or nrt. */
static void print_periods(FILE *f, const struct tc_psp_qdisc_stats *st)
{
	if (!st->period_ns && !is_json_context())
		return;
	start_line(f, "");
	psp_show_time(f, "period_in_force", st->period_ns);
	psp_show_number(f, "budget_bytes", st->budget_bytes);
	psp_show_number(f, "reserved_bytes", st->reserved_bytes);
	psp_show_number(f, "periods", st->periods);
	psp_show_number(f, "periods_spent", st->periods_spent);
	start_line(f, "");
	psp_show_number(f, "rt_over", st->rt_over);
	psp_show_number(f, "rt_deferred", st->rt_deferred);
	psp_show_number(f, "rt_overrun", st->rt_overrun);
	psp_show_number(f, "rt_late_bytes", st->rt_late_bytes);
	psp_show_number(f, "rt_excess", st->rt_excess);
	psp_show_number(f, "nrt_deferred", st->nrt_deferred);
}

static void print_qdisc_stats(FILE *f, const struct tc_psp_qdisc_stats *st)
{
	if (!is_json_context())
		fputs("  ", f);
	psp_show_word(f, "mode_in_force", psp_word(&psp_modes, st->mode));
	if (st->why_not_hybrid)
		psp_show_word(f, "why_not_hybrid",
			      psp_word(&psp_whys, st->why_not_hybrid));
	psp_show_rate(f, "line_in_force", st->line_rate_bps);
	if (is_json_context())
		jsonw_bool_field(get_json_writer(), "line_known",
				 st->line_known);
	else if (!st->line_known)
		fputs("(assumed) ", f);
	psp_show_number(f, "max_frame", st->max_frame_bytes);
	if (st->queues)
		psp_show_number(f, "queues", st->queues);

	start_line(f, "");
	psp_show_number(f, "sent_frames", st->sent_frames);
	psp_show_number(f, "sent_wire_bytes", st->sent_wire_bytes);
	psp_show_number(f, "gap_frames", st->gap_frames);
	psp_show_number(f, "gap_wire_bytes", st->gap_wire_bytes);
	psp_show_number(f, "gap_failed", st->gap_failed);

	start_line(f, "");
	psp_show_number(f, "no_wire_clock", st->no_clock);
	/* 0: the wire was never full for long enough */
	if (st->line_measured_bps)
		psp_show_rate(f, "line_measured", st->line_measured_bps);
	psp_show_number(f, "wire_stops", st->wire_stops);
	psp_show_time(f, "wire_stop_max", st->wire_stop_max_ns);

	start_line(f, "");
	psp_show_number(f, "early_bytes_max", st->early_bytes_max);
	psp_show_number(f, "late_bytes_max", st->late_bytes_max);
	psp_show_number(f, "rebases", st->rebases);
	psp_show_number(f, "rebased_bytes", st->rebased_bytes);

	start_line(f, "");
	psp_show_number(f, "borrowed_frames", st->borrowed_frames);
	psp_show_number(f, "guard_band_held", st->guard_band_held);
	psp_show_number(f, "bursts_cut", st->bursts_cut);
	psp_show_number(f, "bursts_whole", st->bursts_whole);
	if (is_json_context() || st->mode == TC_PSP_MODE_HYBRID) {
		start_line(f, "");
		psp_show_number(f, "waits", st->waits);
		psp_show_time(f, "wait_late_max", st->wait_late_max_ns);
		psp_show_time(f, "lead", st->lead_ns);
	}

	start_line(f, "");
	psp_show_number(f, "unclassified", st->unclassified_frames);
	psp_show_number(f, "drop_filter", st->drop_filter);
	psp_show_number(f, "drop_child", st->drop_child);
	psp_show_number(f, "drop_segment", st->drop_segment);
	psp_show_number(f, "drop_long", st->drop_long);
	psp_show_number(f, "drop_late", st->drop_late);
	psp_show_number(f, "drop_flow", st->drop_flow);
	psp_show_number(f, "child_retries", st->child_retries);
	start_line(f, "");
	psp_show_number(f, "drop_limit", st->drop_limit);
	psp_show_number(f, "drop_horizon", st->drop_horizon);
	psp_show_number(f, "drop_evicted", st->drop_evicted);
	print_periods(f, st);
}

/*
 * Prints the histogram of lateness, byte times and frames: only the buckets in use,
 * "late_frames 0:9910 1-1:3 2-3:87".  In JSON all buckets.
 */
static void print_lateness(FILE *f, const __u64 *late_frames)
{
	unsigned int i, last = TC_PSP_LATE_BUCKETS - 1;

	if (is_json_context()) {
		jsonw_name(get_json_writer(), "late_frames");
		jsonw_start_array(get_json_writer());
		for (i = 0; i <= last; i++)
			jsonw_u64(get_json_writer(), late_frames[i]);
		jsonw_end_array(get_json_writer());
		return;
	}
	start_line(f, "late_frames ");
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

static void print_flows(FILE *f, const struct tc_psp_class_stats *st)
{
	start_line(f, "");
	psp_show_number(f, "flows_known", st->flows);
	psp_show_number(f, "flows_active", st->flows_active);
	psp_show_number(f, "flows_seen", st->flows_seen);
	psp_show_number(f, "flows_refused", st->flows_refused);
	psp_show_number(f, "flows_evicted", st->flows_evicted);
	psp_show_number(f, "flow_users", st->flow_users);
	start_line(f, "");
	psp_show_number(f, "drop_limit", st->drop_limit);
	psp_show_number(f, "drop_horizon", st->drop_horizon);
	psp_show_number(f, "drop_evicted", st->drop_evicted);
	start_line(f, "");
	psp_show_rate(f, "flow_rate_min", st->flow_rate_min_bps);
	psp_show_rate(f, "flow_rate_max", st->flow_rate_max_bps);
	psp_show_rate(f, "flow_rate_sum", st->flow_rate_sum_bps);
}

static void print_class_stats(FILE *f, const struct tc_psp_class_stats *st)
{
	if (!is_json_context())
		fputs("  ", f);
	psp_show_number(f, "active", st->active);
	/* 0: a normal class.  The option's own key is "rate". */
	if (st->rate_bps)
		psp_show_rate(f, "rate_in_force", st->rate_bps);
	if (st->rate_bps && st->ceil_bps)
		psp_show_rate(f, "ceil_in_force", st->ceil_bps);
	/* 0: not a whole second yet */
	if (st->achieved_bps)
		psp_show_rate(f, "achieved", st->achieved_bps);

	start_line(f, "");
	psp_show_number(f, "sent_frames", st->sent_frames);
	psp_show_number(f, "sent_wire_bytes", st->sent_wire_bytes);
	psp_show_number(f, "borrowed_frames", st->borrowed_frames);
	psp_show_number(f, "throttled", st->throttled);

	start_line(f, "");
	psp_show_number(f, "drop_child", st->drop_child);
	psp_show_number(f, "drop_segment", st->drop_segment);
	psp_show_number(f, "drop_long", st->drop_long);
	psp_show_number(f, "drop_late", st->drop_late);
	psp_show_number(f, "drop_flow", st->drop_flow);
	if (st->reserve_bytes) {
		start_line(f, "");
		psp_show_number(f, "over", st->over);
		psp_show_number(f, "deferred", st->deferred);
		psp_show_number(f, "overrun", st->overrun);
		psp_show_number(f, "rt_late_bytes", st->rt_late_bytes);
		psp_show_number(f, "excess", st->excess);
	}
	if (st->rate_bps)
		print_lateness(f, st->late_frames);
	if (st->flows_seen)
		print_flows(f, st);
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
