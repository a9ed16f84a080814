#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A class has its rate on a line that the host cannot fill with gap frames: psp finds that
# out, and paces by timer. A line that it can fill stays a clock, on a busy host, too.
#
#   pktgen --> c1a ==== 1 to 100 Gbit/s ==== c1b (sink)

. "$(dirname "$0")/lib.sh"

# A slower class says the same. pktgen sleeps between its frames, and costs a tenth.
MBIT=$(choose 80 400)
echo "# classes of $MBIT Mbit/s"

# one LINE_GBIT MODE EXPECTED-MODE NOISE_NS: a class of MBIT, offered an eighth more.
one() {
	case="$1 Gbit/s, mode $2, noise $(($4 / 1000)) us"
	cable c1 "$1"000000000 sink=1 ring=256 records_max=0
	echo "hold_max_ns=$4 every_ns=500000 seed=1" >$WIRE/noise
	tc qdisc add dev c1a root handle 1: psp default 1 mode "$2"
	tc class add dev c1a parent 1: classid 1:1 psp rate ${MBIT}mbit
	check "$case: the wire is judged" proved c1a
	flow c1a "delay $((9960000 / MBIT))" "skb_priority 65537"
	check "$case: the mode" same "$3" "$(stat_of c1a mode_in_force)"
	if [ "$3$2" = timerhybrid ] || [ "$3$2" = timerauto ]; then
		check "$case: the reason" same host_slow "$(stat_of c1a why_not_hybrid)"
	fi
	from=$(wire_moment)
	sleep 1
	to=$(wire_moment)
	# shellcheck disable=SC2086
	rate=$(rate_of $from $to)
	echo "# $case: $rate kbit/s"
	check "$case: no less than the rate" at_least $((MBIT * 995)) "$rate"
	check "$case: no more than the rate" at_most $((MBIT * 1005)) "$rate"
	flow_stop
	echo "hold_max_ns=0" >$WIRE/noise
	drained c1a
	cut_cable c1
}

noises=$(choose 60000 "0 60000")
echo "# noises: $noises"
for noise in $noises; do
	one 1 auto hybrid $noise
	one 10 auto timer $noise
	whole "40 Gbit/s, mode auto" || continue
	one 40 auto timer $noise
	one 100 hybrid timer $noise
done
whole "100 Gbit/s without noise" || one 100 hybrid timer 60000

# A slower line is a new try, so is a change by the user, and gap by name is obeyed.
line() { echo "rate_bps=$1" >$WIRE/c1/fault; }
cable c1 40000000000 sink=1 ring=256 records_max=0
tc qdisc add dev c1a root handle 1: psp default 1
tc class add dev c1a parent 1: classid 1:1 psp rate 100mbit
proved c1a
check "40 Gbit/s: timer" same timer "$(stat_of c1a mode_in_force)"
line 1000000000
check "the slower wire is judged" proved c1a
check "1 Gbit/s: hybrid" same hybrid "$(stat_of c1a mode_in_force)"
line 40000000000
check "the faster wire is judged" proved c1a
check "40 Gbit/s again: the reason" same host_slow "$(stat_of c1a why_not_hybrid)"
gaps=$(stat_of c1a gap_frames)
check "a change by the user" tc qdisc change dev c1a root psp mode hybrid
nap 50
check "the host is tried again" at_least $((gaps + 10)) "$(stat_of c1a gap_frames)"
check "and is slow again" same host_slow "$(stat_of c1a why_not_hybrid)"
check "mode gap" tc qdisc change dev c1a root psp mode gap
nap 50
check "mode gap is obeyed" same gap "$(stat_of c1a mode_in_force)"
check "and no reason is named" same "" "$(stat_of c1a why_not_hybrid)"
cut_cable c1
finish
