#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Drives pspacer-cni by parts that nobody here wrote: libcni's cnitool, and Debian's plugins ptp,
# bridge, host-local and bandwidth, in the laboratory's guest. Go fetches and compiles cnitool into
# the cache.
#
# usage: run.sh
#   PSPACER_CACHE  folder for packages (~/.cache/pspacer)
set -eu

cd "$(dirname "$0")/../.."
version=v1.3.0
cache=${PSPACER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pspacer}/cni-$version
PATH=$PATH:/usr/local/go/bin
[ -x "$cache/cnitool" ] || GOBIN=$cache CGO_ENABLED=0 \
	go install "github.com/containernetworking/cni/cnitool@$version"
CNITOOL=$cache/cnitool cargo test --locked --package cni --test it -- real_lab:: --ignored --nocapture
