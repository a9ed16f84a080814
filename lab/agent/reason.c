// SPDX-License-Identifier: GPL-2.0-only
/* What every step needs: a reason for a failure, and the time. */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "agent.h"

bool because(struct reason *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why->text, sizeof(why->text), format, args);
	va_end(args);
	return false;
}

int64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}
