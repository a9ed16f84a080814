#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# psp rejects every bad input with a message, and changes nothing.
#
#   w1a ==== 1 Gbit/s ==== w1b        the port under test
#   w2a ==== 500 kbit/s == w2b        a device that cannot name its rate
#   v1a ---- veth -------- v1b        no wire clock; 4 transmit queues
#   d1 (dummy), i1 (ifb)              no wire clock

. "$(dirname "$0")/lib.sh"

cable w1 1000000000 sink=1
cable w2 500000 sink=1
ip link add v1a numtxqueues 4 type veth peer name v1b
ip link set v1a up
ip link set v1b up
ip link add d1 type dummy
ip link set d1 up
ip link add i1 type ifb
ip link set i1 up

# --- options that tc rejects, with its messages --------------------------

tc qdisc add dev w1a root handle 1: psp default 3
tc class add dev w1a parent 1: classid 1:1 psp rate 500mbit
tc class add dev w1a parent 1: classid 1:3 psp mode normal

bad_class() { tc class add dev w1a parent 1: classid 1:9 psp "$@"; }
bad_qdisc() { tc qdisc change dev w1a root handle 1: psp "$@"; }

refuse "rate 0" 'rate "0": expected' bad_class rate 0
refuse "rate 0mbit" 'rate "0mbit": expected' bad_class rate 0mbit
refuse "rate below zero" 'rate "-5mbit": expected' bad_class rate -5mbit
refuse "rate that is no number" 'rate "fast": expected' bad_class rate fast
refuse "rate of an unknown unit" 'rate "5xbit": expected' bad_class rate 5xbit
refuse "rate of half a bit" 'rate "0.5bit": expected' bad_class rate 0.5bit
refuse "rate beyond 64 bits" 'rate "99999999tbit": expected' \
	bad_class rate 99999999tbit
refuse "rate above the line" \
	'rate 1000000001bit: expected at most the line.s 1000000000bit' \
	bad_class rate 1000000001bit
refuse "rate without a value" 'rate: value missing' bad_class rate
refuse "rate twice" 'only once' bad_class rate 1mbit rate 2mbit
refuse "unknown kind of class" 'mode "fast": expected paced, normal' \
	bad_class mode fast
refuse "paced without a rate" 'rate 0bit: expected' bad_class mode paced
refuse "neither rate nor mode" 'expected rate RATE or mode normal' bad_class
refuse "rate of a normal class" 'rate: expected only with mode paced' \
	bad_class mode normal rate 1mbit
refuse "quantum of a paced class" 'quantum: expected only with mode normal' \
	bad_class rate 1mbit quantum 1500
refuse "quantum 0" 'quantum "0": expected' bad_class mode normal quantum 0
refuse "quantum too large" 'quantum "2mb": expected' \
	bad_class mode normal quantum 2mb
refuse "ceil of a normal class" 'ceil: expected only with mode paced,' \
	bad_class mode normal ceil 1mbit
refuse "ceil below the rate" \
	"ceil 1000000bit: expected at least the rate's 2000000bit" \
	bad_class rate 2mbit ceil 1mbit
refuse "ceil above the line" "ceil 2000000000bit: expected at most the line's 1000000000bit" \
	bad_class rate 1mbit ceil 2gbit
refuse "ceil that is no number" 'ceil "max": expected' \
	bad_class rate 1mbit ceil max
refuse "floor of a paced class" 'floor: expected only with mode dynamic' \
	bad_class rate 1mbit floor 1kbit
refuse "flows of a paced class" 'flows: expected only with mode dynamic' \
	bad_class rate 1mbit flows 10
refuse "dynamic with its floor above its ceil" \
	"floor 2000bit: expected at most the ceil" \
	bad_class mode dynamic floor 2kbit ceil 1kbit
refuse "deadline that is no time" 'deadline "late": expected a time' \
	bad_class rate 1mbit deadline late
