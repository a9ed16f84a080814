#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes an OCI image out of the Debian packages, without a daemon: the smallest Debian 12
# with pspacer and the tc plugin, as one layer of an OCI layout in a tar file. It is for
# sweeps, analysis of captures and predictions; pacing needs the host's kernel. Nodes of
# Kubernetes take pspacer-cni out of it and run pspacer-node. Needs mmdebstrap, and root or a user namespace.
#
# usage: image.sh
#   DEBS   the Debian packages (build/deb, of `make deb`)
#   OUT    where the image goes (build/image)
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
debs=${DEBS:-$top/build/deb}
out=${OUT:-$top/build/image}
suite=bookworm
die() {
	echo "image.sh: $*" >&2
	exit 1
}
command -v mmdebstrap >/dev/null || die "mmdebstrap is missing: install the package of that name"
pspacer=$(ls "$debs"/pspacer_*_amd64.deb 2>/dev/null) || die "no package pspacer in $debs: run 'make deb' first"
plugin=$(ls "$debs"/iproute2-psp_*_amd64.deb 2>/dev/null) || die "no package iproute2-psp in $debs: run 'make deb' first"
[ "$(echo "$pspacer" | wc -l)" = 1 ] || die "several versions of pspacer in $debs: expected one"
version=$(dpkg-deb -f "$pspacer" Version)
SOURCE_DATE_EPOCH=$(git -C "$top" log -1 --format=%ct)
export SOURCE_DATE_EPOCH

mkdir -p "$out"
work=$(mktemp -d "$out/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
layout=$work/layout
blobs=$layout/blobs/sha256
mkdir -p "$blobs"

"$top/tools/archive.sh" "$suite" >"$work/debian.sources"
# The image names no archive: whoever adds packages to it adds their own.
mmdebstrap --quiet --variant=minbase --include=ca-certificates,iproute2,libelf1 \
	--customize-hook="mkdir -p \"\$1/packages\"" \
	--customize-hook="copy-in $pspacer $plugin /packages" \
	--customize-hook='chroot "$1" sh -c "dpkg -i /packages/*.deb"' \
	--customize-hook='rm -r "$1/packages" "$1"/etc/apt/sources.list.d/*' \
	--customize-hook='rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/* "$1"/var/log/* "$1"/var/cache/ldconfig' \
	"$suite" "$work/layer.tar" "$work/debian.sources" >&2
# Nodes of Kubernetes take it out of here (packaging/kubernetes).
tar -t -f "$work/layer.tar" ./usr/lib/cni/pspacer-cni >/dev/null || die "the image lacks /usr/lib/cni/pspacer-cni"
tar -t -f "$work/layer.tar" ./usr/lib/pspacer/pspacer-node >/dev/null || die "the image lacks /usr/lib/pspacer/pspacer-node"

# blob FILE: moves a file among the blobs, and prints its digest and size.
blob() {
	digest=$(sha256sum "$1" | cut -d ' ' -f 1)
	size=$(stat -c %s "$1")
	mv "$1" "$blobs/$digest"
	echo "$digest $size"
}
layer_digest=$(sha256sum "$work/layer.tar" | cut -d ' ' -f 1)
gzip -n -9 "$work/layer.tar"
read -r digest size <<-END
	$(blob "$work/layer.tar.gz")
END
created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
cat >"$work/config" <<-END
	{"created":"$created","architecture":"amd64","os":"linux","config":{"Env":["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],"Entrypoint":["/usr/bin/pspacer"],"Cmd":["--help"],"WorkingDir":"/data","Labels":{"org.opencontainers.image.title":"pspacer","org.opencontainers.image.version":"$version","org.opencontainers.image.licenses":"(MIT OR Apache-2.0) AND GPL-2.0-only"}},"rootfs":{"type":"layers","diff_ids":["sha256:$layer_digest"]},"history":[{"created":"$created","created_by":"packaging/image.sh"}]}
END
read -r config_digest config_size <<-END
	$(blob "$work/config")
END
cat >"$work/manifest" <<-END
	{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:$config_digest","size":$config_size},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:$digest","size":$size}]}
END
read -r manifest_digest manifest_size <<-END
	$(blob "$work/manifest")
END
echo '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
cat >"$layout/index.json" <<-END
	{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:$manifest_digest","size":$manifest_size,"annotations":{"org.opencontainers.image.ref.name":"$(echo "$version" | tr '~' -)"},"platform":{"architecture":"amd64","os":"linux"}}]}
END
rm -f "$out"/pspacer-*.oci.tar
image=$out/pspacer-$version.oci.tar
tar -c -f "$image" --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
	--numeric-owner --mode=a+rX,go-w -C "$layout" blobs index.json oci-layout
echo "$image: $(stat -c %s "$image") bytes"
