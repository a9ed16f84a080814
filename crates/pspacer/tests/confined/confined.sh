#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the laboratory's guest: each part of the command that has an AppArmor profile does its
# work in enforce mode, without a denial in the kernel's log, and is refused what another
# part does. Prints TAP.
#
#   /confined     this test's files: the command and its libraries, the profiles, apparmor.tar
#
#   near 10.1.0.1 --- 10.1.0.2 middle 10.2.0.1 --- 10.2.0.2 far      pspacer router in the middle

. /confined/lib.sh
. /confined/installed.sh

# A profile names /usr/bin/pspacer.
installed /confined
mkdir -p /etc/pspacer /var/lib/pspacer /var/lib/prometheus/node-exporter /run/pspacer
tar -xf /confined/apparmor.tar -C /
mount -t securityfs securityfs /sys/kernel/security
cp /confined/profiles /etc/apparmor.d/pspacer
# What a site adds: where watch saves packets.
mkdir -p /etc/apparmor.d/local /srv/stalls /srv/figures
echo "owner /srv/{stalls,figures}/{,**} rwk," >/etc/apparmor.d/local/pspacer
ip link set lo up
cd /tmp

# confined PART WORDS...: runs the command under the part's profile.
confined() {
	profile=pspacer-$1
	shift
	aa-exec -p "$profile" -- pspacer "$@"
}
# start PART WORDS...: the same beside the script, behind the words of $start_in; sets $pid. It
# prints to PART.log.
start_in=
start() {
	part=$1
	shift
	forget
	# shellcheck disable=SC2086 # words, or nothing
	$start_in aa-exec -p "pspacer-$part" -- pspacer "$@" >"$part.log" 2>&1 &
	pid=$!
}
# until_so COMMAND...: waits until it succeeds, half a minute at most.
until_so() {
	tries=0
	until said=$("$@" 2>&1); do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || {
			echo "$said"
			echo "$part.log:"
			cat "$part.log"
			denials "$part" | tail
			return 1
		}
		sleep 0.3
	done
}
# soon NAME COMMAND...: the command must succeed while the part runs that was started last.
soon() {
	what=$1
	shift
	check "$what" until_so "$@"
}
forget() { dmesg -c >/dev/null; }
# denials PART: prints what the kernel refused to it since the last call of forget.
denials() { dmesg | grep 'apparmor="DENIED"' | grep "profile=\"pspacer-$1\""; }
# undisturbed PART [PATTERN]: nothing was refused while it did its work, but for PATTERN.
undisturbed() {
	if output=$(denials "$1" | grep -v -e "${2:-^$}"); then
		not_ok "$1: nothing is refused at its work"
	else
		ok "$1: nothing is refused at its work"
	fi
}
is_confined() { same "pspacer-$part (enforce)" "$(cat "/proc/$pid/attr/current")"; }
# stop: ends the part as systemd does.
stop() {
	kill -TERM "$pid" || true
	wait "$pid" || true
}
# needs_each PART WORDS...: without any of its profile's capabilities the part is refused it at its work.
needs_each() {
	part=$1
	shift
	sed -n -e "1,/^include/p; /^profile pspacer-$part /,/^}/p" /confined/profiles >whole
	for capability in $(capabilities "$part"); do
		grep -v "^  capability $capability,\$" whole >less
		reload less
		forget
		$start_in timeout 3 aa-exec -p "pspacer-$part" -- pspacer "$@" >"$part.log" 2>&1 || true
		check "$part: needs the capability $capability" refused_capability
		echo "#   $(tail -n 1 "$part.log")"
	done
	reload whole
}
# reload FILE: loads a profile that is not made small, which takes a third of the time and refuses the same.
reload() { apparmor_parser --skip-cache -O no-minimize -O no-expr-simplify --replace "$1"; }
refused_capability() {
	denials "$part"
	cat "$part.log"
	denials "$part" | grep -q "capname=\"$capability\""
}
# capabilities PART: those of its profile.
capabilities() { sed -n "/^profile pspacer-$1 /,/^}/s/^  capability \(.*\),\$/\1/p" /confined/profiles; }
# fenced PART: what no part may do, and that the kernel's log says so.
fenced() {
	forget
	refuse "$1: reads no passwords" "Permission denied" confined "$1" measure /etc/shadow
	refuse "$1: writes nothing elsewhere" "Permission denied" confined "$1" $draw
	refuse "$1: starts no shell" "Permission denied" aa-exec --immediate -p "pspacer-$1" -- /bin/sh -c :
	check "$1: the kernel's log has all three" has_all "$1"
	forget
}
has_all() {
	denials "$1" | grep 'name="/etc/shadow"' && denials "$1" | grep 'name="/etc/.psp-' &&
		denials "$1" | grep 'operation="exec"'
}

