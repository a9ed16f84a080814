#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Each kind of packet reaches its class of 10 Mbit/s, by what the far end of the cable received:
# behind VLAN tags, in fragments, in through an interface that is made anew. What cannot be paced is
# refused, or said.
#
#   psp-send --> c1a ==== 1 Gbit/s ==== c1b
#
# usage: reach.sh BACKEND...

. "$(dirname "$0")/lib.sh"

# apply FILE, plan FILE, remove: runs the test program as a command; notes are in /tmp/notes.
psp() {
	REACH="$*" $PROGRAM >/tmp/psp.out 2>&1 || { cat /tmp/psp.out; return 1; }
	sed -n 's/^.*: note: //p' /tmp/psp.out >/tmp/notes
	sed -n 's/^\(test reach_lab::in_guest ... \)\{0,1\}PSP //p' /tmp/psp.out
}

# file BACKEND LINES...: writes the host's file, with a class of 10 Mbit/s for each line.
file() {
	printf '[[device]]\nname = "c1a"\nbackend = "%s"\ndefault = "rest"\n' "$1"
	shift
	number=0
	for match; do
		number=$((number + 1))
		printf '[[device.class]]\nname = "c%s"\nrate = "10mbit"\ndeadline = "100ms"\nmatch = [%s]\n' \
			$number "$match"
	done
	printf '[[device.class]]\nname = "rest"\ntype = "normal"\n'
} >/tmp/host.toml

# The far end counts frames, and no bytes.
received() { cat /sys/class/net/c1b/statistics/rx_packets; }

# mbit PAYLOAD TO: sends 100 Mbit/s for 200 ms, and prints how many Mbit/s the far end received. A
# datagram of 8000 bytes is six frames of 1369 bytes on average.
mbit() {
	case $1 in 1000) bytes=1042 ;; 8000) bytes=1369 ;; esac
	before=$(received)
	now=$(sed -n 's/^now_ns //p' $WIRE/idle)
	psp-send --stop-ns $((now + 200000000)) --flow "to=$2,payload=$1,rate=100000000" >/dev/null
	rest=$(sed -n 's/^now_ns //p' $WIRE/idle)
	frames=$(($(received) - before))
	sleep 1
	echo $((frames * bytes * 8000 / (rest - now)))
}

# paced CASE PAYLOAD TO: the far end receives at most 13 Mbit/s: a class of 10, and its first burst.
paced() {
	case_of=$1
	rate=$(mbit "$2" "$3")
	echo "reach: $backend: $case_of: $rate Mbit/s"
	check "$backend: $case_of: paced" at_least "$rate" 13
	check "$backend: $case_of: something is received" at_least 3 "$rate"
}

# extreme RATE: a file with this rate is refused before anything changes, or applied whole.
extreme() {
	file "$backend" '{ to = "10.8.0.2" }'
	sed -i "s/10mbit/$1/" /tmp/host.toml
	if psp apply /tmp/host.toml >/dev/null; then
		same "" "$(psp apply /tmp/host.toml)" && psp remove c1a >/dev/null
	else
		same "$none" "$(tc qdisc show dev c1a)"
	fi
}

# vlan NAME BELOW ID PROTOCOL ADDRESS: makes a VLAN and a neighbour in it.
vlan() {
	ip link add link "$2" name "$1" type vlan id "$3" protocol "$4"
	ip link set "$1" up
	ip addr add "$5.1/24" dev "$1"
	ip neigh add "$5.2" lladdr 02:00:00:00:00:02 dev "$1"
}

cable c1 1000000000
ip addr add 10.8.0.1/24 dev c1a
ip neigh add 10.8.0.2 lladdr 02:00:00:00:00:02 dev c1a
vlan v100 c1a 100 802.1Q 10.9.0
vlan s208 c1a 208 802.1ad 10.10.1
vlan v4 s208 4 802.1Q 10.10.0

ip link property add dev c1a altname uplink-of-the-laboratory
none=$(tc qdisc show dev c1a)
# The extreme ones, or others between them, too. The verifier takes long each time one is applied.
rates=$(choose "1bit 1tbit" \
	"1bit 50bit 51bit 999bit 1kbit 2457bit 8kbit 999999999bit 1gbit 1000000001bit 1tbit")
