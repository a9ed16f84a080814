// SPDX-License-Identifier: GPL-2.0-only
/* Parses the plan: one step per line, words separated by blanks. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"

/* What follows a step's first word. */
enum rest { REST_NONE, REST_ANY, REST_NEEDED, REST_WORD };

static const struct form {
	const char *word;
	enum step_kind kind;
	bool first;		/* the step has a first word */
	enum rest rest;
} forms[] = {
	{ "insmod", STEP_INSMOD, true, REST_ANY },
	{ "run", STEP_RUN, false, REST_NEEDED },
	{ "refuse", STEP_REFUSE, false, REST_NEEDED },
	{ "start", STEP_START, true, REST_NEEDED },
	{ "zero", STEP_ZERO, false, REST_ANY },
	{ "at", STEP_AT, true, REST_NONE },
	{ "wait", STEP_WAIT, true, REST_WORD },
	{ "stop", STEP_STOP, true, REST_NONE },
	{ "freeze", STEP_FREEZE, true, REST_NONE },
	{ "thaw", STEP_THAW, true, REST_NONE },
	{ "keep", STEP_KEEP, true, REST_WORD },
	{ "say", STEP_SAY, false, REST_NEEDED },
};

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Cuts the next word off *@at and returns it; "" at the end. */
static char *next_word(char **at)
{
	char *word = *at, *end;

	while (blank(*word))
		word++;
	for (end = word; *end && !blank(*end); end++)
		;
	*at = end;
	if (*end) {
		*end = '\0';
		*at = end + 1;
	}
	return word;
}

static char *trimmed(char *text)
{
	char *end;

	while (blank(*text))
		text++;
	end = text + strlen(text);
	while (end > text && blank(end[-1]))
		*--end = '\0';
	return text;
}

static bool parse_number(const char *word, int64_t *number)
{
	char *end;
	long long value;

	if (!isdigit((unsigned char)*word))
		return false;
	errno = 0;
	value = strtoll(word, &end, 10);
	*number = value;
	return !errno && !*end;
}

/* Parses seconds with up to nine decimals. */
static bool parse_seconds(const char *word, int64_t *ns)
{
	int64_t unit = 1000000000;

	if (!isdigit((unsigned char)*word))
		return false;
	for (*ns = 0; isdigit((unsigned char)*word); word++) {
		if (*ns > 1000000 * unit)
			return false;
		*ns = *ns * 10 + (*word - '0') * unit;
	}
	if (*word == '.')
		for (word++; isdigit((unsigned char)*word) && unit > 1; word++)
			*ns += (*word - '0') * (unit /= 10);
	return !*word;
}

/*
 * Checks a name: started commands name files in /out, kept files name members
 * of the archive.
 */
static bool parse_name(const char *name, size_t max, const char *extra)
{
	const char *p;

	for (p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr(extra, *p))
			return false;
	return p > name && (size_t)(p - name) < max && *name != '.' && *name != '/';
}

static bool check_step(struct step *step, struct reason *why)
{
	switch (step->kind) {
	case STEP_AT:
		if (!parse_number(step->first, &step->ns))
			return because(why, "'%s' is not a number of ns", step->first);
		break;
	case STEP_ZERO:
		step->ns = ZERO_AHEAD_NS;
		if (*step->rest && !parse_number(step->rest, &step->ns))
			return because(why, "'%s' is not a number of ns", step->rest);
		break;
	case STEP_START:
	case STEP_STOP:
	case STEP_FREEZE:
	case STEP_THAW:
	case STEP_WAIT:
		if (!parse_name(step->first, AGENT_NAME_MAX, "._-"))
			return because(why, "'%s' is not a name", step->first);
		if (step->kind == STEP_WAIT && !parse_seconds(step->rest, &step->ns))
			return because(why, "'%s' is not a number of seconds", step->rest);
		break;
	case STEP_KEEP:
		if (!parse_name(step->rest, 100, "._-/"))
			return because(why, "'%s' is not a name in the archive", step->rest);
		break;
	default:
		break;
	}
	return true;
}

static bool parse_step(struct step *step, char *line, struct reason *why)
{
	const struct form *form = NULL;
	char *word = next_word(&line), *more;
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (!strcmp(word, forms[i].word))
			form = &forms[i];
	if (!form)
		return because(why, "unknown step '%s'", word);
	step->kind = form->kind;
	step->first = step->rest = "";
	if (form->first) {
		step->first = next_word(&line);
		if (!*step->first)
			return because(why, "'%s' asks for a word after it", word);
	}
	if (form->rest == REST_WORD) {
		step->rest = next_word(&line);
		more = trimmed(line);
	} else {
		step->rest = trimmed(line);
		more = form->rest == REST_NONE ? step->rest : "";
	}
	if (form->rest >= REST_NEEDED && !*step->rest)
		return because(why, "'%s' ends too early", word);
	if (*more)
		return because(why, "'%s' is too much for '%s'", more, word);
	return check_step(step, why);
}

static bool add_step(struct plan *plan, char *line, unsigned int number, struct reason *why)
{
	struct step *grown, *step;
	struct reason detail;

	grown = reallocarray(plan->steps, plan->count + 1, sizeof(*grown));
	if (!grown)
		return because(why, "out of memory");
	plan->steps = grown;
	step = &grown[plan->count];
	memset(step, 0, sizeof(*step));
	step->line = number;
	step->text = strdup(line);
	if (!step->text)
		return because(why, "out of memory");
	plan->count++;
	if (!parse_step(step, line, &detail))
		return because(why, "plan line %u: %s", number, detail.text);
	return true;
}

bool plan_parse(struct plan *plan, const char *text, struct reason *why)
{
	unsigned int number = 0;
	char *line, *rest;

	memset(plan, 0, sizeof(*plan));
	plan->buffer = rest = strdup(text);
	if (!rest)
		return because(why, "out of memory");
	while ((line = strsep(&rest, "\n"))) {
		number++;
		line = trimmed(line);
		if (*line && !add_step(plan, line, number, why))
			return false;
	}
	if (!plan->count)
		return because(why, "the plan is empty");
	return true;
}

void plan_free(struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		free(plan->steps[i].text);
	free(plan->steps);
	free(plan->buffer);
	memset(plan, 0, sizeof(*plan));
}
