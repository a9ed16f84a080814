/* SPDX-License-Identifier: GPL-2.0-only */
/* A check that says where and what, and goes on to the next. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

static int check_failures;

#define CHECK(condition, ...) do {					\
	if (!(condition)) {						\
		check_failures++;					\
		fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
		fprintf(stderr, __VA_ARGS__);				\
		fputc('\n', stderr);					\
	}								\
} while (0)

/* At the end of main. */
static inline int check_result(const char *name)
{
	printf("%s: %s\n", name, check_failures ? "FAILED" : "ok");
	return check_failures != 0;
}

#endif
