#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the laboratory's guest: a network of hosts and routers with agents, two managers on etcd, four
# streams and TCP on each cable. Prints what each command says after a line "=== NAME", and its exit
# status after "=== status". PACKETS is the number of packets of each stream, MOVED_PACKETS that after the change
# of a route.
#
#   talker c1a === c1b r1 c2a === c2b r2 c3a === c3b r3 c4a === c4b screen     the segments s1 to s4
#                                                      c5a === c5b             the segment s5
#
# Each cable has 100 Mbit/s. The streams x1 to x4 leave the talker and end at r1, r2, r3 and the screen:
# x1 has one host that sends it, and x4 has four. The managers are in the first namespace. Cables of
# their own lead from there to each agent.

. /network/lib.sh

# On Linux 6.1 frames wait for the thread ksoftirqd once it runs, which waits for the processor behind each
# program that has a priority: packets were 16 ms late instead of 10. So ksoftirqd has the highest priority.
for process in /proc/[0-9]*; do
	if grep -q ksoftirqd/0 "$process/comm"; then
		/network/ld.so --library-path /network /network/chrt -f -p 90 "${process#/proc/}"
	fi
done

cd /tmp
manager_a=10.1.0.1
manager_b=10.1.0.2
# A name with the addresses of both managers.
printf '%s managers\n' $manager_a $manager_b >>/etc/hosts
echo 'multi on' >/etc/host.conf
forever_ns=1000000000000000

