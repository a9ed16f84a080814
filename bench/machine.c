// SPDX-License-Identifier: GPL-2.0-only OR MIT
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "machine.h"
#include "timestamp.h"

#define CACHES_MAX	8

int machine_pin(void)
{
	cpu_set_t set;
	int cpu;

	if (sched_getaffinity(0, sizeof(set), &set))
		return -1;
	for (cpu = CPU_SETSIZE - 1; cpu > 0; cpu--)
		if (CPU_ISSET(cpu, &set))
			break;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -1 : cpu;
}

/* Reads the first line of a file; "" if there is none. */
static void first_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "r");

	line[0] = '\0';
	if (!f)
		return;
	if (!fgets(line, size, f))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	fclose(f);
}

/* Reads the value of the first line of /proc/cpuinfo that begins with `key`. */
static void cpu_info(const char *key, char *value, int size)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[4096];

	value[0] = '\0';
	while (f && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, key, strlen(key)) || !colon)
			continue;
		colon[strcspn(colon, "\n")] = '\0';
		snprintf(value, (size_t)size, "%s", colon + 1 + (colon[1] == ' '));
		break;
	}
	if (f)
		fclose(f);
}

/* Returns true in a virtual machine: the hypervisor announces itself. */
static bool is_virtual(void)
{
	char flags[4096];

	cpu_info("flags", flags, sizeof(flags));
	return strstr(flags, " hypervisor");
}

static void caches(struct json *j)
{
	int i;

	json_begin(j, "caches", '[');
	for (i = 0; i < CACHES_MAX; i++) {
		char path[96], level[16], type[32], size[32], text[96];
		int at = snprintf(path, sizeof(path),
				  "/sys/devices/system/cpu/cpu0/cache/index%d/", i);

		snprintf(path + at, sizeof(path) - (size_t)at, "level");
		first_line(path, level, sizeof(level));
		snprintf(path + at, sizeof(path) - (size_t)at, "type");
		first_line(path, type, sizeof(type));
		snprintf(path + at, sizeof(path) - (size_t)at, "size");
		first_line(path, size, sizeof(size));
		if (!level[0] || !strcmp(type, "Instruction"))
			continue;
		snprintf(text, sizeof(text), "L%s %s", level, size);
		json_text(j, NULL, text);
	}
	json_end(j, ']');
}

void machine_json(struct json *j, int cpu)
{
	struct utsname u;
	char text[256];

	json_begin(j, "machine", '{');
	cpu_info("model name", text, sizeof(text));
	json_text(j, "cpu", text);
	json_count(j, "cpus", (unsigned long long)sysconf(_SC_NPROCESSORS_ONLN));
	caches(j);
	json_count(j, "memory_bytes",
		   (unsigned long long)sysconf(_SC_PHYS_PAGES) *
		   (unsigned long long)sysconf(_SC_PAGE_SIZE));
	if (!uname(&u)) {
		snprintf(text, sizeof(text), "%s %s", u.sysname, u.release);
		json_text(j, "kernel", text);
		json_text(j, "architecture", u.machine);
	}
	json_flag(j, "virtual", is_virtual());
	json_text(j, "compiler", BENCH_COMPILER);
	json_text(j, "flags", BENCH_FLAGS);
	if (cpu >= 0)
		json_count(j, "pinned_to_cpu", (unsigned long long)cpu);
	json_number(j, "stamp_ns", timestamp_cost() * timestamp_ns());
	json_number(j, "stamp_step_ns", timestamp_step() * timestamp_ns());
	json_end(j, '}');
}
