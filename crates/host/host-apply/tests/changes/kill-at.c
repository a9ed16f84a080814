// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Kills a program when it enters its Nth system call that may change something, counted over
 * all of its threads from the first that opens a netlink socket: what comes before changes
 * nothing.  A program that is killed between two such calls leaves what it leaves at the second.
 *
 * usage: kill-at N PROGRAM [ARGUMENT...]
 *
 * Exit status 0: the program was killed; 1: it ended before; 2: it could not be traced.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL)

static int fail(const char *what)
{
	perror(what);
	return 2;
}

/*
 * Does a system call only read, wait, open a socket or have memory?  All others may change
 * something that outlives the program.
 */
static int changes_nothing(const struct __ptrace_syscall_info *info)
{
	switch (info->entry.nr) {
	case SYS_openat:
		return !(info->entry.args[2] & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC));
	case SYS_socket: case SYS_bind: case SYS_setsockopt: case SYS_fcntl: case SYS_dup:
	case SYS_read: case SYS_pread64: case SYS_recvmsg: case SYS_recvfrom: case SYS_poll:
	case SYS_close: case SYS_fstat: case SYS_newfstatat: case SYS_statx: case SYS_lseek:
	case SYS_getdents64: case SYS_readlink: case SYS_access: case SYS_getcwd:
	case SYS_mmap: case SYS_munmap: case SYS_mprotect: case SYS_mremap: case SYS_madvise:
	case SYS_brk: case SYS_futex: case SYS_rt_sigprocmask: case SYS_rt_sigaction:
	case SYS_sigaltstack: case SYS_sched_yield: case SYS_sched_getaffinity:
	case SYS_getpid: case SYS_gettid: case SYS_getrandom: case SYS_clock_gettime:
	case SYS_clock_nanosleep: case SYS_getsockname: case SYS_getsockopt:
	case SYS_prctl: case SYS_rseq: case SYS_set_robust_list: case SYS_clone3:
		return 1;
	}
	return 0;
}

/* Is this stop the entry of a system call, and of one that counts? */
static int counts(pid_t thread, int *seen)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info) < 0 ||
	    info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return 0;
	if (info.entry.nr == SYS_socket && info.entry.args[0] == AF_NETLINK)
		*seen = 1;
	return *seen && !changes_nothing(&info);
}

int main(int argc, char **argv)
{
	long left = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
	int status, seen = 0;
	pid_t child, thread;

	if (left <= 0) {
		fprintf(stderr, "usage: %s N PROGRAM [ARGUMENT...]\n", argv[0]);
		return 2;
	}
	child = fork();
	if (child < 0)
		return fail("fork");
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP))
			_exit(fail("trace"));
		execvp(argv[2], argv + 2);
		_exit(fail(argv[2]));
	}
	if (waitpid(child, &status, 0) < 0 ||
	    ptrace(PTRACE_SETOPTIONS, child, NULL, OPTIONS) < 0 ||
	    ptrace(PTRACE_SYSCALL, child, NULL, NULL) < 0)
		return fail("trace");
	while ((thread = waitpid(-1, &status, __WALL)) > 0) {
		int signal = 0;

		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (thread == child)
				return 1;
			continue;
		}
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			if (counts(thread, &seen) && --left == 0) {
				kill(child, SIGKILL);
				while (waitpid(-1, &status, __WALL) > 0)
					;
				return 0;
			}
		} else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
			signal = WSTOPSIG(status);
		}
		ptrace(PTRACE_SYSCALL, thread, NULL, (void *)(long)signal);
	}
	return fail("wait");
}
