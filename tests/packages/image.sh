#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Loads the OCI image with podman and runc (crun refuses cgroups of both versions) into a store of its own, and runs it without a network:
# the command, a user without rights on a file system that is only read, a capture in a
# mounted folder, exit statuses. Prints TAP.
#
# usage: image.sh
#   IMAGE  the image (build/image, of `make image`)
set -eu

. "$(dirname "$0")/root.sh"
image=${IMAGE:-$(ls "$packages_top"/build/image/pspacer-*.oci.tar 2>/dev/null || true)}
[ -f "$image" ] || die "no image in build/image: run 'make image' first"
for program in podman runc; do
	command -v $program >/dev/null || die "$program is missing: install the package of that name"
done
begin_roots
trap 'ended=$?; podman_store system reset --force >/dev/null 2>&1 || :; clean_roots $ended' EXIT

podman_store() {
	podman --root "$packages_work/store" --runroot "$packages_work/run" --storage-driver vfs \
		--cgroup-manager cgroupfs --runtime runc "$@"
}

# inside [OPTION...] -- ARGUMENT...: runs the image; replaces what runs in a root.
inside() {
	options=
	while [ "$1" != -- ]; do
		options="$options $1"
		shift
	done
	shift
	# shellcheck disable=SC2086 # a list
	podman_store run --rm --network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 $options "$name" "$@" </dev/null
}

# Nothing in the image gives a user rights.
no_rights() {
	found=$(inside --entrypoint=/usr/bin/find -- / -xdev -perm /6000 -name 'p*psp*' 2>&1)
	echo "$found"
	[ -z "$found" ]
}

# alone: the plugin as the DaemonSet copies it, in a root without any other file.
alone() {
	bin=$packages_work/alone/opt/cni/bin
	mkdir -p "$bin"
	inside --entrypoint=/bin/cat -- /usr/lib/cni/pspacer-cni >"$bin/pspacer-cni" || return 1
	chmod 755 "$bin/pspacer-cni"
	"$packages_top/packaging/static.sh" "$bin/pspacer-cni" || return 1
	said=$(env -i PATH=/usr/sbin:/usr/bin CNI_COMMAND=VERSION chroot "$packages_work/alone" /opt/cni/bin/pspacer-cni </dev/null)
	printf '%s\n' "$said"
	printf '%s\n' "$said" | grep -q '"1.1.0"' || return 1
	said=$(printf '{ "cniVersion": "1.1.0", "name": "pods", "type": "pspacer-cni", "psp": { "rat": "1mbit" } }' |
		env -i PATH=/usr/sbin:/usr/bin CNI_COMMAND=ADD CNI_CONTAINERID=a CNI_IFNAME=eth0 CNI_NETNS=/none CNI_PATH=/opt/cni/bin \
			chroot "$packages_work/alone" /opt/cni/bin/pspacer-cni) || :
	printf '%s\n' "$said"
	printf '%s\n' "$said" | grep -q '"code": *2'
}

check "podman loads it" podman_store load -q -i "$image"
name=$(podman_store images -q | head -n 1)
check "it says how it is used" says 0 "Usage: pspacer" --
check "the plugin for pods" says 0 '"1.1.0"' --env=CNI_COMMAND=VERSION --entrypoint=/usr/lib/cni/pspacer-cni --
check "the plugin needs no file of a node" alone
check "the agent of nodes" says 0 'pspacer-node ' --entrypoint=/usr/lib/pspacer/pspacer-node -- --version
check "its version" says 0 "$("$packages_top/packaging/version.sh" | tr '~' -)" -- --version
check "a user without rights, nothing written" says 0 '%' --user=1000:1000 --read-only --cap-drop=ALL -- \
	predict --beta 0.2 --hops 4 --period 10ms
captures=$packages_top/crates/stalls/stall/tests/kinds
capture=$(cd "$captures" && find . -name '*.pcap*' | sort | head -n 1)
check "a capture in a folder" says "0 1" "" "--volume=$captures:/data:ro" --user=1000:1000 -- stalls "$capture"
check "a capture that is not there" says 1 "none.pcap" --user=1000:1000 -- stalls none.pcap
check "bad words" says 2 "unexpected argument" -- predict --nonsense
check "no file of ours gives rights" no_rights
end_checks
