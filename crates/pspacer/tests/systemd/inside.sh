#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs as a service below systemd in the laboratory's guest (boot.sh). Prints TAP.

. /systemd/lib.sh
tc() { chroot /guest /usr/sbin/tc "$@"; }
ip() { chroot /guest /usr/sbin/ip "$@"; }

unit=pspacer@c1a.service
file=/etc/pspacer/c1a.toml

# of UNIT PROPERTY: prints a property.
of() { systemctl show --value -p "$2" "$1"; }
is() { [ "$(of $unit ActiveState)" = "$1" ]; }
# paced RATE: backup has this rate in the kernel.
paced() { tc class show dev c1a 2>&1 | tee /run/classes | grep -q "rate $1"; }
# soon NAME COMMAND...: the command must succeed within 10 s.
soon() {
	what=$1
	shift
	for _ in $(seq 20); do
		"$@" >/dev/null 2>&1 && break
		sleep 0.5
	done
	check "$what" "$@"
}
# before A B: unit A was active before unit B.
before() {
	echo "$1: $(of "$1" ActiveEnterTimestampMonotonic), $2: $(of "$2" ActiveEnterTimestampMonotonic)"
	[ "$(of "$1" ActiveEnterTimestampMonotonic)" -gt 0 ] &&
		[ "$(of "$1" ActiveEnterTimestampMonotonic)" -lt "$(of "$2" ActiveEnterTimestampMonotonic)" ]
}

check "the unit is active once the guest has booted" is active
check "the device was paced before the network was online" before $unit network-online.target
check "the kernel has the file's rate" paced 300Mbit
limit_min() { cat /sys/class/net/c1a/queues/tx-0/byte_queue_limits/limit_min; }
check "the kernel has the file's byte queue limit" same 65536 "$(limit_min)"

sed -i 's/300mbit/200mbit/' $file
check "reload takes a changed file" systemctl reload $unit
check "the kernel has the new rate" paced 200Mbit

sed 's/200mbit/200mbits-and-more/' $file >/run/bad && cat /run/bad >$file
refuse "reload of a bad file fails" "." systemctl reload $unit
check "the kernel keeps the rate" paced 200Mbit
check "the unit is still active" is active
sed -i 's/200mbits-and-more/100mbit/' $file

cut_cable c1
soon "the unit ends with its device" is inactive
cable c1 1000000000 sink=1
soon "the unit starts when the device comes back" is active
check "the device that came back has the file's rate" paced 100Mbit
check "the device that came back has the file's byte queue limit" same 65536 "$(limit_min)"

check "stop" systemctl stop $unit
check "after a stop the device is still paced" paced 100Mbit
check "start" systemctl start $unit
check "the rate is as before" paced 100Mbit

# Without the key mode gap wants a limit, and paces without it, too.
sed -i 's/^byte_queue_limit_min.*/mode = "gap"/' $file
mkdir -p /run/systemd/system/$unit.d
printf '[Service]\nReadWritePaths=\n' >/run/systemd/system/$unit.d/sys.conf
systemctl daemon-reload
check "a unit that cannot write to /sys takes the file" systemctl reload $unit
check "its limit stays" same 65536 "$(limit_min)"
check "its mode is gap" same gap "$(tc qdisc show dev c1a root | tr ' ' '\n' | grep -x -A 1 mode | tail -n 1)"
rm -r /run/systemd/system/$unit.d
systemctl daemon-reload
check "the unit takes it with its own rights" systemctl reload $unit
check "the limit is what 1 Gbit/s needs" same 7500 "$(limit_min)"

# A name with a dash is escaped, as doctor's command does.
cable br-lan 1000000000 sink=1
sed 's/c1a/br-lana/; /^mode/d' $file >/etc/pspacer/br-lan.toml
lan=$(systemd-escape --template=pspacer@.service br-lana)
check "a name with a dash is escaped" same 'pspacer@br\x2dlana.service' "$lan"
check "its unit is enabled" systemctl enable --now "$lan"
check "its unit is active" same active "$(of "$lan" ActiveState)"
check "its device is paced" same 1 "$(tc class show dev br-lana | grep -c 'rate 100Mbit')"
check "its unit is disabled" systemctl disable --now "$lan"
rm /etc/pspacer/br-lan.toml

# The manager and the agent.
ip link set lo up
manager=pspacer-manager.service
agent=pspacer-agent.service
answers() { pspacer reservations || { systemctl status $manager; return 1; }; }
check "the manager starts" systemctl start $manager
soon "the manager answers" answers
check "the agent starts" systemctl start $agent
# has TEXT: c1b has a class like this.
has() { tc class show dev c1b 2>&1 | tee /run/classes | grep -q "$1"; }
soon "the agent sets the port of its host" has 'mode nrt'
reserved() { pspacer reserve --from a --to b --bytes 10000 --period 10ms --for 10m --udp-to 10.0.0.2:5004; }
check "a stream is reserved" reserved
soon "the agent puts it into force" has 'mode rt'
# status KEY: prints a line of what the kernel says of the process $pid.
status() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$pid/status"; }
# written PATH: opens it as the process $pid's mounts have it.
written() { : >"/proc/$pid/root$1"; }
pid=$(of $manager MainPID)
check "the manager can have no capability" same 0000000000000000 "$(status CapBnd)"
check "the manager's system calls are filtered" same 2 "$(status Seccomp)"
check "the manager gains no rights" same 1 "$(status NoNewPrivs)"
check "the manager does not run as root" [ "$(status Uid | tr -s '[:space:]' ' ' | sed 's/ .*//')" != 0 ]
check "the manager may write where it keeps its store" written /var/lib/pspacer/probe
for path in /etc/probe /var/lib/probe /proc/sys/net/core/somaxconn; do
	refuse "the manager cannot write $path" "Read-only" written $path
done
check "the manager reads its files again" systemctl reload $manager
check "the manager has not started anew" same "$pid" "$(of $manager MainPID)"
check "a stream is still reserved" answers
pid=$(of $agent MainPID)
check "the agent can have no capability but CAP_NET_ADMIN" same 0000000000001000 "$(status CapBnd)"
check "the agent's system calls are filtered" same 2 "$(status Seccomp)"
check "the agent gains no rights" same 1 "$(status NoNewPrivs)"
check "the agent may write where it keeps its state" written /run/pspacer/probe
grep ' /run' /proc/$pid/mountinfo | sed 's/^/# /'
for path in /etc/probe /var/lib/probe /proc/sys/net/core/somaxconn; do
	refuse "the agent cannot write $path" "Read-only" written $path
done
check "the agent stops" systemctl stop $agent
check "after a stop the stream is still in force" has 'mode rt'
check "the folder of its state stays" [ -d /run/pspacer ]
check "the manager stops" systemctl stop $manager
output=$(systemctl --failed --no-legend)
check "no unit has failed" [ -z "$output" ]
finish
