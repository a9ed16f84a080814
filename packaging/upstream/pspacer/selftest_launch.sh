# SPDX-License-Identifier: GPL-2.0-only
# Packets leave at their launch times.

ip addr add 10.9.0.1/24 dev $DEV
add_qdisc line 1gbit default 2
refuse "a clock that is none of both" \
	"neither CLOCK_MONOTONIC nor CLOCK_TAI" \
	add_class 1 rate 500mbit clockid 0
refuse "launch times of a class without a rate" "for classes with a rate" \
	add_class 1 clockid CLOCK_TAI
check "a class with launch times" \
	add_class 1 rate 500mbit clockid CLOCK_TAI limit 3000
check "it is said" says "clockid CLOCK_TAI" \
	tc class show dev $DEV classid 1:1
refuse "another clock" "cannot be changed" \
	tc class change dev $DEV parent 1: classid 1:1 pspacer \
	clockid CLOCK_MONOTONIC
check "the same one" tc class change dev $DEV parent 1: classid 1:1 pspacer \
	clockid CLOCK_TAI
add_class 2
refuse "a clock of a class without one" "cannot be changed" \
	tc class change dev $DEV parent 1: classid 1:2 pspacer \
	clockid CLOCK_TAI

for clock in 11 1; do
	if [ $clock = 1 ]; then
		tc qdisc del dev $DEV root
		add_launches rate 500mbit clockid CLOCK_MONOTONIC limit 3000
	fi
	launch clock=$clock count=200 lead_ns=50000000 step_ns=1000000 \
		wait_ms=400
	check "clock $clock: packets leave" between 190 200 "$(became left)"
	check "none before its time" between -20000 1500000 \
		"$(became least_ns)"
	check "none is later than it may be" between 0 1500000 \
		"$(became most_ns)"
	check "each left, or was reported as late" \
		same 200 $(($(became left) + $(became missed)))
	launch clock=$clock count=2000 lead_ns=200000000 step_ns=100000 \
		reverse=1 wait_ms=600
	check "those that are sent last leave first" \
		between 1900 2000 "$(became left)"
	check "in the order of their times" same 0 "$(became disorder)"
	check "and none before its time" between -20000 1500000 \
		"$(became least_ns)"
done

# The class has a clock that is not the socket's, a mode, a past and a future.
refuse_launches "no launch time" clock=-1
refuse_launches "another clock" clock=11 lead_ns=10000000
check "another clock: the socket is told" same 10 "$(became invalid)"
refuse_launches "a clock of no class" clock=0 lead_ns=10000000
refuse_launches "a deadline" lead_ns=10000000 deadline=1
check "a deadline: the socket is told" same 10 "$(became invalid)"
refuse_launches "the past" lead_ns=-5000000
check "the past: the socket is told" same 10 "$(became invalid)"
refuse_launches "the far future" lead_ns=11000000000
refuse_launches "the first instant" raw=1
refuse_launches "the last one" raw=18446744073709551615
refuse_launches "the middle" raw=9223372036854775808
check "nothing of that waits" same 0 "$(waiting)"
launch lead_ns=-100000 wait_ms=100
check "what is hardly late leaves at once" same 1 "$(became left)"
launch size=6000 segment=1000 lead_ns=50000000 wait_ms=200
check "a GSO packet leaves" between 1 6 "$(became left)"
check "not before its time" between -20000 1500000 "$(became least_ns)"
launch count=100 lead_ns=400000000 wait_ms=0
check "a rate is changed while packets wait" tc class change dev $DEV \
	parent 1: classid 1:1 pspacer rate 100mbit
check "they wait" same 100 "$(waiting)"
check "and leave" drained
check "a limit of a class is one of launch times" tc class change dev $DEV \
	parent 1: classid 1:1 pspacer limit 50
launch count=100 lead_ns=1000000000 wait_ms=0
check "it holds" same 50 "$(waiting)"

# Packets that wait go with what they wait in.

check "a class is deleted while packets wait" \
	tc class del dev $DEV parent 1: classid 1:1
check "none is left" same 0 "$(waiting)"
add_class 1 rate 100mbit clockid CLOCK_MONOTONIC
launch count=100 lead_ns=2000000000 wait_ms=0
ip link set $DEV down
check "the device is down: none is left" same 0 "$(waiting)"
ip link set $DEV up
launch count=100 lead_ns=50000000 step_ns=1000000 wait_ms=300
check "the device is back: packets leave" between 95 100 "$(became left)"
launch count=100 lead_ns=2000000000 wait_ms=0
check "a qdisc is deleted while packets wait" tc qdisc del dev $DEV root

# The rate of the class bounds what leaves at once; the rest is late.

add_launches rate 10mbit clockid CLOCK_MONOTONIC
launch count=100 size=83 lead_ns=50000000 wait_ms=200
check "a rate bounds what has the same launch time" \
	between 5 15 "$(became left)"
check "what would be late is reported" \
	same 100 $(($(became left) + $(became missed)))
check "and counted" same "$(became missed)" "$(counted txtime_missed)"
check "tc's sum of drops is the same" same "$(became missed)" \
	"$(tc -s qdisc show dev $DEV root | dropped)"
check "no packet is left" same 0 "$(waiting)"
tc qdisc del dev $DEV root
if tc qdisc add dev $DEV root handle 10: tbf rate 100mbit burst 10kb \
	limit 1mb 2>/dev/null; then
	tc qdisc add dev $DEV parent 10:1 handle 1: pspacer line 1gbit default 2
	add_class 1 rate 10mbit clockid CLOCK_MONOTONIC
	add_class 2
	launch count=100 size=83 lead_ns=50000000 wait_ms=200
	check "below tbf, too" same 100 $(($(became left) + $(became missed)))
	check "and both count nothing left" drained
	tc qdisc del dev $DEV root
fi

