#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Calls pspacer-node by what nobody here wrote: Kubernetes' own structures and its gRPC in Go play
# kubelet and API server, read the manifests without an unknown key, and compare quantities. Go
# fetches them into its cache; the program is built in this project's.
#
# usage: run.sh
#   PSPACER_CACHE  folder for packages (~/.cache/pspacer)
set -eu

cd "$(dirname "$0")/../.."
top=$(pwd)
version=v0.35.0
cache=${PSPACER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pspacer}/dra-$version
PATH=$PATH:/usr/local/go/bin
cargo build --locked --package node
mkdir -p "$cache"
cp tests/dra/kubelet.go tests/dra/expect.go "$cache/"
cd "$cache"
[ -e go.mod ] || {
	go mod init dra
	go get "k8s.io/api@$version" "k8s.io/kubelet@$version" google.golang.org/grpc@v1.72.2 sigs.k8s.io/yaml@v1.6.0
	go mod tidy
}
go build -o kubelet .
./kubelet "${CARGO_TARGET_DIR:-$top/target}/debug/pspacer-node" "$top"/packaging/kubernetes/*.yaml
