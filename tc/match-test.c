// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands for a tc whose struct qdisc_util has the members that FORM chooses, and
 * links match.o, which compares it before main() runs.  Prints "accepted" if the
 * structure is taken; `make check` expects that of FORM 0 alone.
 */
#include <stdio.h>

static int function(void)
{
	return 0;
}

typedef int (*member)(void);

/* Exported under the name of tc's own; 0: as it is in iproute2 5.9 to 7. */
struct {
	void *next;
#if FORM == 1	/* a member more at the end */
	const char *id;
	member functions[5], has_block, more;
#elif FORM == 2	/* a member less */
	const char *id;
	member functions[5];
#elif FORM == 3	/* of the same size, a number where a function was */
	const char *id;
	long number;
	member functions[4], has_block;
#elif FORM == 4	/* of the same size, in another order */
	member functions[5], has_block;
	const char *id;
#else
	const char *id;
	member functions[5], has_block;
#endif
} htb_qdisc_util = {
	.id = "htb",
#if FORM == 3
	.number = 12,
	.functions = { function, function, function, function },
#else
	.functions = { function, function, function, function, function },
#endif
};

int main(void)
{
	puts("accepted");
	return 0;
}
