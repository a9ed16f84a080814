// SPDX-License-Identifier: GPL-2.0-only
/* The files of a cable under /sys/kernel/debug/wire/. */
#define pr_fmt(fmt) "wire: " fmt

#include <linux/fs.h>
#include <linux/module.h>
#include <linux/in.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "wire.h"

#define WIRE_LINE_MAX	1024

struct dentry *wire_root;

/*
 * Copies one control line from user space and passes it to @apply, which may
 * modify it.
 */
ssize_t wire_line_write(const char __user *buf, size_t len,
			int (*apply)(char *line, void *data), void *data)
{
	char *line;
	int err;

	if (len > WIRE_LINE_MAX)
		return -EINVAL;
	line = memdup_user_nul(buf, len);
	if (IS_ERR(line))
		return PTR_ERR(line);
	err = apply(line, data);
	kfree(line);
	return err ? err : len;
}

/* ---- NAME/bottleneck, NAME/fault, NAME/impair, NAME/reset ---- */

static int port_check(const struct wire_port *p)
{
	if (p->rate.rate_bps && !p->fifo_bytes == !p->burst_bytes) {
		pr_err("rate_bps= asks for one of fifo_bytes= and burst_bytes=\n");
		return -EINVAL;
	}
	if (!p->rate.rate_bps && (p->fifo_bytes || p->burst_bytes)) {
		pr_err("fifo_bytes= and burst_bytes= ask for rate_bps=\n");
		return -EINVAL;
	}
	if (p->refresh_ns && !p->burst_bytes) {
		pr_err("refresh_ns= asks for burst_bytes=\n");
		return -EINVAL;
	}
	return 0;
}

static int apply_bottleneck(char *line, void *data)
{
	struct wire_cable *cable = data;
	u64 rate_bps = 0, overhead = 0;
	struct wire_port p = {};
	char side[2];
	struct wire_key keys[] = {
		{ "end", .text = side, .max = sizeof(side), .required = true },
		{ "rate_bps", &rate_bps, .min = WIRE_RATE_MIN, .max = WIRE_RATE_MAX },
		{ "fifo_bytes", &p.fifo_bytes, .min = 1, .max = WIRE_BYTES_MAX },
		{ "burst_bytes", &p.burst_bytes, .min = 1, .max = WIRE_BYTES_MAX },
		{ "refresh_ns", &p.refresh_ns, .max = NSEC_PER_SEC },
		{ "delay_ns", &p.delay_ns, .max = 100ULL * NSEC_PER_SEC },
		{ "overhead_bytes", &overhead, .max = 1000 },
	};
	int err = wire_parse(line, keys, ARRAY_SIZE(keys));
	struct wire_end *end;

	if (err)
		return err;
	if (*side != 'a' && *side != 'b') {
		pr_err("end=%s: a or b is expected\n", side);
		return -EINVAL;
	}
	if (rate_bps)
		p.rate = wire_rate_of(rate_bps);
	p.overhead_bytes = overhead;
	err = port_check(&p);
	if (err)
		return err;
	wire_port_start(&p, wire_now_ps());

	end = cable->end[*side - 'a'];
	wire_catch_up(end);
	spin_lock_bh(&end->lock);
	end->port = p;
	spin_unlock_bh(&end->lock);
	return 0;
}

static ssize_t bottleneck_write(struct file *file, const char __user *buf, size_t len,
				loff_t *pos)
{
	struct seq_file *seq = file->private_data;

	return wire_line_write(buf, len, apply_bottleneck, seq->private);
}

static int bottleneck_show(struct seq_file *seq, void *unused)
{
	struct wire_cable *cable = seq->private;
	struct wire_port p;
	int side;

	for (side = 0; side < 2; side++) {
		spin_lock_bh(&cable->end[side]->lock);
		p = cable->end[side]->port;
		spin_unlock_bh(&cable->end[side]->lock);
		seq_printf(seq, "end=%c", cable->end[side]->side);
		if (p.rate.rate_bps)
			seq_printf(seq, " rate_bps=%llu", p.rate.rate_bps);
		if (p.fifo_bytes)
			seq_printf(seq, " fifo_bytes=%llu", p.fifo_bytes);
		if (p.burst_bytes)
			seq_printf(seq, " burst_bytes=%llu refresh_ns=%llu",
				   p.burst_bytes, p.refresh_ns);
		seq_printf(seq, " delay_ns=%llu overhead_bytes=%u\n",
			   p.delay_ns, p.overhead_bytes);
	}
	return 0;
}

