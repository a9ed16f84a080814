# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
# Functions that the tests share. They run as root in a guest that may be thrown away,
# and print TAP. sch_psp (with q_psp.so where tc looks for it), wire, veth, dummy, ifb
# and pktgen are loaded or can be loaded.
# pktgen loaded or loadable, and print TAP.
#
# TC, IP: the programs; by default those in the usual places, not a shell's built-ins.
# SLOW: factor for all waiting times in a slow guest; default 1.
# PART: some, for the part of a test that `make test` runs; default all.

set -e

find_program() {
	for dir in /usr/sbin /sbin /usr/bin /bin; do
		[ -x "$dir/$1" ] && ! [ -L "$dir/$1" ] && echo "$dir/$1" && return
	done
	echo "$1"
}
TC=${TC:-$(find_program tc)}
IP=${IP:-$(find_program ip)}
SLOW=${SLOW:-1}
PART=${PART:-all}
WIRE=/sys/kernel/debug/wire
PKTGEN=/proc/net/pktgen

tc() { "$TC" "$@"; }
ip() { "$IP" "$@"; }

# Without IPv6 the kernel sends nothing by itself: only the tests send.
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6

tests=0
failures=0
output=
[ "$PART" = all ] || echo "# part: $PART; \`make test-all\` runs all"

# choose SOME ALL: prints what this part runs.
choose() {
	case $PART in all) echo "$2" ;; *) echo "$1" ;; esac
}

# whole WHAT: succeeds if this part has what only the whole test runs; else says what that is.
whole() {
	[ "$PART" = all ] || { echo "# not in this part: $1"; return 1; }
}

ok() {
	tests=$((tests + 1))
	echo "ok $tests - $1"
}

not_ok() {
	tests=$((tests + 1))
	failures=$((failures + 1))
	echo "not ok $tests - $1"
	printf '%s\n' "$output" | sed 's/^/#   /'
}

# seconds MILLISECONDS: prints them times SLOW in seconds, as sleep(1) wants them.
seconds() {
	ms=$(($1 * SLOW))
	printf '%d.%03d\n' $((ms / 1000)) $((ms % 1000))
}

nap() { sleep "$(seconds "$1")"; }

# check NAME COMMAND...: the command must succeed.
check() {
	named=$1
	shift
	if output=$("$@" 2>&1); then ok "$named"; else not_ok "$named"; fi
}

# slab_kb: prints the kernel memory that cannot be reclaimed, in kB, once it has settled.
slab_kb() {
	sleep 1
	sed -n 's/^SUnreclaim: *\([0-9]*\).*/\1/p' /proc/meminfo
}

# given_back NAME LIMIT BEFORE: checks that at most LIMIT kB more than BEFORE are in
# use. A kernel with KASAN keeps freed memory for a while; there kmemleak checks.
given_back() {
	[ -e /sys/kernel/debug/kmemleak ] && return
	check "$1" at_least $(($(slab_kb) - $2)) "$3"
}

# timely NAME COMMAND...: does what check does, but skips the test in a slow guest.
timely() {
	if [ "$SLOW" = 1 ]; then check "$@"; else ok "$1 # SKIP slow guest"; fi
}

# refuse NAME PATTERN COMMAND...: the command must fail with a message like PATTERN.
refuse() {
	named=$1
	pattern=$2
	shift 2
	if output=$("$@" 2>&1); then
		not_ok "$named (accepted)"
	elif printf '%s\n' "$output" | grep -q -e "$pattern"; then
		ok "$named"
	else
		not_ok "$named (expected: $pattern)"
	fi
}

# finish: checks the kernel's log, prints the plan, and returns the exit status.
finish() {
	if output=$(dmesg | grep -e 'WARNING: CPU' -e 'cut here' -e 'BUG:' -e 'Oops' \
			-e 'refcount_t' -e 'unregister_netdevice: waiting'); then
		not_ok "the kernel has nothing to complain about"
	else
		ok "the kernel has nothing to complain about"
	fi
	echo "1..$tests"
	[ "$failures" = 0 ]
}

# cable NAME RATE_BPS [KEY=VALUE...]: makes a cable between NAMEa and NAMEb, both up.
cable() {
	pair=$1
	rate=$2
	shift 2
	echo "name=$pair a=${pair}a b=${pair}b rate_bps=$rate $*" >$WIRE/create
	ip link set "${pair}a" up
	ip link set "${pair}b" up
}

