#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fuzzes one target, guided by coverage (docs/contribute/fuzzing.md), from the corpus in
# the tree. What is found on the way is kept in the target folder, below fuzz/;
# an input that fails is named, and lies there as well.
#
# usage: run.sh TARGET [--minimise | [OPTION-OF-LIBFUZZER...] [FILE]]
#   FILE        this input alone
#   --minimise  no fuzzing: the corpus in the tree becomes the fewest inputs
#               that take every way that it and all that was found take
#   TIME        seconds (60)
#   CARGO_TARGET_DIR  its folder fuzz/ is what is built in (target)
# Exit status: that of the fuzzer: 0 nothing has failed.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
case ${1:-} in
'' | -*)
	sed -n '3,/^set/{s/^# \{0,1\}//p;}' "$0"
	echo "targets: $(cd "$here/targets" && ls | sed -n 's/\.rs$//p' | tr '\n' ' ')"
	exit 2
	;;
esac
target=$1
shift
[ -e "$here/targets/$target.rs" ] || {
	echo "run.sh: no target $target" >&2
	exit 2
}

folder=${CARGO_TARGET_DIR:-$here/../target}/fuzz
archive=$here/corpus/$target.tar
found=$folder/found/$target
mkdir -p "$folder/corpus" "$found" "$folder/failed/$target"
folder=$(cd "$folder" && pwd)
corpus=$folder/corpus/$target
rm -rf "$corpus"
mkdir "$corpus"
[ ! -e "$archive" ] || tar -xf "$archive" -C "$corpus"

# What is under test is instrumented, and nothing else: C with GCC's own means,
# which also end the program at what C leaves undefined and at memory that is
# not the core's; Rust as cargo-fuzz does it.
case $target in
core | queue)
	kind=c
	export CFLAGS="-fsanitize-coverage=trace-pc,trace-cmp -fsanitize=address,undefined -fsanitize-undefined-trap-on-error -fno-omit-frame-pointer"
	# rustc links without the compiler's own libraries, and this one has to be
	# in front of the C library: as a part of the program it is.
	asan=$(${CC:-cc} -print-file-name=libasan.a)
	flags="-Clink-args=-Wl,--whole-archive,$asan,--no-whole-archive,--export-dynamic"
	;;
*)
	kind=rust
	flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
	;;
esac
host=$(rustc -vV | sed -n 's/^host: //p')
# With --target build scripts are spared those flags.
RUSTFLAGS="$flags --cfg fuzzing" CARGO_TARGET_DIR=$folder/$kind \
	cargo build --quiet --release --locked --manifest-path "$here/Cargo.toml" \
	--target "$host" --bin "$target"
# Freed memory need not wait long for somebody to touch it.
export ASAN_OPTIONS="quarantine_size_mb=16${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
program=$folder/$kind/$host/release/$target

if [ "${1:-}" = --minimise ]; then
	mkdir -p "$folder/fewest"
	fewest=$(mktemp -d "$folder/fewest/$target.XXXXXX")
	FUZZ_SEEN_ONLY=1 "$program" -set_cover_merge=1 -use_counters=0 -max_len=1024 "$fewest" "$corpus" "$found"
	# The same inputs are the same archive.
	(cd "$fewest" && ls) | tar --create --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 \
		--directory="$fewest" --files-from=- --file="$archive.new"
	mv "$archive.new" "$archive"
	echo "$(tar -tf "$archive" | wc -l) inputs in $archive"
	exit
fi
for last in "$@"; do
	# An input by itself.
	[ ! -f "$last" ] || exec "$program" -timeout=20 "$@"
done
exec "$program" -max_total_time="${TIME:-60}" -max_len=1024 -len_control=10 -timeout=20 -rss_limit_mb=4096 \
	-print_final_stats=1 -artifact_prefix="$folder/failed/$target/" \
	"$@" "$found" "$corpus"
