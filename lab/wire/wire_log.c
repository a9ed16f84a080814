// SPDX-License-Identifier: GPL-2.0-only
/*
 * An append-only log in a list of chunks, written in softirq context and read
 * by user space while it grows. Elements are never moved or copied. A chunk is
 * taken from the page allocator when it is needed: a few hundred instructions
 * once in 2,000 frames, where vmalloc would hold the CPU for 100 us.
 */
#include <linux/gfp.h>
#include <linux/minmax.h>
#include <linux/uaccess.h>

#include "wire.h"

#define WIRE_CHUNK_ORDER	4
#define WIRE_CHUNK_BYTES	(PAGE_SIZE << WIRE_CHUNK_ORDER)

struct wire_chunk {
	struct wire_chunk *next;
	u8 data[] __aligned(64);
};

void wire_log_init(struct wire_log *log, u32 element_bytes)
{
	memset(log, 0, sizeof(*log));
	log->element_bytes = element_bytes;
	if (element_bytes)
		log->chunk_elements = (WIRE_CHUNK_BYTES - sizeof(struct wire_chunk)) /
				      element_bytes;
}

bool wire_log_grow(struct wire_log *log)
{
	struct wire_chunk *chunk;

	chunk = (void *)__get_free_pages(GFP_ATOMIC | __GFP_NOWARN, WIRE_CHUNK_ORDER);
	if (!chunk)
		return false;
	chunk->next = NULL;
	if (log->last)
		log->last->next = chunk;
	else
		log->first = chunk;
	log->last = chunk;
	log->used = 0;
	return true;
}

/* Returns the place of the next element. Call wire_log_ready() before it. */
void *wire_log_tail(struct wire_log *log)
{
	return log->last->data + log->used * log->element_bytes;
}

/*
 * Empties the log. Returns its chunks, which the caller frees without a lock
 * held.
 */
struct wire_chunk *wire_log_take(struct wire_log *log)
{
	struct wire_chunk *chunks = log->first;

	wire_log_init(log, log->element_bytes);
	return chunks;
}

void wire_chunks_free(struct wire_chunk *chunk)
{
	struct wire_chunk *next;

	for (; chunk; chunk = next) {
		next = chunk->next;
		free_pages((unsigned long)chunk, WIRE_CHUNK_ORDER);
	}
}

/*
 * Copies a part of the log to user space. The caller keeps it from being
 * emptied.
 */
ssize_t wire_log_read(struct wire_log *log, char __user *buf, size_t len, loff_t *pos)
{
	u64 chunk_bytes = (u64)log->chunk_elements * log->element_bytes;
	struct wire_chunk *chunk;
	u64 total, at, offset;
	size_t done = 0;

	if (*pos < 0)
		return -EINVAL;
	at = *pos;
	/*
	 * Pairs with the release in wire_log_commit(): elements below it are
	 * complete.
	 */
	total = (u64)smp_load_acquire(&log->count) * log->element_bytes;
	if (at >= total)
		return 0;
	len = min_t(u64, len, total - at);
	chunk = log->first;
	for (at = div64_u64_rem(at, chunk_bytes, &offset); at; at--)
		chunk = chunk->next;
	while (done < len) {
		size_t part = min_t(u64, len - done, chunk_bytes - offset);

		if (copy_to_user(buf + done, chunk->data + offset, part))
			return done ? done : -EFAULT;
		done += part;
		*pos += part;
		offset += part;
		if (offset == chunk_bytes) {
			chunk = chunk->next;
			offset = 0;
		}
	}
	return done;
}
