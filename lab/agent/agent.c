// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guest's first process: mounts the file systems, receives the run's files,
 * runs /plan, exports the results and ends the machine. The first step that fails ends the run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"

#define NSEC_PER_MSEC	1000000LL
#define COMMANDS	"/out/commands"		/* output of run and refuse */

static int progress = -1;
static int commands = -1;
static int64_t zero_ns = -1;

static void sleep_until_ns(int64_t ns)
{
	struct timespec time = { ns / 1000000000, ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		;
}

/* ---- set-up ---- */

static bool mount_all(struct reason *why)
{
	static const struct { const char *what, *where, *type; } mounts[] = {
		{ "proc", "/proc", "proc" },
		{ "sysfs", "/sys", "sysfs" },
		{ "devtmpfs", "/dev", "devtmpfs" },
		{ "debugfs", "/sys/kernel/debug", "debugfs" },
		{ "tmpfs", "/tmp", "tmpfs" },
		{ "tmpfs", "/run", "tmpfs" },
	};

	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		mkdir(mounts[i].where, 0755);
		if (mount(mounts[i].what, mounts[i].where, mounts[i].type, 0, NULL) < 0 &&
		    errno != EBUSY)
			return because(why, "mount %s: %s", mounts[i].where, strerror(errno));
	}
	mkdir("/var", 0755);
	if (symlink("/run", "/var/run") < 0 && errno != EEXIST)
		return because(why, "/var/run: %s", strerror(errno));
	mkdir("/out", 0755);
	commands = open(COMMANDS, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	if (commands < 0)
		return because(why, COMMANDS ": %s", strerror(errno));
	return true;
}

static void open_ports(void)
{
	struct termios raw;
	int console = open("/dev/console", O_RDWR | O_NOCTTY);

	if (console >= 0)
		for (int fd = 0; fd <= 2; fd++)
			dup2(console, fd);
	if (console > 2)
		close(console);
	progress = open("/dev/ttyS1", O_WRONLY | O_NOCTTY | O_CLOEXEC);
	if (progress >= 0 && tcgetattr(progress, &raw) == 0) {
		cfmakeraw(&raw);
		tcsetattr(progress, TCSANOW, &raw);
	}
}

static char *read_text(const char *path, struct reason *why)
{
	size_t size = 0, room = 1 << 16;
	char *text = malloc(room), *grown;
	ssize_t n = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && text && (n = read(fd, text + size, room - size - 1)) > 0) {
		size += n;
		if (size + 1 < room)
			continue;
		grown = realloc(text, room *= 2);
		if (!grown)
			break;
		text = grown;
	}
	if (n)
		because(why, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (!n) {
		text[size] = '\0';
		return text;
	}
	free(text);
	return NULL;
}

/* ---- steps ---- */

static bool step_insmod(const struct step *step, struct reason *why)
{
	int fd = open(step->first, O_RDONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return because(why, "%s", strerror(errno));
	ok = syscall(SYS_finit_module, fd, step->rest, 0) == 0;
	if (!ok)
		because(why, "%s", strerror(errno));
	close(fd);
	return ok;
}

/*
 * Runs a command to its end. Sets *@shown to where its output begins in
 * COMMANDS, so that report() can print that after the reason of a failure.
 */
static bool step_run(const struct step *step, bool expect_success, off_t *shown,
		     struct reason *why)
{
	int status;

	dprintf(commands, "$ %s\n", step->rest);
	*shown = lseek(commands, 0, SEEK_END);
	if (!job_run(step->rest, commands, &status, why))
		return false;
	if (WIFSIGNALED(status))
		return because(why, "killed by signal %d", WTERMSIG(status));
	if (!WEXITSTATUS(status) != expect_success)
		return because(why, "exit status %d", WEXITSTATUS(status));
	return true;
}

static bool step_zero(const struct step *step, struct reason *why)
{
	char text[32];
	FILE *marks = fopen("/out/marks", "ae");

	if (!marks)
		return because(why, "/out/marks: %s", strerror(errno));
	zero_ns = (now_ns() + step->ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC * NSEC_PER_MSEC;
	snprintf(text, sizeof(text), "%lld", (long long)zero_ns);
	setenv("ZERO_NS", text, 1);
	fprintf(marks, "zero %s\n", text);
	if (fclose(marks))
		return because(why, "/out/marks: %s", strerror(errno));
	return true;
}

static bool step_at(const struct step *step, struct reason *why)
{
	if (zero_ns < 0)
		return because(why, "there was no 'zero' before it");
	sleep_until_ns(zero_ns + step->ns);
	return true;
}

static bool step_do(const struct step *step, off_t *shown, struct reason *why)
{
	switch (step->kind) {
	case STEP_INSMOD:
		return step_insmod(step, why);
	case STEP_RUN:
		return step_run(step, true, shown, why);
	case STEP_REFUSE:
		return step_run(step, false, shown, why);
	case STEP_START:
		return job_start(step->first, step->rest, why);
	case STEP_ZERO:
		return step_zero(step, why);
	case STEP_AT:
		return step_at(step, why);
	case STEP_WAIT:
		return job_wait(step->first, step->ns, why);
	case STEP_STOP:
		return job_stop(step->first, why);
	case STEP_FREEZE:
		return job_signal(step->first, SIGSTOP, why);
	case STEP_THAW:
		return job_signal(step->first, SIGCONT, why);
	case STEP_KEEP:
		return archive_file(step->first, step->rest, why);
	case STEP_SAY:
		if (progress >= 0)
			dprintf(progress, "progress %lld %s\n", (long long)now_ns(), step->rest);
		return true;
	}
	return because(why, "step of no kind");
}

/* ---- the run ---- */

static void copy_to_console(const char *path, off_t from)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char buffer[4096];
	ssize_t n;

	if (fd < 0)
		return;
	lseek(fd, from, SEEK_SET);
	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		if (write(STDOUT_FILENO, buffer, n) != n)
			break;
	close(fd);
}

/*
 * Sets *@why, the later status, to a failed step's reason, and prints it and
 * the output of the step's command to the console.
 */
static void report(const struct step *step, const struct reason *detail, off_t shown,
		   struct reason *why)
{
	char path[AGENT_NAME_MAX + 16];

	because(why, "FAILED step %u: %.200s: %s", step->line, step->text, detail->text);
	printf("agent: %s\n", why->text);
	fflush(stdout);
	if (shown >= 0)
		copy_to_console(COMMANDS, shown);
	if (step->kind == STEP_WAIT || step->kind == STEP_STOP) {
		snprintf(path, sizeof(path), "/out/%s.err", step->first);
		copy_to_console(path, 0);
	}
}

static bool run_plan(struct reason *why)
{
	struct reason detail;
	struct plan plan;
	bool ok;
	char *text = read_text("/plan", &detail);

	ok = text && plan_parse(&plan, text, &detail);
	free(text);
	if (!ok) {
		because(why, "FAILED step 0: %s", detail.text);
		printf("agent: %s\n", why->text);
		return false;
	}
	for (size_t i = 0; ok && i < plan.count; i++) {
		off_t shown = -1;

		ok = step_do(&plan.steps[i], &shown, &detail);
		if (!ok)
			report(&plan.steps[i], &detail, shown, why);
	}
	if (ok && !jobs_check(&detail)) {
		ok = false;
		report(&plan.steps[plan.count - 1], &detail, -1, why);
	}
	plan_free(&plan);
	return ok;
}

static void end_machine(void)
{
	fflush(stdout);
	tcdrain(STDOUT_FILENO);
	sync();
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

int main(void)
{
	char status[AGENT_TEXT_MAX + 1];
	struct reason why, detail;
	bool ok, has_plan;

	if (getpid() != 1) {
		fprintf(stderr, "agent: this is the first process of a guest\n");
		return 2;
	}
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	ok = mount_all(&why);
	open_ports();
	jobs_init();
	/* Without a plan in its initial file system the guest is one that a snapshot is taken of. */
	has_plan = access("/plan", F_OK) == 0;
	if (ok && !has_plan)
		ok = input_stop(&why) && input_reseed(&why);
	if (!ok || !archive_open(&why) || (!has_plan && !archive_input(&why))) {
		printf("agent: FAILED step 0: %s\n", why.text);
		end_machine();
	}
	ok = run_plan(&why);
	if (!archive_folder("/out", "out/", &detail) && ok) {
		ok = because(&why, "FAILED step 0: %.400s", detail.text);
		printf("agent: %s\n", why.text);
	}
	snprintf(status, sizeof(status), "%s\n", ok ? "ok" : why.text);
	if (!archive_text("status", status, &detail))
		printf("agent: FAILED step 0: %s\n", detail.text);
	archive_close();
	if (ok)
		printf("agent: done\n");
	end_machine();
}
