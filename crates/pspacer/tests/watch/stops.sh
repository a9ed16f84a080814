#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the laboratory's guest: a transfer through a path of 20 ms is stopped
# four times for a known reason while "pspacer watch" looks on. Prints what that says,
# and what "pspacer stalls" says of the packets that it saved.
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

# The sender is a unit's, as systemd has them.
mount -t cgroup2 none /sys/fs/cgroup
unit=/sys/fs/cgroup/system.slice/sender.service
mkdir -p "$unit/below" /sys/fs/cgroup/system.slice/other.service

ip netns exec rx psp-recv --tcp --port 5001 >/dev/null &
receiver=$!
: >/tmp/watch.err
pspacer() {
	/watch/ld.so --library-path /watch /watch/pspacer "$@"
}
/watch/ld.so --library-path /watch /watch/pspacer watch --json --cost --port 5001 --dst 10.1.1.2 \
	--unit sender >/tmp/watch.json 2>/tmp/watch.err &
watcher=$!
/watch/ld.so --library-path /watch /watch/pspacer watch --json \
	--cgroup /system.slice/other.service >/tmp/other.json 2>/tmp/other.err &
other=$!
# Packets are those of the network name space that the command is in. It watches both ends.
ip netns exec tx /watch/ld.so --library-path /watch /watch/pspacer watch --port 5001 \
	--packets /tmp/packets >/tmp/saved.txt 2>/tmp/saved.err &
saver=$!
# With --pid the program is another one: this kernel's verifier has to accept it too.
pspacer watch --json --pid "$receiver" --duration 100ms >/dev/null

for name in watch other saved; do
	tries=0
	until grep -q "pspacer: watching" /tmp/$name.err; do
		tries=$((tries + 1))
		if [ "$tries" -gt 600 ] || ! kill -0 "$watcher"; then
			cat /tmp/$name.err
			exit 1
		fi
		sleep 0.1
	done
done

sh -c "echo \$\$ >$unit/below/cgroup.procs && exec ip netns exec tx \
	psp-send --stop-ns 1000000000000000 --flow to=10.1.1.2:5001,proto=tcp,window=300000" \
	>/dev/null &
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
# The timeout has doubled: it may be that long until the sender goes on.
sleep 4
# The sender's own host drops what it sends.
path tx "rate 50mbit loss 100%"
sleep 2
path tx "rate 50mbit loss 0%"
sleep 4
# Nobody reads.
kill -STOP "$receiver"
sleep 2
kill -CONT "$receiver"
sleep 1
kill -TERM "$sender"
wait "$sender" || true
kill -TERM "$receiver"
kill -TERM "$watcher" "$other" "$saver"
wait "$watcher"
wait "$other"
wait "$saver"
cat /tmp/watch.err /tmp/saved.err >&2
# What is no object is no part of the JSON.
cat /tmp/saved.txt
grep '"type":"summary"' /tmp/other.json | sed 's/^/other: /'
for file in /tmp/packets/*; do
	pspacer stalls "$file" --json | tr -d '\n' | sed 's/^/saved: /'
	echo
done
cat /tmp/watch.json
