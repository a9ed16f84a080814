#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What `tc qdisc change` and `tc class change` do with what they do not name.
. "$(dirname "$0")/lib.sh"
finding '`tc qdisc change` (or replace) of netem sets all anew, or keeps all that it does not name' \
	'it sets delay, jitter, limit, loss and duplicate anew, and keeps rate, slot and reorder: no command but delete ends them by omission. `tc class change` of htb also resets prio, ceil and bursts'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_netem sch_htb veth'
{
	veth_pair
	cat <<-'EOF'
		show() { tc qdisc show dev va | sed 's/.*refcnt [0-9]*//; s/seed [0-9]*//' | say "$1"; }
		tc qdisc add dev va root netem limit 50 delay 100ms 10ms duplicate 3% rate 1mbit reorder 25% slot 1ms 2ms
		show added
		tc qdisc change dev va root netem loss 1%
		show changed
		tc qdisc replace dev va root netem loss 2%
		show replaced
		tc qdisc del dev va root
		tc qdisc add dev va root netem loss 2%
		show anew
		tc qdisc del dev va root
		tc qdisc add dev va root handle 1: htb default 1
		tc class add dev va parent 1: classid 1:1 htb rate 10mbit ceil 20mbit prio 3 burst 20k
		tc class show dev va | say class
		tc class change dev va parent 1: classid 1:1 htb rate 5mbit
		tc class show dev va | say class_changed
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
seen 'a delay line' "$(said added)" 'limit 50 delay 100ms 10ms duplicate 3% reorder 25% rate 1Mbit slot 1ms 2ms gap 1'
seen 'after change with loss alone' "$(said changed)" 'limit 1000 loss 1% reorder 25% rate 1Mbit slot 1ms 2ms'
seen 'after replace with loss alone' "$(said replaced)" 'limit 1000 loss 2% reorder 25% rate 1Mbit slot 1ms 2ms'
seen 'after delete and add' "$(said anew)" 'limit 1000 loss 2%'
seen 'a class' "$(said class)" '* prio 3 rate 10Mbit ceil 20Mbit burst 20Kb cburst 1600b'
seen 'after change with a rate alone' "$(said class_changed)" '* prio 0 rate 5Mbit ceil 5Mbit burst 1600b cburst 1600b'
done_
