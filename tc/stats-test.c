// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints made-up statistics as tc does, in text and JSON.  `make check` compares
 * them with stats-golden.txt, `make statistics` writes that file anew.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "psp.h"

/* What tc exports to the plugin.  The writer of JSON puts a member on a line. */
static bool json;

bool is_json_context(void)
{
	return json;
}

struct json_writer *get_json_writer(void)
{
	return NULL;
}

void jsonw_u64_field(struct json_writer *self, const char *prop, uint64_t num)
{
	(void)self;
	printf("\"%s\": %" PRIu64 "\n", prop, num);
}

void jsonw_bool_field(struct json_writer *self, const char *prop, bool value)
{
	(void)self;
	printf("\"%s\": %s\n", prop, value ? "true" : "false");
}

void jsonw_string_field(struct json_writer *self, const char *prop,
			const char *val)
{
	(void)self;
	printf("\"%s\": \"%s\"\n", prop, val);
}

void jsonw_name(struct json_writer *self, const char *name)
{
	(void)self;
	printf("\"%s\": ", name);
}

void jsonw_start_array(struct json_writer *self)
{
	(void)self;
	printf("[");
}

void jsonw_u64(struct json_writer *self, uint64_t num)
{
	(void)self;
	printf(" %" PRIu64, num);
}

void jsonw_end_array(struct json_writer *self)
{
	(void)self;
	printf(" ]\n");
}

/* Options need these, statistics do not. */
int parse_rtattr(struct rtattr *tb[], int max, struct rtattr *rta, int len)
{
	(void)tb, (void)max, (void)rta, (void)len;
	abort();
}

int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data,
	      int alen)
{
	(void)n, (void)maxlen, (void)type, (void)data, (void)alen;
	abort();
}

struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type)
{
	(void)n, (void)maxlen, (void)type;
	abort();
}

int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest)
{
	(void)n, (void)nest;
	abort();
}

struct attribute {
	struct rtattr head;
	unsigned char stats[1024];
};

/* Prints the first `bytes` of the statistics in both forms. */
static void print(const char *title, const void *stats, size_t bytes)
{
	struct attribute attr = { .head.rta_len = RTA_LENGTH(bytes) };
	int form;

	memcpy(RTA_DATA(&attr.head), stats, bytes);
	for (form = 0; form < 2; form++) {
		json = form;
		printf("# %s, %s\n", title, json ? "JSON" : "text");
		psp_print_xstats(NULL, stdout, &attr.head);
		if (!json)
			printf("\n");
	}
}

/* Gives each 64-bit member a value of its own: 1000 and its index. */
static void fill(void *stats, size_t bytes)
{
	uint64_t value = 1000;
	size_t at;

	for (at = 0; at < bytes; at += sizeof(value), value++)
		memcpy((char *)stats + at, &value, sizeof(value));
}

int main(void)
{
	struct tc_psp_qdisc_stats qdisc;
	struct tc_psp_class_stats class;

	puts("# SPDX-License-Identifier: GPL-2.0-only");

	fill(&qdisc, sizeof(qdisc));
	qdisc.type = TC_PSP_STATS_QDISC;
	qdisc.mode = TC_PSP_MODE_HYBRID;
	qdisc.max_frame_bytes = 5001;
	qdisc.line_known = 1;
	qdisc.why_not_hybrid = TC_PSP_WHY_NO_CLOCK;
	qdisc.queues = 5002;
	print("qdisc, each member its own", &qdisc, sizeof(qdisc));
	/* An older kernel does not know the later half. */
	print("qdisc, first half", &qdisc,
	      offsetof(struct tc_psp_qdisc_stats, drop_late));

	memset(&qdisc, 0, sizeof(qdisc));
	qdisc.type = TC_PSP_STATS_QDISC;
	qdisc.mode = TC_PSP_MODE_TIMER;
	print("qdisc, nothing yet", &qdisc, sizeof(qdisc));

	fill(&class, sizeof(class));
	class.type = TC_PSP_STATS_CLASS;
	class.active = 5001;
	class.flows = 5002;
	class.flows_active = 5003;
	class.flow_users = 5004;
	class.pad = 5005;
	class.late_frames[2] = 0;
	print("class, each member its own", &class, sizeof(class));
	print("class, first half", &class,
	      offsetof(struct tc_psp_class_stats, late_frames));

	memset(&class, 0, sizeof(class));
	class.type = TC_PSP_STATS_CLASS;
	print("class, nothing yet", &class, sizeof(class));
	class.type = 77;
	print("another type", &class, sizeof(class));
	return 0;
}
