#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Whether a seed makes what netem loses the same again.
. "$(dirname "$0")/lib.sh"
finding 'a netem that shows seed 7 loses the packets that seed 7 loses' \
	'a new one does, each time. With jitter it loses others, since delays take numbers of the same sequence; and after a change that names no seed it still shows 7, but goes on in the sequence. A change that names the seed begins it anew'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_netem veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		cat >/tmp/lost.py <<'END'
		import socket, sys
		port = int(sys.argv[1])
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		for i in range(1000):
		    s.sendto(i.to_bytes(4, "big") + b"x" * 100, ("10.0.0.2", port))
		END
		cat >/tmp/got.py <<'END'
		import hashlib, socket, sys
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		s.bind(("10.0.0.2", int(sys.argv[1])))
		# SO_RCVBUFFORCE
		s.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)
		s.settimeout(1.5)
		print("ready", flush=True)
		seen = set()
		try:
		    while True:
		        seen.add(int.from_bytes(s.recv(200)[:4], "big"))
		except TimeoutError:
		    pass
		lost = sorted(set(range(1000)) - seen)
		print(len(lost), hashlib.sha256(str(lost).encode()).hexdigest()[:8])
		END
		port=5000
		# lost NAME: how many of 1000 packets are lost, and a digest of which.
		lost() {
			port=$((port + 1))
			ip netns exec n python3 /tmp/got.py $port >/tmp/got 2>&1 &
			while ! grep -q ready /tmp/got 2>/dev/null; do sleep 0.1; done
			python3 /tmp/lost.py $port
			wait
			tail -n 1 /tmp/got | say "$1"
			: >/tmp/got
		}
		for n in 1 2; do
			tc qdisc add dev va root netem limit 5000 loss 5% seed 7
			lost same_$n
			tc qdisc del dev va root
		done
		tc qdisc add dev va root netem limit 5000 loss 5% delay 5ms 1ms seed 7
		lost jitter
		tc qdisc change dev va root netem limit 5000 loss 5% seed 7
		lost changed_with
		tc qdisc change dev va root netem limit 5000 loss 5%
		tc qdisc show dev va | sed -n 's/.* seed \([0-9]*\).*/\1/p' | say shown
		lost changed_without
		tc qdisc del dev va root
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
first=$(said same_1)
echo "seen:  loss 5% seed 7: of 1000 packets lost, and a digest of which: $first"
seen 'the same, of a new netem' "$(said same_2)" "$first"
# other WHAT NAME: other packets are lost.
other() {
	[ "$(said "$2")" != "$first" ] && is=others || is=same
	seen "$1 ($(said "$2"))" "$is" others
}
other 'with delay 5ms 1ms' jitter
seen 'after change ... seed 7' "$(said changed_with)" "$first"
seen 'after a change without a seed it shows' "$(said shown)" 7
other 'and loses' changed_without
done_