# What the profiles refuse works without one.
draw="predict --beta 0.2 --hops 4 --period 10ms --plot /etc/drawn.svg"
echo "root:*:20000:0:99999:7:::" >/etc/shadow
chmod 600 /etc/shadow
mkdir -p /srv
echo token >/srv/token
refuse "without a profile passwords are read" "pcap" pspacer measure /etc/shadow
check "without a profile a file is written" pspacer $draw
check "the profiles are loaded" apparmor_parser --skip-cache --replace /etc/apparmor.d/pspacer
check "seven profiles are in force" same 7 "$(grep -c '^pspacer-.* (enforce)$' /sys/kernel/security/apparmor/profiles)"
# Without this the kernel leaves out messages when there are many.
echo 0 >/proc/sys/kernel/printk_ratelimit

# reflect
start reflect reflect --bind 127.0.0.1
pinged() { pspacer ping 127.0.0.1 -c 5 --wait 100ms --json | grep -q '"received": *5'; }
soon "reflect: answers" pinged
check "reflect: is confined" is_confined
stop
# It asks for a larger receive buffer than the host's limit, and does without.
undisturbed reflect 'capname="net_admin"'
needs_each reflect reflect --bind 127.0.0.1
refuse "reflect: opens no netlink socket" "Permission denied" confined reflect exporter --once
fenced reflect

# exporter
ip link add d0 type dummy
ip link set d0 up
tc qdisc add dev d0 root handle 1: psp line 1gbit default 1
tc class add dev d0 parent 1: classid 1:1 psp rate 100mbit
# A pod's record, whose name the exporter looks up.
mkdir -p /run/pspacer/cni/pods
cat >/run/pspacer/cni/pods/c1:eth0.json <<-END
	{ "container": "c1", "netns": "/nowhere", "netns_number": 1, "backend": "module", "is_set": false,
	  "pod": { "name": "eth0", "index": 2, "address": [] }, "egress": null,
	  "host": { "name": "d0", "index": 1, "address": [] },
	  "ingress": { "rate_bps": 10000000, "ceil_bps": null, "deadline_ns": null, "txtime": null },
	  "pod_name": { "namespace": "default", "name": "web-0" } }
