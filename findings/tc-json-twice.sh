#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What a reader of JSON gets of tc -j, beside what tc shows as text.
. "$(dirname "$0")/lib.sh"
finding 'tc -j has all that tc shows, each value under a key of its own, in one unit for times' \
	'objects have a key twice, of which readers keep the last: fq its `throttled`, so that of flows is lost, a filter of u32
       each `match`, so all but the last are lost, police `control_action`. tbf has no peakrate, and with -d its burst is a text;
       classes of hfsc and qfq are no JSON. fq has timer_slack in ns and the rest in µs, netem has seconds
       (iproute2 7.3: the same of tbf and u32)'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 \
	'sch_fq sch_tbf sch_netem sch_hfsc sch_qfq sch_ingress cls_u32 act_police act_gact veth' python3-minimal
{
	veth_pair
	cat <<-'EOF'
		both() { name=$1; shift; tc "$@" | say "${name}_text"; tc -j "$@" | say "${name}_json"; }
		tc qdisc add dev va root fq maxrate 80kbit quantum 1100 initial_quantum 1100 timer_slack 50us horizon 20s
		python3 -c '
		import socket, time
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		for _ in range(60):
		    s.sendto(b"x" * 972, ("10.0.0.2", 9))
		time.sleep(2)'
		both fq -s qdisc show dev va
		tc qdisc replace dev va root tbf rate 10mbit burst 20k latency 50ms peakrate 20mbit mtu 1600
		both tbf qdisc show dev va
		both tbf_d -d qdisc show dev va
		tc qdisc replace dev va root netem delay 100ms
		both netem qdisc show dev va
		tc qdisc replace dev va root handle 1: hfsc default 1
		tc class add dev va parent 1: classid 1:1 hfsc ls rate 10mbit
		both hfsc class show dev va
		tc qdisc replace dev va root handle 1: qfq
		tc class add dev va parent 1: classid 1:1 qfq weight 10
		both qfq class show dev va
		tc qdisc add dev va clsact
		tc filter add dev va egress u32 match ip src 10.0.0.0/8 match ip dport 80 0xffff action pass
		both u32 filter show dev va egress
		tc filter del dev va egress
		tc filter add dev va egress u32 match ip dport 80 0xffff action police rate 10mbit burst 10k conform-exceed drop/pipe
		both police filter show dev va egress
	EOF
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
said tc
# read_json NAME EXPRESSION: of `all`, the values of a key in the order of the text, or of `last`, what json.loads keeps.
read_json() {
	said "$1_json" | python3 -c '
import json, sys
text, pairs = sys.stdin.read(), []
try:
    last = json.loads(text)
    json.loads(text, object_pairs_hook=lambda object: pairs.extend(object) or dict(object))
    every = lambda name: [value for key, value in pairs if key == name]
    print(eval(sys.argv[1]))
except ValueError:
    print("no JSON")' "$2"
}
seen 'fq, text: throttled flows, and throttled so far' "$(said fq_text | sed 's/.*\(throttled [0-9]*)\).*\(throttled [0-9]*\).*/\1 \2/')" \
	'throttled 1) throttled [1-9]*'
seen 'fq, values of its key throttled' "$(read_json fq 'every("throttled")')" '\[1, [1-9]*\]'
seen 'the one that a reader keeps is that of flows' "$(read_json fq 'last[0]["throttled"] == 1')" False
seen 'timer_slack 50us, horizon 20s' "$(read_json fq 'last[0]["options"]["timer_slack"], last[0]["options"]["horizon"]')" '(50000, 20000000)'
seen 'netem, 100 ms' "$(read_json netem 'last[0]["options"]["delay"]["delay"]')" 0.1
seen 'tbf, text' "$(said tbf_text)" '*peakrate 20Mbit*'
seen 'tbf, peakrate' "$(read_json tbf '"peakrate" in str(last)')" False
seen 'tbf, burst, and with -d' "$(read_json tbf 'last[0]["options"]["burst"]') $(read_json tbf_d 'last[0]["options"]["burst"]')" '20480 20Kb/1'
seen 'u32, text' "$(said u32_text)" '*match 0a000000/ff000000 at 12*match 00000050/0000ffff at 20*'
seen 'u32, the matches that a reader keeps' "$(read_json u32 '[o["options"]["match"]["off"] for o in last if "match" in o.get("options", {})]')" '\[20\]'
seen 'police, conform-exceed drop/pipe' "$(read_json police 'every("control_action")')" "*drop*pipe*"
seen 'classes of hfsc and of qfq' "$(read_json hfsc 1), $(read_json qfq 1)" 'no JSON, no JSON'
done_
