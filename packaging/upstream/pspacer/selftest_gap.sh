# SPDX-License-Identifier: GPL-2.0-only
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

