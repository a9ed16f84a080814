#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Two classes get departure times on a device of a stock kernel, without any module of
# ours but the cable. The host compares the cable's records with the core.
#
#   psp-send --> c1a ==== 1 Gbit/s ==== c1b (sink)

. "$(dirname "$0")/lib.sh"

# edt WORDS...: runs the crate's own test program as a command: apply FILE, show, remove.
edt() {
	EDT="$*" $EDT_PROGRAM >/tmp/edt.out 2>&1 || { cat /tmp/edt.out; return 1; }
	# The test's own name stands before the first line.
	sed -n 's/^\(test edt_bpf_lab::in_guest ... \)\{0,1\}EDT //p' /tmp/edt.out
}

# programs: prints how many BPF programs of ours the kernel has. It frees one some time after
# the last reference to it has gone.
programs() {
	edt programs
}

none_left() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ "$(programs)" = 0 ] && return 0
		nap 100
	done
	programs
	return 1
}

# send NAME ZERO-MS MS: sends to two ports as fast as the sockets take it, and keeps the record.
send() {
	now=$(sed -n 's/^now_ns //p' $WIRE/idle)
	psp-send --stop-ns $((now + $2 * 1000000)) --sndbuf 400000 \
		--flow to=10.0.0.2:5001,payload=1458 --flow to=10.0.0.2:5002,payload=958 >/dev/null
	drained c1a
	cat $WIRE/c1/timeline.a >"/out/$1.timeline"
	cat $WIRE/c1/flows.a >"/out/$1.flows"
	echo 1 >$WIRE/c1/reset
}

cable c1 1000000000 sink=1
ip addr add 10.0.0.1/24 dev c1a
ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev c1a
before=$(tc qdisc show dev c1a)

check "the kernel takes program, classes and rules" edt apply /edt/first.toml
check "a second time nothing changes" same "" "$(edt apply /edt/first.toml)"
send first 300

# The command has ended long ago: nothing of it runs. Bursts of GSO are charged by frames.
now=$(sed -n 's/^now_ns //p' $WIRE/idle)
psp-send --stop-ns $((now + 200000000)) --sndbuf 400000 \
	--flow to=10.0.0.2:5001,payload=1458,batch=10 >/dev/null
drained c1a
cat $WIRE/c1/timeline.a >/out/bursts.timeline
cat $WIRE/c1/flows.a >/out/bursts.flows
echo 1 >$WIRE/c1/reset

# Other rates while packets wait: the clocks go on.
now=$(sed -n 's/^now_ns //p' $WIRE/idle)
psp-send --stop-ns $((now + 400000000)) --sndbuf 400000 \
	--flow to=10.0.0.2:5001,payload=1458 >/dev/null &
sender=$!
nap 100
check "other rates under traffic" edt apply /edt/second.toml
wait $sender
drained c1a
cat $WIRE/c1/timeline.a >/out/changed.timeline
cat $WIRE/c1/flows.a >/out/changed.flows
check "packets of both classes are counted" same "20000000 9000000" \
	"$(edt show | awk '$2 > 0 { printf "%s%s", sep, $1; sep = " " }')"
check "none waited for too long" same "0 0 " "$(edt show | awk '{ printf "%s ", $4 }')"
check "the program is there" at_least 1 "$(programs)"
if grep -q 'backend = "edt"' /edt/second.toml; then
	# An apply that throws away what waits may end while another fq stands in.
	tc qdisc replace dev c1a root handle 7072: fq
	check "an fq that stands in is ours, and gives way" \
		sh -c "EDT='apply /edt/second.toml' $EDT_PROGRAM | grep -q 'root: fq 7072:, expected fq 7073:'"
	check "then nothing changes" same "" "$(edt apply /edt/second.toml)"
	sed 's/= "20000000bit"/= "20kbit"/' /edt/second.toml >/tmp/slow.toml
	check "a slow class" edt apply /tmp/slow.toml
	check "what is dropped for a higher rate is said" sh -c "EDT='notes /edt/second.toml' \
		$EDT_PROGRAM | grep -q 'note: packets of fast that would leave 200 ms later'"
	check "nothing waits for a lower rate in vain" same "" "$(EDT='notes /tmp/slow.toml' $EDT_PROGRAM |
		grep 'note: packets' || :)"
fi
check "remove" edt remove
check "qdiscs are as before" same "$before" "$(tc qdisc show dev c1a)"
check "no filter is left" same "" "$(tc filter show dev c1a egress 2>/dev/null)"
check "no program and no map is left" none_left
check "remove where nothing is" same "" "$(edt remove)"

tc qdisc add dev c1a root handle 5: pfifo
refuse "a qdisc of others stays" "configured by others" edt apply /edt/first.toml
check "it is still there" sh -c "$TC qdisc show dev c1a | grep -q 'pfifo 5:'"
tc qdisc del dev c1a root
refuse "what others have is not touched" "it sends no gap frames" edt apply /edt/gap.toml

finish
