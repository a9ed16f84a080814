// SPDX-License-Identifier: GPL-2.0-only
/* The folder /sys/kernel/debug/wire/, and its files that create, delete and join cables. */
#define pr_fmt(fmt) "wire: " fmt

#include <linux/module.h>
#include <linux/seq_file.h>

#include "wire.h"

static int apply_create(char *line, void *data)
{
	struct wire_settings s = {
		.mtu = 1500, .queues = 1, .ring = 256, .coalesce_frames = 16, .coalesce_ns = 20000,
		.rx_coalesce_ns = 100000, .records_max = 4194304,
	};
	struct wire_key keys[] = {
		{ "name", .text = s.name, .max = sizeof(s.name), .required = true },
		{ "a", .text = s.ifname[0], .max = IFNAMSIZ, .required = true },
		{ "b", .text = s.ifname[1], .max = IFNAMSIZ, .required = true },
		{ "rate_bps", &s.rate_bps, .min = WIRE_RATE_MIN, .max = WIRE_RATE_MAX,
		  .required = true },
		{ "delay_ns", &s.delay_ns, .max = 1000000000000ULL },
		{ "mtu", &s.mtu, .min = 68, .max = 65000 },
		{ "queues", &s.queues, .min = 1, .max = WIRE_QUEUES_MAX },
		{ "ring", &s.ring, .min = 1, .max = 65536 },
		{ "bql_min", &s.bql_min, .max = 1 << 30 },
		{ "coalesce_frames", &s.coalesce_frames, .min = 1, .max = 65536 },
		{ "coalesce_ns", &s.coalesce_ns, .max = NSEC_PER_SEC },
		{ "rx_coalesce_ns", &s.rx_coalesce_ns, .max = NSEC_PER_SEC },
		{ "sink", &s.sink, .max = 1 },
		{ "snap", &s.snap, .max = 1024 },
		{ "records_max", &s.records_max, .max = 1 << 30 },
	};
	int err = wire_parse(line, keys, ARRAY_SIZE(keys));

	return err ? err : wire_cable_create(&s);
}

static int apply_delete(char *line, void *data)
{
	char name[WIRE_NAME_LEN];
	struct wire_key keys[] = {
		{ "name", .text = name, .max = sizeof(name), .required = true },
	};
	int err = wire_parse(line, keys, ARRAY_SIZE(keys));

	return err ? err : wire_cable_delete(name);
}

static int apply_share(char *line, void *data)
{
	char into[WIRE_NAME_LEN], from[WIRE_NAME_LEN], side[2];
	struct wire_key keys[] = {
		{ "into", .text = into, .max = sizeof(into), .required = true },
		{ "from", .text = from, .max = sizeof(from), .required = true },
		{ "end", .text = side, .max = sizeof(side), .required = true },
	};
	int err = wire_parse(line, keys, ARRAY_SIZE(keys));

	if (err)
		return err;
	if (*side != 'a' && *side != 'b') {
		pr_err("end=%s: a or b is expected\n", side);
		return -EINVAL;
	}
	return wire_cable_share(into, from, *side - 'a');
}

static int apply_noise(char *line, void *data)
{
	return wire_noise_write(line);
}

static ssize_t create_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	return wire_line_write(buf, len, apply_create, NULL);
}

static ssize_t delete_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	return wire_line_write(buf, len, apply_delete, NULL);
}

static ssize_t share_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	return wire_line_write(buf, len, apply_share, NULL);
}

static ssize_t noise_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	return wire_line_write(buf, len, apply_noise, NULL);
}

static int noise_show(struct seq_file *seq, void *unused)
{
	return wire_noise_show(seq);
}

static int noise_open(struct inode *inode, struct file *file)
{
	return single_open(file, noise_show, NULL);
}

static const struct file_operations create_fops = {
	.owner = THIS_MODULE, .open = simple_open, .write = create_write,
};

static const struct file_operations delete_fops = {
	.owner = THIS_MODULE, .open = simple_open, .write = delete_write,
};

static const struct file_operations share_fops = {
	.owner = THIS_MODULE, .open = simple_open, .write = share_write,
};

static const struct file_operations noise_fops = {
	.owner = THIS_MODULE, .open = noise_open, .read = seq_read, .write = noise_write,
	.llseek = seq_lseek, .release = single_release,
};

int wire_control_init(void)
{
	int err;

	wire_root = debugfs_create_dir("wire", NULL);
	if (IS_ERR(wire_root))
		return PTR_ERR(wire_root);
	debugfs_create_file("create", 0200, wire_root, NULL, &create_fops);
	debugfs_create_file("delete", 0200, wire_root, NULL, &delete_fops);
	debugfs_create_file("noise", 0600, wire_root, NULL, &noise_fops);
	debugfs_create_file("share", 0200, wire_root, NULL, &share_fops);
	err = wire_idle_init(wire_root);
	if (err)
		debugfs_remove_recursive(wire_root);
	return err;
}

void wire_control_exit(void)
{
	wire_idle_exit();
	debugfs_remove_recursive(wire_root);
}
