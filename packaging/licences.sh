#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks the crates of Cargo.lock with cargo-deny by deny.toml: licences, sources, crates
# that are not wanted, and advisories.
#
# usage: licences.sh
#   OFFLINE=1   takes the copy of the advisory database that cargo-deny has in CARGO_HOME
set -eu

cd "$(dirname "$0")/.."
command -v cargo-deny >/dev/null || {
	echo "licences.sh: cargo-deny is missing: cargo install --locked cargo-deny" >&2
	exit 1
}
offline=
[ "${OFFLINE:-0}" != 1 ] || offline=--offline
# shellcheck disable=SC2086 # an option, or nothing
cargo deny --locked $offline check