for backend; do
	for rate in $rates; do
		check "$backend: $rate is refused, or applied whole" extreme $rate
	done

	# mq stands at devices of several transmit queues only.
	file "$backend" '{ to = "10.8.0.2" }'
	sed -i '/^default/a queues = "mq"' /tmp/host.toml
	refuse "$backend: one transmit queue" '`queues` is "mq", expected "root"' psp plan /tmp/host.toml

	# Another name of a device, longer than a first one may be, is the same device.
	file "$backend" '{ to = "10.8.0.2" }'
	sed 's/"c1a"/"uplink-of-the-laboratory"/' /tmp/host.toml >/tmp/other.toml
	check "$backend: a device by another name" psp apply /tmp/other.toml
	check "$backend: is the same" same "" "$(psp apply /tmp/host.toml)"
	paced "by another name of the device" 1000 10.8.0.2:5001
	check "$backend: goes by another name" psp remove uplink-of-the-laboratory
	check "$backend: and is gone" same "$none" "$(tc qdisc show dev c1a)"

	# A device that is not there, beside one that is.
	file "$backend" '{ to = "10.8.0.2" }'
	printf '[[device]]\nname = "eth9"\nbackend = "%s"\n[[device.class]]\nname = "c"\nrate = "1mbit"\n' \
		"$backend" >>/tmp/host.toml
	refuse "$backend: a device that is not there is named" 'eth9: no such device' psp apply /tmp/host.toml
	paced "beside a device that is not there" 1000 10.8.0.2:5001

	file "$backend" '{ to = "10.8.0.2" }' '{ to = "10.9.0.2" }' '{ to = "10.10.0.2" }' \
		'{ to = "10.10.1.2" }'
	check "$backend: trunk: applied" psp apply /tmp/host.toml
	check "$backend: trunk: nothing more to change" same "" "$(psp apply /tmp/host.toml)"
	paced "no tag" 1000 10.8.0.2:5001
	paced "802.1Q" 1000 10.9.0.2:5002
	paced "802.1ad and 802.1Q" 1000 10.10.0.2:5003
	paced "802.1ad" 1000 10.10.1.2:5004

	file "$backend" '{ to_port = 5001, protocol = "udp" }' '{ vlan = 100 }'
	check "$backend: ports: applied" psp apply /tmp/host.toml
	paced "fragments by port" 8000 10.8.0.2:5001
	paced "a port behind tags" 1000 10.10.0.2:5001
	paced "a VLAN by its number" 1000 10.9.0.2:5005
	rate=$(mbit 8000 10.8.0.2:5009)
	check "$backend: fragments of another port are not paced" at_least 60 "$rate"
	file "$backend"
	check "$backend: all matches go" same 3 "$(psp apply /tmp/host.toml | grep -c 'delete  match')"
	check "$backend: nothing more to change" same "" "$(psp apply /tmp/host.toml)"

	# An interface comes after the file is applied, goes, and comes with another index.
	file "$backend" '{ interface = "br0" }' '{ to_port = 5005, protocol = "udp" }'
	check "$backend: applied without the interface" psp apply /tmp/host.toml
	check "$backend: which a note names" grep -q 'no interface br0' /tmp/notes
	paced "the rest of the file without an interface" 1000 10.8.0.2:5005
	ip link add br0 type dummy
	check "$backend: the match comes" same 1 "$(psp apply /tmp/host.toml | grep -c 'match in through br0')"
	check "$backend: nothing more to change" same "" "$(psp apply /tmp/host.toml)"
	ip link del br0
	ip link add br1 type dummy
	ip link add br0 type dummy
	check "$backend: an interface made anew is seen" at_least 1 "$(psp plan /tmp/host.toml | grep -c 'match in through br0')"
	check "$backend: and applied" psp apply /tmp/host.toml
	check "$backend: once" same "" "$(psp apply /tmp/host.toml)"
	ip link property add dev br0 altname bridge-of-all-tenants
	sed 's/"br0"/"bridge-of-all-tenants"/' /tmp/host.toml >/tmp/other.toml
	check "$backend: an interface by another name is the same" same "" "$(psp apply /tmp/other.toml)"
	ip link set br0 name br2
	check "$backend: one with a new name, too" same "" "$(psp apply /tmp/other.toml)"
	check "$backend: its first name is gone" psp apply /tmp/host.toml
	ip link del br2
	ip link del br1

	# Who follows applies it by itself, and nothing but what was applied.
	REACH=follow $PROGRAM >/tmp/follow.out 2>&1 &
	follower=$!
	sleep 3
	ip link add br0 type dummy
	sleep 3
	sed -i 's/10mbit/20mbit/' /tmp/host.toml
	check "$backend: a match that is followed is there" \
		same 0 "$(psp plan /tmp/host.toml | grep -c 'match in through br0')"
	check "$backend: a file that was only edited is not applied" \
		at_least 1 "$(psp plan /tmp/host.toml | grep -c 'rate 10 Mbit/s -> 20 Mbit/s')"
	psp remove c1a >/dev/null
	ip link del br0
	ip link add br0 type dummy
	sleep 3
	check "$backend: what was removed stays away" same 0 "$(tc qdisc show dev c1a | grep -c 'psp\| fq ')"
	kill $follower
	ip link del br0
done

# tun and tap say 10 Mbit/s, which nobody measured.
ip tuntap add dev vnet0 mode tap
ip link set vnet0 up
backend=module
file module '{ to = "10.8.0.2" }'
sed -i 's/c1a/vnet0/; s/10mbit/20mbit/' /tmp/host.toml
check "module: a class is faster than a speed that the kernel made up" psp apply /tmp/host.toml
check "module: which is no line" same 1 "$(tc qdisc show dev vnet0 | grep -c 'line 100Gbit')"
check "module: nothing more to change" same "" "$(psp apply /tmp/host.toml)"
ip link del vnet0

# Departure times are the first that is asked, or nothing changes.
case " $* " in
*" edt "*)
	backend=edt
	file edt '{ to = "10.8.0.2" }'
	tc qdisc add dev c1a clsact
	tc filter add dev c1a egress prio 5 protocol all matchall action ok
	check "edt: a filter behind it: applied" psp apply /tmp/host.toml
	paced "a filter of others that ends the search" 1000 10.8.0.2:5001
	psp remove c1a >/dev/null
	check "edt: the filter stays" same 1 "$(tc filter show dev c1a egress | grep -c 'matchall chain 0 handle')"
	tc filter del dev c1a egress
	tc filter add dev c1a egress prio 1 protocol all matchall action ok
	refuse "edt: a filter before it" 'filter matchall of priority 1 at clsact egress, expected none' \
		psp apply /tmp/host.toml
	check "edt: nothing has changed" same 0 "$(tc qdisc show dev c1a | grep -c ' fq ')"
	;;
esac

finish
