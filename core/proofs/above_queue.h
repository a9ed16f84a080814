/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The core as core/pace.c has it, with queue_model.h in the place of heap, wheel,
 * queue and stale keys.  The harness defines the scheduler `s` and CLASSES before.
 */
#ifndef ABOVE_QUEUE_H
#define ABOVE_QUEUE_H

#include "clock.c"
#include "heap.c"
#include "queue_model.h"
#include "storage.c"
#include "class.c"
#include "key.c"
#include "stale_model.h"
#include "steps.c"
#include "paced.c"
#include "borrow.c"
#include "part.c"
#include "launch.c"
#include "rest.c"
#include "ring.c"
#include "best_effort.c"
#include "reservation.c"
#include "select.c"
#include "waiting.c"
#include "departure.c"
#include "sched.c"
#include "configure.c"

#endif /* ABOVE_QUEUE_H */
