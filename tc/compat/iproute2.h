/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declares the part of iproute2 that a qdisc's plugin needs.  Distributions
 * package no headers for it.  All declarations here are the same from 5.9 to
 * 7.x, except that 6.9 made `struct qdisc_util *` arguments const, which
 * affects no caller.
 */
#ifndef PSP_COMPAT_IPROUTE2_H
#define PSP_COMPAT_IPROUTE2_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

/* The symbol <kind>_qdisc_util must not be const, because tc writes `next`. */
struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_qopt)(const struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt);
	int (*print_xstats)(const struct qdisc_util *qu, FILE *f,
			    struct rtattr *xstats);
	int (*parse_copt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_copt)(const struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt);
	int (*has_block)(const struct qdisc_util *qu, struct rtattr *opt,
			 __u32 block_idx, bool *p_has);
};

/* Exported by the tc program. */
int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data,
	      int alen);
struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);
int parse_rtattr(struct rtattr *tb[], int max, struct rtattr *rta, int len);

struct json_writer;
bool is_json_context(void);
struct json_writer *get_json_writer(void);
void jsonw_u64_field(struct json_writer *self, const char *prop, uint64_t num);
void jsonw_bool_field(struct json_writer *self, const char *prop, bool value);
void jsonw_name(struct json_writer *self, const char *name);
void jsonw_start_array(struct json_writer *self);
void jsonw_end_array(struct json_writer *self);
void jsonw_u64(struct json_writer *self, uint64_t num);
void jsonw_string_field(struct json_writer *self, const char *prop,
			const char *val);

#endif
