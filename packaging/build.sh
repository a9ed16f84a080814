#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compiles what the packages hold: the command, the CNI plugin, the node agent, libpsp_reserve, the tc plugin, the
# core as a library, and the lists of crates. debian/rules and pspacer.spec call it in an exported tree. Bytes do
# not depend on the folder, the time or the user.
#
# usage: build.sh
#   CARGO_TARGET_DIR  where the command is built (target)
#   PACKAGED          where the other files go (build/packaged)
set -eu

cd "$(dirname "$0")/.."
top=$(pwd)
out=${PACKAGED:-$top/build/packaged}
: "${CARGO_TARGET_DIR:=$top/target}"
: "${CARGO_HOME:=${HOME:?}/.cargo}"
export CARGO_TARGET_DIR CARGO_HOME
PATH=$(tools/rust.sh path)$PATH
export PATH
tools/rust.sh fetch
command -v clang-19 >/dev/null || command -v clang >/dev/null || {
	echo "build.sh: clang is missing, and without it watch and the router's AF_XDP would be left out" >&2
	exit 1
}
mkdir -p "$CARGO_TARGET_DIR" "$out"

# cargo compares times, and all files have the time of the last commit, whatever that changed.
# All counts as old if the same bytes were compiled into this folder, and as new if not: folders, too,
# because build scripts name some.
tree=$(find Cargo.toml Cargo.lock crates core uapi bpf -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum)
age=now
[ "$tree" != "$(cat "$CARGO_TARGET_DIR/tree" 2>/dev/null)" ] || age=@1
find Cargo.toml Cargo.lock crates core uapi bpf -exec touch -h -d "$age" {} +

# Names of folders that compilers would write into their output. The last that fits counts.
export RUSTFLAGS="--remap-path-prefix=$CARGO_HOME=/cargo --remap-path-prefix=$CARGO_TARGET_DIR=/target --remap-path-prefix=$top=."
maps=
for folder in "$CARGO_HOME=/cargo" "$CARGO_TARGET_DIR=/target" "$top=."; do
	maps="$maps -ffile-prefix-map=$folder"
done
# C in crates has the same flags in packages of both kinds, or cargo compiles it, and what needs it,
# anew for each. The distribution's are for the plugin and the library.
distribution="${CFLAGS:--O2}$maps"
export CFLAGS="-g1 -O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2$maps"
# The commit's time is in none of these programs, and build scripts of C begin anew with another.
unset SOURCE_DATE_EPOCH
# Lines for backtraces and profilers: dh_strip puts them into a package of their own.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_DEBUG=line-tables-only
# Crates that make C themselves (libbpf-sys) do not look at flags: what others compiled is not used.
flags="$(cargo --version) $RUSTFLAGS $CFLAGS"
if [ "$flags" != "$(cat "$CARGO_TARGET_DIR/flags" 2>/dev/null)" ]; then
	rm -rf "$CARGO_TARGET_DIR/release"
	echo "$flags" >"$CARGO_TARGET_DIR/flags"
fi
cargo build --release --locked --package pspacer --package node --package psp-reserve
# Nodes take the plugin out of the image, and have another libc or none of these libraries: it needs
# no file of theirs. libelf.a may need more than libelf.so does, and rustc puts that behind -Bdynamic.
libraries=$(pkg-config --static --libs-only-l libelf)
cargo rustc --release --locked --package cni --bin pspacer-cni -- -C target-feature=+crt-static -C "link-args=-Wl,-Bstatic $libraries"
packaging/static.sh "$CARGO_TARGET_DIR/release/pspacer-cni"
env -i CNI_COMMAND=VERSION "$CARGO_TARGET_DIR/release/pspacer-cni" </dev/null >/dev/null
echo "$tree" >"$CARGO_TARGET_DIR/tree"
install -m 755 "$CARGO_TARGET_DIR/release/pspacer" "$out/pspacer"
install -m 755 "$CARGO_TARGET_DIR/release/pspacer-cni" "$out/pspacer-cni"
install -m 755 "$CARGO_TARGET_DIR/release/pspacer-node" "$out/pspacer-node"
install -m 644 "$CARGO_TARGET_DIR/release/libpsp_reserve.so" "$out/libpsp_reserve.so.0"

export CFLAGS="$distribution"
make --no-print-directory -C tc

cc="${CC:-cc} $CFLAGS -std=gnu11 -ffreestanding -fPIC -Wall -Wextra -Werror"
$cc -Icore/include -Icore/deps/host -c -o "$out/pace.o" core/pace.c
rm -f "$out/libpace.a"
ar rcD "$out/libpace.a" "$out/pace.o"
ranlib -D "$out/libpace.a"

packaging/crates.pl sbom >"$out/pspacer.cdx.json"
packaging/crates.pl notices >"$out/third-party"