cut_cable() {
	echo "name=$1" >$WIRE/delete
}

# two_hosts CABLE NET: moves the cable's ends to the namespaces one and two, which
# exist, and gives them the addresses NET.1 and NET.2.
two_hosts() {
	ip link set "${1}a" netns one
	ip link set "${1}b" netns two
	ip -n one addr add "$2.1/24" dev "${1}a"
	ip -n two addr add "$2.2/24" dev "${1}b"
	ip -n one link set "${1}a" up
	ip -n two link set "${1}b" up
}

# stat_of DEV KEY: prints a number of the root qdisc's statistics.
stat_of() {
	tc -s qdisc show dev "$1" root | tr ' ' '\n' |
		grep -A 1 -x -e "$2" | tail -n 1
}

# queue_stat QUEUE KEY: prints a number of the psp that is below mq, 1:, on that queue of c1a.
queue_stat() {
	tc -s qdisc show dev c1a parent "1:$1" | tr ' ' '\n' |
		grep -A 1 -x -e "$2" | tail -n 1
}

# class_stat_of DEV CLASSID KEY: prints a number of a class.
class_stat_of() {
	tc -s class show dev "$1" classid "$2" | tr ' ' '\n' |
		grep -A 1 -x -e "$3" | tail -n 1
}

# packets_of CLASSID: prints how many packets class CLASSID of c1a has sent; psp and htb have this.
packets_of() {
	tc -s class show dev c1a classid "$1" |
		sed -n 's/^ Sent [0-9]* bytes \([0-9]*\) pkt.*/\1/p'
}

# class_backlog_of DEV CLASSID: prints the number of frames in a class.
class_backlog_of() {
	tc -s class show dev "$1" classid "$2" |
		sed -n 's/^ backlog [^ ]* \([0-9]*\)p.*/\1/p'
}

# backlog_of DEV: prints the number of frames in the root qdisc.
backlog_of() {
	tc -s qdisc show dev "$1" root |
		sed -n 's/^ backlog [^ ]* \([0-9]*\)p.*/\1/p'
}

# same EXPECTED ACTUAL: succeeds if they are equal.
same() {
	[ "$1" = "$2" ] || { echo "expected $1, found $2"; return 1; }
}

# at_least LEAST ACTUAL: succeeds if ACTUAL is a number not below LEAST.
at_least() {
	[ "$2" -ge "$1" ] || { echo "expected $1 or more, found $2"; return 1; }
}

# empty DEV: succeeds if no frame is queued and no counter is below zero.
empty() {
	output=$(tc -s qdisc show dev "$1" root)
	echo "$output" | grep -q 'backlog 0b 0p' || { echo "$output"; return 1; }
}

# drained DEV: waits until DEV is empty, at most two seconds times SLOW.
drained() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		empty "$1" >/dev/null && return 0
		nap 100
	done
	empty "$1"
}

# flow DEV [SETTING...]: starts pktgen through DEV's qdisc: 1400-byte UDP frames to port
# 9, until flow_stop. With the setting "count N", flow_done waits for the end.
flow() {
	dev=$1
	shift
	[ -d $PKTGEN ] || modprobe pktgen
	echo "rem_device_all" >$PKTGEN/kpktgend_0
	echo "add_device $dev" >$PKTGEN/kpktgend_0
	for setting in "count 0" "pkt_size 1400" "delay 10000" \
		       "xmit_mode queue_xmit" "dst 10.0.0.2" \
		       "src_min 10.0.0.1" "src_max 10.0.0.1" \
		       "dst_mac 02:00:00:00:00:02" \
		       "udp_dst_min 9" "udp_dst_max 9" "$@"; do
		echo "$setting" >"$PKTGEN/$dev"
	done
	echo start >$PKTGEN/pgctrl &
	flow_pid=$!
	# The thread looks for commands every 100 ms, so an earlier stop would be lost.
	case "$*" in *"count "*) return ;; esac
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		grep -q "Running: *$dev" $PKTGEN/kpktgend_0 && break
		sleep 0.02
	done
}

flow_stop() {
	echo stop >$PKTGEN/pgctrl
	wait "$flow_pid" || :
	echo "rem_device_all" >$PKTGEN/kpktgend_0
}

# flow_done: waits for the end of a flow with a count.
flow_done() {
	wait "$flow_pid" || :
	echo "rem_device_all" >$PKTGEN/kpktgend_0
}

