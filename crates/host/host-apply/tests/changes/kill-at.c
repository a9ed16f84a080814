// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Kills a program when it enters its Nth system call, counted over all of its threads from
 * the first that opens a netlink socket: what comes before changes nothing.
 *
 * usage: kill-at N PROGRAM [ARGUMENT...]
 *
 * Exit status 0: the program was killed; 1: it ended before; 2: it could not be traced.
 */
#define _GNU_SOURCE
#include <errno.h>
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

/* Is this stop the entry of a system call, and of one that counts? */
static int counts(pid_t thread, int *seen)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info) < 0 ||
	    info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return 0;
	if (info.entry.nr == SYS_socket && info.entry.args[0] == AF_NETLINK)
		*seen = 1;
	return *seen;
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
