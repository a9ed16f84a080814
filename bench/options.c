// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contest.h"
#include "options.h"

static const char usage[] =
	"usage: %s [--classes N[,N...]] [--rounds N] [--json] [--quick] [--huge]\n"
	"\n"
	"%s\n"
	"\n"
	"  --classes N[,N...]  numbers of classes, 1 to 1048576\n"
	"  --rounds N          repetitions of each measurement, 1 to 101\n"
	"  --json              results as JSON on standard output\n"
	"  --quick             fewer and shorter repetitions: for a look, not for\n"
	"                      figures\n"
	"  --huge              memory in huge pages, for every structure alike\n"
	"  --help              this\n"
	"\n"
	"Exit status: 0 everything ran and exact structures agree in order, 1 they\n"
	"do not, 2 wrong use, 3 no memory (or, for DPDK, no environment).\n";

static bool read_count(const char *text, char **end, u32 max, u32 *value)
{
	unsigned long n;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	n = strtoul(text, end, 10);
	if (errno || !n || n > max)
		return false;
	*value = (u32)n;
	return true;
}

static bool read_sizes(struct options *o, const char *text)
{
	char *end;

	o->sizes = 0;
	for (;;) {
		if (o->sizes == SIZES_MAX ||
		    !read_count(text, &end, PACE_CLASSES_MAX,
				&o->classes[o->sizes]))
			return false;
		o->sizes++;
		if (!*end)
			return true;
		if (*end != ',')
			return false;
		text = end + 1;
	}
}

static bool wrong(const char *program, const char *what, const char *value)
{
	fprintf(stderr, "%s: %s: %s (see --help)\n", program, what, value);
	return false;
}

bool options_read(struct options *o, int argc, char **argv, const char *what,
		  int *status)
{
	static const struct option known[] = {
		{ "classes", required_argument, NULL, 'c' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "json", no_argument, NULL, 'j' },
		{ "quick", no_argument, NULL, 'q' },
		{ "huge", no_argument, NULL, 'g' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	char *end;
	int option;

	*status = EXIT_USAGE;
	while ((option = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		switch (option) {
		case 'c':
			if (!read_sizes(o, optarg))
				return wrong(argv[0], "not a list of numbers of classes",
					     optarg);
			break;
		case 'r':
			if (!read_count(optarg, &end, ROUNDS_MAX, &o->rounds) ||
			    *end)
				return wrong(argv[0], "not a number of rounds",
					     optarg);
			break;
		case 'j':
			o->json = true;
			break;
		case 'q':
			o->quick = true;
			break;
		case 'g':
			o->huge = true;
			break;
		case 'h':
			printf(usage, argv[0], what);
			*status = EXIT_SAME;
			return false;
		default:
			fprintf(stderr, usage, argv[0], what);
			return false;
		}
	}
	if (optind < argc)
		return wrong(argv[0], "not an option", argv[optind]);
	*status = EXIT_SAME;
	return true;
}

void progress(const char *format, ...)
{
	va_list args;

	if (!isatty(STDERR_FILENO))
		return;
	va_start(args, format);
	fputs("\r\033[K", stderr);
	vfprintf(stderr, format, args);
	va_end(args);
}
