#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The plugin in tc, without a kernel that knows psp: tc reads all words before
# it looks for the device, which does not exist.  Prints TAP.
#
# TC: the program under test, any iproute2 since 5.9.

here=$(cd "$(dirname "$0")" && pwd)
TC=${TC:-$(PATH=$PATH:/usr/sbin:/sbin command -v tc)}
export TC_LIB_DIR="$here"
tests=0
failures=0

# says EXPECTED WORDS...: exit status 1, and this on standard error.
says() {
	expected=$1
	shift
	tests=$((tests + 1))
	output=$("$TC" "$@" 2>&1)
	status=$?
	if [ $status = 1 ] && printf '%s\n' "$output" | grep -q -F -e "$expected"
	then
		echo "ok $tests - $*"
	else
		failures=$((failures + 1))
		echo "not ok $tests - $*"
		echo "#   status $status, expected 1 and: $expected"
		printf '%s\n' "$output" | sed 's/^/#   /'
	fi
}

qdisc() {
	expected=$1
	shift
	says "$expected" qdisc add dev none0 root handle 1: psp "$@"
}

class() {
	expected=$1
	shift
	says "$expected" class add dev none0 parent 1: classid 1:1 psp "$@"
}

good='Cannot find device "none0"'

# As papers 000 (3.6) and 003 print them.
qdisc "$good" default 3
class "$good" rate 500mbit
class "$good" rate 250mbit
class "$good" mode normal
qdisc "$good" default 2
class "$good" mode 0

qdisc "$good"
qdisc "$good" default ffff line 1gbit mode gap overhead 24 layer wire \
	order rate gap pause
qdisc "$good" line auto mode auto layer link order clock
qdisc "$good" mode timer layer ip overhead 0 default 0
class "$good" mode paced rate 8kbit
class "$good" mode 1 rate 100gbit
class "$good" mode normal quantum 3000b deadline 5ms
qdisc "$good" mode hybrid gap pause guard on split-gso off
qdisc "$good" mode auto gap multicast guard off split-gso auto
class "$good" rate 10mbit ceil 20mbit deadline 500us
class "$good" rate 10mbit txtime tai txtime-deadline on txtime-late 20us horizon 2s
class "$good" rate 10mbit txtime monotonic txtime-late 0 txtime-deadline off
class "$good" txtime off
class "$good" rate 10mbit ceil 0 deadline 0
class "$good" mode dynamic
class "$good" mode dynamic rate 10mbit ceil 1gbit floor 100kbit flows 1000
class "$good" mode dynamic ceil 10gbit total 40gbit
class "$good" mode group rate 100mbit ceil 200mbit
says "$good" class add dev none0 parent 1:10 classid 1:11 psp rate 20mbit ceil 200mbit
qdisc "$good" period 10ms budget 70% align 2ms
qdisc "$good" period 125us budget 50kb align off
class "$good" mode rt reserve 15kb deadline 20ms
class "$good" mode nrt reserve 15kb

qdisc 'Usage: ... psp' help
class 'Usage: ... psp' help
qdisc 'unknown option "rate"' rate 1mbit
class 'unknown option "default"' default 1
qdisc 'default: value missing' default
qdisc 'default "1": expected the option only once' default 2 default 1
qdisc 'default "10000": expected a class minor' default 10000
qdisc 'default "-1": expected a class minor' default -1
qdisc 'default "1:1": expected a class minor' default 1:1
qdisc 'line "0": expected a rate' line 0
qdisc 'line "much": expected a rate' line much
qdisc 'mode "normal": expected auto, gap, timer or hybrid' mode normal
qdisc 'overhead "257": expected 0 to 256' overhead 257
qdisc 'overhead "24b": expected 0 to 256' overhead 24b
qdisc 'layer "2": expected link, wire or ip' layer 2
qdisc 'order "": expected clock, rate or next' order ""
qdisc 'gap "unicast": expected pause or multicast' gap unicast
qdisc 'gap "self": expected multicast: gap self was removed' gap self
qdisc 'guard "1": expected on or off' guard 1
qdisc 'split-gso "never": expected auto, on or off' split-gso never
qdisc 'period "soon": expected 125us to 1s' period soon
qdisc 'period "124us": expected 125us to 1s' period 124us
qdisc 'budget "101%": expected 1% to 100%' budget 101%
qdisc 'budget "much": expected bytes a period' budget much
qdisc 'align "never": expected a time below the period' align never
class 'reserve "0": expected bytes a period above 0' mode rt reserve 0
class 'rate "0": expected whole bits per second' rate 0
class 'rate "-1mbit": expected whole bits per second' rate -1mbit
class 'rate "50%": expected whole bits per second' rate 50%
class 'mode "2": expected paced, normal, dynamic, rt, nrt, group, 1 or 0' mode 2
class 'mode "gap": expected paced, normal, dynamic, rt, nrt, group, 1 or 0' mode gap
class 'ceil "fast": expected whole bits per second' rate 1mbit ceil fast
class 'total "lots": expected whole bits per second' mode dynamic total lots
class 'floor "-1": expected whole bits per second' mode dynamic floor -1
class 'flows "0": expected a number of flows' mode dynamic flows 0
class 'flows "4294967296": expected a number' mode dynamic flows 4294967296
class 'deadline "soon": expected a time' rate 1mbit deadline soon
class 'txtime "utc": expected monotonic, tai or off' rate 1mbit txtime utc
class 'txtime-late "2s": expected at most 1s' rate 1mbit txtime tai txtime-late 2s
class 'txtime-deadline "1": expected on or off' rate 1mbit txtime tai txtime-deadline 1
class 'deadline "-1ms": expected a time' rate 1mbit deadline -1ms
class 'quantum "0": expected 256 to 1048576' mode normal quantum 0
class 'quantum "1048577": expected 256 to 1048576' mode normal quantum 1048577

echo "1..$tests"
[ $failures = 0 ]
