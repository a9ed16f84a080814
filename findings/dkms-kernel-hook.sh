#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What DKMS's hook tells the package of a new kernel about modules that are not built for it.
. "$(dirname "$0")/lib.sh"

finding 'the hook of new kernels succeeds whether or not a module of DKMS compiles, and BUILD_EXCLUSIVE_KERNEL in dkms.conf
       lets kernels pass that a module is not for' \
	'the hook fails where a module does not compile; in DKMS 3.0.10 it fails by BUILD_EXCLUSIVE_KERNEL, too, in 3.2.2 no
       more. Without headers of the kernel it succeeds'

kernel=6.99.0-finding
for version in 3.0.10-8+deb12u1 3.2.2-1~deb13u1; do
	case $version in
	*deb12*) suite=bookworm failed=11 left_out=11 ;;
	*) suite=trixie failed=1 left_out=0 ;;
	esac
	root=$work/$version
	packages "$root" $suite "dkms=$version" dash coreutils bash kmod sed grep gawk diffutils findutils sysvinit-utils
	inside "$root" true
	ln -sf /proc/self/fd "$root/dev/fd"
	ln -sf gawk "$root/usr/bin/awk"
	# As much of a kernel and its headers as DKMS looks at before it compiles.
	tree=$root/lib/modules/$kernel
	mkdir -p "$tree/build/include" "$root/var/lib/dkms" "$root/run"
	touch "$tree/modules.order" "$tree/modules.builtin" "$tree/build/Makefile" "$tree/build/.config"
	# hook [LINE]: its status, with a module whose dkms.conf has this line.
	hook() {
		rm -rf "$root/var/lib/dkms/one" "$root/usr/src/one-1"
		if [ $# = 1 ]; then
			mkdir -p "$root/usr/src/one-1"
			touch "$root/usr/src/one-1/one.c"
			printf '%s\n' PACKAGE_NAME=one PACKAGE_VERSION=1 'MAKE[0]="false"' 'BUILT_MODULE_NAME[0]=one' \
				'DEST_MODULE_LOCATION[0]=/updates' AUTOINSTALL=yes "$1" >"$root/usr/src/one-1/dkms.conf"
			inside "$root" dkms add one/1 >/dev/null 2>&1 || cannot "dkms add"
		fi
		inside "$root" /etc/kernel/postinst.d/dkms $kernel >"$work/messages" 2>&1 && echo 0 || echo $?
	}
	seen "$version, no module" "$(hook)" 0
	seen "$version, one that does not compile" "$(hook '')" "$failed"
	seen "$version, its words" "$(grep -o 'Bad return status for module build' "$work/messages" | head -n 1)" 'Bad*'
	seen "$version, one that is for kernels 5 alone" "$(hook 'BUILD_EXCLUSIVE_KERNEL="^5[.]"')" "$left_out"
	seen "$version, its words" "$(grep -o 'includes a BUILD_EXCLUSIVE directive' "$work/messages" | head -n 1)" '*EXCLUSIVE*'
	rm -r "$tree/build"
	seen "$version, one that does not compile, no headers" "$(hook '')" 0
done
done_
