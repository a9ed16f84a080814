// SPDX-License-Identifier: GPL-2.0-only
/*
 * pace_calls: runs a list of calls on the core in the kernel, as sch_psp compiles it.  A
 * test compares the answers with those of the same core in user space and in BPF
 * (crates/host/backend/tests/core_bpf_lab.rs).
 *
 * Whoever opens /sys/kernel/debug/pace_calls writes a list at once, struct pace_list,
 * and reads it back with its answers; behind it is what the core is left as: words of
 * struct pace_state, and struct pace_reservation of each class.
 */
#include <linux/debugfs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "pace.c"

#define CLASSES_MAX	1024u
#define BYTES_MAX	(16u << 20)

/* Of a list: what pace_init() and pace_class_add() are given.  All of it is in words. */
struct pace_list {
	u64 line_rate_bps;
	u64 overhead_bytes;
	u64 min_frame_bytes;
	u64 max_frame_bytes;
	u64 max_burst_bytes;
	u64 link_header_bytes;
	u64 layer;
	u64 order;
	u64 mode;
	u64 guard_band;
	u64 aligned;
	u64 period_ns;
	u64 budget_bytes;
	u64 align_ns;
	u64 now_ns;
	u64 classes;		/* struct list_class follows, then struct call */
};

struct list_class {
	u64 type;
	u64 rate_bps;
	u64 ceil_bps;
	u64 quantum_bytes;
	u64 reserve_bytes;
};

/* bpf/tests/port.bpf.c has the same. */
enum call_kind {
	CALL_ENQUEUED,		/* slot, length, wire bytes */
	CALL_NEXT,
	CALL_SENT,		/* slot, length and wire, frames */
	CALL_DROPPED,		/* slot, length and wire */
	CALL_MUL_DIV,		/* first x second / now_ns */
};

struct call {
	u64 now_ns;
	u32 kind;
	u32 slot;
	u64 first;
	u64 second;
	u64 answer;
	u64 until_ns;
};

#define ANSWER_IDLE	((u64)(u32)~0u)
#define ANSWER_WAIT	(ANSWER_IDLE - 1)

struct class_state {
	u64 clock_ps;		/* as the port's clock counts */
	u64 frac;
	u64 active;
	struct pace_reservation reservation;
};

/* A port that runs. */
struct run {
	struct pace_sched sched;
	void *storage;
	u32 classes;
	u32 waiting[CLASSES_MAX];
	struct pace_class *class;
	struct pace_reservation *reservation;
};

/* What a file has: the list, and behind it the state. */
struct answer {
	size_t bytes;
	u8 data[];
};

static int begin(struct run *run, const struct pace_list *list)
{
	const struct list_class *class = (const void *)(list + 1);
	struct pace_config cfg = {
		.line_rate_bps = list->line_rate_bps,
		.overhead_bytes = list->overhead_bytes,
		.min_frame_bytes = list->min_frame_bytes,
		.max_frame_bytes = list->max_frame_bytes,
		.max_burst_bytes = list->max_burst_bytes,
		.link_header_bytes = list->link_header_bytes,
		.layer = list->layer,
		.order = list->order,
		.mode = list->mode,
		.guard_band = list->guard_band,
		.aligned = list->aligned,
		.period_ns = list->period_ns,
		.budget_bytes = list->budget_bytes,
		.align_ns = list->align_ns,
	};
	u32 i;

	run->classes = list->classes;
	run->storage = kvzalloc(pace_storage_bytes(run->classes), GFP_KERNEL);
	run->class = kvcalloc(run->classes, sizeof(*run->class), GFP_KERNEL);
	run->reservation = kvcalloc(run->classes, sizeof(*run->reservation), GFP_KERNEL);
	if (!run->storage || !run->class || !run->reservation)
		return -ENOMEM;
	if (pace_init(&run->sched, &cfg, run->storage, run->classes, list->now_ns))
		return -EINVAL;
	for (i = 0; i < run->classes; i++) {
		struct pace_class_config own = {
			.type = class[i].type,
			.rate_bps = class[i].rate_bps,
			.ceil_bps = class[i].ceil_bps,
			.quantum_bytes = class[i].quantum_bytes,
			.reserve_bytes = class[i].reserve_bytes,
			.reservation = &run->reservation[i],
		};

		if (pace_class_add(&run->sched, &run->class[i], &own))
			return -EINVAL;
	}
	return 0;
}

static void ask(struct run *run, struct call *call)
{
	struct pace_decision d = pace_next(&run->sched, call->now_ns);

	call->until_ns = d.until_ns;
	if (d.verdict == PACE_SEND)
		call->answer = d.cls - run->class;
	else
		call->answer = d.verdict == PACE_WAIT ? ANSWER_WAIT : ANSWER_IDLE;
}

/* As bpf/port.h: the guard band takes a first packet for one longest frame. */
static void note_head(struct run *run, struct pace_class *c)
{
	const struct pace_config *cfg = &run->sched.cfg;

	if (cfg->guard_band && (c->type == PACE_TYPE_NORMAL || c->type == PACE_TYPE_NRT))
		pace_set_head(&run->sched, c, cfg->max_frame_bytes + cfg->overhead_bytes);
}

