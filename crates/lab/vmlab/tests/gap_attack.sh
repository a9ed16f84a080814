# SPDX-License-Identifier: MIT OR Apache-2.0
# Attacks on gap frames of the series for the kernel's tree; it runs behind attack.sh.
counted() { # DEVICE KEY
	tc -s qdisc show dev "$1" root | sed -n "s/.* $2 \([0-9]*\) .*/\1/p"
}
total() { cat /sys/class/net/"$1"/statistics/"$2"; }
fresh() { # DEVICE LINE RATE: a class, and 100 packets that wait in it
	tc qdisc add dev "$1" root handle 1: pspacer line "$2" default 2 gap 1
	tc class add dev "$1" parent 1: classid 1:1 pspacer rate "$3"
	tc class add dev "$1" parent 1: classid 1:2 pspacer
	$TXTIME "$1" 10.9.0.2 count=100 size=958 priority=65537 lead_ns=1000000 wait_ms=0
}

# A line that no host fills: it tries for a few milliseconds, and the rate holds.
fresh $DEV 1000gbit 1mbit
sleep 0.1
before=$(counted $DEV gap_packets) sent_before=$(sent)
check "a shell runs beside gap frames" sleep 0.4
check "packets have their rate" between 45 51 $(($(sent) - sent_before))
check "with no more than two gap frames each" between 0 110 $(($(counted $DEV gap_packets) - before))
check "it has tried" between 100 99999 "$before"
check "a class goes" tc class del dev $DEV parent 1: classid 1:1
before=$(counted $DEV gap_packets)
sleep 0.1
check "and they with it" between 0 0 $(($(counted $DEV gap_packets) - before))
tc qdisc del dev $DEV root

# The device changes beneath them.
fresh $DEV 1gbit 1mbit
ip link set $DEV mtu 576
ip link set $DEV address 02:00:00:00:00:07
sleep 0.1
check "the MTU and the address change" between 1 999999999 "$(counted $DEV gap_packets)"
ip link set $DEV mtu 1500
ip link set $DEV down
before=$(total $DEV tx_packets)
sleep 0.1
check "a device that is down has none" between 0 0 $(($(total $DEV tx_packets) - before))
ip link set $DEV up
check "the qdisc is replaced by one like it" \
	tc qdisc replace dev $DEV root handle 2: pspacer line 1gbit gap 1
tc qdisc del dev $DEV root
fresh $DEV 1gbit 1mbit
check "the device goes" ip link del $DEV

# A bridge forwards the packets, and no gap frame.
ip link add pg0 type veth peer name pg1
ip link add pg2 type veth peer name pg3
ip link add pgbr type bridge
for port in pg1 pg2; do ip link set $port master pgbr; done
for port in pg0 pg1 pg2 pg3 pgbr; do ip link set $port up; done
ip addr add 10.9.0.1/24 dev pg0
ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev pg0 nud permanent
sleep 0.1
before=$(total pg3 rx_packets) in_before=$(total pg1 rx_packets)
fresh pg0 100mbit 10mbit
sleep 0.4
gaps=$(counted pg0 gap_packets)
came=$(($(total pg3 rx_packets) - before))
check "there were gap frames" between 300 1000 "$gaps"
check "the next port has them" between "$gaps" $((gaps + 110)) \
	$(($(total pg1 rx_packets) - in_before))
check "who is behind it has packets alone" between 100 110 "$came"
for port in pgbr pg0 pg2; do ip link del $port; done

end
