#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs iperf3's client against a server on a loopback of their own, and prints the client's JSON.
#
# usage: unshare -n pair.sh ROOT STOPPED OPTION...
# After 2 s the client is stopped for so many seconds, unless that is 0.
set -eu
root=$1 stopped=$2
shift 2
ip link set lo up 2>/dev/null || python3 -c 'import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 0x49))'
mkdir -p "$root/tmp" "$root/dev"
[ -c "$root/dev/null" ] || mknod -m 666 "$root/dev/null" c 1 3
[ -c "$root/dev/urandom" ] || mknod -m 666 "$root/dev/urandom" c 1 9
chroot "$root" /usr/bin/iperf3 --server --one-off >/dev/null 2>&1 &
for _ in $(seq 50); do
	# 5201 is 1451 in this list; 0A is one that listens.
	! grep -q ':1451 .* 0A ' /proc/net/tcp6 || break
	sleep 0.1
done
chroot "$root" /usr/bin/iperf3 --client 127.0.0.1 --json "$@" >"$root/tmp/json" &
client=$!
if [ "$stopped" != 0 ]; then
	sleep 2
	kill -STOP $client
	sleep "$stopped"
	kill -CONT $client
fi
wait $client
cat "$root/tmp/json"
wait