static int bottleneck_open(struct inode *inode, struct file *file)
{
	return single_open(file, bottleneck_show, inode->i_private);
}

static int apply_fault(char *line, void *data)
{
	return wire_fault_write(data, line);
}

static ssize_t fault_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct seq_file *seq = file->private_data;

	return wire_line_write(buf, len, apply_fault, seq->private);
}

static int fault_show(struct seq_file *seq, void *unused)
{
	wire_fault_show(seq->private, seq);
	return 0;
}

static int fault_open(struct inode *inode, struct file *file)
{
	return single_open(file, fault_show, inode->i_private);
}

static int apply_impair(char *line, void *data)
{
	return wire_impair_write(data, line);
}

static ssize_t impair_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct seq_file *seq = file->private_data;

	return wire_line_write(buf, len, apply_impair, seq->private);
}

static int impair_show(struct seq_file *seq, void *unused)
{
	wire_impair_show(seq->private, seq);
	return 0;
}

static int impair_open(struct inode *inode, struct file *file)
{
	return single_open(file, impair_show, inode->i_private);
}

static void end_reset(struct wire_end *end)
{
	struct wire_chunk *timeline, *snap;
	struct sk_buff *skb;

	wire_catch_up(end);
	spin_lock_bh(&end->lock);
	for (skb = end->entering; skb; skb = skb->next)
		wire_cb(skb)->record = NULL;
	timeline = wire_log_take(&end->timeline);
	snap = wire_log_take(&end->snap);
	memset(end->flows, 0, sizeof(*end->flows));
	memset(end->counter, 0, sizeof(end->counter));
	spin_unlock_bh(&end->lock);
	wire_chunks_free(timeline);
	wire_chunks_free(snap);
}

static void cable_reset(struct wire_cable *cable)
{
	mutex_lock(&cable->read_mutex);
	end_reset(cable->end[0]);
	end_reset(cable->end[1]);
	mutex_unlock(&cable->read_mutex);
}

static ssize_t reset_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	cable_reset(file->private_data);
	return len;
}

static const struct file_operations bottleneck_fops = {
	.owner = THIS_MODULE, .open = bottleneck_open, .read = seq_read,
	.write = bottleneck_write, .llseek = seq_lseek, .release = single_release,
};

static const struct file_operations fault_fops = {
	.owner = THIS_MODULE, .open = fault_open, .read = seq_read, .write = fault_write,
	.llseek = seq_lseek, .release = single_release,
};

static const struct file_operations impair_fops = {
	.owner = THIS_MODULE, .open = impair_open, .read = seq_read, .write = impair_write,
	.llseek = seq_lseek, .release = single_release,
};

static const struct file_operations reset_fops = {
	.owner = THIS_MODULE, .open = simple_open, .write = reset_write,
};

/* ---- files to read ---- */

static ssize_t log_read(struct wire_end *end, struct wire_log *log, char __user *buf,
			size_t len, loff_t *pos)
{
	ssize_t n;

	wire_catch_up(end);
	mutex_lock(&end->cable->read_mutex);
	n = wire_log_read(log, buf, len, pos);
	mutex_unlock(&end->cable->read_mutex);
	return n;
}

static ssize_t timeline_read(struct file *file, char __user *buf, size_t len, loff_t *pos)
{
	struct wire_end *end = file->private_data;

	return log_read(end, &end->timeline, buf, len, pos);
}

static ssize_t snap_read(struct file *file, char __user *buf, size_t len, loff_t *pos)
{
	struct wire_end *end = file->private_data;

	return end->snap_bytes ? log_read(end, &end->snap, buf, len, pos) : 0;
}

static const struct file_operations timeline_fops = {
	.owner = THIS_MODULE, .open = simple_open, .read = timeline_read,
	.llseek = default_llseek,
};

static const struct file_operations snap_fops = {
	.owner = THIS_MODULE, .open = simple_open, .read = snap_read,
	.llseek = default_llseek,
};

