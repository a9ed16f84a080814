#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The qdisc pspacer: rates, what it refuses, limits, and changes under traffic.
# pktgen sends through a dummy device. Needs root, and a tc that knows pspacer.
@from launch
# sch_pspacer_txtime sends packets with launch times.
@always

ksft_skip=4
DEV=pspacer0
PKTGEN=/proc/net/pktgen
@from launch
TXTIME=${TXTIME:-$(dirname "$0")/sch_pspacer_txtime}
@always
tests=0
failed=0

cleanup()
{
	[ -z "$sender" ] || stop
	ip link del $DEV 2>/dev/null
}

skip()
{
	echo "1..0 # SKIP $1"
	exit $ksft_skip
}

result() # STATUS NAME
{
	tests=$((tests + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tests - $2"
	else
		failed=1
		echo "not ok $tests - $2"
		echo "$said" | sed 's/^/# /'
	fi
}

check() # NAME COMMAND...
{
	name=$1
	shift
	said=$("$@" 2>&1)
	result $? "$name"
}

# The command fails, and says so in these words.
refuse() # NAME WORDS COMMAND...
{
	name=$1
	words=$2
	shift 2
	said=$("$@" 2>&1) && said="accepted" && words="."
	[ "$said" != accepted ] && echo "$said" | grep -q "$words"
	result $? "$name"
}

between() # LEAST MOST NUMBER
{
	echo "$3 is to be within $1 and $2"
	[ "$3" -ge "$1" ] && [ "$3" -le "$2" ]
}

says() # PATTERN COMMAND...
{
	pattern=$1
	shift
	"$@" | tee /dev/stderr | grep -q "$pattern"
}


add_qdisc()
{
	tc qdisc add dev $DEV root handle 1: pspacer "$@"
}

add_class() # MINOR OPTION...
{
	minor=$1
	shift
	tc class add dev $DEV parent 1: classid 1:"$minor" pspacer "$@"
}

class_stats() # MINOR
{
	tc -s class show dev $DEV classid 1:"$1" |
		grep -A 3 "class pspacer 1:$1 "
}

sent() # MINOR: bytes
{
	class_stats "$1" | sed -n 's/^ *Sent \([0-9]*\) bytes.*/\1/p'
}

dropped() # reads statistics
{
	sed -n 's/.*(dropped \([0-9]*\),.*/\1/p' | head -n 1
}

packets() # reads statistics: those that wait
{
	sed -n 's/.*backlog [0-9KMGb]* \([0-9]*\)p.*/\1/p' | head -n 1
}

now_us()
{
	now=$(sed -n 's/^now at \([0-9]*\) nsecs/\1/p' /proc/timer_list)
	echo $((now / 1000))
}

# Flows of packets with 1000 bytes to these classes, as fast as their queues
# take them, until stop.
flows() # MINOR...
{
	echo rem_device_all >$PKTGEN/kpktgend_0
	for minor; do
		flow=$DEV@$minor
		echo "add_device $flow" >$PKTGEN/kpktgend_0
		for setting in "count 0" "pkt_size 1000" "delay 40000" \
			       "xmit_mode queue_xmit" "dst 10.0.0.2" \
			       "dst_mac 02:00:00:00:00:02" \
			       "skb_priority $((65536 + minor))"; do
			echo "$setting" >"$PKTGEN/$flow"
		done
	done
	echo start >$PKTGEN/pgctrl &
	sender=$!
	sleep 0.5
}

stop()
{
	echo stop >$PKTGEN/pgctrl
	wait "$sender"
	sender=
	echo rem_device_all >$PKTGEN/kpktgend_0
}

# Measures classes together for two seconds, in bit/s: rate_MINOR.
measure() # MINOR...
{
	for minor; do
		eval "at_$minor=\$(now_us) sent_$minor=\$(sent $minor)"
	done
	sleep 2
	for minor; do
		eval "took=\$((\$(now_us) - at_$minor))"
		eval "bytes=\$((\$(sent $minor) - sent_$minor))"
		eval "rate_$minor=$((bytes * 8000000 / took))"
	done
}

drained()
{
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
		stats=$(tc -s qdisc show dev $DEV | grep backlog)
		echo "$stats" | grep -qv "backlog 0b 0p" || return 0
		sleep 0.2
	done
	echo "$stats"
	return 1
}

@from launch
# Sends packets with launch times, and keeps what became of them.
launch() # KEY=NUMBER...
{
	became=$("$TXTIME" $DEV 10.9.0.2 "$@" 2>&1)
	echo "# $*: $became"
}

became() # KEY: prints its number
{
	echo " $became" | sed -n "s/.* $1=\([-0-9]*\).*/\1/p"
}

# Prints a number of the qdisc's statistics.
counted() # KEY
{
	tc -s qdisc show dev $DEV | sed -n "s/.* $1 \([0-9]*\) .*/\1/p"
}

waiting()
{
	tc -s qdisc show dev $DEV root | packets
}

same() # EXPECTED SEEN
{
	echo "expected $1, is $2: $became"
	[ "$1" = "$2" ]
}

# A class with launch times, and one for what the host sends by itself.
add_launches() # OPTION...
{
	add_qdisc line 1gbit default 2
	add_class 1 "$@"
	add_class 2
}

# All of ten packets are refused, and the socket is told.
refuse_launches() # NAME KEY=NUMBER...
{
	name=$1
	shift
	before=$(counted txtime_invalid)
	launch count=10 "$@"
	check "$name: none leaves" same 0 "$(became left)"
	check "$name: all are counted" \
		same $((before + 10)) "$(counted txtime_invalid)"
}

@always
[ "$(id -u)" = 0 ] || skip "needs root"
@from launch
[ -x "$TXTIME" ] || skip "needs sch_pspacer_txtime"
@always
[ -d $PKTGEN ] || modprobe -q pktgen || skip "needs pktgen"
sender=
trap cleanup EXIT
ip link add $DEV type dummy || skip "needs dummy"
ip link set $DEV up
said=$(add_qdisc line 100mbit 2>&1) || skip "needs pspacer and its tc: $said"
tc qdisc del dev $DEV root

# What is refused, and why.

refuse "a qdisc without a rate of the line" "Rate of the line is required" \
	add_qdisc
refuse "a line that is too slow" "not within 8 kbit/s and 1 Tbit/s" \
	add_qdisc line 7999
refuse "a line that is too fast" "not within 8 kbit/s and 1 Tbit/s" \
	add_qdisc line 1001gbit
refuse "a largest packet below the MTU" "not within the MTU and 1 MB" \
	add_qdisc line 1gbit max_packet 100
refuse "a largest packet above the bound" "not within the MTU and 1 MB" \
	add_qdisc line 1gbit max_packet 1048577
refuse "a default that is no minor number" "integer out of range" \
	add_qdisc line 1gbit default 10000
check "a qdisc" add_qdisc line 100mbit default 3 max_packet 1514
refuse "another largest packet" "cannot be changed" \
	tc qdisc change dev $DEV root handle 1: pspacer max_packet 1600
refuse "a rate of zero" "cannot be zero" add_class 1 rate 0
refuse "a rate above that of the line" "exceed the rate of the line" \
	add_class 1 rate 101mbit
refuse "a rate at which a packet takes too long" "takes 240 s or longer" \
	add_class 1 rate 50
refuse "a limit of zero" "integer out of range" add_class 1 limit 0
check "a class" add_class 1 rate 10mbit limit 100
check "another" add_class 2 rate 25mbit limit 100
check "and one for the rest" add_class 3 limit 100
refuse "rates that exceed the line together" "exceed the rate of the line" \
	add_class 4 rate 65000001
refuse "a class below a class" "no classes below them" \
	tc class add dev $DEV parent 1:1 classid 1:4 pspacer rate 1mbit
refuse "a quantum of a class with a rate" "for classes without a rate" \
	add_class 4 rate 1mbit quantum 10000
refuse "a quantum below a packet" "not within the largest packet and 1 MB" \
	add_class 4 quantum 1513
refuse "a rate of a class without one" "cannot get one" \
	tc class change dev $DEV parent 1: classid 1:3 pspacer rate 1mbit
refuse "a line below the rates" "below the sum of the classes' rates" \
	tc qdisc change dev $DEV root handle 1: pspacer line 34mbit
refuse "a qdisc below a class" "no other qdisc" \
	tc qdisc add dev $DEV parent 1:1 handle 11: pfifo
refuse "an estimator" "estimators are not supported" \
	tc class add dev $DEV parent 1: classid 1:4 est 1s 4s pspacer rate 1mbit

# What is said of it.

check "the qdisc's options" says "line 100000000 default 3 max_packet 1514" \
	tc qdisc show dev $DEV root
check "its statistics" says "reserved 35000000 classes 3 " \
	tc -s qdisc show dev $DEV root
check "a class's options" says "rate 10000000 limit 100" \
	tc class show dev $DEV classid 1:1
check "those of a class without a rate" says "limit 100 quantum 1514" \
	tc class show dev $DEV classid 1:3

# Rates.

flows 1 2 3
measure 1 2 3
check "the first class has its rate" between 9950000 10050000 "$rate_1"
check "the second, too" between 24875000 25125000 "$rate_2"
check "best effort has the rest" between 64000000 65500000 "$rate_3"
check "a full queue drops" between 1 999999999 "$(class_stats 3 | dropped)"
check "and holds its limit" between 90 100 "$(class_stats 1 | packets)"
check "a rate is changed under traffic" \
	tc class change dev $DEV parent 1: classid 1:1 pspacer rate 40mbit
measure 1 2 3
check "it is the new one" between 39800000 40200000 "$rate_1"
check "the other is as it was" between 24875000 25125000 "$rate_2"
check "the rest is smaller" between 34000000 35500000 "$rate_3"
check "the line is changed under traffic" \
	tc qdisc change dev $DEV root handle 1: pspacer line 80mbit
measure 1 3
check "the rate stays" between 39800000 40200000 "$rate_1"
check "the rest is smaller" between 14500000 15500000 "$rate_3"

# Changes under traffic.

check "a class is deleted under traffic" \
	tc class del dev $DEV parent 1: classid 1:2
check "its packets count as dropped, with the others" between 1 999999999 \
	"$(tc -s qdisc show dev $DEV root | dropped)"
check "its rate is free again" says "reserved 40000000 classes 2 " \
	tc -s qdisc show dev $DEV root
ip link set $DEV down
ip link set $DEV up
check "it is reset under traffic" between 0 300 \
	"$(tc -s qdisc show dev $DEV root | packets)"
stop
check "nothing is left" drained
flows 1 3
check "a qdisc is replaced under traffic" \
	tc qdisc replace dev $DEV root handle 2: pspacer line 50mbit
check "and another" tc qdisc replace dev $DEV root handle 1: pfifo
check "and deleted" tc qdisc del dev $DEV root
stop

# Two classes without a rate share by their quanta.

add_qdisc line 100mbit max_packet 1514
add_class 1 quantum 4000 limit 100
add_class 2 quantum 2000 limit 100
flows 1 2
measure 1 2
check "twice the quantum is twice the share" \
	between 1980 2020 $((rate_1 * 1000 / rate_2))
check "together they have the line" \
	between 99000000 100500000 $((rate_1 + rate_2))
stop
tc qdisc del dev $DEV root

@from ceil
# Rates that exceed the line divide it in their proportion.

refuse "an option that is neither on nor off" "integer out of range" \
	add_qdisc line 90mbit oversubscribe 2
add_qdisc line 90mbit max_packet 1514 oversubscribe 1
add_class 1 rate 90mbit limit 100
add_class 2 rate 60mbit limit 100
check "rates may exceed the line if that is asked for" \
	add_class 3 rate 30mbit limit 100
refuse "but each has to fit" "cannot exceed the rate of the line" \
	add_class 4 rate 91mbit
check "it is said" says "oversubscribe 1" tc qdisc show dev $DEV root
refuse "it cannot be taken back now" "below the sum of the classes' rates" \
	tc qdisc change dev $DEV root handle 1: pspacer oversubscribe 0
flows 1 2 3
measure 1 2 3
check "the first class has half of the line" \
	between 44775000 45225000 "$rate_1"
check "the second a third" between 29850000 30150000 "$rate_2"
check "the third a sixth" between 14925000 15075000 "$rate_3"
check "the line is made slower under traffic" \
	tc class change dev $DEV parent 1: classid 1:1 pspacer rate 45mbit
check "and so is it" \
	tc qdisc change dev $DEV root handle 1: pspacer line 60mbit
measure 1 2 3
check "its shares follow" between 19900000 20100000 "$rate_1"
check "of the second, too" between 26533000 26800000 "$rate_2"
check "and of the third" between 13266000 13400000 "$rate_3"
check "a class goes" tc class del dev $DEV parent 1: classid 1:2
check "and the line suffices" \
	tc qdisc change dev $DEV root handle 1: pspacer line 80mbit
measure 1 3
check "each class has its rate again" between 44775000 45225000 "$rate_1"
check "the other, too" between 29850000 30150000 "$rate_3"
check "it can be taken back" \
	tc qdisc change dev $DEV root handle 1: pspacer oversubscribe 0
stop
tc qdisc del dev $DEV root

# Classes borrow up to a ceil.

add_qdisc line 100mbit max_packet 1514
refuse "a ceil below the rate" "not within the rate and that of the line" \
	add_class 1 rate 10mbit ceil 9mbit
refuse "a ceil above the line" "not within the rate and that of the line" \
	add_class 1 rate 10mbit ceil 101mbit
refuse "a ceil of a class without a rate" "for classes with a rate" \
	add_class 1 ceil 10mbit
check "a class with a ceil" \
	add_class 1 rate 10mbit ceil 100mbit limit 100
add_class 2 rate 20mbit ceil 100mbit limit 100
check "it is said" says "rate 20000000 ceil 100000000" \
	tc class show dev $DEV classid 1:2
refuse "a line below a ceil" "below a class's rate or ceil" \
	tc qdisc change dev $DEV root handle 1: pspacer line 90mbit
flows 1 2
measure 1 2
check "they share what is left by their rates" \
	between 33166000 33500000 "$rate_1"
check "and have the whole line" \
	between 66333000 67000000 "$rate_2"
check "a ceil is changed under traffic" \
	tc class change dev $DEV parent 1: classid 1:1 pspacer ceil 15mbit
measure 1 2
check "the class keeps it" between 14925000 15075000 "$rate_1"
check "and the other has the rest" between 84575000 85425000 "$rate_2"
refuse "a rate above the ceil" "exceeds its ceil" \
	tc class change dev $DEV parent 1: classid 1:1 pspacer rate 16mbit
check "what is borrowed is counted" says "borrowed [1-9]" \
	tc -s qdisc show dev $DEV root
check "a ceil at the rate is none" \
	tc class change dev $DEV parent 1: classid 1:1 pspacer ceil 10mbit
measure 1
check "the class has its rate" between 9950000 10050000 "$rate_1"
stop
add_class 3 limit 100
flows 1 2 3
measure 1 2 3
check "best effort goes before what borrows" \
	between 19900000 20100000 "$rate_2"
check "and has the rest" between 69000000 70350000 "$rate_3"
stop
tc qdisc del dev $DEV root

@from launch
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

@from gap
# Gap frames fill the time between packets, whose bytes are those on the wire. A
# dummy device is no wire: it takes bytes at once, and the rates hold.

add_gaps() # DEVICE OPTION...
{
	device=$1
	shift
	tc qdisc add dev "$device" "$@" pspacer line 100mbit gap 1
}

on_wire() # prints the bytes of packets and gap frames
{
	tc -s qdisc show dev $DEV root | sed -n \
		-e 's/^ *Sent \([0-9]*\) bytes \([0-9]*\) pkt.*/\1 \2/p' \
		-e 's/.* gap_bytes \([0-9]*\) .*/\1/p' |
		tr '\n' ' ' | (read -r bytes packets gaps
				echo $((bytes + 24 * packets + gaps)))
}

refuse "gap frames on what is no Ethernet" "are Ethernet's" add_gaps lo root
refuse "with a size table" "without a size table" \
	tc qdisc add dev $DEV root stab overhead 24 linklayer ethernet \
	pspacer line 100mbit gap 1
ip link add ${DEV}q numtxqueues 4 type dummy
refuse "on a device with several queues" "one transmit queue" \
	add_gaps ${DEV}q root
ip link del ${DEV}q
if tc qdisc add dev $DEV root handle 10: tbf rate 100mbit burst 10kb \
	limit 1mb 2>/dev/null; then
	refuse "below another qdisc" "need the root" add_gaps $DEV parent 10:1
	tc qdisc del dev $DEV root
fi
if unshare -Urn true 2>/dev/null; then
	refuse "in a namespace of a user" "of the initial user namespace" \
		unshare -Urn sh -c "ip link add $DEV type dummy && \
			${TC:-tc} qdisc add dev $DEV root \
				pspacer line 1gbit gap 1"
fi
refuse "a longest packet without what the wire adds" \
	"not within the MTU and 1 MB" \
	add_qdisc line 100mbit max_packet 1537 gap 1
refuse "neither on nor off" "integer out of range" \
	add_qdisc line 100mbit gap 2
before=$(cat /sys/class/net/$DEV/statistics/tx_packets)
check "gap frames" \
	add_qdisc line 100mbit max_packet 1538 default 3 gap 1
check "it is said" says "gap 1" tc qdisc show dev $DEV root
refuse "they cannot be taken away" "cannot be changed" \
	tc qdisc change dev $DEV root handle 1: pspacer gap 0
refuse "launch times beside them" "not for a qdisc with gap frames" \
	add_class 1 rate 10mbit clockid CLOCK_TAI
add_class 1 rate 10mbit limit 100
add_class 2 rate 25mbit limit 100
flows 1 2
began_us=$(now_us) began=$(on_wire)
measure 1 2
ended_us=$(now_us) ended=$(on_wire)
check "a class has its rate on the wire" between 9717000 9814000 "$rate_1"
check "the other, too" between 24293000 24536000 "$rate_2"
check "with gap frames the line is full" between 99500000 100500000 \
	$(((ended - began) * 8000000 / (ended_us - began_us)))
stop
add_class 3 limit 100
flows 1 2 3
measure 1 2 3
check "best effort goes before gap frames" \
	between 63000000 64000000 "$rate_3"
check "beside it the class has its rate" between 9717000 9814000 "$rate_1"
stop
check "nothing is left" drained
gaps=$(counted gap_packets)
check "the device was too fast, and waited for" \
	between 1 999999999 "$(counted gap_held)"
sleep 0.3
check "an idle line has no gap frames" same "$gaps" "$(counted gap_packets)"
after=$(cat /sys/class/net/$DEV/statistics/tx_packets)
check "the device counts them with the packets, the qdisc apart" \
	same $((after - before)) $((gaps + $(tc -s qdisc show dev $DEV root |
		sed -n 's/.* bytes \([0-9]*\) pkt.*/\1/p')))
flows 1 2
ip link set $DEV down
ip link set $DEV up
check "the device goes and comes back under traffic" between 0 300 \
	"$(waiting)"
check "the qdisc is deleted under traffic" tc qdisc del dev $DEV root
stop

@always
# Filters.

add_qdisc line 100mbit default 2
add_class 1 rate 10mbit
check "a filter leads to a class" tc filter add dev $DEV parent 1: \
	protocol all pref 1 matchall classid 1:1
refuse "the class cannot be deleted" "Filters lead to the class" \
	tc class del dev $DEV parent 1: classid 1:1
flows 9
stop
check "packets take it" between 1000 99999999 "$(sent 1)"
check "the filter is deleted" tc filter del dev $DEV parent 1: pref 1
flows 9
stop
check "packets without a class are dropped" between 1 999999999 \
	"$(tc -s qdisc show dev $DEV root | dropped)"
check "then the class goes" tc class del dev $DEV parent 1: classid 1:1
tc qdisc del dev $DEV root

# As many classes as there may be.

add_qdisc line 1gbit
for minor in $(seq 1 4096); do
	printf 'class add dev %s parent 1: classid 1:%x pspacer rate 8kbit\n' \
		$DEV "$minor"
done | tc -batch -
check "there may be 4096 classes" says "reserved 32768000 classes 4096 " \
	tc -s qdisc show dev $DEV root
refuse "and no more" "No more than 4096 classes" add_class 2000 rate 8kbit
tc qdisc del dev $DEV root

# Below a qdisc that peeks.

if tc qdisc add dev $DEV root handle 10: tbf rate 20mbit burst 10kb \
	limit 1mb 2>/dev/null; then
	tc qdisc add dev $DEV parent 10:1 handle 1: pspacer line 100mbit
	add_class 1 rate 10mbit limit 100
	add_class 2 limit 100
	flows 1 2
	measure 1 2
	check "below tbf a class has its rate" \
		between 9950000 10050000 "$rate_1"
	check "and the other what tbf leaves" \
		between 9500000 10500000 "$rate_2"
	check "a class is deleted there" \
		tc class del dev $DEV parent 1: classid 1:1
	stop
	check "and both count nothing left" drained
	tc qdisc del dev $DEV root
fi

check "the kernel has nothing to complain about" \
	sh -c '! dmesg | grep -e "WARNING:" -e "BUG:" -e "cut here"'
echo "1..$tests"
exit $failed
