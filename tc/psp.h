/* SPDX-License-Identifier: GPL-2.0-only */
/* The interfaces between the files of the plugin. */
#ifndef TC_PSP_H
#define TC_PSP_H

#include <stdint.h>

#include "../uapi/sch_psp.h"
#include "compat/iproute2.h"

/* An option's values in words; the index is the value. */
struct psp_words {
	const char *const *word;	/* ends with NULL */
	const char *expected;		/* all of them, for a message */
};

extern const struct psp_words psp_modes, psp_layers, psp_orders, psp_gaps,
			      psp_switches, psp_splits, psp_types, psp_txtimes,
			      psp_whys;

/* Returns a value's word, or "?" for a value that this plugin does not know. */
const char *psp_word(const struct psp_words *words, unsigned int value);

/* Prints key, value and what was expected to standard error.  Returns -1. */
int psp_bad_value(const char *key, const char *value, const char *expected);

/* Print one item, as JSON if asked for, else as " key value". */
void psp_show_word(FILE *f, const char *key, const char *value);
void psp_show_number(FILE *f, const char *key, uint64_t value);
/* Prints a rate.  The key in JSON ends in _bps: bit/s. */
void psp_show_rate(FILE *f, const char *key, uint64_t rate_bps);
/* Prints a time.  The key in JSON ends in _ns. */
void psp_show_time(FILE *f, const char *key, uint64_t time_ns);
void psp_show_truth(FILE *f, const char *key, bool value);

/* parse.c */
int psp_parse_qopt(const struct qdisc_util *qu, int argc, char **argv,
		   struct nlmsghdr *n, const char *dev);
int psp_parse_copt(const struct qdisc_util *qu, int argc, char **argv,
		   struct nlmsghdr *n, const char *dev);

/* print.c */
int psp_print_qopt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
int psp_print_copt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);

/* stats.c */
int psp_print_xstats(const struct qdisc_util *qu, FILE *f,
		     struct rtattr *xstats);

#endif
