#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# One file by each backend that the kernel has, one after the other, and back: what is saved of one
# is restored; matches by cgroup; a psp of each transmit queue; a device that goes.
#
#   psp-send --> c1a ==== 1 Gbit/s ==== c1b (sink)
#
# usage: backends.sh BACKEND...

. "$(dirname "$0")/lib.sh"

cgroups=/sys/fs/cgroup
service=$cgroups/system.slice/backup.service
# The kernel's verifier gives up after a million.
VERIFIED_MAX=500000

# apply, save, restore, remove, show, programs, ...: runs the test program as a command.
psp() {
	BACKENDS="$*" $PROGRAM >/tmp/psp.out 2>&1 || { cat /tmp/psp.out; return 1; }
	# The test's own name stands before the first line.
	sed -n 's/^\(test backends_lab::in_guest ... \)\{0,1\}PSP //p' /tmp/psp.out
}

# file BACKEND DEVICE QUEUES: writes the host's file.
file() {
	cat >/tmp/host.toml <<-END
		[[device]]
		name = "$2"
		backend = "$1"
		queues = "$3"
		default = "rest"
		[[device.class]]
		name = "service"
		rate = "50mbit"
		match = [{ unit = "backup.service" }]
		[[device.class]]
		name = "path"
		rate = "20mbit"
		match = [{ cgroup = "/machine.slice" }]
		[[device.class]]
		name = "one"
		rate = "10mbit"
		match = [{ to = "10.0.0.2", to_port = 5003, protocol = "udp" }, { to = "10.0.0.77" }]
		[[device.class]]
		name = "rest"
		type = "normal"
	END
}

now_ns() { sed -n 's/^now_ns //p' $WIRE/idle; }

# in_cgroup FOLDER PORT [PAYLOAD]: sends for 60 ms from a process in the cgroup, of packets of
# 1,000 bytes some sixty.
in_cgroup() {
	sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' sh "$1" \
		psp-send --stop-ns $(($(now_ns) + 60000000)) \
		--flow "to=10.0.0.2:$2,payload=${3-1000},rate=8000000" >/dev/null
	drained c1a
}

# sent CLASS: prints how many frames a class has sent.
sent() { psp show c1a | sed -n "s/^$1 //p"; }

# tx COUNTER: prints what the device counts as sent.
tx() { cat "/sys/class/net/c1a/statistics/tx_$1"; }

kind() { tc qdisc show dev "$1" root | sed -n 's/^qdisc \([^ ]*\) .*/\1/p' | head -n 1; }

none_left() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ "$(psp programs)" = 0 ] && return 0
		nap 200
	done
	psp programs
	return 1
}

cable c1 1000000000 sink=1
ip addr add 10.0.0.1/24 dev c1a
ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev c1a
mount -t cgroup2 none $cgroups 2>/dev/null || true
mkdir -p $service $cgroups/machine.slice/one.scope
before=$(tc qdisc show dev c1a)

