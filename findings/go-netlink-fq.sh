#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What fq is like that a program of Go makes without saying more than its place.
. "$(dirname "$0")/lib.sh"

finding 'an fq of the library netlink of Go that says no more than its place is as the kernel makes it' \
	'a literal netlink.Fq{} makes an fq that paces nothing, and sends at once what has a launch time beyond the horizon:
       its zeros are sent as the values. NewFq paces, as the kernel does. Of fq_codel the literal leaves ECN off'

cp -r "$here/go-netlink" "$work/program"
CGO_ENABLED=0 go_program "$work/program"
echo 'with:  github.com/vishvananda/netlink@v1.3.1'
guest_root "$work/tree" trixie linux-image-6.12.117+deb13-amd64 'sch_fq sch_fq_codel veth' iproute2=6.15.0-1
cp "$work/program/run" "$work/tree/made"
{
	veth_pair
	cat <<-'EOT'
		for made in fq_literal fq_function fq_codel_literal fq_codel_function; do
			/made $made va
			tc qdisc show dev va | say "$made"
			tc qdisc del dev va root
		done
		for kind in fq fq_codel; do
			tc qdisc add dev va root handle 1: $kind
			tc qdisc show dev va | say "$kind"
			tc qdisc del dev va root
		done
	EOT
} >"$work/script"
guest "$work/tree" "$work/script" >"$work/said"
said kernel
# differs NAME KIND: the words of that qdisc that tc's does not have.
differs() {
	said "$2" | tr ' ' '\n' | sort -u >"$work/plain"
	said "$1" | tr ' ' '\n' | sort -u | comm -23 - "$work/plain" | tr '\n' ' '
}
# lacks NAME KIND: the words of tc's that it does not have.
lacks() {
	said "$1" | tr ' ' '\n' | sort -u >"$work/made"
	said "$2" | tr ' ' '\n' | sort -u | comm -23 - "$work/made" | tr '\n' ' '
}
for name in fq_literal fq_function fq_codel_literal fq_codel_function; do
	kind=${name%_*}
	case $name in
	fq_literal) more='horizon_cap nopacing ' less='horizon_drop ' ;;
	fq_codel_literal) more='' less='ecn ' ;;
	*) more='' less='' ;;
	esac
	seen "$name, which tc's $kind is not" "$(differs $name "$kind")" "$more"
	seen "$name is not what tc's $kind is" "$(lacks $name "$kind")" "$less"
done
done_
