#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# What GStreamer's udpsink does with max-bitrate to the packets of one picture.
. "$(dirname "$0")/lib.sh"

finding 'udpsink max-bitrate=1000000 spreads the packets of a large picture over the time that they take at 1 Mbit/s' \
	'a payloader hands it the packets of a picture as a list of buffers. A list goes at once, however long it is, and the
       wait comes before the next list: with one list a picture all its packets are together. Shorter lists are shorter
       bursts: rtpvrawpay makes ten of a picture'

packages "$work/tree" trixie gstreamer1.0-tools=1.26.2-2 gstreamer1.0-plugins-base=1.26.2-1+deb13u2 \
	gstreamer1.0-plugins-good=1.26.2-1+deb13u2
inside "$work/tree" /usr/bin/gst-launch-1.0 --version >/dev/null
# bursts COUNT PAYLOADER...: packets together, of two pictures 8 s apart, each of 115,200 bytes, about 0.96 s at 1 Mbit/s.
bursts() {
	count=$1
	shift
	# shellcheck disable=SC2016
	unshare -n sh -c '
		tree=$1 bursts=$2 count=$3
		shift 3
		ip link set lo up
		exec python3 "$bursts" 5000 0.03 "$count" 40 chroot "$tree" /usr/bin/gst-launch-1.0 -q \
			videotestsrc num-buffers=2 ! video/x-raw,format=I420,width=320,height=240,framerate=1/8 ! "$@" mtu=1000 ! \
			udpsink host=127.0.0.1 port=5000 max-bitrate=1000000
	' - "$work/tree" "$here/senders/bursts.py" "$count" "$@"
}
seen 'one list for each picture: packets together' "$(bursts 1000 rtpvrawpay chunks-per-frame=1)" '11? 11?'
seen 'ten lists for a picture: packets together' "$(bursts 119 rtpvrawpay)" '12 12 12 12 12 12 11 12 12 12'
done_
