// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "json.h"

static void text(FILE *to, const char *s)
{
	fputc('"', to);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fputc('\\', to);
		if ((unsigned char)*s < ' ')
			fprintf(to, "\\u%04x", *s);
		else
			fputc(*s, to);
	}
	fputc('"', to);
}

static void before(struct json *j, const char *name)
{
	if (j->more)
		fputc(',', j->to);
	if (j->depth)
		fprintf(j->to, "\n%*s", j->depth, "");
	if (name) {
		text(j->to, name);
		fputc(':', j->to);
	}
	j->more = true;
}

void json_begin(struct json *j, const char *name, char bracket)
{
	before(j, name);
	fputc(bracket, j->to);
	j->more = false;
	j->depth++;
}

void json_end(struct json *j, char bracket)
{
	j->depth--;
	fputc(bracket, j->to);
	j->more = true;
	if (!j->depth)
		fputc('\n', j->to);
}

void json_text(struct json *j, const char *name, const char *value)
{
	before(j, name);
	text(j->to, value);
}

void json_number(struct json *j, const char *name, double value)
{
	before(j, name);
	fprintf(j->to, "%.6g", value);
}

void json_count(struct json *j, const char *name, unsigned long long value)
{
	before(j, name);
	fprintf(j->to, "%llu", value);
}

void json_flag(struct json *j, const char *name, bool value)
{
	before(j, name);
	fputs(value ? "true" : "false", j->to);
}
