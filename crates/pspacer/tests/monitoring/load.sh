#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the laboratory's guest: psp under more load than its line takes, while "pspacer exporter",
# "top" and "doctor" look on. Prints what each says, and tc, after a line "=== NAME".
#
#   pktgen --> c1a ==== 1 Gbit/s ==== c1b (sink)
#   d1: a dummy, which is no wire

. /monitoring/lib.sh

pspacer() { /monitoring/ld.so --library-path /monitoring /monitoring/pspacer "$@"; }
# say NAME COMMAND...: prints what the command prints, below its name; then its exit status.
say() {
	echo "=== $1"
	shift
	"$@" && status=0 || status=$?
	echo
	echo "=== status $status"
}
counters() {
	say "$1 qdisc" tc -s -j qdisc show dev c1a root
	say "$1 class" tc -s -j class show dev c1a
}

cable c1 1000000000 sink=1
tc qdisc add dev c1a root handle 1: psp default 3
tc class add dev c1a parent 1: classid 1:1 psp rate 600mbit
tc class add dev c1a parent 1: classid 1:2 psp rate 500mbit
tc class add dev c1a parent 1: classid 1:3 psp mode normal
tc qdisc add dev c1a parent 1:2 handle 20: pfifo limit 5
tc filter add dev c1a parent 1: protocol ip pref 1 u32 match ip dport 9 0xffff classid 1:1
tc filter add dev c1a parent 1: protocol ip pref 2 u32 match ip dport 10 0xffff classid 1:2
ip link add d1 type dummy
ip link set d1 up
tc qdisc add dev d1 root handle 1: psp default 1
tc class add dev d1 parent 1: classid 1:1 psp rate 10mbit

flow c1a "delay 0" "udp_dst_min 9" "udp_dst_max 11" "flag UDPDST_RND"
sleep 1
counters before
say "export under load" pspacer exporter --once
counters after
say "top" pspacer top --json --once
flow_stop
drained c1a
counters rest
say "export" pspacer exporter --once
say "export few" pspacer exporter --once --classes 1
pspacer exporter --once --textfile /tmp/psp.prom
say "file" cat /tmp/psp.prom
say "doctor" pspacer doctor --json
say "doctor text" pspacer doctor c1a
say "doctor unknown" pspacer doctor eth9

# The file of the README, on the cable; backup gets a little more than its rate.
tc qdisc del dev c1a root
ip link del d1
mkdir -p /etc/pspacer
# c1a_file DEVICE BACKUP: the file, with these keys of the device and of the class.
c1a_file() {
	cat >/etc/pspacer/c1a.toml <<-END
		[[device]]
		name = "c1a"
		$1

		[[device.class]]
		name = "backup"
		$2
		match = [{ to_port = 873 }, { to_port = 874 }]

		[[device.class]]
		name = "rest"
		type = "normal"
	END
}
c1a_file 'default = "rest"' 'rate = "500mbit"'
say "apply" pspacer apply
flow c1a "delay 14500" "udp_dst_min 873" "udp_dst_max 876" "flag UDPDST_RND"
sleep 2
say "top text" pspacer top --once
flow_stop
say "doctor as applied" pspacer doctor c1a --json
paced=$(tc class show dev c1a | sed -n 's/^class psp \([0-9a-f:]*\) .*rate 500Mbit.*/\1/p')
tc class change dev c1a parent "${paced%%:*}:" classid "$paced" psp rate 123mbit
mkdir -p /etc/systemd/network
printf '[Match]\nName=c1*\n[CAKE]\n' >/etc/systemd/network/10-c1.network
say "doctor differs" pspacer doctor c1a --json
printf '[[device]]\nname = "eth9"\n[[device.class]]\nname = "one"\nrate = "1mbit"\n' >/etc/pspacer/eth9.toml
say "doctor absent" pspacer doctor --json
rm /etc/pspacer/eth9.toml
sed -i s/500mbit/500mbits/ /etc/pspacer/c1a.toml
say "doctor refused" pspacer doctor c1a --json

# The same without the module, too slow for what comes. bpf demands a default; by edt the rest has no
# class then. Who is not root cannot look.
echo "nobody:x:65534:65534:nobody:/tmp:/bin/sh" >>/etc/passwd
backends=edt
case $(uname -r) in
7.*) backends="bpf edt" ;;
esac
for backend in $backends; do
	c1a_file "backend = \"$backend\"
$([ $backend = edt ] || echo 'default = "rest"')" 'rate = "1mbit"
deadline = "20ms"'
	say "apply $backend" pspacer apply
	flow c1a "delay 14500" "udp_dst_min 873" "udp_dst_max 876" "flag UDPDST_RND"
	say "doctor $backend" pspacer doctor --json --try
	flow_stop
	say "doctor text $backend" pspacer doctor c1a
	say "doctor unprivileged $backend" su nobody -c \
		"/monitoring/ld.so --library-path /monitoring /monitoring/pspacer doctor --json"
done
pspacer remove c1a

# The host's end of a pod's device, as pspacer-cni leaves it: a class, and a record that names it.
rm /etc/pspacer/c1a.toml
ip link add d2 type dummy
cat >/tmp/d2.toml <<-'END'
	[[device]]
	name = "d2"
	mode = "timer"
	line = "100gbit"
	default = "pod"

	[[device.class]]
	name = "pod"
	rate = "10mbit"
END
say "apply pod" pspacer apply /tmp/d2.toml
say "top without a record" pspacer top --once
bytes=
for byte in $(tr : ' ' </sys/class/net/d2/address); do
	bytes="$bytes${bytes:+,}$((0x$byte))"
done
mkdir -p /run/pspacer/cni/pods
cat >/run/pspacer/cni/pods/c1:eth0.json <<-END
	{ "container": "c1", "netns": "/nowhere", "netns_number": 1, "backend": "module", "is_set": false,
	  "pod": { "name": "eth0", "index": 2, "address": [] }, "egress": null,
	  "host": { "name": "d2", "index": $(cat /sys/class/net/d2/ifindex), "address": [ $bytes ] },
	  "ingress": { "rate_bps": 10000000, "ceil_bps": null, "deadline_ns": null, "txtime": null },
	  "pod_name": { "namespace": "default", "name": "web-0" } }
END
say "top of a pod" pspacer top --once
say "export of a pod" pspacer exporter --once
exit 0
