#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Each allocation of each request fails once; nothing is half done, and nothing
# is left. On the debug kernel: it needs fault injection.
#
#   c1a ==== 1 Gbit/s ==== c1b (sink)

. "$(dirname "$0")/lib.sh"

debug=/sys/kernel/debug
for kind in failslab fail_page_alloc; do
	# Not the stack of each failure; and also what may wait for memory.
	echo 0 >$debug/$kind/verbose
	echo N >$debug/$kind/ignore-gfp-wait
done
echo 0 >$debug/fail_page_alloc/min-order

cable c1 1000000000 sink=1
check "every allocation fails once" psp-fail c1a
echo "$output"
cut_cable c1
check "no reference to the module is left" same 0 "$(cat /sys/module/sch_psp/refcnt)"
check "the module can go" rmmod sch_psp
finish