pspacer() { /network/ld.so --library-path /network /network/pspacer "$@"; }
# The program itself, so that its process is the one to kill.
start() { exec /network/ld.so --library-path /network /network/pspacer "$@"; }
# within NODE COMMAND...: is the command in the node's namespace.
within() {
	namespace=$1
	shift
	exec "$IP" netns exec "$namespace" "$@"
}
# node NODE COMMAND...: is the command of pspacer there.
node() {
	namespace=$1
	shift
	within "$namespace" /network/ld.so --library-path /network /network/pspacer "$@"
}
say() {
	echo "=== $1"
	shift
	"$@" && status=0 || status=$?
	echo
	echo "=== status $status"
}
# until_so COMMAND...: waits until it succeeds, for half a minute at most.
until_so() {
	tries=0
	until "$@" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 150 ] || {
			echo "$* is not so"
			cat ./*.log
			exit 1
		}
		sleep 0.2
	done
}

# The network.
# link NUMBER LEFT RIGHT: a cable cNUMBER between two nodes.
link() {
	cable "c$1" 100000000
	ip link set "c${1}a" netns "$2"
	ip link set "c${1}b" netns "$3"
	ip -n "$2" addr add "10.0.$1.1/24" dev "c${1}a"
	ip -n "$3" addr add "10.0.$1.2/24" dev "c${1}b"
	ip -n "$2" link set "c${1}a" up
	ip -n "$3" link set "c${1}b" up
}
ip link set lo up
ip addr add $manager_a/32 dev lo
ip addr add $manager_b/32 dev lo
number=0
for name in talker r1 r2 r3 screen; do
	number=$((number + 1))
	ip netns add $name
	ip -n $name link set lo up
	ip netns exec $name sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
	ip link add m$number type veth peer name control netns $name
	ip addr add 10.1.$number.1/24 dev m$number
	ip link set m$number up
	ip -n $name addr add 10.1.$number.2/24 dev control
	ip -n $name link set control up
	ip -n $name route add 10.1.0.0/24 via 10.1.$number.1
done
link 1 talker r1
link 2 r1 r2
link 3 r2 r3
link 4 r3 screen
link 5 r3 screen
ip -n screen addr add 10.0.9.1/32 dev lo
ip -n talker route add default via 10.0.1.2
ip -n r1 route add default via 10.0.2.2
ip -n r1 route add 10.0.1.0/24 via 10.0.1.1 2>/dev/null || :
ip -n r2 route add default via 10.0.3.2
ip -n r2 route add 10.0.1.0/24 via 10.0.2.1
ip -n r3 route add 10.0.9.1 via 10.0.4.2
ip -n r3 route add 10.0.0.0/16 via 10.0.3.1
ip -n screen route add default via 10.0.4.1 src 10.0.9.1

# x1 to x4: where each ends, its address there.
end_of() {
	case $1 in x1) echo r1 ;; x2) echo r2 ;; x3) echo r3 ;; x4) echo screen ;; esac
}
address_of() {
	case $1 in x1) echo 10.0.1.2 ;; x2) echo 10.0.2.2 ;; x3) echo 10.0.3.2 ;; x4) echo 10.0.9.1 ;; esac
}
for name in r1 r2 r3 screen; do
	node $name reflect --quiet &
	within $name psp-recv --tcp --port 5001 --count 2 >/dev/null &
done

# flows COUNT NAME ADDRESS:PORT: prints options for as many TCP connections.
flows() {
	for _ in $(seq "$1"); do
		echo "--flow to=$3,proto=tcp,name=$2,window=1000000"
	done
}
# bulk FILE: starts TCP on each cable, and from the talker through all of them. bulk_stop ends it.
bulk() {
	file=$1
	bulks=
	from=talker
	for pair in r1:10.0.1.2 r2:10.0.2.2 r3:10.0.3.2 screen:10.0.9.1; do
		all=$(flows 4 $from "${pair#*:}:5002")
		[ $from = talker ] && all="$all $(flows 2 through 10.0.9.1:5001)"
		# shellcheck disable=SC2086
		within $from psp-send --stop-ns $forever_ns $all >"$file.$from" &
		bulks="$bulks $!"
		from=${pair%:*}
	done
}
bulk_stop() {
	# shellcheck disable=SC2086
	kill $bulks
	# shellcheck disable=SC2086
	wait $bulks || :
	cat "$file".*
}
# probe STREAM [OPTION...]: sends packets of a stream, one each millisecond, 130 bytes on the wire each.
probe() {
	stream=$1
	shift
	node talker ping "$(address_of "$stream")" --synced --json --size 64 --period 1ms --wait 3s "$@"
}
# probe_all PACKETS MANAGED: probes all streams at once. probe_end waits for the end.
probe_all() {
	head -n 1 /proc/stat >stat.before
	probes=
	for stream in x1 x2 x3 x4; do
		more=
		# shellcheck disable=SC2086
		[ "$2" = yes ] && more="--reservation $stream --listener $(end_of $stream) $asked"
		# shellcheck disable=SC2086
		probe $stream --count "$1" $more >"$stream.json" 2>"$stream.err" &
		probes="$probes $!"
	done
}
probe_end() {
	ended=0
	for probe in $probes; do
		wait "$probe" || ended=1
	done
	head -n 1 /proc/stat >stat.after
	cat x?.err
	return $ended
}
# found NAME: says what each stream has found, without histograms, and the time of the processor.
found() {
	for stream in x1 x2 x3 x4; do
		tr -d ' \n' <$stream.json | sed 's/,"histogram":[[][^]]*[]]//g' >figures
		say "$1: $stream" cat figures
	done
	say "$1: time" cat stat.before stat.after
}

# The managers.
hash() { printf %s "$1" | sha256sum | cut -d ' ' -f 1; }
echo talk >talk.token
echo agent >agent.token
cat >access.toml <<END_OF_FILE
[[access]]
name = "studio"
role = "operator"
token_sha256 = "$(hash talk)"
[[access]]
name = "agents"
role = "agent"
hosts = ["talker", "r1", "r2", "r3"]
token_sha256 = "$(hash agent)"
END_OF_FILE
# Streams and best effort take 30 % of a line together, so that the guest's processor is not what limits TCP.
# The bound of s5 is another one than that of s4, for the change of the route.
{
	printf '[[host]]\nname = "%s"\n' talker screen
	printf '[[router]]\nname = "%s"\n' r1 r2 r3
	printf '[[segment]]\nname = "s%s"\nmedium = "switched"\nrate = "100mbit"\nrt = 20\ntotal = 30\nmembers = [%s]\n' \
		1 '"talker", "r1"' 2 '"r1", "r2"' 3 '"r2", "r3"' 4 '"r3", "screen"' 5 '"r3", "screen"'
	echo 'slot = "3ms"'
} >net.toml

members="e0=http://127.0.0.1:2380,e1=http://127.0.0.1:2381,e2=http://127.0.0.1:2382"
for member in 0 1 2; do
	/network/ld.so --library-path /network /network/etcd --name e$member --data-dir e$member \
		--listen-client-urls http://127.0.0.1:237$member \
		--advertise-client-urls http://127.0.0.1:237$member \
		--listen-peer-urls http://127.0.0.1:238$member \
		--initial-advertise-peer-urls http://127.0.0.1:238$member \
		--initial-cluster "$members" >>etcd.log 2>&1 &
done
store=etcd:http://127.0.0.1:2370,http://127.0.0.1:2371,http://127.0.0.1:2372

# manage ADDRESS: a manager there.
manage() {
	start manager --topology net.toml --store $store --in-force-within 20s --listen "$1:8646" \
		--access access.toml --tls-cert /network/manager.pem --tls-key /network/manager.key \
		>>manager.log 2>&1
}
with="--token-file talk.token --ca /network/ca.pem"
asked="--manager https://managers:8646 $with"
# shellcheck disable=SC2086
ask() { pspacer "$@" $asked; }
list() { ask reservations --json; }

manage $manager_a &
first=$!
# shellcheck disable=SC2086
until_so pspacer reservations --manager https://$manager_a:8646 $with
# The second one stands by: it sends those that ask to the first one.
manage $manager_b &
# shellcheck disable=SC2086
until_so pspacer reservations --manager https://$manager_b:8646 $with

# agent NODE PORTS
agent() {
	node "$1" agent --node "$1" --port "$2" --poll 500ms --follow-routes --json --token-file agent.token \
		--manager https://managers:8646 --ca /network/ca.pem \
		>"agent-$1.json" 2>"agent-$1.log"
}
has_nrt() { tc -n "$1" class show dev "$2" | grep -q 'mode nrt'; }
agent talker s1=c1a &
agent r1 s1=c1b,s2=c2a &
agent r2 s2=c2b,s3=c3a &
agent r3 s3=c3b,s4=c4a,s5=c5a &
until_so has_nrt talker c1a
until_so has_nrt r1 c2a
until_so has_nrt r2 c3a
until_so has_nrt r3 c5a

# Without reservations the packets are best effort.
bulk bulk0
sleep 0.5
probe_all 300 no
say "no reservations" probe_end
say "no reservations: TCP" bulk_stop
found "no reservations"

# Ten packets of each period are 1,300 bytes on the wire, and 3,076 are reserved: the talker has one
# processor for all nodes, and some of its packets are late by some milliseconds.
for stream in x1 x2 x3 x4; do
	say "reserve $stream" ask reserve --json --id $stream --from talker --to $(end_of $stream) --bytes 2944 \
		--period 10ms --for 1h --udp-to "$(address_of $stream):8637"
done

classes() {
	for port in talker:c1a r1:c2a r2:c3a r3:c4a r3:c5a; do
		echo "$port"
		tc -n ${port%:*} class show dev ${port#*:}
		ip netns exec ${port%:*} /network/ld.so --library-path /network /network/pspacer save ${port#*:}
	done
}
# The first manager is killed while the streams are sent.
say "classes" classes
bulk bulk1
sleep 0.5
probe_all "$PACKETS" yes
sleep 1
kill -9 $first
until_so list
say "after the takeover" list
say "renewed" ask renew x1 --for 2h --json
say "streams" probe_end
found "reserved"
say "TCP" bulk_stop
say "classes after the takeover" classes
say "measured" list

# The last router sends by the other cable.
moved() { list | tr -d ' \n' | grep -q '"route":\["talker","s1","r1","s2","r2","s3","r3","s5","screen"\]'; }
in_force() { ! list | grep -q '"in_force": *false'; }
bulk bulk2
sleep 0.5
ip -n r3 route replace 10.0.9.1 via 10.0.5.2
until_so moved
until_so in_force
say "moved" list
say "classes after the move" classes
probe_all "$MOVED_PACKETS" yes
say "moved streams" probe_end
found "moved"
say "moved TCP" bulk_stop
say "measured after the move" list
say "r3 events" cat agent-r3.json
say "logs" cat manager.log agent-talker.log agent-r1.log agent-r2.log agent-r3.log
exit 0
