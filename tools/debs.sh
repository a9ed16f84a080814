#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Downloads Debian packages of a suite into a folder, without installing them
# and without root. An apt with a state of its own checks signatures and hashes. The
# laboratory does the same in crates/lab/vmlab/src/packages.rs and shares the lists of
# packages with this script, so one lock guards both.
#
# usage: debs.sh [-x] SUITE FOLDER PACKAGE...
#   -x   FOLDER gets what is in the packages, as a root
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
cache=${PSPACER_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/pspacer}

die() {
	echo "debs.sh: $*" >&2
	exit 1
}

unpacks=no
[ "${1:-}" != -x ] || {
	unpacks=yes
	shift
}
[ $# -ge 3 ] || {
	echo "usage: $0 [-x] SUITE FOLDER PACKAGE..." >&2
	exit 2
}
suite=$1
folder=$2
shift 2
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
	die "this system has no apt-get and dpkg-deb"
[ "$(dpkg --print-architecture)" = amd64 ] || die "packages are fetched for amd64 alone"

mkdir -p "$cache/locks" "$cache/apt/lists/partial"
exec 9>"$cache/locks/apt"
flock 9
state=$(mktemp -d "$cache/apt/state.XXXXXX")
trap 'rm -rf "$state"' EXIT
mkdir -p "$state/archives/partial"
: >"$state/status"
"$top/tools/archive.sh" "$suite" >"$state/debian.sources"
cat >"$state/apt.conf" <<EOF
APT::Architecture "amd64";
APT::Architectures "amd64";
APT::Get::List-Cleanup "false";
APT::Update::Error-Mode "any";
APT::Sandbox::User "";
Acquire::Languages "none";
Dir::State "$state";
Dir::State::status "$state/status";
Dir::State::lists "$cache/apt/lists";
Dir::Cache "$state";
Dir::Etc::sourcelist "$state/debian.sources";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "-";
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
EOF
export APT_CONFIG="$state/apt.conf"

# Runs apt-get quietly; prints its output if it fails.
quietly() {
	said=$(apt-get -q "$@" 2>&1) || die "apt-get $* failed:
$said"
}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
quietly update
if [ $unpacks = no ]; then
	cd "$folder"
	quietly download "$@"
	exit
fi
cd "$state/archives"
quietly download "$@"
for package in *.deb; do
	dpkg-deb -x "$package" "$folder"
done
