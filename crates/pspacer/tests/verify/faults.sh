#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the laboratory's guest: frames that do not come to the class that the file gives them, in
# each way that nothing else says, while "pspacer verify" looks. Prints what it says after "=== NAME".
#
#   netns src -- br0 (routed) --.
#   psp-send -------------------- c1a ==== 1 Gbit/s ==== c1b

. /verify/lib.sh

pspacer() { /verify/ld.so --library-path /verify /verify/pspacer "$@"; }

# say NAME COMMAND...: prints what the command prints, below its name; then its exit status.
say() {
	echo "=== $1"
	shift
	"$@" 2>&1 && status=0 || status=$?
	echo
	echo "=== status $status"
}

# file BACKEND LINES...: writes the host's file, with a class of 10 Mbit/s for each line.
file() {
	printf '[[device]]\nname = "c1a"\nbackend = "%s"\ndefault = "rest"\n' "$1"
	shift
	number=0
	for match; do
		printf '[[device.class]]\nname = "c%s"\nminor = "800%s"\nrate = "10mbit"\nmatch = [%s]\n' \
			$number $number "$match"
		number=$((number + 1))
	done
	printf '[[device.class]]\nname = "rest"\nminor = "9000"\ntype = "normal"\n'
} >/tmp/host.toml

# send PAYLOAD TO...: sends 4 Mbit/s to each for 4 s, in the background.
send() {
	now=$(sed -n 's/^now_ns //p' $WIRE/idle)
	payload=$1
	shift
	flows=
	for to; do flows="$flows --flow to=$to,payload=$payload,rate=4000000"; done
	# shellcheck disable=SC2086
	$SENDER psp-send --stop-ns $((now + 4000000000)) $flows >/dev/null &
	sleep 1
}

verify() {
	say "$1" pspacer verify c1a --for 1s --json /tmp/host.toml
	wait
}

# plan_as_user NAME: what a user without rights is told of the file.
plan_as_user() {
	say "$1" su nobody -c "/verify/ld.so --library-path /verify /verify/pspacer plan /tmp/host.toml"
}

# vlan NAME BELOW ID PROTOCOL NET: makes a VLAN and a neighbour in it.
vlan() {
	ip link add link "$2" name "$1" type vlan id "$3" protocol "$4"
	ip link set "$1" up
	ip addr add "$5.1/24" dev "$1"
	ip neigh add "$5.2" lladdr 02:00:00:00:00:02 dev "$1"
}

# routed: makes br0 anew.
routed() {
	ip link add br0 type veth peer name s0 netns src
	ip addr add 10.7.0.1/24 dev br0
	ip link set br0 up
	ip -n src addr add 10.7.0.2/24 dev s0
	ip -n src link set s0 up
	ip -n src route add default via 10.7.0.1
}

SENDER=
cable c1 1000000000
ip addr add 10.8.0.1/24 dev c1a
ip neigh add 10.8.0.2 lladdr 02:00:00:00:00:02 dev c1a
vlan v100 c1a 100 802.1Q 10.9.0
vlan s208 c1a 208 802.1ad 10.10.1
vlan v4 s208 4 802.1Q 10.10.0

# The filters that stood for such a file once.
file module '{ to = "10.8.0.2", to_port = 5001, protocol = "udp" }' '{ to = "10.9.0.2" }' \
	'{ to = "10.10.0.2" }'
tc qdisc add dev c1a root handle 7073: psp line 1gbit default 9000
for minor in 8000 8001 8002; do
	tc class add dev c1a parent 7073: classid 7073:$minor psp rate 10mbit
done
tc class add dev c1a parent 7073: classid 7073:9000 psp mode normal
tc filter add dev c1a parent 7073: pref 1 protocol ip flower dst_ip 10.8.0.2 ip_proto udp \
	dst_port 5001 classid 7073:8000
