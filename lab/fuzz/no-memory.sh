#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Each allocation of each request fails once; nothing is half done, and nothing
# is left. The same below mq, where classes are the device's. Then every fifth gap
# frame finds no memory, and frames keep their distance. On the debug kernel: it
# needs fault injection.
#
#   pktgen --> c1a ==== 1 Gbit/s ==== c1b (sink)
#              c2a ==== 1 Gbit/s ==== c2b, two queues

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
cable c2 1000000000 sink=1 queues=2
tc qdisc replace dev c2a root handle 8: mq
check "every allocation fails once, classes are the device's" psp-fail c2a shared
echo "$output"
cut_cable c2

# Only heads of frames, and only where nobody may wait for memory: pktgen, whose
# own may fail as well, tries again. psp counts from its first trial of the wire on.
echo 1 >$WIRE/c1/reset
tc qdisc add dev c1a root handle 1: psp default 1 mode gap
tc class add dev c1a parent 1: classid 1:1 psp rate 10mbit
check "the wire is a clock" proved c1a
echo Y >$debug/failslab/cache-filter
echo Y >$debug/failslab/ignore-gfp-wait
echo -1 >$debug/failslab/times
echo 20 >$debug/failslab/probability
burst 40 "skb_priority 65537"
echo 0 >$debug/failslab/probability
output=$(tc -s qdisc show dev c1a root)
check "gap frames found no memory" at_least 100 "$(stat_of c1a gap_failed)"
check "no frame is lost by that" same 40 "$(counter c1 a data_frames)"
check "and none goes early" same 0 "$(stat_of c1a early_bytes_max)"
check "gaps are filled as well" at_least 1000 "$(stat_of c1a gap_frames)"
check "the wire carried what psp counted" same \
	"$(($(stat_of c1a sent_wire_bytes) + $(stat_of c1a gap_wire_bytes)))" \
	"$(counter c1 a wire_bytes)"
tc qdisc del dev c1a root

cut_cable c1
check "no reference to the module is left" same 0 "$(cat /sys/module/sch_psp/refcnt)"
check "the module can go" rmmod sch_psp
finish
