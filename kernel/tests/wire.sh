#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# No class exceeds its rate in any second, whatever the wire does with gap frames: it
# takes time for all, for some or for none.
#
#   pktgen --> c1a ==== 100 Mbit/s, 1 Gbit/s ==== c1b (sink)

. "$(dirname "$0")/lib.sh"

# seconds_of COUNT: prints the rates in COUNT seconds from now, in kbit/s.
seconds_of() {
	from=$(wire_moment)
	for _ in $(seq "$1"); do
		sleep 1
		to=$(wire_moment)
		# shellcheck disable=SC2086
		rate_of $from $to
		from=$to
	done
}

# none_above LIMIT RATE...
none_above() {
	limit=$1
	shift
	for r in "$@"; do
		at_most "$limit" "$r" || return 1
	done
}
none_below() {
	limit=$1
	shift
	for r in "$@"; do
		at_least "$limit" "$r" || return 1
	done
}

# in_time DEV: waits until the wire is proved or disproved, at most 2 s; prints ms.
in_time() {
	for ms in $(seq 0 10 2000); do
		case $(stat_of "$1" why_not_hybrid) in not_proved) sleep 0.01 ;; *) break ;; esac
	done
	echo "$ms"
}

# one LINE_MBIT PERCENT DROPS NOISE_NS: a class of PERCENT of the line, offered
# a fifth more, while the NIC drops DROPS of 100 gap frames.
one() {
	mbit=$(($1 * $2 / 100))
	case="$1 Mbit/s, class of $mbit, $3 % of gap frames dropped, noise $(($4 / 1000)) us"
	echo "drop_gaps=$3" >$WIRE/c1/fault
	tc qdisc del dev c1a root 2>/dev/null || :
	echo "hold_max_ns=$4 every_ns=500000 seed=1" >$WIRE/noise
	tc qdisc add dev c1a root handle 1: psp default 1
	tc class add dev c1a parent 1: classid 1:1 psp rate ${mbit}mbit
	[ "$3" = 0 ] && echo "# $case: proved after $(in_time c1a) ms or less"
	# 1400 bytes at 1.2 times the rate
	flow c1a "delay $((1400 * 8 * 1000 * 10 / 12 / mbit))" "skb_priority 65537"
	rates=$(seconds_of "$(choose 1 2)")
	flow_stop
	mode=$(stat_of c1a mode_in_force)
	echo "hold_max_ns=0" >$WIRE/noise
	drained c1a
	echo "# $case: $(echo $rates) kbit/s"
	# A frame, and what the noise held, at the edge of a second: either may have it.
	edge=$((12 + $4 * mbit / 1000000))
	# shellcheck disable=SC2086
	check "$case: no second above the rate" none_above $((mbit * 1005 + edge)) $rates
	case $case in
	*"noise 0"*) check "$case: no second below the rate" none_below $((mbit * 995)) $rates ;;
	esac
	case $case in
	# A guest that takes 2.6 us for a gap frame of 1.2 us cannot fill the wire: fast.sh.
	10000*" 0 % of"*) check "$case: the mode is timer" same timer "$mode" ;;
	*" 0 % of"*)
		check "$case: the wire is a clock" same hybrid "$mode"
		check "$case: nothing against it" same 0 "$(stat_of c1a no_wire_clock)"
		;;
	*" 100 % of"*) check "$case: the mode is timer" same timer "$mode" ;;
	esac
}

# These say the most: all gap frames lost, a few of them, none; the fastest class and the slowest.
SOME=" 100/60/100/60000 100/10/30/0 100/30/0/60000 1000/8/3/60000 1000/1/3/60000 10/30/100/60000 "
echo "# LINE_MBIT/PERCENT/DROPS/NOISE_NS: $(choose "$SOME" all)"

# cell LINE_MBIT PERCENT DROPS NOISE_NS: does what one does, if this part has that cell.
cell() {
	case $(choose "$SOME" all) in all | *" $1/$2/$3/$4 "*) one "$@" ;; esac
}

cable c1 100000000 sink=1 ring=256 records_max=0
for drops in 100 30 0; do
	for noise in 0 60000; do
		for percent in 10 30 60; do
			cell 100 $percent $drops $noise
		done
	done
done
cut_cable c1
cable c1 1000000000 sink=1 ring=256 records_max=0
for drops in 100 30 3 1 0; do
	for noise in 0 60000; do
		cell 1000 30 $drops $noise
	done
done
cell 1000 95 100 60000
cell 1000 8 3 60000
cell 1000 1 3 60000
cut_cable c1
cable c1 10000000000 sink=1 ring=256 records_max=0
cell 10000 5 100 0
cell 10000 5 0 0
cut_cable c1
cable c1 10000000 sink=1 ring=256 records_max=0
cell 10 30 100 60000
cell 10 30 0 60000
cut_cable c1
finish