for backend; do
	file "$backend" c1a root
	echo 1 >$WIRE/c1/reset
	device_frames=$(counter c1 a data_frames)
	device_bytes=$(counter c1 a data_bytes)
	tx_frames=$(tx packets)
	tx_bytes=$(tx bytes)
	check "$backend: the file is applied" psp apply /tmp/host.toml
	psp verified >/tmp/verified
	while read -r program count; do
		check "$backend: the verifier is done with $program after $count instructions" \
			at_most $VERIFIED_MAX "$count"
	done </tmp/verified
	check "$backend: a second time nothing changes" same "" "$(psp apply /tmp/host.toml)"
	in_cgroup $service 5001
	in_cgroup $cgroups/machine.slice/one.scope 5002
	in_cgroup $cgroups 5003
	in_cgroup $cgroups 5004
	psp sums c1a >/tmp/sums
	sum="$(($(counter c1 a data_frames) - device_frames)) $(($(counter c1 a data_bytes) - device_bytes))"
	check "$backend: the classes have sent what the device has" same "$sum" "$(head -n 1 /tmp/sums)"
	sum_of_device="$(($(tx packets) - tx_frames)) $(($(tx bytes) - tx_bytes))"
	check "$backend: with gap frames it is what the device counts" \
		same "$sum_of_device" "$(sed -n 2p /tmp/sums)"
	check "$backend: and so has the qdisc" same "$sum" "$(tail -n 1 /tmp/sums)"
	sent=$(sent service)
	check "$backend: a unit's packets" at_least 10 "$sent"
	check "$backend: those of a cgroup below the one that is named" at_least 10 "$(sent path)"
	check "$backend: a port" at_least 10 "$(sent one)"

	# The unit starts anew: a cgroup of another number.
	rmdir $service
	check "$backend: a cgroup that is gone is said" psp apply /tmp/host.toml
	mkdir $service
	in_cgroup $service 5005
	check "$backend: its packets are others' until the file is applied" same "$sent" "$(sent service)"
	check "$backend: the file is applied again" psp apply /tmp/host.toml
	in_cgroup $service 5005
	check "$backend: then they are its own" at_least 10 "$(sent service)"

	# The device takes longer frames than when the file was applied.
	ip link set c1a mtu 9000
	sent=$(sent rest)
	in_cgroup $cgroups 5004 8000
	check "$backend: longer frames leave after the MTU was raised" at_least $((sent + 4)) "$(sent rest)"
	ip link set c1a mtu 1500

	check "$backend: it is saved" psp save c1a /tmp/saved
	check "$backend: and removed" psp remove c1a
	check "$backend: what was before is back" same "$before" "$(tc qdisc show dev c1a)"
	check "$backend: no program is left" none_left
	check "$backend: what was saved is restored" psp restore /tmp/saved
	check "$backend: it is the same" psp save c1a /tmp/again
	check "$backend: to the byte" cmp /tmp/saved /tmp/again
	check "$backend: a file leads on from there without a change" same "" "$(psp apply /tmp/host.toml)"

	# A class that was slow, and has frames, has its new rate at once: one frame at 8 kbit/s takes a
	# second.
	for rate in 8kbit 30mbit; do
		cat >/tmp/$rate.toml <<-END
			[[device]]
			name = "c1a"
			backend = "$backend"
			default = "rest"
			[[device.class]]
			name = "changes"
			rate = "$rate"
			match = [{ to_port = 5001, protocol = "udp" }]
			[[device.class]]
			name = "rest"
			type = "normal"
		END
	done
	cp /tmp/8kbit.toml /tmp/host.toml
	check "$backend: a slow class" psp apply /tmp/host.toml
	psp-send --stop-ns $(($(now_ns) + 900000000)) --sndbuf 400000 \
		--flow to=10.0.0.2:5001,payload=1000 >/dev/null &
	sender=$!
	nap 50
	cp /tmp/30mbit.toml /tmp/host.toml
	check "$backend: becomes fast" psp apply /tmp/host.toml
	sent=$(sent changes)
	from_ns=$(now_ns)
	nap 200
	kbps=$((($(sent changes) - sent) * 1042 * 8 * 1000000 / ($(now_ns) - from_ns)))
	check "$backend: and sends at that rate at once" at_least 29000 $kbps
	check "$backend: and no faster" at_most 31000 $kbps
	wait $sender
	# What waits for its time in fq leaves before the next backend's counters are read.
	drained c1a

	# A guard lets best effort through between paced frames that are due each 83 us.
	if [ "$backend" != edt ]; then
		cat >/tmp/host.toml <<-END
			[[device]]
			name = "c1a"
			backend = "$backend"
			mode = "timer"
			guard = true
			default = "rest"
			[[device.class]]
			name = "paced"
			rate = "100mbit"
			match = [{ to_port = 5001, protocol = "udp" }]
			[[device.class]]
			name = "rest"
			type = "normal"
		END
		check "$backend: a guard" psp apply /tmp/host.toml
		sent=$(sent rest)
		psp-send --stop-ns $(($(now_ns) + 60000000)) --sndbuf 400000 \
			--flow to=10.0.0.2:5001,payload=1000 \
			--flow to=10.0.0.2:5002,payload=1000,rate=8000000 >/dev/null &
		sender=$!
		nap 50
		check "$backend: best effort leaves beside a paced class" at_least $((sent + 10)) "$(sent rest)"
		wait $sender
		drained c1a
	fi
	# The next backend takes its place.
done
check "the last goes" psp remove c1a
check "what was before is back" same "$before" "$(tc qdisc show dev c1a)"
check "no program is left" none_left

for backend; do
	ip link add d0 numtxqueues 4 type dummy
	ip link set d0 up
	file "$backend" d0 mq
	if [ "$backend" = bpf ]; then
		refuse "$backend: a psp for each of four queues" 'expected "root" by backend "bpf"' \
			psp apply /tmp/host.toml
		ip link del d0
		continue
	fi
	check "$backend: a psp for each of four queues" psp apply /tmp/host.toml
	check "$backend: below mq" same mq "$(kind d0)"
	check "$backend: four of them" same 4 "$(tc qdisc show dev d0 | grep -c 'parent 7074:')"
	check "$backend: nothing more to change" same "" "$(psp apply /tmp/host.toml)"
	[ "$backend" != module ] ||
		check "$backend: their classes are the device's" \
			same 4 "$(tc qdisc show dev d0 | grep -c 'shared on')"
	# The verifier takes long: below, departure times go from transmit queues to the root, too.
	if whole "$backend: one at the root, and four again"; then
		file "$backend" d0 root
		check "$backend: one at the root" psp apply /tmp/host.toml
		check "$backend: nothing more to change" same "" "$(psp apply /tmp/host.toml)"
		file "$backend" d0 mq
		check "$backend: and four again" psp apply /tmp/host.toml
	fi
	ip link del d0
	check "$backend: a device that goes takes all with it" none_left
