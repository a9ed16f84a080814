#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Drives pspacer-cni by parts that nobody here wrote, in the laboratory's guest: libcni's cnitool,
# Debian's plugins ptp, bridge, host-local and bandwidth, and containerd with runc, that of this
# Debian and the newest. Go fetches and compiles cnitool into the cache; apt fetches containerd, which
# is unpacked there and not installed.
#
# usage: run.sh
#   PSPACER_CACHE  folder for packages (~/.cache/pspacer)
set -eu

cd "$(dirname "$0")/../.."
version=v1.3.0
cache=${PSPACER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pspacer}
PATH=$PATH:/usr/local/go/bin
CNITOOL=$cache/cni-$version/cnitool
[ -x "$CNITOOL" ] || GOBIN=$cache/cni-$version CGO_ENABLED=0 \
	go install "github.com/containernetworking/cni/cnitool@$version"

# containerd NAME FETCH...: a root with containerd, runc and libseccomp, which FETCH puts into a folder.
containerd() {
	CONTAINERD=$cache/$1
	[ ! -d "$CONTAINERD" ] || return 0
	new=$CONTAINERD.new
	rm -rf "$new"
	mkdir -p "$new/root" "$new/debs"
	shift
	"$@" "$new/debs"
	for package in "$new"/debs/*.deb; do
		dpkg-deb -x "$package" "$new/root"
	done
	mv "$new/root" "$CONTAINERD"
	rm -r "$new"
}

of_this_machine() (
	cd "$1"
	apt-get download -qq -o APT::Sandbox::User=root containerd libseccomp2 runc
)

# The newest containerd, above this machine's runc: sid's wants a newer libc.
newest() {
	of_this_machine "$1"
	rm "$1"/containerd_*
	tools/debs.sh sid "$1" containerd
}

export CNITOOL CONTAINERD
containerd containerd of_this_machine
cargo test --locked --package cni --package node --test it -- real_lab:: pods_of_containerd --ignored --nocapture --test-threads 1
containerd containerd-newest newest
cargo test --locked --package node --test it -- pods_of_containerd --ignored --nocapture --test-threads 1
