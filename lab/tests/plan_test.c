// SPDX-License-Identifier: GPL-2.0-only
/* The plan's parser: what it accepts, what it refuses and in which words. */
#include <string.h>

#include "../agent/agent.h"
#include "check.h"

static void refused(const char *text, const char *reason)
{
	struct reason why = { "" };
	struct plan plan;

	CHECK(!plan_parse(&plan, text, &why), "'%s' was taken", text);
	CHECK(!strcmp(why.text, reason), "'%s' says: %s", text, why.text);
	plan_free(&plan);
}

static void test_every_step(void)
{
	static const char text[] =
		"insmod /mod/wire.ko\n"
		"insmod  /mod/x.ko a=1 b=2 \n"
		"\n"
		"run echo 'a  b' | grep a > /out/x\n"
		"refuse tc qdisc add\n"
		"start flow-1.x psp-send --stop-ns 5\n"
		"zero\n"
		"zero 30000000\n"
		"\tat 500000000\n"
		"wait flow-1.x 1.25\n"
		"stop srv\n"
		"freeze srv\n"
		"thaw srv\n"
		"keep /sys/kernel/debug/wire/c1/timeline.a cell-0/timeline.a\n"
		"say half of it";
	static const struct { enum step_kind kind; unsigned int line; const char *first, *rest;
			      int64_t ns; } want[] = {
		{ STEP_INSMOD, 1, "/mod/wire.ko", "", 0 },
		{ STEP_INSMOD, 2, "/mod/x.ko", "a=1 b=2", 0 },
		{ STEP_RUN, 4, "", "echo 'a  b' | grep a > /out/x", 0 },
		{ STEP_REFUSE, 5, "", "tc qdisc add", 0 },
		{ STEP_START, 6, "flow-1.x", "psp-send --stop-ns 5", 0 },
		{ STEP_ZERO, 7, "", "", ZERO_AHEAD_NS },
		{ STEP_ZERO, 8, "", "30000000", 30000000 },
		{ STEP_AT, 9, "500000000", "", 500000000 },
		{ STEP_WAIT, 10, "flow-1.x", "1.25", 1250000000 },
		{ STEP_STOP, 11, "srv", "", 0 },
		{ STEP_FREEZE, 12, "srv", "", 0 },
		{ STEP_THAW, 13, "srv", "", 0 },
		{ STEP_KEEP, 14, "/sys/kernel/debug/wire/c1/timeline.a", "cell-0/timeline.a", 0 },
		{ STEP_SAY, 15, "", "half of it", 0 },
	};
	struct reason why = { "" };
	struct plan plan;
	size_t i, n = sizeof(want) / sizeof(*want);

	CHECK(plan_parse(&plan, text, &why), "%s", why.text);
	CHECK(plan.count == n, "%zu steps", plan.count);
	for (i = 0; i < n && i < plan.count; i++) {
		const struct step *s = &plan.steps[i];

		CHECK(s->kind == want[i].kind && s->line == want[i].line &&
		      !strcmp(s->first, want[i].first) && !strcmp(s->rest, want[i].rest) &&
		      s->ns == want[i].ns, "step %zu: '%s' '%s' '%s' %lld", i, s->text,
		      s->first, s->rest, (long long)s->ns);
	}
	CHECK(!strcmp(plan.steps[3].text, "refuse tc qdisc add"), "text '%s'", plan.steps[3].text);
	plan_free(&plan);
}

static void test_refusals(void)
{
	char name[200];

	refused("", "the plan is empty");
	refused("\n \n", "the plan is empty");
	refused("run true\nexec true", "plan line 2: unknown step 'exec'");
	refused("run", "plan line 1: 'run' ends too early");
	refused("insmod", "plan line 1: 'insmod' asks for a word after it");
	refused("start x", "plan line 1: 'start' ends too early");
	refused("start a/b true", "plan line 1: 'a/b' is not a name");
	refused("start ../b true", "plan line 1: '../b' is not a name");
	refused("zero soon", "plan line 1: 'soon' is not a number of ns");
	refused("at", "plan line 1: 'at' asks for a word after it");
	refused("at 5ms", "plan line 1: '5ms' is not a number of ns");
	refused("at -5", "plan line 1: '-5' is not a number of ns");
	refused("at 99999999999999999999", "plan line 1: '99999999999999999999' is not a number of ns");
	refused("at 5 6", "plan line 1: '6' is too much for 'at'");
	refused("wait x", "plan line 1: 'wait' ends too early");
	refused("wait x 1 2", "plan line 1: '2' is too much for 'wait'");
	refused("wait x 1s", "plan line 1: '1s' is not a number of seconds");
	refused("wait x 9999999999", "plan line 1: '9999999999' is not a number of seconds");
	refused("keep /a", "plan line 1: 'keep' ends too early");
	refused("keep /a /b", "plan line 1: '/b' is not a name in the archive");
	refused("keep /a a b", "plan line 1: 'b' is too much for 'keep'");
	snprintf(name, sizeof(name), "keep /a %0120d", 0);
	refused(name, "plan line 1: '000000000000000000000000000000000000000000000000000000000000"
		"000000000000000000000000000000000000000000000000000000000000' is not a name in the archive");
}

int main(void)
{
	test_every_step();
	test_refusals();
	return check_result("plan");
}
