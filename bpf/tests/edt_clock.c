// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the clock of bpf/edt_clock.h on the host.  Reads lines "RATE_BPS HORIZON_NS
 * NOW_NS BYTES FRESH", one for each packet of one class, and prints for each when it
 * leaves, or "late".
 */
#include <stdio.h>

#include "../edt_clock.h"

int main(void)
{
	unsigned long long rate_bps, horizon_ns, now_ns, bytes, fresh;
	struct edt_time time = {};

	while (scanf("%llu %llu %llu %llu %llu", &rate_bps, &horizon_ns, &now_ns, &bytes,
		     &fresh) == 5) {
		struct edt_class class = {
			.rate_bps = rate_bps, .horizon_ns = horizon_ns, .fresh = fresh,
		};
		u64 departure = edt_depart(&time, &class, now_ns, bytes);

		if (departure == EDT_TOO_LATE)
			puts("late");
		else
			printf("%llu\n", (unsigned long long)departure);
	}
	return 0;
}
