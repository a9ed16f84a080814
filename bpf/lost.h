/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts what could not be reported, so that no loss goes unnoticed. */
#ifndef WATCH_LOST_H
#define WATCH_LOST_H

#include "helpers.h"
#include "kernel.h"
#include "records.h"

/* Counters per CPU; the index is an enum lost_what. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
	MAP_NUMBER(max_entries, LOST_WHATS);
} lost SEC(".maps");

INLINE void count_lost(u32 what)
{
	u64 *count = bpf_map_lookup_elem(&lost, &what);

	if (count)
		++*count;
}

#endif
