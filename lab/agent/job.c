// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs commands to their end, or starts them in the background under a name.
 * Each command is a process group of its own, so that a signal reaches all its
 * processes. As the first process the agent also reaps orphans.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"

#define JOBS_MAX	256
#define STOP_GRACE_NS	1000000000LL

static struct job {
	char name[AGENT_NAME_MAX];
	pid_t pid;
	bool ended, forgiven;
	int status;
} jobs[JOBS_MAX];
static size_t job_count;
static sigset_t child_signal;

void jobs_init(void)
{
	sigemptyset(&child_signal);
	sigaddset(&child_signal, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child_signal, NULL);
}

static struct job *find_job(const char *name)
{
	for (size_t i = 0; i < job_count; i++)
		if (!strcmp(jobs[i].name, name))
			return &jobs[i];
	return NULL;
}

/* Reaps all children that have ended. Returns true if @pid was one of them. */
static bool reap(pid_t pid, int *status)
{
	bool found = false;
	int value;
	pid_t ended;

	while ((ended = waitpid(-1, &value, WNOHANG)) > 0) {
		if (ended == pid) {
			*status = value;
			found = true;
		}
		for (size_t i = 0; i < job_count; i++) {
			if (jobs[i].pid == ended && !jobs[i].ended) {
				jobs[i].ended = true;
				jobs[i].status = value;
			}
		}
	}
	return found;
}

/* Waits for a child to end. Returns false if @deadline_ns comes first. */
static bool wait_for_child(int64_t deadline_ns)
{
	int64_t left = deadline_ns - now_ns();
	struct timespec time = { left / 1000000000, left % 1000000000 };

	if (left <= 0)
		return false;
	sigtimedwait(&child_signal, NULL, &time);
	return true;
}

static void describe(int status, char *text, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(text, size, "killed by signal %d", WTERMSIG(status));
	else
		snprintf(text, size, "exit status %d", WEXITSTATUS(status));
}

static pid_t spawn(const char *command, int output, int errors)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setpgid(0, 0);
	sigprocmask(SIG_UNBLOCK, &child_signal, NULL);
	int empty = open("/dev/null", O_RDONLY);

	if (empty >= 0)
		dup2(empty, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(errors, STDERR_FILENO);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	dprintf(STDERR_FILENO, "/bin/sh: %s\n", strerror(errno));
	_exit(127);
}

bool job_run(const char *command, int output, int *status, struct reason *why)
{
	pid_t pid = spawn(command, output, output);

	if (pid < 0)
		return because(why, "fork: %s", strerror(errno));
	while (!reap(pid, status))
		sigwaitinfo(&child_signal, NULL);
	return true;
}

static int open_output(const char *name, const char *suffix)
{
	char path[AGENT_NAME_MAX + 16];

	snprintf(path, sizeof(path), "/out/%s%s", name, suffix);
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
}

bool job_start(const char *name, const char *command, struct reason *why)
{
	int output, errors, error = 0;
	struct job *job;

	if (find_job(name))
		return because(why, "'%s' has been started already", name);
	if (job_count == JOBS_MAX)
		return because(why, "more than %d started commands", JOBS_MAX);
	output = open_output(name, "");
	errors = open_output(name, ".err");
	if (output < 0 || errors < 0)
		return because(why, "/out/%s: %s", name, strerror(errno));
	job = &jobs[job_count];
	memset(job, 0, sizeof(*job));
	strcpy(job->name, name);
	job->pid = spawn(command, output, errors);
	if (job->pid < 0)
		error = errno;
	close(output);
	close(errors);
	if (error)
		return because(why, "fork: %s", strerror(error));
	setpgid(job->pid, job->pid);	/* as in the child: either may run first */
	job_count++;
	return true;
}

static bool judge(struct job *job, struct reason *why)
{
	char text[64];

	if (job->forgiven || !job->status)
		return true;
	describe(job->status, text, sizeof(text));
	return because(why, "'%s': %s, see /out/%s.err", job->name, text, job->name);
}

bool job_wait(const char *name, int64_t timeout_ns, struct reason *why)
{
	int64_t deadline_ns = now_ns() + timeout_ns;
	struct job *job = find_job(name);
	int ignored;

	if (!job)
		return because(why, "'%s' was never started", name);
	for (reap(0, &ignored); !job->ended; reap(0, &ignored))
		if (!wait_for_child(deadline_ns))
			return because(why, "'%s' has not ended in time", name);
	return judge(job, why);
}

/*
 * Returns true if the group is gone. It may outlive its first process by the
 * time that writing a report takes.
 */
static bool group_gone(pid_t group)
{
	int ignored;

	reap(0, &ignored);
	return kill(-group, 0) < 0 && errno == ESRCH;
}

bool job_stop(const char *name, struct reason *why)
{
	int64_t deadline_ns = now_ns() + STOP_GRACE_NS;
	struct job *job = find_job(name);
	int ignored;

	if (!job)
		return because(why, "'%s' was never started", name);
	reap(0, &ignored);
	if (job->ended && !judge(job, why))
		return false;
	job->forgiven = true;
	kill(-job->pid, SIGINT);
	while (!group_gone(job->pid)) {
		if (!wait_for_child(deadline_ns)) {
			kill(-job->pid, SIGKILL);
			deadline_ns = INT64_MAX;
		}
	}
	return true;
}

bool job_signal(const char *name, int number, struct reason *why)
{
	struct job *job = find_job(name);

	if (!job)
		return because(why, "'%s' was never started", name);
	if (kill(-job->pid, number))
		return because(why, "'%s': %s", name, strerror(errno));
	return true;
}

bool jobs_check(struct reason *why)
{
	int ignored;

	reap(0, &ignored);
	for (size_t i = 0; i < job_count; i++)
		if (jobs[i].ended && !judge(&jobs[i], why))
			return false;
	return true;
}
