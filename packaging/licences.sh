#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks the crates of Cargo.lock with cargo-deny by deny.toml: licences, sources, crates
# that are not wanted, and advisories. cargo compiles cargo-deny into the cache; why this
# version: docs/decisions/dependencies.md, "cargo-deny, compiled into the cache".
#
# usage: licences.sh
#   OFFLINE=1       takes crates and the advisory database that cargo and cargo-deny have in
#                   CARGO_HOME
#   ADVISORIES=0    leaves advisories out, and says so
#   PSPACER_CACHE   where cargo-deny is kept (~/.cache/pspacer)
# Exit status: 0 all that was asked for passes; 1 something does not, or advisories could not
# be read.
set -eu

cd "$(dirname "$0")/.."
die() {
	echo "licences.sh: $*" >&2
	exit 1
}
case ${OFFLINE:-0} in
0) offline= ;;
1) offline=--offline ;;
*) die "OFFLINE is '$OFFLINE', expected 0 or 1" ;;
esac
case ${ADVISORIES:-1} in
0 | 1) ;;
*) die "ADVISORIES is '$ADVISORIES', expected 0 or 1" ;;
esac

# The last versions that the two Rusts compile. Only the newer reads the advisories of today.
rust=$(rustc --version | sed -n 's/^rustc \([0-9.]*\).*/\1/p')
if printf '1.88\n%s\n' "$rust" | sort -V -C; then
	version=0.20.2
else
	version=0.18.3
	[ "${ADVISORIES:-1}" = 0 ] ||
		die "advisories need cargo-deny 0.18.6 or newer, which needs Rust 1.88; rustc here is $rust. ADVISORIES=0 checks the rest"
fi
cache=${PSPACER_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/pspacer}
folder=$cache/cargo-deny-$version
if [ ! -x "$folder/bin/cargo-deny" ]; then
	mkdir -p "$cache/locks"
	exec 9>"$cache/locks/cargo-deny"
	flock 9
fi
if [ ! -x "$folder/bin/cargo-deny" ]; then
	echo "licences.sh: cargo compiles cargo-deny $version into $folder, once; it takes minutes" >&2
	new=$(mktemp -d "$cache/cargo-deny-new.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	# Optimising it would take longer than all its runs.
	CARGO_TARGET_DIR=$new/target CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off \
		CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=false \
		cargo install --quiet --locked $offline --root "$new/root" "cargo-deny@$version" ||
		die "cargo-deny $version does not compile here"
	rm -rf "$folder"
	mv "$new/root" "$folder"
	rm -rf "$new"
	trap - EXIT
fi

# deny WORDS...: exits with cargo-deny's status, which has a bit for each kind of check.
deny() {
	# shellcheck disable=SC2086 # an option, or nothing
	"$folder/bin/cargo-deny" --locked $offline "$@"
}
failed=0
deny check bans licenses sources || failed=1
if [ "${ADVISORIES:-1}" = 0 ]; then
	echo "licences.sh: advisories were NOT checked: ADVISORIES=0" >&2
elif [ -z "$offline" ] && ! deny fetch db; then
	echo "licences.sh: advisories were NOT checked: their database cannot be fetched. OFFLINE=1 takes a copy that was fetched before, ADVISORIES=0 leaves them out" >&2
	failed=1
else
	deny check advisories || failed=1
fi
exit $failed