static int flows_show(struct seq_file *seq, void *unused)
{
	struct wire_end *end = seq->private;
	struct wire_flow_key *key;
	u32 i, count;

	mutex_lock(&end->cable->read_mutex);
	/*
	 * Pairs with the release in wire_flow_index(): keys below the count are
	 * complete.
	 */
	count = smp_load_acquire(&end->flows->count);
	for (i = 0; i < count; i++) {
		key = &end->flows->key[i];
		if (key->proto)
			seq_printf(seq, "%u %s %pI4 %u %pI4 %u\n", i,
				   key->proto == IPPROTO_TCP ? "tcp" : "udp",
				   &key->saddr, be16_to_cpu(key->sport),
				   &key->daddr, be16_to_cpu(key->dport));
		else
			seq_printf(seq, "%u ethertype 0x%04x\n", i, be16_to_cpu(key->ethertype));
	}
	mutex_unlock(&end->cable->read_mutex);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(flows);

static const char * const counter_names[WIRE_N_COUNTERS] = {
	[WIRE_N_DATA_FRAMES] = "data_frames",
	[WIRE_N_DATA_BYTES] = "data_bytes",
	[WIRE_N_PAUSE_FRAMES] = "pause_frames",
	[WIRE_N_GAP_FRAMES] = "gap_frames",
	[WIRE_N_GAP_BYTES] = "gap_bytes",
	[WIRE_N_WIRE_BYTES] = "wire_bytes",
	[WIRE_N_DELIVERED] = "delivered",
	[WIRE_N_SUNK] = "sunk",
	[WIRE_N_ENDED] = "ended",
	[WIRE_N_DROPPED_FIFO] = "dropped_fifo",
	[WIRE_N_DROPPED_POLICER] = "dropped_policer",
	[WIRE_N_RECORDS] = "records",
	[WIRE_N_RECORDS_LOST] = "records_lost",
	[WIRE_N_FLOWS_LOST] = "flows_lost",
	[WIRE_N_RING_FULL] = "ring_full",
	[WIRE_N_BQL_STOPS] = "bql_stops",
	[WIRE_N_COMPLETIONS] = "completions",
	[WIRE_N_POLLS] = "polls",
	[WIRE_N_RX_FRAMES] = "rx_frames",
	[WIRE_N_BUSY_FAULTS] = "busy_faults",
	[WIRE_N_DROPPED_CARRIER] = "dropped_carrier",
	[WIRE_N_FILTERED] = "filtered",
	[WIRE_N_LOST] = "lost",
	[WIRE_N_LATE] = "late",
};

static int counters_show(struct seq_file *seq, void *unused)
{
	struct wire_cable *cable = seq->private;
	u64 counter[WIRE_N_COUNTERS];
	int side, i;

	for (side = 0; side < 2; side++) {
		wire_catch_up(cable->end[side]);
		spin_lock_bh(&cable->end[side]->lock);
		memcpy(counter, cable->end[side]->counter, sizeof(counter));
		spin_unlock_bh(&cable->end[side]->lock);
		for (i = 0; i < WIRE_N_COUNTERS; i++)
			seq_printf(seq, "%c.%s %llu\n", cable->end[side]->side,
				   counter_names[i], counter[i]);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

/* ---- the directory tree ---- */

void wire_debugfs_add(struct wire_cable *cable)
{
	char name[16];
	int side;

	cable->dir = debugfs_create_dir(cable->set.name, wire_root);
	debugfs_create_file("bottleneck", 0600, cable->dir, cable, &bottleneck_fops);
	debugfs_create_file("fault", 0600, cable->dir, cable, &fault_fops);
	debugfs_create_file("impair", 0600, cable->dir, cable, &impair_fops);
	debugfs_create_file("reset", 0200, cable->dir, cable, &reset_fops);
	debugfs_create_file("counters", 0400, cable->dir, cable, &counters_fops);
	for (side = 0; side < 2; side++) {
		struct wire_end *end = cable->end[side];

		snprintf(name, sizeof(name), "timeline.%c", end->side);
		debugfs_create_file(name, 0400, cable->dir, end, &timeline_fops);
		snprintf(name, sizeof(name), "snap.%c", end->side);
		debugfs_create_file(name, 0400, cable->dir, end, &snap_fops);
		snprintf(name, sizeof(name), "flows.%c", end->side);
		debugfs_create_file(name, 0400, cable->dir, end, &flows_fops);
	}
}

/*
 * Removes a cable's files, after their present readers and writers have
 * finished.
 */
void wire_debugfs_remove(struct wire_cable *cable)
{
	debugfs_remove_recursive(cable->dir);
}