refuse "deadline below zero" 'deadline "-1": expected a time' \
	bad_class rate 1mbit deadline -1
refuse "unknown option of a class" 'unknown option "burst"' \
	bad_class rate 1mbit burst 15k
refuse "unknown option of the qdisc" 'unknown option "limit"' bad_qdisc limit 1
refuse "unknown mode" 'mode "best": expected auto, gap, timer or hybrid' \
	bad_qdisc mode best
refuse "unknown layer" 'layer "tcp": expected' bad_qdisc layer tcp
refuse "unknown order" 'order "fifo": expected' bad_qdisc order fifo
refuse "unknown gap" 'gap "none": expected pause or multicast' \
	bad_qdisc gap none
refuse "guard that is no switch" 'guard "2": expected on or off' \
	bad_qdisc guard 2
refuse "unknown split-gso" 'split-gso "no": expected auto, on or off' \
	bad_qdisc split-gso no
refuse "default that is no minor" 'default "1:3": expected' \
	bad_qdisc default 1:3
refuse "default too large" 'default "10000": expected' bad_qdisc default 10000
refuse "overhead too large" 'overhead "257": expected' bad_qdisc overhead 257
refuse "overhead below zero" 'overhead "-1": expected' bad_qdisc overhead -1
refuse "line 0" 'line "0": expected' bad_qdisc line 0
refuse "line too slow" 'line 7999bit: expected 8000bit' bad_qdisc line 7999bit
refuse "line below a class" "line 100000000bit: expected class 1:1's 500000000bit" \
	bad_qdisc line 100mbit

# --- classes -------------------------------------------------------------

refuse "class id used twice" 'File exists' \
	tc class add dev w1a parent 1: classid 1:1 psp rate 1mbit
refuse "class id without a minor" 'classid 1:0: expected' \
	tc class add dev w1a parent 1: classid 1:0 psp rate 1mbit
refuse "class of another qdisc" 'Invalid argument\|RTNETLINK' \
	tc class add dev w1a parent 1: classid 2:1 psp rate 1mbit
refuse "class below a class" 'expected 1: or a class of mode group' \
	tc class add dev w1a parent 1:1 classid 1:9 psp rate 1mbit
refuse "change of no class" 'RTNETLINK' \
	tc class change dev w1a parent 1: classid 1:9 psp rate 1mbit
refuse "filter on a class" 'expected parent 1:' \
	tc filter add dev w1a parent 1:1 protocol ip pref 1 u32 \
	match ip dport 80 0xffff classid 1:1

tc filter add dev w1a parent 1: protocol ip pref 1 u32 \
	match ip dport 80 0xffff classid 1:1
refuse "deletion of a class with filters" '1:1: 1 filters name it' \
	tc class del dev w1a classid 1:1
tc filter del dev w1a parent 1: pref 1
check "deletion of the class without them" tc class del dev w1a classid 1:1
tc class add dev w1a parent 1: classid 1:1 psp rate 500mbit

# --- a rejected change applies no part of itself -------------------------

before=$(tc qdisc show dev w1a; tc class show dev w1a)
refuse "failed change of a class" 'expected at most the line' \
	tc class change dev w1a parent 1: classid 1:1 psp rate 2gbit
refuse "failed change of the qdisc" 'expected class' \
	bad_qdisc default 1 layer wire guard on split-gso off gap pause line 1mbit
refuse "failed change of a class to normal" 'rate: expected only with' \
	tc class change dev w1a parent 1: classid 1:1 psp mode normal \
	deadline 1ms rate 1mbit
check "left everything as it was" same "$before" \
	"$(tc qdisc show dev w1a; tc class show dev w1a)"

# --- a class with traffic ------------------------------------------------

tc class add dev w1a parent 1: classid 1:2 psp rate 1mbit
flow w1a "skb_priority 65538"
sleep 0.2
check "a slow class has frames waiting" \
	at_least 10 "$(class_backlog_of w1a 1:2)"