# burst COUNT [SETTING...]: sends COUNT frames through c1a's qdisc at once, and waits
# until all are sent.
burst() {
	frames=$1
	shift
	flow c1a "count $frames" "delay 0" "$@"
	flow_done
	drained c1a
	sleep 0.01
}

# fresh_pair OPTION-OF-CLASS...: makes a new psp on c1a and empties the records of the
# cable. Frames to port 9 go to class 1:1 with these options, all others to class 1:3,
# which is normal.
fresh_pair() {
	tc qdisc del dev c1a root 2>/dev/null || :
	tc qdisc add dev c1a root handle 1: psp default 3
	tc class add dev c1a parent 1: classid 1:1 psp "$@"
	tc class add dev c1a parent 1: classid 1:3 psp mode normal
	tc filter add dev c1a parent 1: protocol ip pref 1 u32 \
		match ip dport 9 0xffff classid 1:1
	echo 1 >$WIRE/c1/reset
}

# json_of KEY: prints the first value of KEY in the JSON on standard input.
json_of() {
	tr ',[]{}' '\n' | sed -n "s/^ *\"$1\": *\"\{0,1\}\([^\"]*\)\"\{0,1\}.*/\1/p" |
		head -n 1
}

# proved DEV [NETNS]: waits until trains of gap frames have shown whether the wire is a
# clock, at most a second times SLOW.
proved() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		tc ${2:+-n "$2"} -s qdisc show dev "$1" root | grep -q not_proved || return 0
		nap 50
	done
	return 1
}

# counter CABLE END KEY: prints a counter of the cable.
counter() {
	sed -n "s/^$2\.$3 //p" "$WIRE/$1/counters"
}

# number FILE KEY: prints a number, without another process.
number() {
	while read -r key value; do
		[ "$key" != "$2" ] || echo "$value"
	done <"$1"
}

# wire_moment: prints the time in ns and the bytes of data that the wire has taken. Both are
# read again if the host was held between them: 5 ms are half a percent of a second.
wire_moment() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		at=$(number $WIRE/idle now_ns)
		bytes=$(number $WIRE/c1/counters a.data_bytes)
		[ $(($(number $WIRE/idle now_ns) - at)) -gt 1000000 ] || break
	done
	echo "$at $bytes"
}

# rate_of FROM_NS FROM_BYTES TO_NS TO_BYTES: prints the rate in kbit/s.
rate_of() { echo $((($4 - $2) * 8000 / (($3 - $1) / 1000))); }

# at_most MOST ACTUAL: succeeds if ACTUAL is a number not above MOST.
at_most() {
	[ "$2" -le "$1" ] || { echo "expected $1 or less, found $2"; return 1; }
}

# between LEAST MOST ACTUAL: succeeds if ACTUAL is within both.
between() {
	[ "$3" -ge "$1" ] && [ "$3" -le "$2" ] ||
		{ echo "expected $1 to $2, found $3"; return 1; }
}

# now_ns: prints CLOCK_MONOTONIC.
now_ns() { sed 's/\([0-9]*\)\.\([0-9]*\) .*/\1\20000000/' /proc/uptime; }

# sent KEY: prints a number of the first flow's report in /tmp/sent.
sent() { head -n 1 /tmp/sent | tr ',{}' '\n\n\n' | sed -n "s/^\"$1\"://p"; }

# The functions below are for c1a in the namespace one, where the handle of psp is 1:.

# got KEY: prints a number of the options or statistics of class 1:1, rates in bit/s.
got() {
	tc -n one -s class show dev c1a classid 1:1 |
		sed 's/^ backlog \([^ ]*\)b \([0-9]*\)p/ bytes \1 frames \2/' |
		tr -s ' (,' '\n\n\n' | grep -A 1 -x -e "$1" | tail -n 1 |
		sed 's/Gbit$/000000000/; s/Mbit$/000000/; s/Kbit$/000/; s/bit$//'
}
# qdisc_got KEY: prints a number of the statistics of psp.
qdisc_got() {
	tc -n one -s -j qdisc show dev c1a root | tr ',{}' '\n\n\n' |
		sed -n "s/^\"$1\"://p" | tail -n 1
}

# settled: succeeds if no frame is queued, by the counters of the qdisc and of class 1:1.
settled() {
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ "$(qdisc_got qlen)" = 0 ] && break
		sleep 0.1
	done
	same "0 0" "$(qdisc_got qlen) $(qdisc_got backlog)" &&
		same "0 0" "$(got frames) $(got bytes)"
}
