#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the laboratory's guest: changes that nobody confirms while a device goes, changes whose lines nobody
# reads, and an update while changes are followed. Prints TAP.
#
#   /back     this test's files: the command and its libraries

. /back/lib.sh
. /back/installed.sh

# The guard is the command once more, by its own name.
installed /back
run=/run/pspacer
cd /tmp

# files RATE: of d0 and d1, with a class of this rate each.
files() {
	for device in d0 d1; do
		printf '[[device]]\nname = "%s"\nmode = "timer"\ndefault = "all"\n' $device
		printf '[[device.class]]\nname = "all"\nminor = "8000"\nrate = "%s"\n' "$1"
	done >"$1.toml"
}
# rate DEVICE: of its class, as tc says it.
rate() { tc class show dev "$1" | sed -n 's/.* 7073:8000 .*rate \([^ ]*\).*/\1/p'; }
# comes COMMAND...: whether it succeeds within 10 s.
comes() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || return 1
		nap 100
	done
}
is_taken_back() { [ -e $run/taken-back.json ]; }

ip link add d0 type dummy
ip link add d1 type dummy
ip link set d0 up
ip link set d1 up
for rate in 10mbit 20mbit 30mbit; do files $rate; done
check "two devices are paced" pspacer apply 10mbit.toml
check "a change is made that waits to be confirmed" sh -c "pspacer apply --confirm 2s 20mbit.toml </dev/null"
check "it is in force" same 20Mbit "$(rate d1)"
ip link del d0
check "it is taken back though one of the devices has gone" comes is_taken_back
check "the other one is as before" same 10Mbit "$(rate d1)"
check "what is followed is the file of before" cmp $run/applied/d1.toml 10mbit.toml
check "nothing waits" sh -c "pspacer apply --device d1 30mbit.toml"
check "and the next change is made" same 30Mbit "$(rate d1)"

pspacer save d1 >saved.json
pspacer remove d1 >/dev/null
check "what was saved is put back" pspacer restore saved.json
check "with its rate" same 30Mbit "$(rate d1)"
check "and its file" cmp $run/applied/d1.toml 30mbit.toml

ip link add d0 type dummy
ip link set d0 up
# A pipe that nobody reads: its first line is one too many.
pspacer apply 20mbit.toml | true
check "changes whose lines nobody reads are made as a whole" same "20Mbit 20Mbit" "$(rate d0) $(rate d1)"
nothing_left() { pspacer apply "$1" 2>&1 | grep -q "nothing to change"; }
check "and nothing is left" nothing_left 20mbit.toml
ip link del d0
tc filter add dev d1 parent 7073: prio 40000 protocol ip u32 match u32 0 0 classid 7073:8000
refuse "what of others would go is not taken over for a time" "filter u32 of priority 40000 of others would go" \
	sh -c "pspacer apply --device d1 --take-over --confirm 2s 10mbit.toml </dev/null"
check "and nothing has changed" same 20Mbit "$(rate d1)"
pspacer apply --follow >follow.log 2>&1 &
follow=$!
nap 1000
cp /usr/bin/pspacer new
mv new /usr/bin/pspacer
has_ended() { [ ! -e /proc/$follow/exe ]; }
check "what follows ends when its program is replaced" comes has_ended
check "and says why" grep -q "another version of this program was installed" follow.log
refuse "a state of a device that has gone says so" "d0: no such device; the others are done" \
	sh -c "sed 's/\"d1\"/\"d0\"/' saved.json >gone.json; pspacer restore gone.json"
finish
