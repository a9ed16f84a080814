#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that the programs named as arguments are there, and installs the Debian
# packages of the missing ones. Only that needs root; the script asks once and says what
# for. With nothing missing it changes nothing and asks nothing. A missing `cargo` needs
# no root and no installation: tools/rust.sh.
#
# usage: setup.sh PROGRAM...
set -eu

# A line for each program: its name, and the package that holds it.
packages='
aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
ar binutils
arm-linux-gnueabihf-gcc gcc-arm-linux-gnueabihf
bc bc
bison bison
c++ g++
cc gcc
certificates ca-certificates
clang-19 clang-19
cni-plugins containernetworking-plugins
dh debhelper
dh_apparmor dh-apparmor
dh_dkms dh-dkms
dkms dkms
dpkg-buildpackage dpkg-dev
dpkg-deb dpkg
eu-strip elfutils
flex flex
git git
go golang-go
i686-linux-gnu-gcc gcc-i686-linux-gnu
java default-jdk-headless
libelf libelf-dev
lintian lintian
make make
mmdebstrap mmdebstrap
mvn maven
nm binutils
perl perl
pkg-config pkg-config
podman podman
qemu-aarch64 qemu-user
qemu-i386 qemu-user
qemu-s390x qemu-user
rpmbuild rpm
rpmlint rpmlint
runc runc
s390x-linux-gnu-gcc gcc-s390x-linux-gnu
setpriv util-linux
sparse sparse
tc iproute2
tcpdump tcpdump
tshark tshark
xz xz-utils
yaml python3-yaml
'

rust=no
missing_programs=
missing_packages=
need() {
	package=$(printf '%s' "$packages" | sed -n "s/^$1 //p")
	missing_programs="$missing_programs $1"
	case " $missing_packages " in
	*" $package "*) ;;
	*) missing_packages="$missing_packages $package" ;;
	esac
}

install_missing() {
	if ! command -v apt-get >/dev/null 2>&1; then
		echo "setup: missing:$missing_programs. On Debian the packages are:$missing_packages. This system has no apt-get: install their like and run this again." >&2
		exit 1
	fi

	echo "setup: missing:$missing_programs; installing the packages:$missing_packages"
	if [ "$(id -u)" = 0 ]; then
		as_root="env"
	elif command -v sudo >/dev/null 2>&1; then
		echo "setup: this one step needs root (the laboratory itself runs as any user)"
		as_root="sudo env"
	else
		echo "setup: this one step needs root, and there is no sudo. As root, run: apt-get install$missing_packages" >&2
		exit 1
	fi
	# shellcheck disable=SC2086 # both are lists
	if ! $as_root DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing_packages >/dev/null 2>&1; then
		$as_root DEBIAN_FRONTEND=noninteractive apt-get update -qq
		$as_root DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing_packages >/dev/null
	fi
}

for program in "$@"; do
	# libelf is not a program; the kernel's objtool and libbpf are compiled with it.
	if [ "$program" = libelf ]; then
		[ -e /usr/include/libelf.h ] || need libelf
		continue
	fi
	# Plugins of container networks, which are on no PATH.
	if [ "$program" = cni-plugins ]; then
		[ -x /usr/lib/cni/ptp ] || need cni-plugins
		continue
	fi
	if [ "$program" = yaml ]; then
		python3 -c 'import yaml' 2>/dev/null || need yaml
		continue
	fi
	if [ "$program" = go ] && [ -x /usr/local/go/bin/go ]; then
		continue
	fi
	if [ "$program" = cargo ]; then
		rust=yes
		# cargo fetches crates over TLS.
		[ -n "${SSL_CERT_FILE:-}" ] || [ -e /etc/ssl/certs/ca-certificates.crt ] || need certificates
		continue
	fi
	command -v "$program" >/dev/null 2>&1 || PATH="$PATH:/usr/sbin:/sbin" command -v "$program" >/dev/null 2>&1 || need "$program"
done
# A compiler without the C library's headers builds nothing.
c_library() {
	[ ! -e "$1/include/stdio.h" ] || return 0
	missing_programs="$missing_programs C-headers"
	missing_packages="$missing_packages $2"
}
c_library /usr libc6-dev
for program in "$@"; do
	case $program in
	aarch64-linux-gnu-gcc) c_library /usr/aarch64-linux-gnu libc6-dev-arm64-cross ;;
	arm-linux-gnueabihf-gcc) c_library /usr/arm-linux-gnueabihf libc6-dev-armhf-cross ;;
	i686-linux-gnu-gcc) c_library /usr/i686-linux-gnu libc6-dev-i386-cross ;;
	s390x-linux-gnu-gcc) c_library /usr/s390x-linux-gnu libc6-dev-s390x-cross ;;
	esac
done

if [ -n "$missing_programs" ]; then
	install_missing
fi
if [ $rust = yes ]; then
	"$(dirname "$0")/rust.sh" fetch
fi