END
start exporter exporter --listen 127.0.0.1:9977
metrics() { wget -q -O - http://127.0.0.1:9977/metrics | grep -q '^psp_class_sent_frames_total{.*device="d0"'; }
soon "exporter: answers with psp's statistics" metrics
check "exporter: is confined" is_confined
stop
check "exporter: writes for node_exporter" confined exporter exporter --once --textfile /var/lib/prometheus/node-exporter/psp.prom
check "exporter: the file has psp's statistics" grep -q '^psp_class_sent_frames_total{.*device="d0"' /var/lib/prometheus/node-exporter/psp.prom
check "exporter: reads names" grep -q '^psp_exporter_name_errors_total 0' /var/lib/prometheus/node-exporter/psp.prom
# named PART WORDS...: the part reads a file of the site's that the last word names, whatever it has.
named() {
	part=$1
	shift
	timeout 2 aa-exec -p "pspacer-$part" -- pspacer "$@" >named.log 2>&1 || :
	! grep -q "Permission denied" named.log || {
		cat named.log
		return 1
	}
}
echo nothing >/etc/pspacer/thing
for option in --token-file --ca "--key /etc/pspacer/thing --cert"; do
	# shellcheck disable=SC2086 # words
	check "exporter: reads $option" named exporter exporter --once --manager https://127.0.0.1:8646 $option /etc/pspacer/thing
	# shellcheck disable=SC2086 # words
	check "agent: reads $option" named agent agent --node a --port s=d0 --manager https://127.0.0.1:8646 $option /etc/pspacer/thing
done
for option in --topology "--topology /etc/pspacer/thing --access" "--topology /etc/pspacer/thing --tls-key /etc/pspacer/thing --tls-cert" \
	"--topology /etc/pspacer/thing --client-ca" "--topology /etc/pspacer/thing --peer-ca" \
	"--topology /etc/pspacer/thing --peer-token-file"; do
	# shellcheck disable=SC2086 # words
	check "manager: reads ${option##* }" named manager manager --check $option /etc/pspacer/thing
done
undisturbed agent
undisturbed manager
undisturbed exporter
# Stalls take what watch takes: a profile of its own.
start exporter-stalls exporter --listen 127.0.0.1:9977 --stalls
stalls() { wget -q -O - http://127.0.0.1:9977/metrics | grep -q '^psp_stalls_'; }
soon "exporter --stalls: counts them" stalls
check "exporter --stalls: is confined" is_confined
stop
undisturbed exporter-stalls 'capname="\(net_admin\|sys_admin\)"'
refuse "exporter: its own profile lets it trace nothing" "." confined exporter exporter --stalls --textfile /var/lib/prometheus/node-exporter/psp.prom
refuse "exporter: writes nowhere else" "Permission denied" confined exporter exporter --once --textfile /srv/psp.prom
fenced exporter
fenced exporter-stalls

# manager and agent
cat >/etc/pspacer/net.toml <<'END'
[[host]]
name = "a"
[[host]]
name = "b"
[[segment]]
name = "s"
medium = "shared"
rate = "100mbit"
members = ["a", "b"]
END
cp /etc/pspacer/net.toml /srv/net.toml
ip link add d1 type dummy
ip link set d1 up
start manager manager --topology /etc/pspacer/net.toml --store sqlite:/var/lib/pspacer/r.db --in-force-within 20s \
	--listen 127.0.0.1:8646 --address-file /run/pspacer/address
manager=$pid
soon "manager: answers" pspacer reservations
check "manager: is confined" is_confined
kill -HUP "$manager"
soon "manager: reads its callers again" grep -q "are read again" manager.log
check "manager: still answers" pspacer reservations
start agent agent --node a --port s=d1 --poll 200ms
has_nrt() { tc class show dev d1 | grep -q 'mode nrt'; }
has_rt() { tc class show dev d1 | grep -q 'mode rt'; }
soon "agent: sets the port of its host" has_nrt
check "agent: is confined" is_confined
check "manager: grants a stream once it is in force" pspacer reserve --from a --to b --bytes 10000 --period 10ms \
	--for 10m --udp-to 10.0.0.2:5004
check "agent: has set a class for it" has_rt
stop
undisturbed manager
undisturbed agent
# With an empty port there is something to set.
tc qdisc del dev d1 root
needs_each agent agent --node a --port s=d1 --poll 200ms
# Where the module is not loaded, it looks at what else the kernel has.
tc qdisc del dev d1 root 2>/dev/null || :
tc qdisc del dev d0 root
rmmod sch_psp
start agent agent --node a --port s=d1 --poll 200ms
soon "agent: says what it lacks" grep -q psp agent.log
stop
undisturbed agent
pid=$manager
stop
# Where pspacer-manager.service has the store.
mkdir -p /var/lib/private/pspacer
start manager manager --topology /etc/pspacer/net.toml --store sqlite:/var/lib/private/pspacer/r.db --listen 127.0.0.1:8646
soon "manager: answers with the store of its unit" pspacer reservations
stop
undisturbed manager
check "manager: its profile has no capability" same "" "$(capabilities manager)"
refuse "manager: reads no topology elsewhere" "Permission denied" confined manager manager --topology /srv/net.toml --check
refuse "manager: keeps no store elsewhere" "." confined manager manager --topology /etc/pspacer/net.toml --store sqlite:/srv/r.db
refuse "manager: changes no port" "." confined manager agent --node a --port s=d1
refuse "agent: reads no token elsewhere" "Permission denied" confined agent agent --node a --port s=d1 --token-file /srv/token
fenced manager
fenced agent

# watch
psp-recv --tcp --port 5001 >/dev/null &
receiver=$!
start watch watch --json --duration 5s
watching() { grep -q "pspacer: watching" watch.log; }
soon "watch: watches" watching
check "watch: is confined" is_confined
psp-send --stop-ns 1000000000000000 --flow to=127.0.0.1:5001,proto=tcp,window=300000 >/dev/null &
sender=$!
wait $pid && status=0 || status=$?
output=$(cat watch.log)
check "watch: ends well" same 0 $status
check "watch: sees the connection" grep -q '"server": *"127.0.0.1:5001"' watch.log
check "watch: sees one process alone" confined watch watch --json --pid $receiver --duration 100ms
kill $sender $receiver
wait $sender $receiver || true
echo "nobody:x:65534:65534:nobody:/tmp:/bin/sh" >>/etc/passwd
su nobody -c "exec psp-recv --tcp --port 5002" >/dev/null &
stranger=$!
of_nobody() { same 65534 "$(stat -c %u /proc/$stranger)"; }
check "a process of another user runs" until_so of_nobody
check "watch: sees a process of another user" confined watch watch --json --pid $stranger --duration 100ms
check "watch: keeps packets" confined watch watch --packets /srv/stalls --duration 100ms
check "watch: writes tables" confined watch watch --out /srv/figures --duration 100ms
# The library that loads the program tries what the kernel can do for others.
undisturbed watch 'capname="\(net_admin\|sys_admin\)"'
needs_each watch watch --pid $stranger --packets /srv/stalls --duration 100ms
refuse "watch: writes no tables elsewhere" "Permission denied" confined watch watch --duration 100ms --out /srv/tables
fenced watch

# router
for host in near middle far; do
	ip netns add $host
	ip -n $host link set lo up
done
ip link add n0 netns near type veth peer name m0 netns middle
ip link add m1 netns middle type veth peer name f0 netns far
ip -n near addr add 10.1.0.1/24 dev n0
ip -n middle addr add 10.1.0.2/24 dev m0
ip -n middle addr add 10.2.0.1/24 dev m1
ip -n far addr add 10.2.0.2/24 dev f0
for end in "near n0" "middle m0" "middle m1" "far f0"; do
	ip -n ${end% *} link set ${end#* } up
done
ip -n near route add 10.2.0.0/24 via 10.1.0.2
ip -n far route add 10.1.0.0/24 via 10.2.0.1
ip netns exec far pspacer reflect >/dev/null 2>&1 &
reflect=$!
forwarded() { ip netns exec near pspacer ping 10.2.0.2 -c 5 --wait 1s --json | grep -q '"received": *5'; }
for io in packet xdp; do
	cat >/etc/pspacer/router.toml <<-END
		period = "5ms"
		[[device]]
		name = "m0"
		budget = "70mbit"
		io = "$io"
		[[device]]
		name = "m1"
		budget = "70mbit"
		io = "$io"
		[[route]]
		to = "10.1.0.0/24"
		device = "m0"
		via = "10.1.0.1"
		[[route]]
		to = "10.2.0.0/24"
		device = "m1"
		via = "10.2.0.2"
	END
	start_in="$IP netns exec middle"
	start router router /etc/pspacer/router.toml
	soon "router: forwards with $io" forwarded
	check "router: is confined" is_confined
	stop
	# The verifier asks whether more than a router's program needs is allowed to it.
	undisturbed router 'capname="\(perfmon\|sys_admin\)"'
done
needs_each router router /etc/pspacer/router.toml
start_in=
kill $reflect
cp /etc/pspacer/router.toml /srv/router.toml
refuse "router: reads no file elsewhere" "Permission denied" confined router router /srv/router.toml --check
fenced router
finish
