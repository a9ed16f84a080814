#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What rpm says by its status of updates whose scripts fail, and what is installed then.
. "$(dirname "$0")/lib.sh"

finding 'rpm -U fails if %post failed, and if it fails the old version is the one that is installed' \
	'it returns 0 where the new %post or the old %postun failed, and the old version is gone; it returns 1 where the old
       %preun failed, and the new version is in place with both in the database: only then %posttrans has a count of 3.
       Only a %pre that fails keeps the old version'

for version in 4.18.0+dfsg-1+deb12u1 4.20.1+dfsg-3; do
	case $version in *deb12*) suite=bookworm ;; *) suite=trixie ;; esac
	root=$work/$version
	packages "$root" $suite "rpm=$version" dash coreutils bash
	mkdir -p "$root/made" "$root/var/tmp"
	inside "$root" true
	# make VERSION [SCRIPT]: a package of which this script fails, if one is named.
	make() {
		cat >"$root/made/spec" <<-EOF
			Name: p
			Version: $1
			Release: 1
			Summary: A package
			License: MIT
			BuildArch: noarch
			AutoReqProv: no
			%description
			A package.
			%install
			mkdir -p %{buildroot}/opt
			echo $1 >%{buildroot}/opt/p-$1
			%files
			/opt/p-$1
			%posttrans
			echo "\$1" >/made/count
		EOF
		[ $# = 1 ] || printf '%%%s\nexit 3\n' "$2" >>"$root/made/spec"
		inside "$root" rpmbuild -bb --quiet --define '_topdir /made' --define '__os_install_post %{nil}' \
			--define '__check_files %{nil}' /made/spec >"$work/messages" 2>&1 ||
			cannot "rpmbuild: $(tail -n 3 "$work/messages")"
	}
	# Its plugin that gives scripts a /tmp of their own wants a root that is mounted.
	rpm() { inside "$root" rpm --noplugins --dbpath=/var/lib/rpm "$@"; }
	# updated FROM: of an update from this version to 9, or from 1 to it: status, what is installed, files, the count.
	updated() {
		rpm -q p >/dev/null && rpm -e --noscripts --allmatches p
		rpm -U --nodeps "/made/RPMS/noarch/p-$1-1.noarch.rpm" >"$work/messages" 2>&1
		rpm -U --nodeps "/made/RPMS/noarch/p-$2-1.noarch.rpm" >"$work/messages" 2>&1 && status=0 || status=$?
		printf 'status %s; installed %s; files %s; count %s' "$status" "$(rpm -q p --qf '%{version} ')" \
			"$(cd "$root/opt" && echo p-*)" "$(cat "$root/made/count")"
	}
	make 1
	make 2 pre
	make 3 post
	make 4 preun
	make 5 postun
	make 9
	seen "$version, nothing fails" "$(updated 1 9)" 'status 0; installed 9 ; files p-9; count 2'
	seen "$version, the new %pre" "$(updated 1 2)" 'status 1; installed 1 ; files p-1; count 1'
	seen "$version, the new %post" "$(updated 1 3)" 'status 0; installed 3 ; files p-3; count 2'
	seen "$version, the old %preun" "$(updated 4 9)" 'status 1; installed 4 9 ; files p-4 p-9; count 3'
	seen "$version, the old %postun" "$(updated 5 9)" 'status 0; installed 9 ; files p-9; count 2'
done
done_
