/* SPDX-License-Identifier: GPL-2.0-only */
/* The guest's first process: runs the plan and exports the results. */
#ifndef AGENT_H
#define AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define AGENT_TEXT_MAX	512	/* length of a failure's reason */
#define AGENT_NAME_MAX	64	/* length of a started command's name */

/* ---- reason.c ---- */

/* The reason of a failure, as text. */
struct reason {
	char text[AGENT_TEXT_MAX];
};

__attribute__((format(printf, 2, 3)))
bool because(struct reason *why, const char *format, ...);	/* returns false */

int64_t now_ns(void);

/* ---- plan.c ---- */

#define ZERO_AHEAD_NS	10000000	/* default of a zero step */

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
	int64_t ns;		/* time of zero, at and wait */
};

struct plan {
	struct step *steps;
	size_t count;
	char *buffer;
};

/* Parses all of @text, so that a mistake shows before the first step runs. */
bool plan_parse(struct plan *plan, const char *text, struct reason *why);
void plan_free(struct plan *plan);

/* ---- job.c ---- */

void jobs_init(void);
bool job_run(const char *command, int output, int *status, struct reason *why);
bool job_start(const char *name, const char *command, struct reason *why);
bool job_wait(const char *name, int64_t timeout_ns, struct reason *why);
bool job_stop(const char *name, struct reason *why);
/* Sends a signal to all processes of a job. */
bool job_signal(const char *name, int number, struct reason *why);
bool jobs_check(struct reason *why);	/* false if one failed unreported */

/* ---- input.c ---- */

/* Stops the machine if QEMU is to take a snapshot. A resumed guest goes on here. */
bool input_stop(struct reason *why);
bool input_reseed(struct reason *why);
/* Unpacks QEMU's -initrd into /, through @memory, whose physical address is @physical. */
bool input_receive(unsigned char *memory, size_t bytes, uint64_t physical, struct reason *why);
/* Unpacks a newc cpio archive; @root ends with a slash. */
bool input_unpack(const char *root, const unsigned char *archive, size_t bytes,
		  struct reason *why);

/* ---- archive.c ---- */

bool archive_open(struct reason *why);
bool archive_input(struct reason *why);	/* unpacks the files of the run */
bool archive_file(const char *path, const char *name, struct reason *why);
bool archive_text(const char *name, const char *text, struct reason *why);
bool archive_folder(const char *path, const char *prefix, struct reason *why);
void archive_close(void);

#endif
