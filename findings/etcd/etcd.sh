#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What the findings about etcd share. A script sources lib.sh before this.
: "${work:?}" "${here:?}"

# etcd_of VERSION: etcd of Debian, unpacked below $work/VERSION.
etcd_of() {
	case $1 in
	3.4.*) suite=bookworm ;;
	*) suite=trixie ;;
	esac
	packages "$work/$1" "$suite" "etcd-server=$1"
}

# free_ports N: numbers of ports that nobody has now.
free_ports() {
	python3 -c 'import socket, sys
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(s.getsockname()[1] for s in held))' "$1"
}
# etcd_start VERSION PORT [OPTION...]: a member of its own; its PID is in $etcd.
etcd_start() {
	version=$1 port=$2
	shift 2
	mkdir -p "$work/$version/tmp"
	# shellcheck disable=SC2046
	set -- --name one --data-dir "/tmp/$port" --listen-client-urls "http://127.0.0.1:$port" \
		--advertise-client-urls "http://127.0.0.1:$port" \
		--listen-peer-urls "http://127.0.0.1:$(free_ports 1)" "$@"
	chroot "$work/$version" /usr/bin/etcd "$@" >"$work/log-$port" 2>&1 &
	etcd=$!
	keep_running "$etcd"
	etcd_ready "$port"
}
# etcd_ready PORT: waits until it answers.
etcd_ready() {
	for _ in $(seq 100); do
		case $(ask "$1" kv/range '{"key":"@a"}' 2>/dev/null || :) in 200*) return ;; esac
		sleep 0.2
	done
	tail -n 5 "$work/log-$1" >&2
	cannot "etcd does not answer"
}
# ask PORT PATH JSON [SECONDS]: see ask.py.
ask() {
	python3 "$here/etcd/ask.py" "$@"
}
