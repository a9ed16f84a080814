#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs pspacer-node in a cluster of Kubernetes' own API server, scheduler and controllers, on
# loopback, with the kubelet's own code as the driver's client: cluster.go and kubelet.go say what
# they check. Go fetches and compiles them into the cache, apt fetches etcd, which is unpacked there
# and not installed. The first time takes ten minutes on two cores, and 3 GB of the cache.
#
# usage: run.sh
#   MINOR          of Kubernetes 1.MINOR (34.4); its parts have the version 0.MINOR
#   PSPACER_CACHE  folder for packages (~/.cache/pspacer)
set -eu

cd "$(dirname "$0")/../.."
top=$(pwd)
minor=${MINOR:-34.4}
cache=${PSPACER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pspacer}
PATH=$PATH:/usr/local/go/bin
cargo build --locked --package node

etcd=$cache/etcd-server
if [ ! -d "$etcd" ]; then
	rm -rf "$etcd.new"
	tools/debs.sh -x bookworm "$etcd.new" etcd-server
	mv "$etcd.new" "$etcd"
fi

cluster=$cache/cluster-$minor
mkdir -p "$cluster"
cp tests/cluster/*.go tests/dra/expect.go "$cluster/"
cd "$cluster"
if [ ! -e made ]; then
	# Of its parts Kubernetes names folders beside it, which are modules of their own elsewhere.
	file=$(go mod download -json "k8s.io/kubernetes@v1.$minor" | sed -n 's/^.*"GoMod": "\(.*\)",$/\1/p')
	{
		echo 'module cluster'
		sed -e '/^module/d' -e "s|=> ./staging/src/\(k8s.io/[a-z0-9-]*\)|=> \1 v0.$minor|" "$file"
		echo "require k8s.io/kubernetes v1.$minor"
	} >go.mod
	mkdir -p parts
	echo 'package parts' >parts/parts.go
	for name in kube-apiserver kube-scheduler kube-controller-manager; do
		echo "import _ \"k8s.io/kubernetes/cmd/$name/app\""
	done >>parts/parts.go
	go mod tidy
	for name in kube-scheduler kube-controller-manager kube-apiserver; do
		echo "run.sh: $name is compiled" >&2
		go build -o "bin/$name" "k8s.io/kubernetes/cmd/$name"
	done
	touch made
fi
go build -o cluster .
./cluster "$cluster/bin" "$etcd/usr/bin/etcd" "${CARGO_TARGET_DIR:-$top/target}/debug/pspacer-node" \
	"$top/packaging/kubernetes"
