#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Sockets with launch times on each clock, in a class and in best effort: all leave, at their times.
#
#   psp-send --> c1a ==== 1 Gbit/s ==== c1b (sink)

. "$(dirname "$0")/lib.sh"

# edt WORDS...: runs the crate's own test program as a command: apply FILE, show, remove.
edt() {
	EDT="$*" $EDT_PROGRAM >/tmp/edt.out 2>&1 || { cat /tmp/edt.out; return 1; }
	# The test's own name stands before the first line.
	sed -n 's/^\(test edt_bpf_lab::in_guest ... \)\{0,1\}EDT //p' /tmp/edt.out
}

# launched NAME CLOCK PORT: sends 500 datagrams, each due 2 ms after the one before.
launched() {
	echo 1 >$WIRE/c1/reset
	now=$(sed -n 's/^now_ns //p' $WIRE/idle)
	before=$(counter c1 a data_frames)
	psp-send --start-ns $((now + 10000000)) --stop-ns $((now + 1009000000)) \
		--flow "to=10.0.0.2:$3,payload=108,rate=600000,txtime=$2,lead=3000000" >/tmp/sent
	drained c1a
	check "$1, $2: all leave" same "$(sent datagrams)" $(($(counter c1 a data_frames) - before))
	check "$1, $2: they are 500" between 498 502 "$(sent datagrams)"
	cat $WIRE/c1/timeline.a >/tmp/timeline
	cat $WIRE/c1/snap.a >/tmp/snap
	late=$(psp-launched /tmp/timeline /tmp/snap "$3" 58 | json_of p99_ns)
	echo "# $1, $2: 99 of 100 are late by $late ns at most"
	check "$1, $2: at their times" between -1000 60000 "$late"
	early=$(psp-launched /tmp/timeline /tmp/snap "$3" 58 | json_of least_ns)
	check "$1, $2: none early" between -1000 60000 "$early"
}

cable c1 1000000000 sink=1 snap=58
ip addr add 10.0.0.1/24 dev c1a
ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev c1a
cat >/tmp/file <<EOF
[[device]]
name = "c1a"
backend = "edt"
default = "rest"
[[device.class]]
name = "paced"
rate = "10mbit"
match = [{ to_port = 5001, protocol = "udp" }]
[[device.class]]
name = "slow"
rate = "300kbit"
match = [{ to_port = 5003, protocol = "udp" }]
[[device.class]]
name = "rest"
type = "normal"
EOF
check "the file is applied" edt apply /tmp/file
for clock in monotonic tai real; do
	launched class $clock 5001
	launched "best effort" $clock 5002
done
# The offset of TAI is set after the file was applied, as a daemon does some seconds after the boot.
check "TAI is set" /edt/tai 37
for clock in tai real; do
	launched "class, TAI set" $clock 5001
	launched "best effort, TAI set" $clock 5002
done
# A class holds back what launch times ask for above its rate, whatever the clock.
for clock in monotonic tai; do
	now=$(sed -n 's/^now_ns //p' $WIRE/idle)
	before=$(counter c1 a data_bytes)
	psp-send --start-ns $((now + 10000000)) --stop-ns $((now + 1010000000)) \
		--flow "to=10.0.0.2:5003,payload=108,rate=600000,txtime=$clock,lead=1000000" >/tmp/sent
	bytes=$(($(counter c1 a data_bytes) - before))
	check "$clock: the class's rate holds" between 35000 41000 "$bytes"
	drained c1a
done
# What fq drops is seen: it keeps nothing for longer than 10 s.
now=$(sed -n 's/^now_ns //p' $WIRE/idle)
psp-send --start-ns $((now + 10000000)) --stop-ns $((now + 110000000)) \
	--flow "to=10.0.0.2:5002,payload=108,rate=600000,txtime=tai,lead=20000000000" >/tmp/sent &
sender=$!
nap 500
kill $sender 2>/dev/null || :
wait $sender || :
check "what is too far ahead is counted" at_least 40 "$(edt horizon)"
finish
