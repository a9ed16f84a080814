#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# What "pspacer watch" costs the host that it runs on: one TCP flow between two
# network name spaces, without and with it in turn, and what the kernel counts of
# the BPF programs. Needs root; leaves nothing behind.
#
# usage: watch.sh PSPACER FOLDER_OF_PSP_SEND [PAIRS [SECONDS]]
set -eu

pspacer=$1
programs=$2
pairs=${3:-7}
seconds=${4:-4}
scratch=$(mktemp -d)
a=psp-watch-a
b=psp-watch-b
receiver=

clean() {
	[ -z "$receiver" ] || kill "$receiver" || true
	ip netns del $a 2>/dev/null || true
	ip netns del $b 2>/dev/null || true
	rm -rf "$scratch"
}
trap clean EXIT

ip netns add $a
ip netns add $b
ip link add eth0 netns $a type veth peer name eth0 netns $b
for host in "$a 10.83.1.1" "$b 10.83.1.2"; do
	ip -n "${host% *}" addr add "${host#* }/24" dev eth0
	ip -n "${host% *}" link set eth0 up
done
ip netns exec $b "$programs/psp-recv" --tcp --port 5001 >"$scratch/received" &
receiver=$!

number() {
	sed -n "s/.*\"$1\": *\([0-9][0-9]*\).*/\1/p" "$2" | head -n 1
}

# Megabits a second of one transfer.
transfer() {
	now_s=$(cut -d . -f 1 /proc/uptime)
	ip netns exec $a "$programs/psp-send" --stop-ns $((now_s + seconds + 1))000000000 \
		--flow to=10.83.1.2:5001,proto=tcp >"$scratch/sent"
	bytes=$(number bytes "$scratch/sent")
	took_ns=$(($(number end_ns "$scratch/sent") - $(number start_ns "$scratch/sent")))
	echo $((bytes * 8000 / took_ns))
}

# The same with someone looking on; --cost adds to what it costs.
watched() {
	"$pspacer" watch --json "$@" >"$scratch/watch" 2>"$scratch/said" &
	watcher=$!
	tries=0
	until grep -q watching "$scratch/said"; do
		tries=$((tries + 1))
		if [ $tries -gt 100 ] || ! kill -0 $watcher 2>/dev/null; then
			cat "$scratch/said" >&2
			exit 1
		fi
		sleep 0.1
	done
	transfer
	kill -TERM $watcher
	wait $watcher
}

median() {
	sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

transfer >/dev/null
for pair in $(seq "$pairs"); do
	without=$(transfer)
	with=$(watched)
	lost=$(number lost_records "$scratch/watch")
	echo "$without" >>"$scratch/without"
	echo "$with" >>"$scratch/with"
	echo "pair $pair: $without Mbit/s without, $with with; $(number records "$scratch/watch") records, $lost lost"
done
echo "median: $(median "$scratch/without") Mbit/s without, $(median "$scratch/with") with"
timed=$(watched --cost)
echo "with the kernel timing each run: $timed Mbit/s"
awk -F '"' '/"tracepoint"/ { name = $4 }
	/"runs"/ { gsub(/[^0-9]/, ""); runs = $0 }
	/"total_ns"/ && runs > 0 { gsub(/[^0-9]/, ""); printf "%s: %s runs, %.0f ns each\n", name, runs, $0 / runs }' \
	"$scratch/watch"