check "deletion of a class with traffic" tc class del dev w1a classid 1:2
flow_stop
check "the deleted class's frames are gone" drained w1a

# --- parents -------------------------------------------------------------

refuse "psp below psp" 'parent 1:1: expected root' \
	tc qdisc add dev w1a parent 1:1 handle 10: psp
tc qdisc del dev w1a root
tc qdisc add dev w1a root handle 1: htb
tc class add dev w1a parent 1: classid 1:1 htb rate 1mbit
refuse "psp below htb" 'parent 1:1: expected root' \
	tc qdisc add dev w1a parent 1:1 psp
tc qdisc del dev w1a root
tc qdisc add dev w1a root handle 1: prio
refuse "psp below prio" 'parent 1:1: expected root' \
	tc qdisc add dev w1a parent 1:1 psp
tc qdisc del dev w1a root

tc qdisc add dev v1a root handle 1: mq
check "psp below mq" tc qdisc add dev v1a parent 1:2 handle 12: psp
check "psp below mq has classes" \
	tc class add dev v1a parent 12: classid 12:1 psp rate 10mbit
refuse "psp below psp below mq" 'parent 12:1: expected root' \
	tc qdisc add dev v1a parent 12:1 psp
tc qdisc del dev v1a root

# --- wires ---------------------------------------------------------------

for dev in v1a d1 i1 lo; do
	refuse "gap mode on $dev" "mode gap on $dev: expected a wire" \
		tc qdisc add dev $dev root handle 1: psp mode gap line 1gbit
	check "timer mode on $dev" tc qdisc add dev $dev root handle 1: psp
	refuse "hybrid mode on $dev" "mode hybrid on $dev: expected a wire" \
		tc qdisc change dev $dev root handle 1: psp mode hybrid
	refuse "gap mode on $dev, later" "mode gap on $dev: expected a wire" \
		tc qdisc change dev $dev root handle 1: psp mode gap
	check "$dev is still in timer mode" same timer "$(stat_of $dev mode_in_force)"
	tc qdisc del dev $dev root
done
refuse "gap mode on what is not Ethernet" "mode gap on lo: expected a wire with Ethernet" \
	tc qdisc add dev lo root handle 1: psp mode gap line 1gbit
ip link set d1 txqueuelen 0
refuse "gap mode without a queue" "mode gap on d1: expected a wire with a transmit queue" \
	tc qdisc add dev d1 root handle 1: psp mode gap line 1gbit
refuse "gap mode without a line rate" 'link speed unknown, expected line RATE' \
	tc qdisc add dev w2a root psp mode gap
check "gap mode with a line rate given" \
	tc qdisc add dev w2a root handle 1: psp mode gap line 500kbit
proved w2a
check "gap mode with a line rate is in force" same gap "$(stat_of w2a mode_in_force)"
tc qdisc del dev w2a root

# --- the MTU changes while frames are sent -------------------------------

tc qdisc add dev w1a root handle 1: psp default 1
tc class add dev w1a parent 1: classid 1:1 psp rate 200mbit
flow w1a
sleep 0.05
for mtu in 9000 1500 576 1500; do
	check "MTU $mtu while sending" ip link set w1a mtu $mtu
	check "the largest frame follows MTU $mtu" same $((mtu + 14)) "$(stat_of w1a max_frame)"
	sleep 0.05
done
flow_stop
check "every frame is sent or counted as dropped" drained w1a
check "frames longer than the MTU are dropped by cause" \
	at_least 1 "$(stat_of w1a drop_long)"
tc class add dev w1a parent 1: classid 1:9 psp rate 60bit
refuse "an MTU that a class's rate forbids" 'RTNETLINK' \
	ip link set w1a mtu 9000
check "the refused MTU is not in force" same 1514 "$(stat_of w1a max_frame)"
tc qdisc del dev w1a root

cut_cable w1
cut_cable w2
ip link del v1a
ip link del d1
ip link del i1
finish
