/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Writes JSON piece by piece and places the commas. */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include <stdbool.h>
#include <stdio.h>

struct json {
	FILE *to;
	bool more;	/* the next value follows another */
	int depth;
};

/*
 * Begins an object or array.  `name` is NULL in an array and for the outermost
 * value.
 */
void json_begin(struct json *j, const char *name, char bracket);
void json_end(struct json *j, char bracket);
void json_text(struct json *j, const char *name, const char *value);
void json_number(struct json *j, const char *name, double value);
void json_count(struct json *j, const char *name, unsigned long long value);
void json_flag(struct json *j, const char *name, bool value);

#endif /* BENCH_JSON_H */
