#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Prints the version of the packages, as Cargo.toml has it. Debian and RPM sort "~" before
# the end of a version, so 0.3.0-dev becomes 0.3.0~dev, which 0.3.0 replaces.
#
# usage: version.sh
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$top/Cargo.toml")
case $version in
[0-9]*.[0-9]*.[0-9]*) ;;
*)
	echo "version.sh: Cargo.toml: workspace.package.version is '$version', expected a number as 0.2.0" >&2
	exit 1
	;;
esac
echo "$version" | sed 's/-/~/g'