tc filter add dev c1a parent 7073: pref 2 protocol ip flower dst_ip 10.9.0.2 classid 7073:8001
tc filter add dev c1a parent 7073: pref 3 protocol ip flower dst_ip 10.10.0.2 classid 7073:8002
send 1000 10.8.0.2:5001
verify untagged
send 1000 10.9.0.2:5002 10.10.0.2:5003
verify tags
send 8000 10.8.0.2:5001
verify fragments
tc qdisc del dev c1a root

# The same frames by the file itself.
echo "nobody:x:65534:65534:nobody:/tmp:/bin/sh" >>/etc/passwd
plan_as_user "user: module, new"
say "apply module" pspacer apply /tmp/host.toml
send 1000 10.8.0.2:5001 10.9.0.2:5002 10.10.0.2:5003
verify "tags applied"
send 8000 10.8.0.2:5001
verify "fragments applied"

plan_as_user "user: module"

# Seven small frames a millisecond, of which it looks at a part.
send 100 10.8.0.2:5001 10.8.0.2:5001
say sampled pspacer verify c1a --for 1s --budget 1000 --json /tmp/host.toml
wait

ip netns add src
ip -n src link set lo up
routed
echo 1 >/proc/sys/net/ipv4/ip_forward
file module '{ interface = "br0" }'
say "apply interface" pspacer apply /tmp/host.toml
SENDER='ip netns exec src'
send 1000 10.8.0.2:5001
verify interface
ip link del br0
ip link add br1 type dummy
routed
send 1000 10.8.0.2:5001
verify "interface anew"
say "doctor anew" pspacer doctor c1a --json
SENDER=
pspacer remove c1a
file module
plan_as_user "user: no matches"

# Departure times, and what somebody puts in the place of their filter.
file edt '{ to = "10.8.0.2" }'
plan_as_user "user: edt, new"
say "apply edt" pspacer apply /tmp/host.toml
plan_as_user "user: edt"
file module
plan_as_user "user: module in the place of edt"
file edt '{ to = "10.8.0.2" }'
send 1000 10.8.0.2:5001
verify edt
send 1000 10.8.0.2:5001 10.8.0.2:5004
say "doctor edt" pspacer doctor c1a --json
wait
tc filter del dev c1a egress
tc filter add dev c1a egress prio 1 protocol all matchall action ok
send 1000 10.8.0.2:5001
verify taken
send 1000 10.8.0.2:5001
say "taken text" pspacer verify c1a --for 1s /tmp/host.toml
wait
say "doctor taken" pspacer doctor c1a --json
tc filter del dev c1a egress

# A program of others at tcx in front of ours. Kernels before 6.6 have no tcx.
say "apply edt again" pspacer apply /tmp/host.toml
/verify/tcx c1a >/tmp/tcx 2>&1 &
tcx=$!
until [ -s /tmp/tcx ]; do sleep 0.1; done
say tcx cat /tmp/tcx
if kill -0 $tcx 2>/dev/null; then
	send 1000 10.8.0.2:5001
	say "tcx verify" pspacer verify c1a --for 1s --json /tmp/host.toml
	say "tcx doctor" pspacer doctor c1a --json
	say "tcx apply" pspacer apply /tmp/host.toml
	kill $tcx
	wait
	say "tcx gone" pspacer apply /tmp/host.toml
fi

# The program taken away: frames leave without a class.
tc filter del dev c1a egress
send 1000 10.8.0.2:5001
say "doctor bypassed" pspacer doctor c1a --json
wait

# apply looks itself: at a device that is well, and at one where a filter of others takes the frames.
tc filter del dev c1a egress 2>/dev/null || true
pspacer remove c1a
file module '{ to = "10.8.0.2" }'
send 1000 10.8.0.2:5001
say "apply verify" pspacer apply --verify 1s /tmp/host.toml
wait
tc filter del dev c1a parent 7073:
tc filter add dev c1a parent 7073: pref 1 protocol ip flower dst_ip 10.8.0.2 classid 7073:9000
send 1000 10.8.0.2:5001
say "apply verify taken" pspacer apply --verify 1s /tmp/host.toml
wait
