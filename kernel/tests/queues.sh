#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Classes of a device: below mq each queue has them, and they have one rate.
#
#   pktgen --> c1a ==== 1 Gbit/s or 80 Mbit/s, 4 queues ==== c1b (sink)

. "$(dirname "$0")/lib.sh"

# On a slower line all rates are slower. pktgen then sleeps between its frames, and costs a tenth.
LINE=$(choose 80 1000)
DELAY=$(choose 125000 0)
echo "# line of $LINE Mbit/s"
cable c1 "${LINE}000000" sink=1 queues=4
# Full queues are empty within two seconds.
[ "$LINE" = 1000 ] || ip link set c1a txqueuelen 80

# part PERCENT: prints so much of the line, in kbit/s.
part() { echo $((LINE * 10 * $1)); }

add_psp() {
	queue=$1
	shift
	tc qdisc add dev c1a parent "1:$queue" handle "1$queue:" psp shared on default 1 "$@"
}
# class VERB QUEUE MINOR OPTION...
class() {
	verb=$1 queue=$2 minor=$3
	shift 3
	tc class "$verb" dev c1a parent "1$queue:" classid "1$queue:$minor" psp "$@"
}

refuse "shared as root" "shared on: expected a class of mq as parent" \
	tc qdisc replace dev c1a root handle 2: psp shared on
refuse "shared that is no switch" 'shared "2": expected on or off' \
	tc qdisc replace dev c1a root handle 2: psp shared 2

tc qdisc replace dev c1a root handle 1: mq
for mode in gap hybrid; do
	refuse "mode $mode, shared" \
		"mode $mode on c1a: expected one transmit queue, not 4" add_psp 1 mode $mode
done
for queue in 1 2 3 4; do
	check "psp on queue $queue is added" add_psp $queue
	check "psp on queue $queue has the line of the device" same "$(choose 80Mbit 1Gbit)" \
		"$(queue_stat $queue line_in_force)"
	check "psp on queue $queue has a class of 80 % of the line" class add $queue 1 rate "$(part 80)kbit"
done
check "a shared line is in mode timer" same timer "$(queue_stat 1 mode_in_force)"
check "the options are shown" sh -c "'$TC' qdisc show dev c1a parent 1:1 | grep -q 'shared on'"
refuse "shared on cannot change" "shared: expected on, as this psp was made" \
	tc qdisc change dev c1a parent 1:1 handle 11: psp shared off
refuse "an rt class" "mode rt: expected none with periods, psp is shared" \
	class add 1 2 mode rt reserve 1000
refuse "launch times" "txtime: expected none, psp is shared" \
	class add 1 2 rate 1mbit txtime tai

# rate_of PERCENT NAME SETTING...: offers more than that on all queues for a second and a half and
# measures a second.
rate_of() {
	kbit=$(part $1) name=$2
	shift 2
	flow c1a "delay $DELAY" "udp_dst_min 1" "udp_dst_max 999" "flag UDPDST_RND" "$@"
	nap 100
	from_ns=$(now_ns)
	bytes=$(counter c1 a data_bytes)
	sleep 1
	bytes=$(($(counter c1 a data_bytes) - bytes))
	ns=$(($(now_ns) - from_ns))
	flow_stop
	# The clock has steps of 10 ms.
	expected=$((kbit * (ns / 1000) / 8000))
	check "$name: $bytes of $expected bytes" between $((expected * 98 / 100)) \
		$((expected * 102 / 100)) $bytes
}
percents=$(choose 20 "20 5")
for percent in $percents; do
	for queue in 1 2 3 4; do
		class change $queue 1 rate "$(part $percent)kbit"
	done
	check "all is sent" drained c1a
	echo 1 >$WIRE/c1/reset
	rate_of $percent "all queues together send $percent % of the line"
	for queue in 1 2 3 4; do
		check "queue $queue sends" at_least 100 "$(queue_stat $queue sent_frames)"
	done
done
check "all is sent" drained c1a

# One queue alone has the whole rate.
for queue in 1 2 3 4; do
	class change $queue 1 rate "$(part 20)kbit"
done
rate_of 20 "one queue alone sends 20 % of the line" "udp_dst_max 1"

# Best effort of other queues leaves it its rate.
for queue in 1 2 3 4; do
	class add $queue 2 mode normal
	tc filter add dev c1a parent "1$queue:" protocol ip pref 1 u32 \
		match ip dport 1 0x1 classid "1$queue:2"
