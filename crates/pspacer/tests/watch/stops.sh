#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the laboratory's guest: a transfer through a path of 20 ms is stopped
# three times for a known reason while "pspacer watch" looks on. Prints what that says.
#
#   tx:eth0 10.1.1.1 ---- veth, 50 Mbit/s, 10 ms each way ---- rx:eth0 10.1.1.2
set -eu

ip netns add tx
ip netns add rx
ip link add eth0 netns tx type veth peer name eth0 netns rx
ip -n tx addr add 10.1.1.1/24 dev eth0
ip -n rx addr add 10.1.1.2/24 dev eth0
path() {
	tc -n "$1" qdisc replace dev eth0 root netem delay 10ms limit 2000 $2
}
path tx "rate 50mbit"
path rx ""
for host in tx rx; do
	ip -n "$host" link set lo up
	ip -n "$host" link set eth0 up
done

ip netns exec rx psp-recv --tcp --port 5001 >/dev/null &
receiver=$!
: >/tmp/watch.err
/watch/ld.so --library-path /watch /watch/pspacer watch --json --cost --port 5001 --dst 10.1.1.2 \
	>/tmp/watch.json 2>/tmp/watch.err &
watcher=$!
# With --pid the program is another one: this kernel's verifier has to accept it too.
/watch/ld.so --library-path /watch /watch/pspacer watch --json --pid "$receiver" --duration 100ms \
	>/dev/null

tries=0
until grep -q "pspacer: watching" /tmp/watch.err; do
	tries=$((tries + 1))
	if [ "$tries" -gt 600 ] || ! kill -0 "$watcher"; then
		cat /tmp/watch.err
		exit 1
	fi
	sleep 0.1
done

ip netns exec tx psp-send --stop-ns 1000000000000000 \
	--flow to=10.1.1.2:5001,proto=tcp,window=300000 >/dev/null &
sender=$!
sleep 1
# What arrives is not acknowledged.
path rx "loss 100%"
sleep 2
path rx "loss 0%"
sleep 2
# Nothing arrives.
ip -n rx addr del 10.1.1.2/24 dev eth0
sleep 2
ip -n rx addr add 10.1.1.2/24 dev eth0
sleep 2
# Nobody reads.
kill -STOP "$receiver"
sleep 2
kill -CONT "$receiver"
sleep 1
kill -TERM "$sender"
wait "$sender" || true
kill -TERM "$receiver"
kill -TERM "$watcher"
wait "$watcher"
cat /tmp/watch.err >&2
cat /tmp/watch.json
