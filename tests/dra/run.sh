#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Calls pspacer-node by what nobody here wrote: Kubernetes' own structures and its gRPC in Go play
# kubelet and API server, read the manifests without an unknown key, and compare quantities. Go
# fetches them into its cache; the program is built in this project's. gRPC for Python, which is its
# C core, calls, too, if pip can install it into an environment there.
#
# usage: run.sh
#   PSPACER_CACHE  folder for packages (~/.cache/pspacer)
set -eu

cd "$(dirname "$0")/../.."
top=$(pwd)
version=v0.35.0
grpcio=1.85.3
cache=${PSPACER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pspacer}/dra-$version
PATH=$PATH:/usr/local/go/bin
cargo build --locked --package node
mkdir -p "$cache"
cp tests/dra/kubelet.go tests/dra/expect.go tests/dra/client.py "$cache/"
cd "$cache"
[ -e go.mod ] || {
	go mod init dra
	go get "k8s.io/api@$version" "k8s.io/kubelet@$version" google.golang.org/grpc@v1.72.2 sigs.k8s.io/yaml@v1.6.0
	go mod tidy
}
go build -o kubelet .
python=$cache/grpcio-$grpcio
if [ ! -e "$python/made" ]; then
	rm -rf "$python"
	if python3 -m venv "$python" && "$python/bin/pip" install --quiet "grpcio==$grpcio"; then
		touch "$python/made"
	else
		echo "run.sh: skipped: gRPC for Python, because pip cannot install grpcio $grpcio here" >&2
	fi
fi
[ ! -e "$python/made" ] || export PYTHON="$python/bin/python3"
./kubelet "${CARGO_TARGET_DIR:-$top/target}/debug/pspacer-node" "$top"/packaging/kubernetes/*.yaml
