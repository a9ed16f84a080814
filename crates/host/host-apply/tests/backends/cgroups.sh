#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Whose packets are whose by cgroup: an accepted connection, a closed port, a cgroup made anew.
#
#   listener --> c1a ==== 1 Gbit/s ==== c1b --> two: nc
#
# usage: cgroups.sh BACKEND...

. "$(dirname "$0")/lib.sh"

cgroups=/sys/fs/cgroup

# apply, remove, show: runs the test program as a command.
psp() {
	BACKENDS="$*" $PROGRAM >/tmp/psp.out 2>&1 || { cat /tmp/psp.out; return 1; }
	# The test's own name stands before the first line.
	sed -n 's/^\(test backends_lab::in_guest ... \)\{0,1\}PSP //p' /tmp/psp.out
}

file() {
	cat >/tmp/host.toml <<-END
		[[device]]
		name = "c1a"
		backend = "$1"
		default = "rest"
		[[device.class]]
		name = "opened"
		rate = "50mbit"
		match = [{ cgroup = "/opened" }]
		[[device.class]]
		name = "accepted"
		rate = "50mbit"
		match = [{ cgroup = "/accepted" }]
		[[device.class]]
		name = "rest"
		type = "normal"
	END
}

# sent CLASS: prints how many frames a class has sent.
sent() { psp show c1a | sed -n "s/^$1 //p"; }

# ask PORT: connects from the other end, and reads to the end.
ask() { "$IP" netns exec two nc 10.0.0.1 "$1" </dev/null >/dev/null 2>&1 || :; }

ip netns add two
cable c1 1000000000
ip addr add 10.0.0.1/24 dev c1a
ip link set c1b netns two
"$IP" -n two addr add 10.0.0.2/24 dev c1b
"$IP" -n two link set c1b up
mount -t cgroup2 none $cgroups 2>/dev/null || true

for backend; do
	mkdir -p $cgroups/opened $cgroups/accepted
	file "$backend"
	check "$backend: the file is applied" psp apply /tmp/host.toml
	/backends/listener 6001 $cgroups/opened $cgroups/accepted &
	server=$!
	nap 200
	ask 6001
	wait $server
	check "$backend: an accepted connection is its listener's" at_least 20 "$(sent opened)"
	check "$backend: and not that of who accepts" same 0 "$(sent accepted)"

	rest=$(sent rest)
	for _ in 1 2 3 4 5; do
		ask 6009
	done
	check "$backend: what a closed port answers is no cgroup's" at_least $((rest + 5)) "$(sent rest)"

	# The listener lives on while its cgroup is made anew.
	/backends/listener 6002 $cgroups/opened $cgroups &
	server=$!
	nap 200
	opened=$(sent opened)
	check "$backend: the cgroup goes" rmdir $cgroups/opened
	mkdir $cgroups/opened
	check "$backend: the file is applied again" psp apply /tmp/host.toml
	rest=$(sent rest)
	ask 6002
	wait $server
	check "$backend: old sockets are of no class" same "$opened" "$(sent opened)"
	check "$backend: they are the default's" at_least $((rest + 20)) "$(sent rest)"
	check "$backend: it goes" psp remove c1a
done
finish
