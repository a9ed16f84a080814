#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What systemd-analyze verify says by its status of a unit whose settings are ignored.
. "$(dirname "$0")/lib.sh"

finding 'systemd-analyze verify fails for a unit with a misspelt setting or a value that it cannot parse' \
	'it warns and returns 0, though the setting has no effect; --recursive-errors=no, which sounds as if it ignored
       more, =one and =yes return 1; but =one returns 0 for a template'

for version in 252.39-1~deb12u2 257.13-1~deb13u1; do
	case $version in *deb12*) suite=bookworm ;; *) suite=trixie ;; esac
	packages "$work/$version" $suite "systemd=$version"
	mkdir -p "$work/$version/tmp" "$work/$version/run" "$work/$version/etc/systemd/system"
	# verify NAME TEXT [OPTION]: its status for a service with such a line.
	verify() {
		unit=/etc/systemd/system/$1
		printf '[Service]\nExecStart=/bin/systemctl\n%s\n' "$2" >"$work/$version$unit"
		shift 2
		inside "$work/$version" systemd-analyze verify "$@" "$unit" >"$work/messages" 2>&1 && echo 0 || echo $?
	}
	for unit in one.service one@.service; do
		on="$version, $unit"
		seen "$on, ProtectSystem=strict" "$(verify $unit ProtectSystem=strict --recursive-errors=yes)" 0
		for line in ProtectSytem=strict NoNewPrivileges=maybe; do
			seen "$on, $line" "$(verify $unit $line)" 0
			seen "$on, its warning" "$(cat "$work/messages")" "*/$unit:3: *ignoring*"
			for errors in no yes one; do
				case $unit-$errors in *@*-one) status=0 ;; *) status=1 ;; esac
				seen "$on, $line, --recursive-errors=$errors" \
					"$(verify $unit $line --recursive-errors=$errors)" $status
			done
		done
	done
	seen "$version, a program that is not there" "$(verify one.service 'ExecStop=/bin/none')" 1
done
done_
