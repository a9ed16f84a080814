# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Read by the scripts of guests that have pods, after lib.sh of kernel/tests.

# pod NUMBER: makes one with a veth.
pod() {
	ip netns add "$1"
	ip link add "veth$1" type veth peer name eth0 netns "$1"
	ip addr add "10.1.$1.1/24" dev "veth$1"
	ip link set "veth$1" up
	ip -n "$1" addr add "10.1.$1.5/24" dev eth0
	ip -n "$1" link set eth0 up
	ip -n "$1" link set lo up
	ip -n "$1" route add default via "10.1.$1.1"
}
