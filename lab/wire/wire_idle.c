// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measures how long the CPUs were idle. With one CPU and under instruction-counted virtual time
 * that is exact: a CPU that is not idle executes one instruction per
 * nanosecond.
 *
 * The CPU is idle from when it enters the idle state until the timer interrupts
 * it. The code that runs in the interrupt, which is most of a network stack,
 * counts as work, although the kernel leaves the idle task only afterwards, and
 * only if there is a task to run. The kernel's own figure in /proc/stat counts
 * ticks of 4 ms.
 *
 * With several CPUs, interrupts that one sends to another count as idle time
 * until the other leaves the idle state.
 */
#include <linux/ktime.h>
#include <linux/seq_file.h>
#include <linux/tracepoint.h>
#include <trace/events/power.h>

#include "wire.h"

static struct tracepoint *timer;	/* on entry to the timer's interrupt */

/* Each CPU writes its own with interrupts disabled; others read it. */
struct wire_idle {
	u64 idle_ns;
	u64 since_ns;			/* 0: not idle */
};

static DEFINE_PER_CPU(struct wire_idle, wire_idle);

static void idle_end(void)
{
	struct wire_idle *idle = this_cpu_ptr(&wire_idle);

	if (!idle->since_ns)
		return;
	WRITE_ONCE(idle->idle_ns, idle->idle_ns + ktime_get_ns() - idle->since_ns);
	WRITE_ONCE(idle->since_ns, 0);
}

static void idle_changed(void *unused, unsigned int state, unsigned int cpu)
{
	if (state == PWR_EVENT_EXIT)
		idle_end();
	else
		WRITE_ONCE(this_cpu_ptr(&wire_idle)->since_ns, ktime_get_ns());
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
	u64 now_ns, since_ns, idle_ns = 0;
	unsigned long flags;
	int cpu;

	local_irq_save(flags);
	mark();
	now_ns = ktime_get_ns();
	for_each_online_cpu(cpu) {
		const struct wire_idle *idle = per_cpu_ptr(&wire_idle, cpu);

		idle_ns += READ_ONCE(idle->idle_ns);
		since_ns = READ_ONCE(idle->since_ns);
		if (since_ns && since_ns < now_ns)
			idle_ns += now_ns - since_ns;
	}
	local_irq_restore(flags);
	seq_printf(seq, "now_ns %llu\nidle_ns %llu\ncpus %u\n", now_ns, idle_ns,
		   num_online_cpus());
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(idle);

/* Only x86 has the tracepoint: the wires of other machines have no file `idle`. */
#define HAVE_IDLE	IS_ENABLED(CONFIG_X86)

/* Finds the tracepoint by its name, because it is not exported to modules. */
static void find_timer(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "local_timer_entry"))
		timer = tp;
}

int wire_idle_init(struct dentry *root)
{
	int err;

	if (!HAVE_IDLE)
		return 0;
	for_each_kernel_tracepoint(find_timer, NULL);
	if (!timer)
		return -ENOENT;
	err = tracepoint_probe_register(timer, timer_entered, NULL);
	if (err)
		return err;
	err = register_trace_cpu_idle(idle_changed, NULL);
	if (err) {
		tracepoint_probe_unregister(timer, timer_entered, NULL);
		return err;
	}
	debugfs_create_file("idle", 0400, root, NULL, &idle_fops);
	return 0;
}

void wire_idle_exit(void)
{
	if (!HAVE_IDLE)
		return;
	unregister_trace_cpu_idle(idle_changed, NULL);
	tracepoint_probe_unregister(timer, timer_entered, NULL);
	tracepoint_synchronize_unregister();
}