done

# says TEXT FROM: succeeds if the second text has the first.
says() {
	case "$2" in
	*"$1"*) ;;
	*) echo "expected $1, found $2"; return 1 ;;
	esac
}

# mended NAME TEXT: the file, applied, says what it puts right, and then nothing more.
mended() {
	check "$1 is said and put right" says "$2" "$(psp apply /tmp/host.toml)"
	check "$1: then there is nothing more to change" same "" "$(psp apply /tmp/host.toml)"
}

# sent_by DEV QUEUE: prints what the qdisc of a transmit queue, from 1, has sent.
sent_by() { tc -s qdisc show dev "$1" | sed -n "/ parent 7074:$2 /{n;s/^ Sent [0-9]* bytes \([0-9]*\) .*/\1/p}"; }

# Transmit queues come and go under mq, as by ethtool -L: the kernel gives new ones its own qdisc.
for backend; do
	[ "$backend" = bpf ] && continue
	cable q1 1000000000 queues=4 sink=1
	ip addr add 10.0.1.1/24 dev q1a
	ip neigh add 10.0.1.2 lladdr 02:00:00:00:00:02 dev q1a
	echo queues=2 >$WIRE/q1/fault
	file "$backend" q1a mq
	check "$backend: two of four transmit queues" psp apply /tmp/host.toml
	psp-send --stop-ns $(($(now_ns) + 20000000)) \
		--flow to=10.0.1.2:5003,payload=1000,rate=8000000 >/dev/null
	drained q1a
	sent="$(sent_by q1a 1) $(sent_by q1a 2)"
	check "$backend: they have sent" at_least 10 $((${sent% *} + ${sent#* }))
	echo queues=4 >$WIRE/q1/fault
	case $backend in
	edt) said="transmit queues 2, 3: pfifo_fast, expected fq" ;;
	*) said="add     qdisc psp at 7074:3" ;;
	esac
	mended "$backend: all four" "$said"
	check "$backend: those that were right have stayed" \
		same "$sent" "$(sent_by q1a 1) $(sent_by q1a 2)"
	echo queues=2 >$WIRE/q1/fault
	check "$backend: two again" same "" "$(psp apply /tmp/host.toml)"
	echo queues=4 >$WIRE/q1/fault
	check "$backend: four again have what they had" same "" "$(psp apply /tmp/host.toml)"
	if [ "$backend" = edt ]; then
		# Others change an fq of ours.
		for option in "limit 1000" "flow_limit 10" "quantum 1000" "initial_quantum 1000" \
				nopacing "maxrate 1mbit" "ce_threshold 5ms" "timer_slack 50000" \
				"horizon 1s" horizon_cap; do
			name=${option%% *}
			case $name in
			nopacing) name=pacing ;;
			horizon_cap) name=horizon_drop ;;
			esac
			# shellcheck disable=SC2086 # words
			check "edt: $option by hand" tc qdisc change dev q1a parent 7074:2 handle 7076: fq $option
			mended "edt: $option" "transmit queue 1: fq has $name "
		done
		# Kernels before 6.8 have no bands, and tc may not know them.
		psp bands q1a
		case $(uname -r) in
		6.1.*) check "edt: no bands, and nothing to change" same "" "$(psp apply /tmp/host.toml)" ;;
		*) mended "edt: bands" "transmit queue 1: fq has priomap 0 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1, \
expected 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1, weights 20000 196608 65536, expected 589824 196608 65536" ;;
		esac
		check "edt: packets have stayed where they were" \
			same "$sent" "$(sent_by q1a 1) $(sent_by q1a 2)"
		tc qdisc del dev q1a parent 7074:3
		mended "edt: an fq that was deleted" "transmit queue 2: no qdisc, expected fq"
		tc qdisc replace dev q1a parent 7074:1 handle 99: pfifo
		refuse "edt: a qdisc of others at a queue stays" "configured by others" psp apply /tmp/host.toml
		tc qdisc del dev q1a parent 7074:1
		file edt q1a root
		check "edt: one fq at the root" psp apply /tmp/host.toml
		tc qdisc change dev q1a root handle 7073: fq limit 10 horizon 1s
		mended "edt: an fq at the root" "root: fq has limit 10, expected 100000, horizon 1000000,"
	fi
	cut_cable q1
	check "$backend: a cable that goes takes all with it" none_left
done

finish
