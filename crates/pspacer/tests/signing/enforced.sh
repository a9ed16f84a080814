#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs in the laboratory's guest: a Debian kernel that is told to load only signed modules refuses
# sch_psp without a signature, and with one that is not its own; what doctor says then. Prints TAP.

. /signing/lib.sh
pspacer() { /signing/ld.so --library-path /signing /signing/pspacer "$@"; }
# finds ID WORDS: doctor has this finding, with these words in it.
finds() {
	found=$(pspacer doctor --json 2>&1 || true)
	echo "$found"
	echo "$found" | grep -q "\"$1\"" && echo "$found" | grep -q -F -e "$2"
}

loaded=/modules
modules=/lib/modules/$(uname -r)
installed=$modules/updates/dkms
mkdir -p "$installed"
cp $loaded/sch_psp.ko "$installed/"
echo "updates/dkms/sch_psp.ko:" >"$modules/modules.dep"
rmmod sch_psp dummy
check "without enforcement the module is merely not loaded" finds module-not-loaded "modprobe sch_psp"

# What module.sig_enforce=1 on the kernel's command line sets; it cannot be taken back.
echo 1 >/sys/module/module/parameters/sig_enforce
check "the kernel loads a module that it trusts" insmod $loaded/dummy.ko
refuse "it refuses sch_psp without a signature" "ey" insmod "$installed/sch_psp.ko"
check "doctor says how to sign" finds module-not-signed \
	"sign-file sha256 /var/lib/dkms/mok.key /var/lib/dkms/mok.pub $installed/sch_psp.ko"

# The signature of dummy: PKCS #7, 12 bytes with its length last, and the mark of 28 bytes.
length=$(tail -c 32 $loaded/dummy.ko | head -c 4 | od -An -tu1 |
	awk '{ print (($1 * 256 + $2) * 256 + $3) * 256 + $4 }')
check "dummy has a signature" [ "$length" -gt 100 ]
tail -c $((length + 40)) $loaded/dummy.ko >>"$installed/sch_psp.ko"
refuse "it refuses sch_psp with the signature of another module" "." insmod "$installed/sch_psp.ko"
check "doctor says which key to enrol" finds module-signature "mokutil --import /var/lib/dkms/mok.pub"
finish
