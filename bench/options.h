/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Parses the command line, which is the same for both programs. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <pace/pace.h>

#define SIZES_MAX	16

/* Exit codes. */
enum {
	EXIT_SAME = 0,		/* everything ran, orders agree */
	EXIT_DIFFERENT = 1,	/* two exact structures disagree */
	EXIT_USAGE = 2,
	EXIT_RESOURCES = 3,	/* lack of memory, or of what DPDK needs */
};

struct options {
	u32 classes[SIZES_MAX];
	u32 sizes;
	u32 rounds;
	bool json;
	bool quick;
	bool huge;
};

/*
 * Sets options in `o`, which holds the defaults.  Returns false if the program
 * is to exit with *status: after --help, or after a mistake reported on stderr.
 */
bool options_read(struct options *o, int argc, char **argv, const char *what,
		  int *status);

/* Prints a line of progress on a terminal, over the previous one. */
void progress(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

#endif /* BENCH_OPTIONS_H */
