#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Users without privileges share a class of type dynamic. Its bounds hold, and no user
# takes frames or flows from another.
#
#   one: psp-hostile, psp-send -> c1a (psp) ==== 10 Mbit/s ==== c1b -> two: psp-recv
#
# HOSTILE_SECONDS: length of the attack; default 60, in a part 13.

. "$(dirname "$0")/lib.sh"

HOSTILE_SECONDS=${HOSTILE_SECONDS:-$(choose 13 60)}
echo "# an attack of $HOSTILE_SECONDS seconds"
MALLORY=1001
ALICE=1002
BOB=1003

ip netns add one
ip netns add two
cable c1 10000000 records_max=0
two_hosts c1 10.1.0
# No frame waits for an ARP reply, whose request would wait, or be dropped, in the class.
ip -n one neigh replace 10.1.0.2 dev c1a nud permanent \
	lladdr "$(ip -n two link show c1b | sed -n 's/.*ether \([0-9a-f:]*\) .*/\1/p')"
ulimit -n 4096

# At 12.5 kB/s a flow sends a frame each 121 ms, also until its frames are counted: so
# many fewer a flow in a slow guest.
gone=$((SLOW - 1))

port() { tc -n one qdisc add dev c1a root handle 1: psp default 1 "$@"; }
add() { tc -n one class add dev c1a parent 1: classid 1:1 psp "$@"; }

# send_as UID MILLISECONDS SPEC...: runs psp-send, with its report in /tmp/sent.UID.
send_as() {
	uid=$1
	stop_ns=$(($2 * SLOW * 1000000))
	shift 2
	flows=
	for spec in "$@"; do flows="$flows --flow $spec"; done
	# shellcheck disable=SC2086 # one word a flow
	ip netns exec one psp-send --uid "$uid" --epoch-ns "$(now_ns)" \
		--stop-ns $stop_ns $flows >"/tmp/sent.$uid" 2>&1
}

# of UID KEY: prints a number of the first flow's report.
of() { head -n 1 "/tmp/sent.$1" | tr ',{}' '\n\n\n' | sed -n "s/^\"$2\"://p"; }

# receive PORT COUNT: starts a receiver. After stop_receiving, received PORT prints
# how many datagrams came.
receive() {
	"$IP" netns exec two psp-recv --port "$1" --count "$2" >/tmp/received 2>&1 &
	receiver=$!
	sleep 0.1
}
stop_receiving() {
	kill $receiver
	wait $receiver || :
}
received() { sed -n "s/.*\"port\":$1,\"received\":\([0-9]*\).*/\1/p" /tmp/received; }

# --- each bound by itself, with one user -----------------------------------

port mode timer
check "a dynamic class with default bounds" add mode dynamic
check "the default limit of all flows' frames" same 32768 "$(got limit)"
check "the default limit of one flow's frames" same 4096 "$(got flow-limit)"
check "the default horizon" same 10s "$(got horizon)"
send_as $MALLORY 100 to=10.1.0.2:100,pacing=8
check "the least rate sends one frame within the horizon" same 1211 "$(got flow_rate_min)"
tc -n one qdisc del dev c1a root

port mode timer
add mode dynamic flow-limit 20 pacing-floor 5kbit
send_as $MALLORY 300 to=10.1.0.2:100,pacing=8
check "no flow is slower than pacing-floor" same 5000 "$(got flow_rate_min)"
tc -n one qdisc del dev c1a root

port mode timer
add mode dynamic flow-limit 20
send_as $MALLORY 300 to=10.1.0.2:100,pacing=100000
check "one flow holds as many frames as flow-limit allows" between $((18 - gone)) 20 "$(got frames)"
check "frames beyond flow-limit are dropped and counted" at_least 1 "$(got drop_flow)"
tc -n one qdisc del dev c1a root

# A frame of 1514 bytes takes 121 ms, so 17 frames begin within 2 s.
port mode timer
add mode dynamic horizon 2s
send_as $MALLORY 300 to=10.1.0.2:100,pacing=100000
check "frames that would wait beyond the horizon are dropped" \
	between $((14 - gone)) 18 "$(got frames)"
check "frames beyond the horizon are counted" at_least 1 "$(got drop_horizon)"
check "the qdisc counts the same frames beyond the horizon" same "$(got drop_horizon)" "$(qdisc_got drop_horizon)"
check "no frame is dropped by flow-limit" same 0 "$(got drop_flow)"
tc -n one qdisc del dev c1a root

