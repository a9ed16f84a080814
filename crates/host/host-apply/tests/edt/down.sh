#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A link goes down and comes back while packets wait for their departure times: the kernel throws
# them away. The host reads from the cable's records how long the class is silent then.
#
#   psp-send --> c1a ==== 1 Gbit/s ==== c1b (sink)

. "$(dirname "$0")/lib.sh"

# edt WORDS...: runs the crate's own test program as a command: apply FILE, show, remove.
edt() {
	EDT="$*" $EDT_PROGRAM >/tmp/edt.out 2>&1 || { cat /tmp/edt.out; return 1; }
	# The test's own name stands before the first line.
	sed -n 's/^\(test edt_bpf_lab::in_guest ... \)\{0,1\}EDT //p' /tmp/edt.out
}

now_ns() { sed -n 's/^now_ns //p' $WIRE/idle; }

cat >/tmp/file <<END
[[device]]
name = "c1a"
backend = "edt"
[[device.class]]
name = "slow"
rate = "1mbit"
deadline = "1s"
match = [{ to_port = 5001, protocol = "udp" }]
END
cable c1 1000000000 sink=1
ip addr add 10.0.0.1/24 dev c1a
ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev c1a
check "a class whose packets may wait for a second" edt apply /tmp/file
psp-send --stop-ns $(($(now_ns) + 3000000000)) --sndbuf 400000 \
	--flow to=10.0.0.2:5001,payload=958 >/dev/null &
sender=$!
nap 300
echo carrier=0 >$WIRE/c1/fault
nap 500
now_ns >/out/up
echo carrier=1 >$WIRE/c1/fault
wait $sender
drained c1a
cat $WIRE/c1/timeline.a >/out/down.timeline
cat $WIRE/c1/flows.a >/out/down.flows
counted=$(edt show | cut -d ' ' -f 2)
sent=$(tc -s qdisc show dev c1a root | sed -n 's/^ Sent [0-9]* bytes \([0-9]*\) .*/\1/p')
echo "# the class counted $counted frames, fq has sent $sent, dropped $(tc -s qdisc show dev c1a root |
	sed -n 's/.*(dropped \([0-9]*\),.*/\1/p')"
check "fq has sent less than the class has counted" at_most $((counted - 50)) "$sent"
check "remove" edt remove
finish
