#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What Open vSwitch does to the root qdisc of a device that becomes its port.
. "$(dirname "$0")/lib.sh"

finding 'Open vSwitch leaves the qdisc of a port alone whose QoS nobody has set there' \
	'it deletes the root with all its classes when the device becomes a port, and again at each start of ovs-vswitchd, so
       with an update of its package; nothing is said in its log. What is set in between stays until then. A QoS of type
       linux-noop makes it leave the root alone, clsact stays in any case (4.0.0, and with the datapath of Linux 6.12.117: the same)'

packages "$work/tree" trixie openvswitch-switch=3.5.0-1+b1 iproute2=6.15.0-1
mkdir -p "$work/tree/dev/net" "$work/tree/run/openvswitch" "$work/tree/etc/openvswitch" "$work/tree/var/log/openvswitch"
[ -e "$work/tree/var/run" ] || ln -s ../run "$work/tree/var/run"
devices "$work/tree"
mknod -m 666 "$work/tree/dev/net/tun" c 10 200
: >"$work/tree/etc/resolv.conf"
# In a namespace of its own: va, the port, and vb at its other end, each with a qdisc. The bridge is in user space.
cat >"$work/port" <<'END'
set -eu
in_tree() { chroot "$tree" "$@"; }
ip() { in_tree /usr/sbin/ip "$@"; }
tc() { in_tree /usr/sbin/tc "$@"; }
vsctl() { in_tree ovs-vsctl -t 20 "$@"; }
root() { echo "$1_$2" "$(tc qdisc show dev "$2" root | cut -d ' ' -f 2 | head -n 1)"; }
stop() { in_tree ovs-appctl -T 20 -t ovs-vswitchd exit; }
switch() {
	in_tree /usr/lib/openvswitch-switch/ovs-vswitchd --detach --no-chdir --disable-system --pidfile \
		--log-file=/var/log/openvswitch/log 2>/dev/null
}
shape() {
	tc qdisc replace dev "$1" root handle 1: htb default 1
	tc class add dev "$1" parent 1: classid 1:1 htb rate 10mbit
}
trap 'kill "$(cat "$tree/run/openvswitch/ovsdb-server.pid")"; stop 2>/dev/null || :' EXIT
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
ip link set lo up
ip link add va type veth peer name vb
ip link set va up
ip link set vb up
shape va
shape vb
tc qdisc add dev va clsact
in_tree ovsdb-tool create /etc/openvswitch/conf.db /usr/share/openvswitch/vswitch.ovsschema
in_tree ovsdb-server --detach --no-chdir --pidfile --remote=punix:/run/openvswitch/db.sock 2>/dev/null
switch
vsctl add-br br0 -- set bridge br0 datapath_type=netdev
root before va
vsctl add-port br0 va
root added va
root added vb
shape va
vsctl set bridge br0 other_config:hwaddr=02:00:00:00:00:09
root configured va
stop
switch
vsctl show >/dev/null
root restarted va
vsctl set port va qos=@none -- --id=@none create qos type=linux-noop >/dev/null
shape va
stop
switch
vsctl show >/dev/null
root noop va
echo "clsact $(tc qdisc show dev va | grep -c clsact)"
echo "said $(grep -c -i -e qdisc -e qos "$tree/var/log/openvswitch/log" || :)"
END
inside "$work/tree" /usr/sbin/tc -V >/dev/null
unshare -n env tree="$work/tree" sh "$work/port" >"$work/said" || cannot "there is no htb, veth or tun here"
seen 'root of va before it is a port' "$(said before_va)" htb
seen 'root of va as a port' "$(said added_va)" noqueue
seen 'root of vb, which is none' "$(said added_vb)" htb
seen 'htb set again, after another change of the bridge' "$(said configured_va)" htb
seen 'after a start of ovs-vswitchd' "$(said restarted_va)" noqueue
seen 'with linux-noop, htb set again, after a start' "$(said noop_va)" htb
seen 'clsact of va in the end' "$(said clsact)" 1
seen 'lines of its log with qdisc or QoS' "$(said said)" 0
done_
