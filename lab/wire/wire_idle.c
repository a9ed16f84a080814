// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measures how long the CPU was idle. Under instruction-counted virtual time
 * that is exact: a CPU that is not idle executes one instruction per
 * nanosecond.
 *
 * The CPU is idle from when it enters the idle state until the timer interrupts
 * it. The code that runs in the interrupt, which is most of a network stack,
 * counts as work, although the kernel leaves the idle task only afterwards, and
 * only if there is a task to run. The kernel's own figure in /proc/stat counts
 * ticks of 4 ms.
 */
#include <linux/ktime.h>
#include <linux/seq_file.h>
#include <linux/tracepoint.h>
#include <trace/events/power.h>

#include "wire.h"

/* There is one CPU, which writes this with interrupts disabled. */
static struct {
	struct tracepoint *timer;	/* on entry to the timer's interrupt */
	u64 idle_ns;
	u64 since_ns;			/* 0: not idle */
} idle;

static void idle_end(void)
{
	if (!idle.since_ns)
		return;
	idle.idle_ns += ktime_get_ns() - idle.since_ns;
	idle.since_ns = 0;
}

static void idle_changed(void *unused, unsigned int state, unsigned int cpu)
{
	if (state == PWR_EVENT_EXIT)
		idle_end();
	else
		idle.since_ns = ktime_get_ns();
}

static void timer_entered(void *unused, int vector)
{
	idle_end();
}

/*
 * Marks this instant for the profile (lab/profile), which looks for this
 * instruction: nopl 0x4d505350(%rax), and no compiler emits it.
 */
static void mark(void)
{
#ifdef CONFIG_X86_64
	asm volatile(".byte 0x0f, 0x1f, 0x80, 0x50, 0x53, 0x50, 0x4d");
#endif
}

static int idle_show(struct seq_file *seq, void *unused)
{
	unsigned long flags;
	u64 now_ns, idle_ns;

	local_irq_save(flags);
	mark();
	now_ns = ktime_get_ns();
	idle_ns = idle.idle_ns;
	local_irq_restore(flags);
	seq_printf(seq, "now_ns %llu\nidle_ns %llu\n", now_ns, idle_ns);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(idle);

/* Finds the tracepoint by its name, because it is not exported to modules. */
static void find_timer(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "local_timer_entry"))
		idle.timer = tp;
}

int wire_idle_init(struct dentry *root)
{
	int err;

	for_each_kernel_tracepoint(find_timer, NULL);
	if (!idle.timer)
		return -ENOENT;
	err = tracepoint_probe_register(idle.timer, timer_entered, NULL);
	if (err)
		return err;
	err = register_trace_cpu_idle(idle_changed, NULL);
	if (err) {
		tracepoint_probe_unregister(idle.timer, timer_entered, NULL);
		return err;
	}
	debugfs_create_file("idle", 0400, root, NULL, &idle_fops);
	return 0;
}

void wire_idle_exit(void)
{
	unregister_trace_cpu_idle(idle_changed, NULL);
	tracepoint_probe_unregister(idle.timer, timer_entered, NULL);
	tracepoint_synchronize_unregister();
}
