#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests tools/rust.sh, which judges toolchains, and tools/archive.sh, which finds Debian's
# archive, on machines made up of a few files. Fetches nothing.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# expect WHAT EXPECTED FOUND: reports a test that failed.
expect() {
	[ "$2" != "$3" ] || return 0
	printf 'toolchain.sh: %s\nexpected: %s\nfound: %s\n' "$1" "$2" "$3" >&2
	failed=1
}

# toolchain CARGO RUSTC PARTS: makes a toolchain of these versions with these parts.
toolchain() {
	rm -rf "$work/bin"
	mkdir "$work/bin"
	printf '#!/bin/sh\ncase $1 in --version) echo "cargo %s (0 2025-01-01)";; %s) ;; *) exit 101;; esac\n' \
		"$1" "$3" >"$work/bin/cargo"
	printf '#!/bin/sh\necho "rustc %s"\n' "$2" >"$work/bin/rustc"
	chmod +x "$work/bin/cargo" "$work/bin/rustc"
}
# answer: prints what tools/rust.sh says about the toolchain.
answer() {
	PATH="$work/bin:/usr/bin:/bin" PSPACER_CACHE="$work/cache" "$top/tools/rust.sh" path
}
declared=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$top/Cargo.toml")
unpacked="$work/cache/rust/$declared-2/bin:"

toolchain "$declared.0" "$declared.0" 'clippy|fmt'
expect "a toolchain as declared" "" "$(answer)"
toolchain 1.100.0-nightly 1.100.0-nightly 'clippy|fmt'
expect "a newer toolchain, more digits" "" "$(answer)"
toolchain 1.9.0 1.9.0 'clippy|fmt'
expect "an older toolchain" "$unpacked" "$(answer)"
toolchain "$declared.0" 1.63.0 'clippy|fmt'
expect "a newer cargo with an older rustc" "$unpacked" "$(answer)"
toolchain "$declared.0" "$declared.0" fmt
expect "a toolchain without clippy" "$unpacked" "$(answer)"
toolchain "$declared.0" "$declared.0" clippy
expect "a toolchain without fmt" "$unpacked" "$(answer)"
rm "$work/bin/rustc"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/cargo"
expect "a cargo that does not run" "$unpacked" "$(answer)"

# sources FILE: prints the sources of bookworm on a machine whose own are in FILE.
sources() {
	mkdir -p "$work/lists"
	cat >"$work/apt.conf" <<-EOF
		Dir::Etc::sourcelist "$work/$1";
		Dir::Etc::sourceparts "$work/none";
		Dir::State::lists "$work/lists";
	EOF
	APT_CONFIG="$work/apt.conf" "$top/tools/archive.sh" bookworm 2>&1
}
stanza='Types: deb
URIs: http://archive.invalid/debian
Suites: bookworm
Components: main'

cat >"$work/a.list" <<'EOF'
# deb [signed-by=/no.gpg] http://archive.invalid/debian trixie main
deb [signed-by=/other.gpg] http://vendor.invalid/apt nodistro main
deb [arch=amd64 signed-by=/a.gpg,/b.gpg] http://archive.invalid/debian/ trixie main
EOF
expect "sources of one line" "$stanza
Signed-By: /a.gpg /b.gpg" "$(sources a.list)"

echo 'deb http://archive.invalid/debian stable-updates main' >"$work/b.list"
expect "sources without keys" "$stanza" "$(sources b.list)"

cat >"$work/c.sources" <<'EOF'
Types: deb
URIs: http://security.invalid/debian
Suites: trixie-security
Components: main
Signed-By: /no.gpg

# a comment
Types: deb
URIs: http://archive.invalid/debian
Suites: trixie trixie-updates
# another
Components: main
signed-by:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
# within: a field
 -----END PGP PUBLIC KEY BLOCK-----
EOF
expect "sources in stanzas, with a key inside" "$stanza
Signed-By: 
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
 -----END PGP PUBLIC KEY BLOCK-----" "$(sources c.sources)"

echo 'deb http://vendor.invalid/apt jammy main' >"$work/d.list"
case $(sources d.list || true) in
*"name no Debian archive"*) ;;
*) expect "no Debian archive" "an error" "$(sources d.list || true)" ;;
esac

exit $failed