done
check "a ceil comes and goes" class change 1 1 rate "$(part 20)kbit" ceil "$(part 40)kbit"
check "a ceil comes and goes" class change 1 1 rate "$(part 20)kbit" ceil "$(part 20)kbit"
# class_bytes MINOR: what all queues have sent of a class.
class_bytes() {
	sum=0
	for queue in 1 2 3 4; do
		sum=$((sum + $(tc -s class show dev c1a classid "1$queue:$1" |
			sed -n 's/^ Sent \([0-9]*\) bytes.*/\1/p' | grep . || echo 0)))
	done
	echo $sum
}
# class_rate NAME MINOR PERCENT: offers more to all queues, and measures a class for a second.
class_rate() {
	kbit=$(part "$3")
	flow c1a "delay $DELAY" "udp_dst_min 1" "udp_dst_max 999" "flag UDPDST_RND"
	nap 100
	# Reading takes time.
	before_ns=$(now_ns)
	bytes=$(class_bytes "$2")
	begun_ns=$(now_ns)
	sleep 1
	end_ns=$(now_ns)
	bytes=$(($(class_bytes "$2") - bytes))
	after_ns=$(now_ns)
	flow_stop
	check "$1: $bytes bytes" between \
		$((kbit * 98 * ((end_ns - begun_ns) / 1000) / 800000)) \
		$((kbit * 102 * ((after_ns - before_ns) / 1000) / 800000)) $bytes
	check "all is sent" drained c1a
}
class_rate "beside best effort the class has its rate" 1 20

# A group has its rate once, too, and so has a class in it.
for queue in 1 2 3 4; do
	check "queue $queue has a group" class add $queue 10 mode group rate "$(part 10)kbit"
	check "queue $queue has a class in the group" tc class add dev c1a \
		parent "1$queue:10" classid "1$queue:11" psp rate "$(part 6)kbit" ceil "$(part 10)kbit"
	check "queue $queue has another one" tc class add dev c1a \
		parent "1$queue:10" classid "1$queue:12" psp rate "$(part 6)kbit"
	tc filter del dev c1a parent "1$queue:" pref 1
	tc filter add dev c1a parent "1$queue:" protocol ip pref 1 u32 \
		match ip dport 1 0x1 classid "1$queue:11"
	tc filter add dev c1a parent "1$queue:" protocol ip pref 2 u32 \
		match ip dport 0 0x1 classid "1$queue:12"
done
check "all is sent" drained c1a
echo 1 >$WIRE/c1/reset
rate_of 10 "a group of all queues sends 10 % of the line"
check "all is sent" drained c1a
for queue in 1 2 3 4; do
	tc filter del dev c1a parent "1$queue:" pref 1
	tc filter del dev c1a parent "1$queue:" pref 2
	check "a class in the group is deleted" tc class del dev c1a classid "1$queue:11"
	check "another one" tc class del dev c1a classid "1$queue:12"
	check "the group is deleted" tc class del dev c1a classid "1$queue:10"
done

# What a group guarantees holds in one queue, whatever of it waits in the others.
for spare in "mode normal" "rate $(part "5 / 2")kbit ceil $(part 10)kbit"; do
	[ "$spare" = "mode normal" ] || whole "a group, $spare" || continue
	for queue in 1 2 3 4; do
		check "queue $queue has a group" class add $queue 10 mode group rate "$(part 10)kbit"
		check "queue $queue has a class in the group" tc class add dev c1a \
			parent "1$queue:10" classid "1$queue:11" psp rate "$(part "15 / 2")kbit"
		# shellcheck disable=SC2086
		check "queue $queue has what is to spare" tc class add dev c1a \
			parent "1$queue:10" classid "1$queue:12" psp $spare
		[ "$queue" = 1 ] && minor=11 || minor=12
		tc filter add dev c1a parent "1$queue:" protocol ip pref 1 u32 \
			match u32 0 0 classid "1$queue:$minor"
	done
	class_rate "beside $spare a class has what its group guarantees" 11 "15 / 2"
	class_rate "and that the rest" 12 "5 / 2"
	for queue in 1 2 3 4; do
		tc filter del dev c1a parent "1$queue:" pref 1
		for minor in 11 12 10; do
			check "class $minor is deleted" tc class del dev c1a \
				classid "1$queue:$minor"
		done
	done
done

# A queue's psp goes and comes back, a class changes its type, while frames are sent.
flow c1a "delay $DELAY" "udp_dst_min 1" "udp_dst_max 999" "flag UDPDST_RND"
for _ in $(choose "1 2" "1 2 3 4 5"); do
	check "a psp takes the place of another" \
		tc qdisc replace dev c1a parent 1:2 handle 22: psp shared on default 1
	check "it has the class" tc class add dev c1a parent 22: classid 22:1 psp rate "$(part 20)kbit"
	check "a class becomes normal" class change 3 1 mode normal
	check "and paced again" class change 3 1 rate "$(part 20)kbit"
	check "psp goes" tc qdisc del dev c1a parent 1:2
	check "and comes back" add_psp 2
	check "with its class" class add 2 1 rate "$(part 20)kbit"
	check "a class is deleted" tc class del dev c1a classid 14:1
	check "and added" class add 4 1 rate "$(part 20)kbit"
done
flow_stop
check "all is sent" drained c1a
tc qdisc del dev c1a root
cut_cable c1
finish