# psp checks the horizon again when the rate falls. Otherwise a user could fill a
# queue at a high rate and keep it for hours at a low one.
port mode timer
add mode dynamic horizon 2s
check "a socket is filled, then slowed down" \
	"$IP" netns exec one psp-hostile --uid $MALLORY --lower 12500 \
	--to 10.1.0.2 --port 100
check "a slowed flow drops frames that now wait beyond the horizon" \
	between $((12 - gone)) 18 "$(got frames)"
check "frames dropped from the slowed flow are counted" at_least 40 "$(got drop_horizon)"
tc -n one qdisc del dev c1a root

# psp walks through all frames: 200 short ones, and behind them some long ones, which
# alone are beyond the horizon.
port mode timer
add mode dynamic horizon 2s
check "a socket is filled with short frames and long ones, then slowed down" \
	"$IP" netns exec one psp-hostile --uid $MALLORY --lower 8000 --mixed \
	--to 10.1.0.2 --port 100
timely "a slowed flow drops an eighth of its frames" at_least 20 "$(got drop_horizon)"
tc -n one qdisc del dev c1a root

# --- when a bound is reached, the user with most gives way --------------------

slow=to=10.1.0.2:100,pacing=100000
port mode timer
add mode dynamic limit 40
send_as $MALLORY 400 $slow $slow $slow
check "all flows hold as many frames as limit allows" between $((36 - 3 * gone)) 40 "$(got frames)"
check "frames beyond limit are dropped and counted" at_least 1 "$(got drop_limit)"
send_as $MALLORY 2000 $slow $slow $slow &
mallory=$!
receive 200 1
send_as $ALICE 1500 to=10.1.0.2:200,payload=200,pacing=100000,rate=20000
check "another user sends to a full class" at_least 10 "$(of $ALICE datagrams)"
check "two users have flows" same 2 "$(got flow_users)"
check "the full class holds no more frames than limit" at_most 40 "$(got frames)"
wait $mallory || :
sleep 0.2
stop_receiving
check "the other user loses no frame to the first" same "$(of $ALICE datagrams)" "$(received 200)"
tc -n one qdisc del dev c1a root

# At 16 kbit/s, 10 frames without a flow wait until the receiver has stopped. So the
# test counts only frames of flows.
port mode timer
add mode dynamic flows 4 rate 16kbit
tc -n one qdisc add dev c1a parent 1:1 pfifo limit 10
send_as $MALLORY 3000 $slow $slow $slow $slow $slow $slow &
mallory=$!
nap 500
check "one user has all flows" same "4 1" "$(got flows_known) $(got flow_users)"
check "frames beyond all flows are counted" at_least 1 "$(got flows_refused)"
receive 200 1
send_as $ALICE 1500 to=10.1.0.2:200,payload=200,pacing=100000,rate=20000 &
alice=$!
nap 750
check "the other user gets a flow" same 2 "$(got flow_users)"
check "the other user's flow replaces one of the first's" same 1 "$(got flows_evicted)"
check "the frames of the replaced flow are counted" at_least 1 "$(got drop_evicted)"
wait $alice || :
wait $mallory || :
sleep 0.2
stop_receiving
check "the other user loses no frame" same "$(of $ALICE datagrams)" "$(received 200)"
check "there are no more flows than allowed" at_most 4 "$(got flows_known)"
tc -n one qdisc del dev c1a root

# --- a hostile user ------------------------------------------------------------

# The classes may ask for this much of the line: 33 x 100 kbit of 1:1, and 4 Mbit of
# 1:2. ARP has class 1:3, so it does not wait behind the hostile user.
slab_before=$(slab_kb)
tc -n one qdisc add dev c1a root handle 1: psp default 3 mode timer layer wire
tc -n one class add dev c1a parent 1: classid 1:3 psp mode normal
add mode dynamic ceil 100kbit rate 100kbit flows 32 limit 500 flow-limit 100
tc -n one class add dev c1a parent 1: classid 1:2 psp rate 4mbit
tc -n one filter add dev c1a parent 1: protocol ip pref 1 u32 \
	match ip dport 300 0xffff classid 1:2
tc -n one filter add dev c1a parent 1: protocol ip pref 2 matchall classid 1:1
seconds=$((HOSTILE_SECONDS * SLOW))
"$IP" netns exec two psp-recv --port 100 --count 8 >/dev/null 2>&1 &
sink=$!
"$IP" netns exec one psp-hostile --uid $MALLORY --seconds $seconds --to 10.1.0.2 \
	--port 100 --ports 8 --sockets 512 --seed 1 >/tmp/hostile 2>&1 &
