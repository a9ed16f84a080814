#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Which packages `apt-get download --print-uris` prints.
. "$(dirname "$0")/lib.sh"

finding 'apt-get download --print-uris prints a line for each package that it is asked for, wherever it runs' \
	'it leaves out those whose file is in the folder where it runs, without a word and with status 0: a list made
       there, to go on with a download that was cut off, has less than was asked for. In any other folder all are printed'

for version in 2.6.1 3.0.4; do
	case $version in 2*) suite=bookworm ;; *) suite=trixie ;; esac
	tree=$work/$version
	packages "$tree" $suite apt=$version dpkg dash
	mkdir -p "$tree/tmp/archive" "$tree/tmp/here" "$tree/tmp/elsewhere" "$tree/var/lib/dpkg" "$tree/var/lib/apt/lists/partial"
	mkdir -p "$tree/var/cache/apt/archives/partial" "$tree/etc/apt/apt.conf.d" "$tree/etc/apt/preferences.d"
	: >"$tree/var/lib/dpkg/status"
	echo 'deb [trusted=yes] file:/tmp/archive ./' >"$tree/etc/apt/sources.list"
	for name in one two; do
		mkdir -p "$work/$name/DEBIAN"
		printf '%s\n' "Package: $name" 'Version: 1' 'Architecture: all' 'Maintainer: m' 'Description: d' >"$work/$name/DEBIAN/control"
		dpkg-deb -b "$work/$name" "$tree/tmp/archive/${name}_1_all.deb" >/dev/null
		file=$tree/tmp/archive/${name}_1_all.deb
		cat "$work/$name/DEBIAN/control"
		printf '%s\n' "Filename: ./${name}_1_all.deb" "Size: $(stat -c %s "$file")" "SHA256: $(sha256sum "$file" | cut -d ' ' -f 1)" ''
	done >"$tree/tmp/archive/Packages"
	apt_there="apt-get -q -o APT::Sandbox::User=root"
	inside "$tree" $apt_there update >/dev/null
	cp "$tree/tmp/archive/one_1_all.deb" "$tree/tmp/here/"
	for folder in elsewhere here; do
		printed=$(inside "$tree" sh -c "cd /tmp/$folder && $apt_there download --print-uris one two && echo status 0" |
			sed -n "s/^'[^']*' \([^_]*\)_.*/\1/p; /^status/p" | sort | tr '\n' ' ')
		case $folder in elsewhere) expected='one status 0 two ' ;; *) expected='status 0 two ' ;; esac
		seen "$version, in a folder that $([ $folder = here ] && echo 'has one' || echo 'is empty')" "$printed" "$expected"
	done
done
done_
