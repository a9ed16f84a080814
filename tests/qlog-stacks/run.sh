#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Lets real QUIC stacks transfer over a path whose truth is known, and compares what `pspacer stalls` finds in
# their qlogs with it: aioquic, quic-go, x/net/quic and ngtcp2, a server that sends and a client. The path is
# proxy.py; the programs of the first three are peer.py and peer.go. pip, Go and apt fetch the stacks, in these
# versions, into the cache, and nothing is installed. Traffic is on the loopback of a network namespace of its own.
#
# usage: run.sh [STACK...]    all stacks, or these; prints a table
#   PSPACER        the program (target/release/pspacer)
#   PSPACER_CACHE  folder for packages (~/.cache/pspacer)
#   LOGS           folder for logs and truths, which stay (target/qlog-stacks)
# Exit status: 1 if a pause of 300 ms or more is missed, a stall of 300 ms or more has no cause in the truth, the
# server's log never has the right cause of a truth, or a wrong verdict has more than low confidence; 3 if the machine was too busy to tell. Takes three minutes; the first time, two more.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
aioquic=1.3.0
quic_go=v0.65.0
xnet=v0.56.0
ngtcp2=0.12.1+dfsg-1+deb12u1
cache=${PSPACER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pspacer}/qlog-stacks
target=${CARGO_TARGET_DIR:-$top/target}
pspacer=${PSPACER:-$target/release/pspacer}
logs=${LOGS:-$target/qlog-stacks}
PATH=$PATH:/usr/local/go/bin