mallory=$!
nap 3000
receive 200 101
send_as $BOB $(((HOSTILE_SECONDS - 10) * 1000)) to=10.1.0.2:300,rate=6000000 &
bob=$!
send_as $ALICE $(((HOSTILE_SECONDS - 10) * 1000)) \
	to=10.1.0.2:200,payload=200,pacing=80000,rate=40000 &
alice=$!

frames_most=0
flows_most=0
slab_most=0
users_most=0
# most NAME NUMBER: keeps the largest number in NAME_most.
most() { eval "[ $2 -le \$${1}_most ] || ${1}_most=$2"; }
while kill -0 $mallory 2>/dev/null; do
	most frames "$(got frames)"
	most flows "$(got flows_known)"
	most users "$(got flow_users)"
	most slab $(($(sed -n 's/^SUnreclaim: *\([0-9]*\).*/\1/p' /proc/meminfo) - slab_before))
	sleep 1
done
wait $bob || :
wait $alice || :
ended=0
wait $mallory || ended=$?
check "the hostile user's program ends without an error" same 0 $ended
hostile() { tr ',{}' '\n\n\n' </tmp/hostile | sed -n "s/^\"$1\"://p"; }
timely "the hostile user opened many sockets" at_least 500 "$(hostile opened)"
timely "the hostile user sent many datagrams" at_least 5000 "$(hostile sent)"
# Up to 1000 of the frames are in the class's own queue.
check "frames were never more than the bounds" between 400 1500 $frames_most
check "flows were never more than the bound" between 30 32 $flows_most
check "the other user had a flow during the attack" same 2 $users_most
check "flows beyond the bound were refused" at_least 1 "$(got flows_refused)"
check "frames beyond the limit were dropped" at_least 1 "$(got drop_limit)"
check "frames beyond the horizon were dropped" at_least 1 "$(got drop_horizon)"
check "frames beyond flow-limit were dropped" at_least 1 "$(got drop_flow)"
# The bound holds 1500 frames of up to 4 kB, sockets and flows.
check "memory was bounded" at_most 30000 $slab_most
sleep 2
stop_receiving
timely "the other user sent during the whole attack" \
	at_least $(((HOSTILE_SECONDS - 10) * 18)) "$(of $ALICE datagrams)"
timely "the other user lost nothing to the hostile one" same "$(of $ALICE datagrams)" "$(received 200)"
# The wire carries 4 Mbit/s within 1 %. psp sends what the socket held at the end, up
# to 100 frames, after that.
bobs=$(((HOSTILE_SECONDS - 10) * 4000000 / 1538 / 8))
timely "the other class kept its rate" \
	between $((bobs * 99 / 100)) $((bobs * 101 / 100 + 100)) "$(received 300)"

# The flows empty within the horizon, the class's own queue at its rate.
kill $sink
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
	[ "$(qdisc_got qlen)" = 0 ] && break
	sleep 10
done
check "the hostile user's frames are sent" settled
sleep 15
check "no flow of the hostile user is known" same 0 "$(got flows_known)"
check "the drops by cause add up to all drops" same \
	$(($(got drop_child) + $(got drop_flow) + $(got drop_limit) + $(got drop_horizon) + $(got drop_evicted))) \
	"$(got dropped)"
tc -n one qdisc del dev c1a root
# Caches of 512 sockets remain, of some hundred MB that passed through.
given_back "the hostile user's memory is given back" 8000 "$slab_before"

# --- rates below what a clock can keep -----------------------------------------

port mode timer split-gso off line 400gbit
add mode dynamic pacing-floor 1bit
check "a hostile user sends whole GSO packets on a fast line" \
	"$IP" netns exec one psp-hostile --uid $MALLORY --seconds $((3 * SLOW)) \
	--to 10.1.0.2 --port 100 --ports 8 --sockets 64 --seed 2
check "no flow is slower than a clock can keep" at_least 2400 "$(got flow_rate_min)"
check "the hostile rates do not forbid MTU 9000" ip -n one link set c1a mtu 9000
check "the hostile rates do not forbid MTU 1500" ip -n one link set c1a mtu 1500
check "the hostile rates do not forbid a faster line" tc -n one qdisc change dev c1a root handle 1: psp line 1tbit
tc -n one qdisc del dev c1a root

ip netns del one
ip netns del two
cut_cable c1
finish
