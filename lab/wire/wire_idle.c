// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long the CPU had nothing to do. Under instruction-counted virtual time
 * that is exact: what is not idle is instructions, one a nanosecond.
 *
 * The kernel's own figure in /proc/stat counts ticks of 4 ms.
 */
#include <linux/ktime.h>
#include <linux/seq_file.h>
#include <trace/events/power.h>

#include "wire.h"

/* One CPU: written with interrupts off on the way into and out of idle. */
static struct {
	u64 idle_ns;
	u64 since_ns;			/* 0: not idle */
} idle;

static void idle_changed(void *unused, unsigned int state, unsigned int cpu)
{
	u64 now_ns = ktime_get_ns();

	if (state != PWR_EVENT_EXIT) {
		idle.since_ns = now_ns;
	} else if (idle.since_ns) {
		idle.idle_ns += now_ns - idle.since_ns;
		idle.since_ns = 0;
	}
}

static int idle_show(struct seq_file *seq, void *unused)
{
	unsigned long flags;
	u64 now_ns, idle_ns;

	local_irq_save(flags);
	now_ns = ktime_get_ns();
	idle_ns = idle.idle_ns;
	local_irq_restore(flags);
	seq_printf(seq, "now_ns %llu\nidle_ns %llu\n", now_ns, idle_ns);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(idle);

int wire_idle_init(struct dentry *root)
{
	debugfs_create_file("idle", 0400, root, NULL, &idle_fops);
	return register_trace_cpu_idle(idle_changed, NULL);
}

void wire_idle_exit(void)
{
	unregister_trace_cpu_idle(idle_changed, NULL);
	tracepoint_synchronize_unregister();
}
