#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs as a service below systemd in the laboratory's guest (boot.sh), whose kernel has no module
# of psp: the package's unit paces by what the kernel has. Prints TAP.

. /systemd/lib.sh
tc() { chroot /guest /usr/sbin/tc "$@"; }
ip() { chroot /guest /usr/sbin/ip "$@"; }

unit=pspacer@c1a.service
file=/etc/pspacer/c1a.toml

is() { [ "$(systemctl show --value -p ActiveState $unit)" = "$1" ]; }
kind() { tc qdisc show dev c1a root | sed 's/^qdisc \([^ ]*\) .*/\1/'; }
# planned: what would be changed; nothing, where the file is in force.
planned() { pspacer plan --device c1a | grep -v '^ *note:'; }
# sent: frames of the class mirror, as top counts them.
sent() {
	pspacer top --once --json | tr ',{' '\n\n' |
		sed -n '/"name":"mirror"/,$p' | sed -n 's/^"sent_frames"://p' | head -n 1
}
soon() {
	what=$1
	shift
	for _ in $(seq 20); do
		"$@" >/dev/null 2>&1 && break
		sleep 0.5
	done
	check "$what" "$@"
}

check "the unit is active once the guest has booted" is active
check "the scheduler is the kernel's BPF" same psp_bpf "$(kind)"
check "the file is in force" same "c1a: nothing to change" "$(planned)"
check "top shows it" pspacer top --once

ip addr add 10.0.0.1/24 dev c1a
ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev c1a
cat >/run/systemd/system/mirror.service <<-'END'
	[Service]
	Type=oneshot
	ExecStartPre=+/usr/bin/pspacer apply --device c1a
	ExecStart=/bin/sh -c 'exec chroot /guest psp-send --stop-ns $$(($$(sed -n "s/^now_ns //p" /sys/kernel/debug/wire/idle) + 500000000)) --flow to=10.0.0.2:5001,payload=1000,rate=8000000'
END
systemctl daemon-reload
check "a service that has the file applied when it starts" systemctl start mirror.service
first=$(sent)
check "its packets have its class" at_least 10 "$first"
check "it starts again, with another cgroup" systemctl start mirror.service
check "its packets have its class again" at_least $((first + 10)) "$(sent)"

sed -i 's/100mbit/200mbit/' $file
check "reload takes a changed file" systemctl reload $unit
check "it is in force" same "c1a: nothing to change" "$(planned)"
sed 's/200mbit/200mbits-and-more/' $file >/run/bad && cat /run/bad >$file
refuse "reload of a bad file fails" "." systemctl reload $unit
sed -i 's/200mbits-and-more/100mbit/' $file
check "the qdisc stays" same psp_bpf "$(kind)"

cut_cable c1
soon "the unit ends with its device" is inactive
cable c1 1000000000 sink=1
soon "the unit starts when the device comes back" is active
check "the device that came back is paced" same psp_bpf "$(kind)"
check "remove" pspacer remove c1a

# The agent, with what docs/use/packages.md adds to its unit.
ip link set lo up
mkdir -p /run/systemd/system/pspacer-agent.service.d
cat >/run/systemd/system/pspacer-agent.service.d/bpf.conf <<-'END'
	[Service]
	CapabilityBoundingSet=CAP_BPF CAP_PERFMON CAP_SYS_ADMIN
	SystemCallFilter=bpf
END
systemctl daemon-reload
check "the manager starts" systemctl start pspacer-manager.service
soon "the manager answers" pspacer reservations
check "the agent starts" systemctl start pspacer-agent.service
by_bpf() { same psp_bpf "$(tc qdisc show dev c1b root | sed 's/^qdisc \([^ ]*\) .*/\1/')"; }
soon "the agent sets its port by the kernel's BPF" by_bpf
reserved() { pspacer reserve --from a --to b --bytes 10000 --period 10ms --for 10m --udp-to 10.0.0.2:5004; }
check "a stream is reserved" reserved
in_force() { pspacer reservations --json | tee /run/said | grep -q '"in_force": *true' || { cat /run/said; return 1; }; }
soon "the agent puts it into force" in_force
check "agent and manager stop" systemctl stop pspacer-agent.service pspacer-manager.service
output=$(systemctl --failed --no-legend)
check "no unit has failed" [ -z "$output" ]
finish