static int make(struct run *run, struct call *call)
{
	struct pace_class *c;

	if (call->kind == CALL_NEXT) {
		ask(run, call);
		return 0;
	}
	if (call->kind == CALL_MUL_DIV) {
		if (!call->now_ns || call->now_ns >> 48 ||
		    mul_u64_u64_shr(call->first, call->second, 64) >= call->now_ns)
			return -EINVAL;
		call->answer = pace_mul_div(call->first, call->second, call->now_ns);
		return 0;
	}
	if (call->slot >= run->classes)
		return -EINVAL;
	c = &run->class[call->slot];
	switch (call->kind) {
	case CALL_ENQUEUED:
		pace_arrived(&run->sched, c, call->second, call->now_ns);
		if (!run->waiting[call->slot]++) {
			note_head(run, c);
			pace_activate(&run->sched, c, call->now_ns);
		}
		return 0;
	case CALL_SENT:
		run->waiting[call->slot]--;
		pace_sent_burst(&run->sched, c, call->first >> 32, (u32)call->first,
				call->second >> 32, run->waiting[call->slot], call->now_ns);
		if (run->waiting[call->slot])
			note_head(run, c);
		return 0;
	case CALL_DROPPED:
		if (--run->waiting[call->slot]) {
			pace_dropped(&run->sched, c, (u32)call->first, call->now_ns);
			note_head(run, c);
		} else {
			pace_deactivate(&run->sched, c, call->now_ns);
		}
		return 0;
	}
	return -EINVAL;
}

static void write_state(const struct run *run, struct pace_stats *stats)
{
	struct class_state *state = (void *)(stats + 1);
	u32 i;

	*stats = run->sched.stats;
	for (i = 0; i < run->classes; i++) {
		state[i].clock_ps = run->class[i].clock.ps + run->sched.offset_ps;
		state[i].frac = run->class[i].clock.frac;
		state[i].active = run->class[i].active;
		state[i].reservation = run->reservation[i];
	}
}

/* Runs the list of `bytes` that an answer has, and writes the state behind it. */
static int run_list(struct run *run, struct answer *answer, size_t bytes)
{
	struct pace_list *list = (void *)answer->data;
	struct call *call = (void *)((struct list_class *)(list + 1) + list->classes);
	int err = begin(run, list);

	for (; !err && (u8 *)(call + 1) <= answer->data + bytes; call++)
		err = make(run, call);
	if (!err)
		write_state(run, (void *)(answer->data + bytes));
	return err;
}

static ssize_t calls_write(struct file *file, const char __user *from, size_t bytes,
			   loff_t *at)
{
	struct answer *answer;
	struct run *run;
	u64 classes;
	int err;

	if (file->private_data || bytes < sizeof(struct pace_list) || bytes > BYTES_MAX ||
	    bytes % sizeof(u64))
		return -EINVAL;
	if (copy_from_user(&classes, from + offsetof(struct pace_list, classes),
			   sizeof(classes)))
		return -EFAULT;
	if (!classes || classes > CLASSES_MAX ||
	    bytes < sizeof(struct pace_list) + classes * sizeof(struct list_class))
		return -EINVAL;
	run = kvzalloc(sizeof(*run), GFP_KERNEL);
	answer = kvzalloc(sizeof(*answer) + bytes + sizeof(struct pace_stats) +
			  classes * sizeof(struct class_state), GFP_KERNEL);
	err = run && answer ? 0 : -ENOMEM;
	if (!err && copy_from_user(answer->data, from, bytes))
		err = -EFAULT;
	/* It may have changed meanwhile. */
	if (!err && ((struct pace_list *)answer->data)->classes != classes)
		err = -EINVAL;
	if (!err)
		err = run_list(run, answer, bytes);
	if (run) {
		kvfree(run->storage);
		kvfree(run->class);
		kvfree(run->reservation);
		kvfree(run);
	}
	if (err) {
		kvfree(answer);
		return err;
	}
	answer->bytes = bytes + sizeof(struct pace_stats) +
			classes * sizeof(struct class_state);
	file->private_data = answer;
	return bytes;
}

static ssize_t calls_read(struct file *file, char __user *to, size_t bytes, loff_t *at)
{
	const struct answer *answer = file->private_data;

	if (!answer)
		return -EINVAL;
	return simple_read_from_buffer(to, bytes, at, answer->data, answer->bytes);
}

static int calls_release(struct inode *inode, struct file *file)
{
	kvfree(file->private_data);
	return 0;
}

static const struct file_operations calls_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = calls_write,
	.read = calls_read,
	.release = calls_release,
};

static struct dentry *calls;

static int __init calls_init(void)
{
	calls = debugfs_create_file("pace_calls", 0600, NULL, NULL, &calls_fops);
	return PTR_ERR_OR_ZERO(calls);
}

static void __exit calls_exit(void)
{
	debugfs_remove(calls);
}

module_init(calls_init);
module_exit(calls_exit);
MODULE_DESCRIPTION("Runs calls on psp's core, for a test");
MODULE_LICENSE("GPL");
