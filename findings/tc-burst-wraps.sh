#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What becomes of a burst that takes longer than 32 bits of tc's ticks of 64 ns can say.
. "$(dirname "$0")/lib.sh"
finding 'tc takes a burst as it is given, or refuses it' \
	'a burst travels as its time at the rate, in 32 bits of 64 ns: beyond 274.9 s the time wraps without a word. A credit of 5 MB at 100 kbit/s (400 s) becomes 1.6 MB, and more burst can be less. tc shows the same for tbf, which yet acts by a second attribute in bytes'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_htb sch_tbf veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		cat >/tmp/send.py <<'END'
		import socket
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		s.setsockopt(socket.SOL_SOCKET, 32, 64 << 20)
		s.setsockopt(socket.IPPROTO_UDP, 103, 1400)
		for _ in range(100):
		    s.sendto(b"x" * 42000, ("10.0.0.2", 9))
		END
		# passes NAME: what of 4326000 bytes passes at once.
		passes() {
			before=$(stat tx_bytes)
			python3 /tmp/send.py
			sleep 1
			tc -s qdisc show dev va | awk '/Sent/ && !n++ { print $2 }' | say "$1"
		}
		for burst in 3400000 5000000 7000000; do
			tc qdisc add dev va root handle 1: htb default 1
			tc class add dev va parent 1: classid 1:1 htb rate 100kbit burst $burst cburst $burst 2>&1 |
				grep -v 'quantum of class' | say "error_$burst"
			tc -j class show dev va | sed 's/.*"burst":\([0-9]*\),.*/\1/' | say "htb_$burst"
			passes "htb_passes_$burst"
			tc qdisc del dev va root
			tc qdisc add dev va root tbf rate 100kbit burst $burst limit 10m 2>&1 | say "error_$burst"
			tc -j qdisc show dev va | sed 's/.*"burst":\([0-9]*\),.*/\1/' | say "tbf_$burst"
			passes "tbf_passes_$burst"
			tc qdisc del dev va root
		done
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
# left BURST: what 32 bits leave of it.
left() { awk -v b="$1" 'BEGIN { whole = 4294967296 * 64e-9 * 12500; printf "%d", b - int(b / whole) * whole }'; }
min() { echo $(($1 < $2 ? $1 : $2)); }
for burst in 3400000 5000000 7000000; do
	left=$(left $burst)
	seen "messages, $burst" "$(said error_$burst)" ''
	seen_within "htb at 100 kbit/s with burst $burst, as tc shows it" "$(said htb_$burst)" \
		$((left - 20)) $((left + 20))
	seen_within 'what it sends at once (a packet has 43260)' "$(said htb_passes_$burst)" \
		"$left" $((left + 100000))
	seen "tbf with burst $burst, as tc shows it" "$(said tbf_$burst)" "$(said htb_$burst)"
	seen_within 'what tbf sends at once' "$(said tbf_passes_$burst)" "$(min $((burst - 43260)) 4326000)" \
		"$(min "$burst" 4326000)"
done
done_
