// SPDX-License-Identifier: GPL-2.0-only
/*
 * A plugin of QEMU that counts the instructions of the guest by their address.
 *
 *   qemu-system-x86_64 ... -plugin profile.so,out=FILE
 *
 * It counts executions of translated blocks, so the counts are exact and cost
 * the guest no virtual time. The guest divides the run: whenever it executes
 * the mark (wire/wire_idle.c does when its file is read), the plugin writes
 * what was counted since the last one, and begins anew. FILE:
 *
 *   mark
 *   ADDRESS EXECUTIONS SIZES	a block of the kernel: hexadecimal, decimal, a
 *				letter for the bytes of each instruction (a: 1)
 *   user INSTRUCTIONS		of all programs together
 *
 * Blocks of programs have no address here: programs share addresses.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qemu_plugin_api.h"

/* nopl 0x4d505350(%rax): does nothing, and no compiler emits it. */
static const unsigned char mark_code[] = { 0x0f, 0x1f, 0x80, 'P', 'S', 'P', 'M' };

/* Most blocks; a run of many cells translates some 200,000. */
#define BLOCKS_MAX	(1u << 21)
#define BUCKETS		(1u << 18)
/* Most instructions in a block: QEMU's TCG_MAX_INSNS. */
#define INSNS_MAX	512
#define KERNEL_FROM	(1ull << 63)

struct block {
	uint64_t address;
	char *sizes;		/* NULL: of a program */
	uint32_t insns;
	uint32_t next;		/* in the bucket; 0: none */
};

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_API;

static struct qemu_plugin_scoreboard *score;	/* executions of each block */
static struct block *blocks;			/* [0] is not used */
static uint32_t block_count = 1;
static uint32_t buckets[BUCKETS];
static FILE *out;

static void fail(const char *why)
{
	fprintf(stderr, "profile: %s\n", why);
	exit(1);
}

static void write_segment(unsigned int vcpu, void *unused)
{
	uint64_t *executions = qemu_plugin_scoreboard_find(score, vcpu);
	uint64_t user = 0;
	uint32_t i;

	(void)unused;
	fputs("mark\n", out);
	for (i = 1; i < block_count; i++) {
		if (!executions[i])
			continue;
		if (blocks[i].sizes)
			fprintf(out, "%" PRIx64 " %" PRIu64 " %s\n", blocks[i].address,
				executions[i], blocks[i].sizes);
		else
			user += executions[i] * blocks[i].insns;
		executions[i] = 0;
	}
	fprintf(out, "user %" PRIu64 "\n", user);
	if (fflush(out))
		fail("cannot write the profile");
}

static bool is_same(const struct block *b, uint64_t address, const char *sizes, uint32_t insns)
{
	if (b->address != address || b->insns != insns)
		return false;
	return !b->sizes || !strcmp(b->sizes, sizes);
}

/* Returns the number of a block; the same code has one however often it is translated. */
static uint32_t find_block(uint64_t address, const char *sizes, uint32_t insns)
{
	uint32_t *bucket = &buckets[(address ^ address >> 18) % BUCKETS];
	uint32_t i;

	for (i = *bucket; i; i = blocks[i].next)
		if (is_same(&blocks[i], address, sizes, insns))
			return i;
	if (block_count == BLOCKS_MAX)
		fail("too many blocks");
	i = block_count++;
	blocks[i].address = address;
	blocks[i].insns = insns;
	if (address >= KERNEL_FROM) {
		blocks[i].sizes = strdup(sizes);
		if (!blocks[i].sizes)
			fail("out of memory");
	}
	blocks[i].next = *bucket;
	*bucket = i;
	return i;
}

static bool is_mark(const struct qemu_plugin_insn *insn, size_t size)
{
	unsigned char code[sizeof(mark_code)];

	return size == sizeof(code) &&
	       qemu_plugin_insn_data(insn, code, sizeof(code)) == sizeof(code) &&
	       !memcmp(code, mark_code, sizeof(code));
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t insns = qemu_plugin_tb_n_insns(tb), size, i;
	qemu_plugin_u64 entry = { .score = score };
	struct qemu_plugin_insn *insn;
	char sizes[INSNS_MAX + 1];
	uint64_t address = 0;

	(void)id;
	if (!insns || insns > INSNS_MAX)
		fail("a block without instructions, or with too many");
	for (i = 0; i < insns; i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		size = qemu_plugin_insn_size(insn);
		sizes[i] = 'a' + (size - 1) % 26;
		if (!i)
			address = qemu_plugin_insn_vaddr(insn);
		if (is_mark(insn, size))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, write_segment,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
	sizes[insns] = '\0';
	entry.offset = sizeof(uint64_t) * find_block(address, sizes, insns);
	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64,
							  entry, 1);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info,
					   int argc, char **argv)
{
	static const char key[] = "out=";

	(void)info;
	if (argc != 1 || strncmp(argv[0], key, strlen(key))) {
		fprintf(stderr, "profile: expected one argument, out=FILE\n");
		return -1;
	}
	out = fopen(argv[0] + strlen(key), "w");
	blocks = calloc(BLOCKS_MAX, sizeof(*blocks));
	score = qemu_plugin_scoreboard_new(BLOCKS_MAX * sizeof(uint64_t));
	if (!out || !blocks || !score) {
		fprintf(stderr, "profile: cannot open %s, or out of memory\n", argv[0]);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
