// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Somebody else's program at tcx egress of a device, which lets each packet pass and ends the
 * search (TC_ACT_OK).  It stays until this program ends.
 *
 * usage: tcx DEVICE
 */
#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* enum bpf_attach_type since 6.6, which older headers do not name. */
#define TCX_EGRESS	47

/* r0 = TC_ACT_OK; exit */
static const struct bpf_insn pass[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
	{ .code = BPF_JMP | BPF_EXIT },
};

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(__NR_bpf, command, attr, sizeof(*attr));
}

int main(int argc, char **argv)
{
	union bpf_attr load, link;
	int program;

	if (argc != 2)
		return 2;
	memset(&load, 0, sizeof(load));
	load.prog_type = BPF_PROG_TYPE_SCHED_CLS;
	load.insns = (uintptr_t)pass;
	load.insn_cnt = sizeof(pass) / sizeof(pass[0]);
	load.license = (uintptr_t)"GPL";
	strcpy(load.prog_name, "pass");
	program = bpf(BPF_PROG_LOAD, &load);
	memset(&link, 0, sizeof(link));
	link.link_create.prog_fd = program;
	link.link_create.target_ifindex = if_nametoindex(argv[1]);
	link.link_create.attach_type = TCX_EGRESS;
	if (program < 0 || bpf(BPF_LINK_CREATE, &link) < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	puts("attached");
	fflush(stdout);
	pause();
	return 0;
}
