/* SPDX-License-Identifier: GPL-2.0-only */
/* The guest's first process: runs the plan and hands the results out. */
#ifndef AGENT_H
#define AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define AGENT_TEXT_MAX	512	/* of a reason why something failed */
#define AGENT_NAME_MAX	64	/* of a started command */

/* Why something failed, in words. */
struct reason {
	char text[AGENT_TEXT_MAX];
};

__attribute__((format(printf, 2, 3)))
bool because(struct reason *why, const char *format, ...);	/* always false */

int64_t now_ns(void);
void sleep_until_ns(int64_t ns);

/* ---- plan.c ---- */

#define ZERO_AHEAD_NS	10000000	/* unless the step says more */

enum step_kind {
	STEP_INSMOD, STEP_RUN, STEP_REFUSE, STEP_START, STEP_ZERO, STEP_AT,
	STEP_WAIT, STEP_STOP, STEP_FREEZE, STEP_THAW, STEP_KEEP, STEP_SAY
};

struct step {
	enum step_kind kind;
	unsigned int line;
	char *text;		/* the line as written */
	char *first;		/* PATH or NAME, or "" */
	char *rest;		/* CMD, TEXT, parameters or the second word, or "" */
	int64_t ns;		/* of zero, at and wait */
};

struct plan {
	struct step *steps;
	size_t count;
	char *buffer;
};

/* All of @text is checked before any of it runs. */
bool plan_parse(struct plan *plan, const char *text, struct reason *why);
void plan_free(struct plan *plan);

/* ---- job.c ---- */

void jobs_init(void);
bool job_run(const char *command, int output, int *status, struct reason *why);
bool job_start(const char *name, const char *command, struct reason *why);
bool job_wait(const char *name, int64_t timeout_ns, struct reason *why);
bool job_stop(const char *name, struct reason *why);
/* A signal to all its processes. */
bool job_signal(const char *name, int number, struct reason *why);
bool jobs_check(struct reason *why);	/* none has failed unnoticed */

/* ---- archive.c ---- */

bool archive_open(struct reason *why);
bool archive_file(const char *path, const char *name, struct reason *why);
bool archive_text(const char *name, const char *text, struct reason *why);
bool archive_folder(const char *path, const char *prefix, struct reason *why);
void archive_close(void);

#endif
