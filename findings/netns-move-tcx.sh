#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a device still has after it has been moved to another network namespace.
. "$(dirname "$0")/lib.sh"
finding 'a device takes what is attached to it along to another network namespace, or loses all of it' \
	'it loses its qdiscs, its classes and the filters at clsact, and keeps the programs at tcx: one that sets departure times then runs above no fq. Back in the first namespace the qdiscs do not return'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_fq sch_ingress cls_matchall act_gact veth' python3
{
	veth_pair
	cat <<-'EOF'
		ip netns add m
		ip netns exec m sh -c 'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6'
		cat >/tmp/send.py <<'END'
		import socket, sys
		for _ in range(5):
		    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (sys.argv[1], 9))
		END
		# A program that drops, at tcx's egress, for as long as this runs: mov r0, 2; exit.
		cat >/tmp/tcx.py <<'END'
		import ctypes, socket, struct, sys, time
		libc = ctypes.CDLL(None, use_errno=True)

		def bpf(command, attributes):
		    memory = ctypes.create_string_buffer(attributes, 128)
		    got = libc.syscall(321, command, memory, len(memory))
		    assert got >= 0, ctypes.get_errno()
		    return got

		code = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xb7, 0, 0, 2, 0x95, 0, 0, 0))
		license_ = ctypes.create_string_buffer(b"GPL")
		program = bpf(5, struct.pack("<IIQQ", 3, 2, ctypes.addressof(code), ctypes.addressof(license_)))
		link = bpf(28, struct.pack("<IIII", program, socket.if_nametoindex(sys.argv[1]), 47, 0))
		open("/tmp/ready", "w")
		time.sleep(1000)
		END
		i=0
		for at in clsact tcx; do
			i=$((i + 1))
			ip link add d$i type veth peer name p$i
			ip addr add 10.$i.0.1/24 dev d$i
			ip link set d$i up
			ip link set p$i up
			ip neigh add 10.$i.0.2 lladdr 02:00:00:00:00:02 dev d$i
		done
		tc qdisc add dev d1 root handle 1: fq
		tc qdisc add dev d1 clsact
		tc filter add dev d1 egress matchall action drop
		python3 /tmp/tcx.py d2 &
		tcx=$!
		while [ ! -e /tmp/ready ]; do sleep 1; done
		sent() { cat "/sys/class/net/$1/statistics/tx_packets"; }
		for i in 1 2; do
			before=$(sent d$i)
			python3 /tmp/send.py 10.$i.0.2
			echo "before$i $(($(sent d$i) - before))"
		done
		tc qdisc show dev d1 | awk '{ print $2 }' | say qdiscs
		for i in 1 2; do
			ip link set d$i netns m
			ip -n m addr add 10.$i.0.1/24 dev d$i
			ip -n m link set d$i up
			ip -n m neigh replace 10.$i.0.2 lladdr 02:00:00:00:00:02 dev d$i
			before=$(ip -n m -s link show d$i | awk '/TX:/ { getline; print $2 }')
			ip netns exec m python3 /tmp/send.py 10.$i.0.2
			echo "after$i $(($(ip -n m -s link show d$i | awk '/TX:/ { getline; print $2 }') - before))"
		done
		tc -n m qdisc show dev d1 | awk '{ print $2 }' | say qdiscs_there
		ip -n m link set d1 netns 1
		ip link set d1 up
		tc qdisc show dev d1 | awk '{ print $2 }' | say qdiscs_back
		kill $tcx
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
seen 'qdiscs of a device' "$(said qdiscs)" 'fq clsact'
seen 'packets of 5 that pass a filter at clsact that drops' "$(said before1)" 0
seen 'that pass a program at tcx that drops' "$(said before2)" 0
seen 'qdiscs in the next namespace' "$(said qdiscs_there)" 'noqueue'
seen 'packets of 5 that pass there where the filter was' "$(said after1)" 5
seen 'that pass there where the program at tcx is' "$(said after2)" 0
seen 'qdiscs back in the first namespace' "$(said qdiscs_back)" 'noqueue'
done_