if [ "${1:-}" != --within ]; then
	for tool in "$pspacer" apt-get dpkg-deb go ip openssl python3 unshare; do
		command -v "$tool" > /dev/null || { echo "$tool: expected to be installed" >&2; exit 2; }
	done
	mkdir -p "$cache"
	python=$cache/aioquic-$aioquic
	if [ ! -e "$python/made" ]; then
		python3 -m venv "$python"
		"$python/bin/pip" install --quiet "aioquic==$aioquic"
		touch "$python/made"
	fi
	go=$cache/go-$quic_go-$xnet
	mkdir -p "$go"
	cp "$here/peer.go" "$go/"
	(
		cd "$go"
		if [ ! -e go.sum ]; then
			rm -f go.mod
			go mod init peer
			go get "github.com/quic-go/quic-go@$quic_go" "golang.org/x/net@$xnet"
			go mod tidy
		fi 2> go.log || { cat go.log >&2; exit 1; }
		CGO_ENABLED=0 go build -o peer .
	)
	root=$cache/ngtcp2-$ngtcp2
	if [ ! -d "$root" ]; then
		rm -rf "$root.new"
		mkdir -p "$root.new/debs/partial"
		apt-get install -y -qq --no-install-recommends --download-only --reinstall -o APT::Sandbox::User=root \
			-o "Dir::Cache::archives=$root.new/debs" "ngtcp2-client=$ngtcp2" "ngtcp2-server=$ngtcp2"
		for package in "$root.new"/debs/*.deb; do dpkg-deb -x "$package" "$root.new"; done
		mv "$root.new" "$root"
	fi
	# Whatever ends this script ends all that it started. unshare itself heeds SIGKILL alone.
	unshare --net --pid --fork --kill-child --mount-proc "$0" --within "$@" &
	within=$!
	trap 'kill -KILL $within 2> /dev/null || true' EXIT
	trap 'exit 130' INT TERM HUP
	status=0
	wait $within || status=$?
	exit $status
fi
shift
ip link set lo up
echo "aioquic $aioquic, quic-go $quic_go, x/net $xnet, ngtcp2 $ngtcp2"
[ $# -gt 0 ] || set -- aioquic quic-go xnet ngtcp2
root=$cache/ngtcp2-$ngtcp2
bytes=1200000
mkdir -p "$logs"
(umask 077; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
	-addext subjectAltName=DNS:localhost -keyout "$logs/key.pem" -out "$logs/cert.pem" 2> /dev/null)
truncate -s $bytes "$logs/data"

# peer STACK ROLE PORT AT PAUSE_S: becomes one end.
peer() {
	export LD_LIBRARY_PATH=
	case $1 in
	aioquic) set -- "$cache/aioquic-$aioquic/bin/python3" "$here/peer.py" "$2" "$3" "$folder" $bytes "$4" "$5" ;;
	ngtcp2)
		LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu
		if [ "$2" = server ]; then
			set -- "$root/usr/sbin/gtlsserver" --quiet --qlog-dir "$folder/server" --htdocs "$logs" \
				127.0.0.1 "$3" "$logs/key.pem" "$logs/cert.pem"
		else
			set -- "$root/usr/bin/gtlsclient" --quiet --qlog-dir "$folder/client" --exit-on-all-streams-close \
				127.0.0.1 "$3" https://localhost/data
		fi
		;;
	*) set -- "$cache/go-$quic_go-$xnet/peer" "$1" "$2" "$3" "$folder" $bytes "$4" "$5" ;;
	esac
	exec timeout 20 "$@"
}

# transfer STACK CASE WHO AT PAUSE_S PROXY_OPTION...: a transfer, in which WHO pauses; once more, if a busy
# machine stalls it.
transfer() {
	local table='' status=1
	for _ in 1 2 3; do
		transfer_once "$@" || continue
		status=0
		table=$("$here/check.py" "$pspacer" "$1" "$2" "$folder") || status=$?
		[ $status = 3 ] || break
	done
	[ -z "$table" ] || echo "$table"
	[ $bad = 1 ] || [ $status = 0 ] || bad=$status
}

transfer_once() {
	local stack=$1 case=$2 who=$3 at=$4 pause_s=$5 server proxy failed=0
	shift 5
	folder=$logs/$stack-$case
	rm -rf "$folder"
	mkdir -p "$folder/server" "$folder/client"
	of() { if [ "$who" = "$1" ]; then echo "$at $pause_s"; else echo 0 0; fi; }
	# shellcheck disable=SC2046 # two words
	peer "$stack" server 7443 $(of server) > "$folder/server.log" 2>&1 &
	server=$!
	"$here/proxy.py" 7444 7443 "$folder/truth" "$@" > "$folder/proxy.log" 2>&1 &
	proxy=$!
	# Ports 7443 and 7444, once they are open.
	for _ in $(seq 100); do
		[ "$(grep -c -e :1D13 -e :1D14 /proc/net/udp)" -lt 2 ] || break
		sleep .1
	done
	# shellcheck disable=SC2046 # two words
	if ! (peer "$stack" client 7444 $(of client)) > "$folder/client.log" 2>&1; then
		echo "$stack, $case: the client failed, or took 20 s: $(tail -n 1 "$folder/client.log")" >&2
		failed=1
	fi
	# The server hears that the connection is closed, and writes what it has.
	sleep 1.5
	kill "$server" "$proxy" 2> /dev/null || true
	wait "$server" "$proxy" 2> /dev/null || true
	[ $failed = 0 ]
}

bad=0
printf '| stack | case | log of | truth | found | confidence | length | |\n|---|---|---|---|---|---|---|---|\n'
for stack in "$@"; do
	transfer "$stack" nothing - 0 0
	transfer "$stack" loss - 0 0 --loss .01 --seed 1
	transfer "$stack" handshake - 0 0 --event handshake:0:.8
	transfer "$stack" path - 0 0 --event path:1:.8
	transfer "$stack" acknowledgements - 0 0 --event acknowledgements:1:.8
	transfer "$stack" slow-path - 0 0 --delay-ms 20 --loss .005 --seed 2 --event path:1.2:.8
	[ "$stack" != ngtcp2 ] || continue
	transfer "$stack" application server 600000 .8
	transfer "$stack" response server 0 .6
	transfer "$stack" reader client 40000 1.2
done
exit $bad
