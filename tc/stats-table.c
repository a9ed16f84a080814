// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks and prints the table of statistics, uapi/sch_psp_stats.h.
 *
 *   stats-table	checks the table against the structs of uapi/sch_psp.h
 *   stats-table man	writes section STATISTICS of tc-psp.8
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "../uapi/sch_psp.h"

struct row {
	const char *member, *key, *unit, *metric, *total, *meaning;
	size_t offset, bytes;
};

#define ROW(type, name, key_, unit_, metric_, total_, meaning_) {	\
	.member = #name, .key = key_, .unit = unit_,			\
	.metric = metric_, .total = total_, .meaning = meaning_,	\
	.offset = offsetof(type, name),					\
	.bytes = sizeof(((type *)0)->name),			\
},

static const struct row qdisc_rows[] = {
#define PSP_QDISC_STAT(member, key, unit, metric, total, shown, source, meaning) \
	ROW(struct tc_psp_qdisc_stats, member, key, #unit, #metric, #total, meaning)
#include "../uapi/sch_psp_stats.h"
};

static const struct row class_rows[] = {
#define PSP_CLASS_STAT(member, key, unit, metric, total, shown, source, meaning) \
	ROW(struct tc_psp_class_stats, member, key, #unit, #metric, #total, meaning)
#include "../uapi/sch_psp_stats.h"
};

struct table {
	const char *name;
	const struct row *rows;
	size_t count;
	size_t bytes;		/* of the struct */
	size_t pad;		/* offset of its member `pad`, 4 bytes; 0: none */
};

static const struct table qdisc = {
	"tc_psp_qdisc_stats", qdisc_rows,
	sizeof(qdisc_rows) / sizeof(qdisc_rows[0]),
	sizeof(struct tc_psp_qdisc_stats), 0
};

static const struct table class = {
	"tc_psp_class_stats", class_rows,
	sizeof(class_rows) / sizeof(class_rows[0]),
	sizeof(struct tc_psp_class_stats),
	offsetof(struct tc_psp_class_stats, pad)
};

static int failures;

static void fail(const struct table *t, const char *what, const char *expected)
{
	fprintf(stderr, "%s: %s: expected %s\n", t->name, what, expected);
	failures++;
}

/* Returns the row of the table that has this key, or NULL. */
static const struct row *find(const struct table *t, const char *key)
{
	size_t i;

	for (i = 0; i < t->count; i++)
		if (!strcmp(t->rows[i].key, key))
			return &t->rows[i];
	return NULL;
}

static bool is(const struct row *row, const char *unit)
{
	return !strcmp(row->unit, unit);
}

/* Checks that every byte of the struct belongs to one row, `type` or `pad`. */
static void check_members(const struct table *t)
{
	unsigned char owners[1024] = { 0 };
	char text[64];
	size_t i, at;

	memset(owners, 1, sizeof(__u32));		/* type */
	if (t->pad)
		memset(owners + t->pad, 1, sizeof(__u32));
	for (i = 0; i < t->count; i++)
		for (at = 0; at < t->rows[i].bytes; at++)
			owners[t->rows[i].offset + at]++;
	for (at = 0; at < t->bytes; at++) {
		if (owners[at] == 1 || (at && owners[at] == owners[at - 1]))
			continue;
		snprintf(text, sizeof(text), "%d rows for the member at byte %zu",
			 owners[at], at);
		fail(t, text, "one");
	}
}

static void check_rows(const struct table *t)
{
	const struct row *row;

	for (row = t->rows; row < t->rows + t->count; row++) {
		if (find(t, row->key) != row)
			fail(t, row->key, "a key only once");
		if ((is(row, "RATE") || is(row, "TIME")) &&
		    row->bytes != sizeof(__u64))
			fail(t, row->member, "64 bits for a rate or time");
		if (is(row, "HISTOGRAM") !=
		    (row->bytes == TC_PSP_LATE_BUCKETS * sizeof(__u64)))
			fail(t, row->member, "unit HISTOGRAM for an array");
		/* A member's name must tell its unit. */
		if (is(row, "RATE") != !!strstr(row->member, "_bps"))
			fail(t, row->member, "_bps in the name of rates alone");
		if (is(row, "TIME") != !!strstr(row->member, "_ns"))
			fail(t, row->member, "_ns in the name of times alone");
		/* Rates, words and largest values do not only grow. */
		if (strcmp(row->metric, "counter") &&
		    strcmp(row->metric, "gauge"))
			fail(t, row->member, "counter or gauge");
		if ((is(row, "RATE") || is(row, "MODE") || is(row, "WHY") ||
		     is(row, "ASSUMED") || strstr(row->member, "_max")) &&
		    strcmp(row->metric, "gauge"))
			fail(t, row->member, "gauge");
		if (strcmp(row->total, "sum") && strcmp(row->total, "none"))
			fail(t, row->member, "sum or none");
		if (!strcmp(row->metric, "counter") && strcmp(row->total, "sum"))
			fail(t, row->member, "sum of a counter");
		if ((is(row, "MODE") || is(row, "WHY") || is(row, "ASSUMED") ||
		     strstr(row->member, "_max") || strstr(row->member, "_min")) &&
		    strcmp(row->total, "none"))
			fail(t, row->member, "none of a word or an extreme");
		if (!*row->meaning &&
		    (t != &class || !find(&qdisc, row->key)))
			fail(t, row->key, "a meaning, here or of the qdisc's key");
	}
}

/* Writes `word` in bold, and escapes characters that are special to troff. */
static void write_meaning(const char *text)
{
	bool bold = false;

	for (; *text; text++) {
		if (*text == '`') {
			bold = !bold;
			fputs(bold ? "\\fB" : "\\fR", stdout);
		} else if (*text == '-' && bold) {
			fputs("\\-", stdout);
		} else {
			putchar(*text);
		}
	}
	putchar('\n');
}

static void write_rows(const struct table *t)
{
	const struct row *row;

	for (row = t->rows; row < t->rows + t->count; row++) {
		if (!*row->meaning || is(row, "HIDDEN"))
			continue;
		printf(".TP\n.B %s\n", row->key);
		write_meaning(row->meaning);
	}
}

/* Lists the keys of a class that mean the same as the qdisc's. */
static void write_shared(void)
{
	const char *between = "";
	const struct row *row;

	for (row = class.rows; row < class.rows + class.count; row++) {
		if (*row->meaning)
			continue;
		printf("%s\\fB%s\\fR", between, row->key);
		between = ",\n";
	}
	puts(".");
}

static void write_man(void)
{
	puts(".SH STATISTICS\n"
	     ".\\\" Made from uapi/sch_psp_stats.h: make -C tc statistics\n"
	     ".B tc \\-s qdisc show\n"
	     "adds what follows, with the same words as keys in the output of\n"
	     ".BR \"tc \\-s \\-j\" .\n"
	     "There the key of a rate ends in\n"
	     ".B _bps\n"
	     "(bits per second), the key of a time in\n"
	     ".BR _ns .");
	write_rows(&qdisc);
	puts(".PP\n"
	     ".B tc \\-s class show\n"
	     "adds:");
	write_rows(&class);
	puts(".PP\n"
	     "Of the qdisc's, each for this class alone:");
	write_shared();
	puts(".PP\n"
	     ".B dropped\n"
	     "of a class is the sum of its drops by cause.");
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "man")) {
		write_man();
		return 0;
	}
	check_members(&qdisc);
	check_rows(&qdisc);
	check_members(&class);
	check_rows(&class);
	printf("stats-table: %s\n", failures ? "FAILED" : "ok");
	return failures != 0;
}
