#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What is left of a burst of htb whose time at the rate is no whole number of microseconds.
. "$(dirname "$0")/lib.sh"
finding 'a class of htb has the burst that it is given, and without one room for a frame, at any rate' \
	'a burst travels as its time at the rate, in ticks of 64 ns. tc 6.1 cuts the time to whole microseconds first: at 10 Gbit/s 2,499
       bytes become 1,200, at 100 Gbit/s 12,499 become none, and the 1,600 that tc gives by itself are none above 12.8 Gbit/s.
       6.15 rounds up to a tick: 2,560 of 2,499, 12,800 of 12,499'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 sch_htb iproute2=6.15.0-1
packages "$work/tree/older" bookworm iproute2=6.1.0-3
cat >"$work/script" <<'EOT'
mkdir -p /older/proc
mount -t proc proc /older/proc
echo "kernel $(uname -r)"
for tc in tc 'chroot /older /sbin/tc'; do
	name=$($tc -V 2>/dev/null | sed 's/.*iproute2-\([0-9.]*\).*/\1/')
	$tc qdisc add dev lo root handle 1: htb
	minor=1
	while read -r rate burst _; do
		[ "$burst" = - ] && words= || words="burst $burst cburst $burst"
		$tc class add dev lo parent 1: classid 1:$minor htb rate "$rate" $words 2>/dev/null
		echo "${name}_${rate}_$burst $($tc -r -d class show dev lo classid 1:$minor | sed -n 's/.* buffer \[\([0-9a-f]*\)\].*/0x\1/p')"
		minor=$((minor + 1))
	done </bursts
	$tc qdisc del dev lo root
done
EOT
# What is given, and what the kernel then has in ticks, of 6.15 and of 6.1.
cat >"$work/bursts" <<'EOT'
1gbit 1514 190 187
10gbit 2499 32 15
10gbit 1249 16 0
12.7gbit - 16 15
12.9gbit - 16 0
100gbit 12499 16 0
100gbit 65536 82 78
EOT
cp "$work/bursts" "$work/tree/bursts"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
while read -r rate burst newer older; do
	seen "tc 6.15, rate $rate, burst $burst: ticks" "$(($(said "6.15.0_${rate}_$burst")))" "$newer"
	seen "tc 6.1, rate $rate, burst $burst: ticks" "$(($(said "6.1.0_${rate}_$burst")))" "$older"
done <"$work/bursts"
done_
