// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * tai SECONDS: says how far CLOCK_TAI is ahead of CLOCK_REALTIME, as a daemon of NTP or PTP does once it
 * has found out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/timex.h>

int main(int argc, char **argv)
{
	struct timex change = { .modes = ADJ_TAI };

	if (argc != 2)
		return 2;
	change.constant = atol(argv[1]);
	if (adjtimex(&change) < 0) {
		perror("adjtimex");
		return 1;
	}
	return 0;
}
