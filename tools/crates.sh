#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Keeps compiled crates of others in the cache: a fresh clone compiles only the project's own. Cargo looks at
# each one's fingerprint, so what does not fit is compiled, not used. One set is kept for each lock,
# manifest and toolchain, the two newest of them.
#
# usage: crates.sh take|keep TARGET
set -eu

cd "$(dirname "$0")/.."
cache=${PSPACER_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/pspacer}/crates
target=$2/debug
set=$cache/$({ cat Cargo.lock Cargo.toml; rustc -vV; } | sha256sum | cut -c1-16)

# copy_set FROM TO: copies the crates that are not the project's, with their times.
copy_set() {
	own=$(find . -name Cargo.toml -not -path './target/*' \
		-exec sed -n '/^\[package\]/,/^$/s/^name = "\(.*\)"/\1/p' {} +)
	mkdir -p "$2/.fingerprint" "$2/build" "$2/deps"
	ls "$1/.fingerprint" | sed 's/^\(.*\)-\([0-9a-f]\{16\}\)$/\1 \2/' | while read -r name hash; do
		! echo "$own" | grep -q -x -e "$name" || continue
		cp -a "$1/.fingerprint/$name-$hash" "$2/.fingerprint/"
		[ ! -e "$1/build/$name-$hash" ] || cp -a "$1/build/$name-$hash" "$2/build/"
		for file in "$1/deps/"*-"$hash"*; do
			[ ! -e "$file" ] || cp -a "$file" "$2/deps/"
		done
	done
}

# place FROM TO COPY...: makes TO by COPY FROM NEW, whole or not at all. What was cut off an hour ago goes.
place() {
	from=$1
	to=$2
	shift 2
	folder=$(dirname "$to")
	mkdir -p "$folder"
	find "$folder" -maxdepth 1 -name '.crates-*' -mmin +60 -exec rm -rf {} +
	new=$(mktemp -d "$folder/.crates-XXXXXX")
	trap 'rm -rf "$new"' EXIT
	"$@" "$from" "$new"
	mv -T "$new" "$to" 2>/dev/null || [ -e "$to" ]
}

case $1 in
take)
	[ ! -e "$target" ] && [ -e "$set" ] || exit 0
	touch "$set"
	place "$set/." "$target" cp -a
	;;
keep)
	[ ! -e "$set" ] || exit 0
	place "$target" "$set" copy_set
	# shellcheck disable=SC2012 # names of the cache's own
	ls -dt "$cache"/* | tail -n +3 | while read -r old; do rm -rf "$old"; done
	;;
*)
	echo "usage: $0 take|keep TARGET" >&2
	exit 2
	;;
esac
