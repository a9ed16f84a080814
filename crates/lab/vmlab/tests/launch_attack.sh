# SPDX-License-Identifier: MIT OR Apache-2.0
# Attacks on launch times of the series for the kernel's tree; it runs behind attack.sh.
launch() { # KEY=NUMBER...
	began=$(cut -d. -f1,2 /proc/uptime | cut -d' ' -f1 | tr -d .)
	became=$($TXTIME $DEV 10.9.0.2 "$@" 2>&1)
	took_10ms=$(($(cut -d' ' -f1 /proc/uptime | tr -d .) - began))
	echo "# $*: $took_10ms hundredths of a second: $became"
}
became() { echo " $became" | sed -n "s/.* $1=\([-0-9]*\).*/\1/p"; }
counted() { stats | sed -n "s/.* $1 \([0-9]*\) .*/\1/p"; }
waiting() { stats | sed -n 's/.*backlog [0-9KMGb]* \([0-9]*\)p.*/\1/p' | head -n 1; }
fresh() { # OPTION...: class 1 has launch times, class 2 what the host sends by itself
	tc qdisc del dev $DEV root 2>/dev/null
	tc qdisc add dev $DEV root handle 1: pspacer line 10gbit default 2 oversubscribe 1
	tc class add dev $DEV parent 1: classid 1:1 pspacer "$@"
	tc class add dev $DEV parent 1: classid 1:2 pspacer
}
set_clock() { date -s "@$(($(date +%s) + $1))" >/dev/null; }

# Many packets, each before all that wait: as fast as in order, so no list is searched.
for reverse in 0 1; do
	fresh rate 5gbit clockid CLOCK_MONOTONIC limit 100000
	launch count=30000 size=16 lead_ns=6000000000 step_ns=100 reverse=$reverse wait_ms=1
	eval "took_$reverse=$took_10ms"
	check "$reverse: 30000 packets wait, as many as came" between 29000 30000 "$(waiting)"
done
check "in reverse order it takes no longer than twice" \
	between 0 $((2 * took_0 + 20)) "$took_1"
check "they are reset" ip link set $DEV down
ip link set $DEV up
check "none waits" between 0 0 "$(waiting)"

# The bound holds, whatever comes.
fresh rate 5gbit clockid CLOCK_MONOTONIC limit 1000
launch count=20000 size=16 lead_ns=1000000000 reverse=1 step_ns=10 wait_ms=0
check "a limit bounds what waits" between 1000 1000 "$(waiting)"
launch count=20000 size=16 lead_ns=-2000000 wait_ms=0
check "and what is refused does not wait" between 1000 1000 "$(waiting)"
check "it is counted" between 20000 20000 "$(counted txtime_invalid)"

# More than is dropped in one call is late at once: a rate at which a packet takes 8 ms.
fresh rate 100kbit clockid CLOCK_MONOTONIC limit 10000
launch count=2000 size=58 lead_ns=300000000 wait_ms=700
check "what is late is dropped" between 1 10 "$(became left)"
check "all of it" between 2000 2000 $(($(became left) + $(counted txtime_missed)))
check "none waits" between 0 0 "$(waiting)"

# Beside it others keep their rates, also if the line is asked for more than it has. A socket that
# is closed before its packets are late has nobody who reads reports.
for wait_ms in 0 1500; do
	fresh rate 10gbit clockid CLOCK_MONOTONIC limit 100000
	tc class add dev $DEV parent 1: classid 1:3 pspacer rate 1gbit clockid CLOCK_MONOTONIC
	$TXTIME $DEV 10.9.0.2 count=20000 size=1400 lead_ns=500000000 wait_ms=$wait_ms >/dev/null &
	launch priority=65539 count=200 lead_ns=450000000 step_ns=1000000 wait_ms=900
	wait
	check "$wait_ms: beside a flood another class has its launch times" between 199 200 "$(became left)"
	check "$wait_ms: none is early" between -20000 1500000 "$(became least_ns)"
done

# A clock that is set moves nothing that waits.
for clock in 1:CLOCK_MONOTONIC 11:CLOCK_TAI; do
	for step in 3600 -7200 3600; do
		fresh rate 1gbit clockid "${clock#*:}"
		launch clock="${clock%:*}" count=100 lead_ns=1500000000 wait_ms=0
		set_clock $step
		sleep 0.2
		check "$clock set by $step: all wait" between 100 100 "$(waiting)"
		sleep 2
		check "$clock set by $step: all left then" between 100 100 "$(sent)"
		check "$clock set by $step: none was late" between 0 0 "$(counted txtime_missed)"
		launch clock="${clock%:*}" count=10 lead_ns=50000000 wait_ms=200
		check "$clock set by $step: the next have the new clock" between 9 10 "$(became left)"
	done
done

# A device that goes while packets wait, and a class and a socket that are gone.
for _ in 1 2 3 4 5 6 7 8 9 10; do
	fresh rate 1gbit ceil 2gbit clockid CLOCK_MONOTONIC limit 5000
	$TXTIME $DEV 10.9.0.2 count=3000 lead_ns=1000000 step_ns=10000 reverse=1 wait_ms=0 >/dev/null &
	sleep 0.01
	tc class change dev $DEV parent 1: classid 1:1 pspacer rate 1mbit ceil 5mbit
	tc class del dev $DEV parent 1: classid 1:1
	wait
done
$TXTIME $DEV 10.9.0.2 count=3000 lead_ns=500000000 wait_ms=0 >/dev/null
fresh rate 1gbit clockid CLOCK_TAI
$TXTIME $DEV 10.9.0.2 clock=11 count=900 lead_ns=500000000 wait_ms=0 >/dev/null
check "packets wait" between 900 900 "$(waiting)"
check "a device goes with them" ip link del $DEV
sleep 1
end
