/* SPDX-License-Identifier: GPL-2.0-only */
/* Kernel interfaces that changed; Kbuild detects them in the headers. */
#ifndef WIRE_COMPAT_H
#define WIRE_COMPAT_H

#include <linux/hrtimer.h>

#ifndef WIRE_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}
#endif

#endif
