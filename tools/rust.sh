#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Chooses the Rust toolchain: the machine's own if it is new enough and whole, else one of
# Debian's packages, which is unpacked into the cache and not installed. Why:
# docs/decisions/dependencies.md, "Rust out of Debian's packages".
#
# usage: rust.sh path      prints what to put before PATH: "FOLDER:", or nothing
#        rust.sh fetch     unpacks one if the machine's is too old or not whole
#        rust.sh declared  unpacks exactly the version declared; prints its folder
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
declared=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$top/Cargo.toml")
cache=${PSPACER_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/pspacer}
# The number behind the version grows when what is unpacked changes.
toolchain=$cache/rust/$declared-2

# Debian 12 has this version beside its own, for browsers. Its programs run with
# the C library of Debian 12 and of anything newer, so one set serves all.
suite=bookworm
programs='cargo-web libstd-rust-web-dev rust-web-clippy rustc-web rustfmt-web'
# The libraries that the programs are linked with. libc6, libgcc-s1 and libstdc++6 are
# missing here, because every Debian has them and they must be the machine's.
libraries="libstd-rust-web-$declared libbrotli1 libbsd0 libcom-err2 libcurl4 libedit2 libffi8
	libgmp10 libgnutls30 libgssapi-krb5-2 libhogweed6 libhttp-parser2.9 libicu72 libidn2-0
	libk5crypto3 libkeyutils1 libkrb5-3 libkrb5support0 libldap-2.5-0 libllvm19 liblzma5 libmd0
	libnettle8 libnghttp2-14 libp11-kit0 libpcre3 libpsl5 librtmp1 libsasl2-2 libsqlite3-0
	libssh2-1 libssl3 libtasn1-6 libtinfo6 libunistring2 libxml2 libz3-4 libzstd1 zlib1g"

die() {
	echo "setup: $*" >&2
	exit 1
}

# version PROGRAM: prints the version of a program on the PATH, or nothing.
version() {
	"$1" --version 2>/dev/null | sed -n '1s/^[a-z]* \([0-9.]*\).*/\1/p'
}

new_enough() {
	[ -n "$1" ] && printf '%s\n%s\n' "$declared" "$1" | sort -V -C
}

# objection: prints why the toolchain on the PATH is not used; nothing if it is.
objection() {
	for program in cargo rustc; do
		found=$(version $program)
		if [ -z "$found" ]; then
			echo "no $program on the PATH"
			return
		fi
		if ! new_enough "$found"; then
			echo "$program on the PATH is $found, older than $declared"
			return
		fi
	done
	for part in clippy fmt; do
		if ! cargo $part --version >/dev/null 2>&1; then
			echo "cargo on the PATH has no $part"
			return
		fi
	done
}

# wrap FOLDER: makes a script in bin for each program. It starts the program with the
# unpacked libraries, and hides them from the programs that this one starts.
wrap() {
	lib='$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu'
	# rustdoc starts the rustc beside its own libraries, in usr/bin, for tests in documents.
	mv "$1/usr/bin/rustc" "$1/usr/bin/rustc.program"
	printf '#!/bin/sh\nexec "$(dirname "$0")/../../bin/rustc" "$@"\n' >"$1/usr/bin/rustc"
	chmod +x "$1/usr/bin/rustc"
	for program in cargo clippy-driver rustc rustdoc rustfmt; do
		file=$program
		[ $program != rustc ] || file=rustc.program
		cat >"$1/bin/$program" <<-EOF
			#!/bin/sh
			root=\$(dirname "\$(dirname "\$0")")
			unset LD_LIBRARY_PATH
			$([ $program != cargo ] || echo 'export CARGO="$0"')
			exec /lib64/ld-linux-x86-64.so.2 --library-path "$lib" "\$root/usr/bin/$file" "\$@"
		EOF
	done
	# cargo-clippy looks for clippy-driver beside its own file, so ld.so must not start
	# it. It starts only cargo.
	mv "$1/usr/bin/cargo-clippy" "$1/bin/cargo-clippy.program"
	cat >"$1/bin/cargo-clippy" <<-EOF
		#!/bin/sh
		root=\$(dirname "\$(dirname "\$0")")
		LD_LIBRARY_PATH="$lib" exec "\$0.program" "\$@"
	EOF
	mv "$1/usr/bin/cargo-fmt" "$1/bin/cargo-fmt" # needs no libraries
	chmod +x "$1"/bin/*
}

unpack() {
	[ ! -x "$toolchain/bin/cargo" ] || return 0
	command -v apt-get >/dev/null && [ "$(dpkg --print-architecture)" = amd64 ] ||
		die "Rust is fetched from Debian's packages for amd64 alone: install Rust $declared or newer, with clippy and rustfmt"
	mkdir -p "$cache/locks" "$cache/rust"
	exec 8>"$cache/locks/rust"
	flock 8
	[ ! -x "$toolchain/bin/cargo" ] || return 0
	echo "setup: Rust $declared is fetched from Debian's packages, 130 MB, and unpacked into $toolchain" >&2
	new=$toolchain.new
	rm -rf "$new"
	mkdir -p "$new/bin"
	# shellcheck disable=SC2086 # both are lists
	"$top/tools/debs.sh" -x $suite "$new" $programs $libraries
	rm -rf "$new/usr/share"
	wrap "$new"
	found=$(version "$new/bin/cargo")
	case $found in
	"$declared" | "$declared".*) ;;
	*) die "the cargo unpacked into $new says it is '$found', expected $declared" ;;
	esac
	mv "$new" "$toolchain"
}

case ${1:-} in
path)
	[ -z "$(objection)" ] || echo "$toolchain/bin:"
	;;
fetch)
	why=$(objection)
	[ -n "$why" ] || exit 0
	[ -x "$toolchain/bin/cargo" ] || echo "setup: $why" >&2
	unpack
	;;
declared)
	unpack
	echo "$toolchain/bin"
	;;
*)
	echo "usage: $0 path|fetch|declared" >&2
	exit 2
	;;
esac
