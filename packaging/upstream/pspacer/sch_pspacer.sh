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
@insert selftest_launch.sh
@from gap
@insert selftest_gap.sh
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
