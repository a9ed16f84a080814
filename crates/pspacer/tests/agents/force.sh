#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the laboratory's guest: a manager on loopback, the agents of a host and of a router, each
# with a port of a real kernel, and a talker. Prints what each says after a line "=== NAME", and its
# exit status after "=== status".
#
#   camera: d1 --- studio --- router r1: d2 --- hall --- screen

. /agents/lib.sh

cd /tmp
pspacer() { /agents/ld.so --library-path /agents /agents/pspacer "$@"; }
# The program itself, so that its process is the one to kill.
start() { exec /agents/ld.so --library-path /agents /agents/pspacer "$@"; }
say() {
	echo "=== $1"
	shift
	"$@" && status=0 || status=$?
	echo
	echo "=== status $status"
}
# until_so COMMAND...: waits until it succeeds, for some minutes at most.
until_so() {
	tries=0
	until "$@" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 900 ] || {
			echo "$* is not so" >&2
			cat ./*.log >&2
			return 1
		}
		sleep 0.2
	done
}
manage() {
	start manager --topology net.toml --store sqlite:r.db --in-force-within 20s \
		--listen 127.0.0.1:8646 2>>manager.log &
	manager=$!
	until_so pspacer reservations
}
# agent NODE SEGMENT DEVICE
agent() {
	start agent --node "$1" --port "$2=$3" --poll 500ms --json >>"$1.json" 2>>"$1.log" &
	agent=$!
}
reserve() {
	pspacer reserve --json --from camera --to screen --bytes 10000 --period 10ms "$@"
}
# A class of type rt is there, or none. Of BPF's classes tc knows nothing.
case ${backend:=module} in
module)
	has_rt() { tc class show dev "$1" | grep -q 'mode rt'; }
	has_nrt() { tc class show dev "$1" | grep -q 'mode nrt'; }
	damage() { tc filter del dev "$1" parent 7073:; }
	;;
bpf)
	has_rt() { pspacer save "$1" | grep -q flower; }
	has_nrt() { pspacer save "$1" | grep -q '"bpf"'; }
	damage() { tc qdisc del dev "$1" root; }
	;;
esac
has_none() { ! has_rt "$1"; }
port() {
	tc qdisc show dev "$1"
	tc class show dev "$1"
	# One program classifies: what its filters are is in what is saved.
	pspacer save "$1"
}
logged() { grep -q "$2" "$1"; }

cat >net.toml <<'END'
[[host]]
name = "camera"
[[host]]
name = "screen"
[[router]]
name = "r1"
[[segment]]
name = "studio"
medium = "shared"
rate = "100mbit"
members = ["camera", "r1"]
[[segment]]
name = "hall"
medium = "switched"
rate = "100mbit"
members = ["r1", "screen"]
END
ip link set lo up
for device in d1 d2; do
	ip link add $device type dummy
	ip link set $device up
done

manage
say "without agents" reserve --id x0 --for 1m --udp-to 10.0.0.2:5004
agent camera studio d1
camera=$agent
agent r1 hall d2
until_so has_nrt d1
until_so has_nrt d2
say "granted" reserve --id x1 --for 10m --udp-to 10.0.0.2:5004
say "camera" port d1
say "r1" port d2
say "no frames" reserve --id x2 --for 1m

# The agent is killed, its port is damaged, and it is started again.
kill -9 $camera
has_rt d1 && damage d1
agent camera studio d1
camera=$agent
until_so eval 'pspacer save d1 | grep -q flower'
say "camera again" port d1

# The agent is away while a reservation ends.
kill -9 $camera
pspacer release x1
agent camera studio d1
until_so has_none d1
until_so has_none d2
say "released" port d1

# The manager is away: the agents keep what they know until its lease ends, also one that starts.
say "short" reserve --id x3 --for 40s --udp-to 10.0.0.2:5004
kill -9 $manager
until_so logged camera.log 'stay in force'
kill -9 $agent
agent camera studio d1
until_so eval 'grep ready camera.json | tail -1 | grep "\"kept\":1"'
say "away" port d1
until_so has_none d1
until_so has_none d2
say "ended" port d1
manage
until_so logged camera.json '"event":"back"'
say "back" reserve --id x4 --for 10m --udp-to '[2001:db8::2]:5004'
say "camera at last" port d1
kill $agent
wait $agent && status=0 || status=$?
say "stopped" echo $status
say "stays" port d1
say "camera log" cat camera.log
say "camera events" cat camera.json
exit 0
