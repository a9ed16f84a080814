/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tells libFuzzer which ways through the C under test have been taken.
 *
 * GCC calls __sanitizer_cov_trace_pc() at each basic block; the linker makes
 * that this function (build.rs).  libFuzzer can be told by any counters in a
 * section of that name: here one for each pair of blocks, one after the other.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define COUNTERS	(1u << 16)

__attribute__((section("__libfuzzer_extra_counters")))
static uint8_t counters[COUNTERS];

static size_t before;

/* Whether a pair was seen, and not how often: to choose a small corpus. */
static uint8_t seen_only;

__attribute__((constructor, no_sanitize_coverage))
static void configure(void)
{
	seen_only = getenv("FUZZ_SEEN_ONLY") != NULL;
}

void __wrap___sanitizer_cov_trace_pc(void);

__attribute__((no_sanitize_coverage))
void __wrap___sanitizer_cov_trace_pc(void)
{
	size_t here = (size_t)__builtin_return_address(0);
	/* The one before is halved: from a to b is not from b to a. */
	uint8_t *counter = &counters[(here ^ before) % COUNTERS];

	*counter = seen_only ? 1 : *counter + 1;
	before = here >> 1;
}
