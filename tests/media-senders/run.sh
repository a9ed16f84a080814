#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures streams of real senders, whose truth is in streams.txt: GStreamer and FFmpeg of Debian 12 in
# these versions, pspacer itself, and streams that a test makes (crates/capture/st2110/tests/made.rs).
#
#   tests/media-senders/run.sh [NAME...]    all streams, or these; prints a table, exit status 1 if one is wrong
#
# Needs root, a Debian 12 with apt's usual sources, tcpdump, python3 and jq. Packages are downloaded and unpacked
# below SENDERS (target/media-senders), and not installed; captures stay there. Traffic is on the loopback of a
# network namespace of its own. PSPACER names the program (target/release/pspacer).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$top/target}
folder=${SENDERS:-$target/media-senders}
pspacer=${PSPACER:-$target/release/pspacer}
packages="ffmpeg=7:5.1.9-0+deb12u1 libavformat59=7:5.1.9-0+deb12u1 gstreamer1.0-tools=1.22.0-2+deb12u1
	gstreamer1.0-plugins-base=1.22.0-3+deb12u7 gstreamer1.0-plugins-good=1.22.0-5+deb12u4"

if [ "${1:-}" != --within ]; then
	for tool in "$pspacer" tcpdump jq unshare ip; do
		command -v "$tool" > /dev/null || { echo "$tool: expected to be installed" >&2; exit 2; }
	done
	mkdir -p "$folder/debs/partial" "$folder/captures"
	if [ ! -e "$folder/unpacked.done" ]; then
		# shellcheck disable=SC2086 # a list
		apt-get install -y -qq --no-install-recommends --download-only -o "Dir::Cache::archives=$folder/debs" $packages
		for package in "$folder"/debs/*.deb; do dpkg -x "$package" "$folder/unpacked"; done
		touch "$folder/unpacked.done"
	fi
	(cd "$top" && MADE="$folder/captures" cargo test --quiet -p st2110 made::writes -- --ignored > /dev/null)
	exec unshare --net "$0" --within "$folder" "$pspacer" "$@"
fi
folder=$2 pspacer=$3
shift 3
ip link set lo up
root=$folder/unpacked
lib=$root/usr/lib/x86_64-linux-gnu
libraries=$lib:$lib/blas:$lib/lapack:$lib/pulseaudio:$root/lib/x86_64-linux-gnu
# What the host has of them was not downloaded.
system=/usr/lib/x86_64-linux-gnu
export GST_PLUGIN_SYSTEM_PATH=$lib/gstreamer-1.0:$system/gstreamer-1.0 GST_REGISTRY=$folder/registry.bin
GST_PLUGIN_SCANNER=$(find "$lib/gstreamer1.0" "$system/gstreamer1.0" -name gst-plugin-scanner 2> /dev/null | head -n 1)
export GST_PLUGIN_SCANNER

gst() { # format width height rate mode, or audio encoding format sampling
	if [ "$1" = audio ]; then
		set -- audiotestsrc num-buffers=60 samplesperbuffer=1024 is-live=true ! \
			"audio/x-raw,format=$3,rate=$4,channels=2" ! "rtp$2pay" ! udpsink host=127.0.0.1 port=5004
	else
		set -- videotestsrc num-buffers=10 ! \
			"video/x-raw,format=$1,width=$2,height=$3,framerate=$4,interlace-mode=$5$([ "$5" = progressive ] || echo ,field-order=top-field-first)" ! \
			rtpvrawpay ! udpsink host=127.0.0.1 port=5004
	fi
	LD_LIBRARY_PATH=$libraries "$root/usr/bin/gst-launch-1.0" -q "$@"
}

ffmpeg() { # video encoder pixels size rate [filter], or audio encoder
	if [ "$1" = audio ]; then
		set -- -f lavfi -i sine=sample_rate=48000:duration=1.3 -ac 2 -c:a "$2"
	else
		set -- -f lavfi -i "testsrc2=s=$4:r=$5" -frames:v 10 ${6:+-vf "$6" -flags +ildct} -c:v "$2" -pix_fmt "$3" -strict -2
	fi
	LD_LIBRARY_PATH=$libraries "$root/usr/bin/ffmpeg" -loglevel error -nostdin -re "$@" \
		-sdp_file "$folder/captures/$name.sdp" -f rtp rtp://127.0.0.1:5004 > /dev/null
}

ours() {
	"$pspacer" send-stream 127.0.0.1:5004 "$@" --for 400ms --quiet > /dev/null
}

capture() { # sender arguments
	tcpdump -i lo -w "$file" --time-stamp-precision nano -s 128 -B 131072 -U udp port 5004 2> "$folder/tcpdump.log" &
	local dump=$!
	until grep -q listening "$folder/tcpdump.log"; do sleep .05; done
	"$@" || echo "$name: the sender failed" >&2
	sleep .5
	kill -INT "$dump"
	wait "$dump"
}

wrong=0
printf '| stream | sender | measured: carries | rate | verdict | |\n|---|---|---|---|---|---|\n'
while IFS='|' read -r name sender format rate verdict arguments; do
	read -r name <<< "$name"
	read -r sender <<< "$sender"
	case $name in '' | '#'*) continue ;; esac
	[ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
	read -r format <<< "$format"
	read -r rate <<< "$rate"
	read -r verdict <<< "$verdict"
	read -ra arguments <<< "$arguments"
	file=$folder/captures/$name.pcap
	if [ "$sender" = made ]; then
		mv "$folder/captures/${arguments[0]}.pcap" "$file"
	else
		capture "$sender" "${arguments[@]}"
	fi
	# With one clock on both sides, whose distance does not matter here.
	found=$("$pspacer" measure --st2110 "$file" --datum fit --json | jq -r '
		def frames: . as $v | $v.picture_rate | split("/") | (.[0] | tonumber) / (.[1] | tonumber)
			| if $v.scan == "interlaced" then . / 2 else . end | . * 100 | round / 100;
		.streams | if length == 1 then .[0] else {} end
		| [.carries // "not known", .audio.sampling_hz // ((.video // .ancillary) | if . then frames else "-" end),
		   if .video then .video.sender_type // "none" else .audio.evenness // "-" end] | map(tostring) | join("|")') || found="|-|"
	IFS='|' read -r carries measured type <<< "$found"
	case $type in
	N) type=narrow ;; NL) type="narrow linear" ;; W) type=wide ;;
	within_packet_time) type="within a packet time" ;;
	within17_packet_times) type="within 17 packet times" ;;
	esac
	[ "$verdict" != computed ] || verdict=$("$(dirname "$0")/evenness.py" "$file" "$rate")
	right=right
	if [[ $carries != "$format"[,\ ]* ]] || [ "$measured" != "$rate" ] || { [ "$verdict" != any ] && [[ "$type" != "$verdict"* ]]; }; then
		right=wrong wrong=1
	fi
	printf '| %s | %s | %s | %s | %s | %s |\n' "$name" "$sender" "$carries" "$measured" "$type" "$right"
done < "$(dirname "$0")/streams.txt"
exit $wrong
