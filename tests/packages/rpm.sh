#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Installs the RPM packages in a clean root, with Debian's rpm and dnf: the archive has no
# root of a distribution of RPM. A package that is made here provides by name what theirs
# would, so dnf resolves the rest. They are updated from a lower version, beside a configuration
# that was changed and a program that runs, installed anew over themselves, used, and removed, and
# the lists of files before and after are compared.
# Prints TAP. The module is built by DKMS there and never loaded.
#
# usage: rpm.sh [SUITE]     trixie
#   RPMS   the packages (build/rpm, of `make rpm`)
#   OLD    the packages of a lower version (build/rpm-old), made if there are none
#   KEEP=1 keeps the root
set -eu

. "$(dirname "$0")/root.sh"
rpms=${RPMS:-$packages_top/build/rpm}
old=${OLD:-$packages_top/build/rpm-old}
suite=${1:-trixie}
ls "$rpms"/pspacer-*.x86_64.rpm >/dev/null 2>&1 || die "no packages in $rpms: run 'make rpm' first"
lower rpm "$old"
names='pspacer pspacer-debuginfo dkms-psp iproute-psp libpace-devel libpsp-reserve libpsp-reserve-devel'
module=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$packages_top/kernel/dkms.conf")

files() {
	(cd "$root" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./sys -o -path ./packages \
		-o -path ./var/lib/rpm -o -name .rpmdb -o -path ./var/tmp -o -path ./var/lib/dnf \
		-o -path ./usr/lib/sysimage -o -path ./var/cache -o -path ./var/log -o -path ./tmp \) -prune -o -print | sort)
}

# Makes the package that provides what ours need and none of them has.
provides() {
	inside sh -ec '
		cd /tmp
		{
			printf "Name: elsewhere\nVersion: 1\nRelease: 1\nSummary: Names\nLicense: MIT\nBuildArch: noarch\n"
			rpm -qp --requires /packages/*/*.rpm | sort -u |
				grep -v -e "^rpmlib(" -e "^libpsp" -e "^config(" -e "^/bin/" -e "^/usr/bin/" |
				sed -n -e "s/^\(iproute\) .*/Provides: \1 = 6.1/p" \
					-e "/^iproute/!s/^/Provides: /p"
			rpm -qp --requires /packages/*/*.rpm | sort -u | sed -n "s,^\(/[a-z/]*bin/[a-z-]*\)$,Provides: \1,p"
			printf "%%description\nNames\n%%files\n"
		} >elsewhere.spec
		rpmbuild --quiet -bb --define "_rpmdir /tmp/elsewhere" elsewhere.spec
		cat elsewhere.spec
		rpm -i /tmp/elsewhere/noarch/elsewhere-1-1.noarch.rpm
		rm -r elsewhere elsewhere.spec'
}

# installed VERSION
installed() {
	for name in $names; do
		found=$(inside rpm -q --qf '%{VERSION} ' "$name") || return 1
		[ "$found" = "$1 " ] || {
			echo "$name: $found, expected: $1"
			return 1
		}
	done
	# No file has changed since, of those that are no configuration.
	# shellcheck disable=SC2086 # a list
	inside rpm -V --noconfig $names
}

built() {
	for kernel in $kernels; do
		inside sh -c "ls /lib/modules/$kernel/updates/dkms/sch_psp.ko*" || return 1
		inside modinfo -k "$kernel" sch_psp | grep -qx "version: *$module" || return 1
	done
}

# Debian's tc and compilers look elsewhere than those of such distributions.
tc_says() {
	expected=$1
	text=$2
	shift 2
	says "$expected" "$text" env TC_LIB_DIR=/usr/lib64/tc tc "$@"
}

begin_roots
make_root "$suite" rpm,dnf,iproute2,dkms,gcc,libc6-dev,libelf1t64,make,kmod,openssl,pkg-config,man-db,bash-completion,linux-headers-cloud-amd64 "$suite"
# rpm runs scripts in a mount namespace, so its root has to be a mount.
leave_root
mount --bind "$root" "$root"
mount --make-private "$root"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
# Folders that packages of such a distribution have.
mkdir -p "$root/usr/lib64/pkgconfig" "$root/usr/lib64/tc" "$root/usr/share/licenses" \
	"$root/usr/share/fish/vendor_completions.d"
kernels=$(inside sh -c 'ls /lib/modules')
mkdir -p "$root/packages/old" "$root/packages/new"
cp "$old"/*.rpm "$root/packages/old/"
cp "$rpms"/*.rpm "$root/packages/new/"
quietly inside dkms generate_mok || true
for kernel in $kernels; do
	quietly inside depmod "$kernel"
done
check "rpm reads the packages" inside sh -c 'rpm -K --nosignature /packages/*/*.rpm'
check "what others provide is named" provides
files >"$packages_work/before"
check "dnf installs the lower version" inside sh -c 'dnf -y --disablerepo="*" --nogpgcheck install /packages/old/*.rpm'
check "the lower version is there" installed "$(rpm -qp --qf '%{VERSION}' "$old"/pspacer-[0-9]*.rpm)"
# The packages ask for the running kernel, of which there is nothing here; a kernel's own
# installation asks for that.
autoinstall() {
	for kernel in $kernels; do
		inside dkms autoinstall -k "$kernel" || return 1
	done
	built
}
check "DKMS builds the module for $(echo $kernels)" autoinstall
check "its configuration is changed, a program runs" change_configuration
check "dnf updates" inside sh -c 'dnf -y --disablerepo="*" --nogpgcheck upgrade /packages/new/*.rpm'
check "the version is there" installed "$(rpm -qp --qf '%{VERSION}' "$rpms"/pspacer-[0-9]*.rpm)"
check "the module is there after it" built
check "configuration and what runs are kept" kept
check "an update over itself" inside sh -c 'rpm -U --replacepkgs --force /packages/new/*.rpm'
check "the module is there after that, too" built
check "configuration and what runs are kept after that, too" kept
end_change
check_command ""
check "tc knows psp" tc_says 1 'Usage: ... psp' qdisc add dev none0 root psp help
check "tc refuses bad words" tc_says 1 'psp: ' qdisc add dev none0 root psp default 10000
path='PKG_CONFIG_PATH=/usr/lib64/pkgconfig LIBRARY_PATH=/usr/lib64 LD_LIBRARY_PATH=/usr/lib64'
check "a program is compiled with the library" library "$path"
check "a program in C reserves at a manager" reserve "$path"
with_systemd
# shellcheck disable=SC2086 # a list
check "dnf removes" inside dnf -y --disablerepo='*' --noautoremove remove $names
check "units were disabled and stopped" told 'disable.*pspacer-agent.*pspacer@.service' 'stop.*pspacer-manager'
without_systemd
check "files of the administrator stay" administrator_leaves
check "the profile that was changed is kept beside" rm "$root/etc/apparmor.d/pspacer.rpmsave"
files >"$packages_work/after"
check "nothing is left" diff "$packages_work/before" "$packages_work/after"
end_checks
