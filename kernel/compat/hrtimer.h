/* SPDX-License-Identifier: GPL-2.0-only */
/* Initialises a timer and sets its function: one call since Linux 6.13. */
#ifndef PSP_COMPAT_HRTIMER_H
#define PSP_COMPAT_HRTIMER_H

#include <linux/hrtimer.h>

static inline void
psp_hrtimer_setup(struct hrtimer *timer,
		  enum hrtimer_restart (*function)(struct hrtimer *timer),
		  enum hrtimer_mode mode)
{
#ifdef PSP_HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, mode);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, mode);
	timer->function = function;
#endif
}

#endif
