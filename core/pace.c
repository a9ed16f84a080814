// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The scheduler as one translation unit.  Files are in reading order, from the
 * lowest to the highest: each calls only what stands above it here, because none
 * declares a function before it is defined.  Everything but the API of
 * include/pace is static.
 */
#include "src/clock.c"
#include "src/heap.c"
#include "src/sort.c"
#include "src/chunk.c"
#include "src/wheel.c"
#include "src/queue.c"
#include "src/storage.c"
#include "src/class.c"
#include "src/key.c"
#include "src/stale.c"
#include "src/steps.c"
#include "src/paced.c"
#include "src/borrow.c"
#include "src/part.c"
#include "src/launch.c"
#include "src/rest.c"
#include "src/ring.c"
#include "src/best_effort.c"
#include "src/reservation.c"
#include "src/select.c"
#include "src/waiting.c"
#include "src/departure.c"
#include "src/sched.c"
#include "src/join.c"
#include "src/configure.c"
#include "src/lane.c"
#include "src/group.c"
