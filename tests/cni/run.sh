#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Drives pspacer-cni by parts that nobody here wrote, in the laboratory's guest: libcni's cnitool,
# Debian's plugins ptp, bridge, host-local and bandwidth, and Debian's containerd with runc. Go
# fetches and compiles cnitool into the cache; apt fetches containerd, which is unpacked there and
# not installed.
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

CONTAINERD=$cache/containerd
if [ ! -d "$CONTAINERD" ]; then
	new=$CONTAINERD.new
	rm -rf "$new"
	mkdir -p "$new/root"
	(cd "$new" && apt-get download -qq -o APT::Sandbox::User=root containerd libseccomp2 runc)
	for package in "$new"/*.deb; do
		dpkg-deb -x "$package" "$new/root"
	done
	mv "$new/root" "$CONTAINERD"
	rm -r "$new"
fi

export CNITOOL CONTAINERD
cargo test --locked --package cni --package node --test it -- real_lab:: pods_of_containerd --ignored --nocapture --test-threads 1
