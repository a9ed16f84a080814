// SPDX-License-Identifier: GPL-2.0-only
/*
 * Simulates a busy host: holds the CPU with interrupts disabled at
 * pseudo-random instants, as a long interrupt handler or a spinning driver
 * does. The instants are a Poisson process and the lengths are uniform, both
 * from one seed.
 */
#define pr_fmt(fmt) "wire: " fmt

#include <linux/mutex.h>
#include <linux/seq_file.h>

#include "wire.h"
#include "wire_compat.h"

/*
 * The least time, in ns, between two holds. A timer that is overdue again when
 * its function returns makes the kernel's hrtimer code report a hanging
 * interrupt.
 */
#define NOISE_PAUSE_NS	5000

static DEFINE_MUTEX(noise_mutex);	/* serialises writing and showing the settings */

static struct {
	struct hrtimer timer;
	u64 hold_max_ns, every_ns;
	u64 random;
	u64 next_ns;			/* next event of the process, not the timer's expiry */
	u64 holds, held_ns, longest_ns;
} noise;

static enum hrtimer_restart noise_hold(struct hrtimer *timer)
{
	u64 begin_ns = ktime_get_ns(), now_ns = begin_ns, until_ns;
	unsigned long flags;

	until_ns = begin_ns + wire_uniform(wire_random(&noise.random), noise.hold_max_ns);
	local_irq_save(flags);		/* for kernels that run this with them on */
	while (now_ns < until_ns) {
		cpu_relax();
		now_ns = ktime_get_ns();
	}
	local_irq_restore(flags);

	noise.holds++;
	noise.held_ns += now_ns - begin_ns;
	noise.longest_ns = max(noise.longest_ns, now_ns - begin_ns);

	noise.next_ns += wire_exponential(wire_random(&noise.random), noise.every_ns);
	hrtimer_set_expires(timer, ns_to_ktime(max(noise.next_ns, now_ns + NOISE_PAUSE_NS)));
	return HRTIMER_RESTART;
}

void wire_noise_init(void)
{
	hrtimer_setup(&noise.timer, noise_hold, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
}

void wire_noise_stop(void)
{
	hrtimer_cancel(&noise.timer);
}

int wire_noise_write(char *line)
{
	u64 hold_max_ns = 0, every_ns = 0, seed = 1;
	struct wire_key keys[] = {
		{ "hold_max_ns", &hold_max_ns, .max = 100000000, .required = true },
		{ "every_ns", &every_ns, .min = 1000, .max = 10000000000ULL },
		{ "seed", &seed, .max = U64_MAX },
	};
	int err = wire_parse(line, keys, ARRAY_SIZE(keys));

	if (err)
		return err;
	if (hold_max_ns && !every_ns) {
		pr_err("every_ns= is missing\n");
		return -EINVAL;
	}
	mutex_lock(&noise_mutex);
	hrtimer_cancel(&noise.timer);
	noise.hold_max_ns = hold_max_ns;
	noise.every_ns = every_ns;
	noise.random = seed;
	noise.holds = 0;
	noise.held_ns = 0;
	noise.longest_ns = 0;
	if (hold_max_ns) {
		noise.next_ns = ktime_get_ns() +
				wire_exponential(wire_random(&noise.random), every_ns);
		hrtimer_start(&noise.timer, ns_to_ktime(noise.next_ns),
			      HRTIMER_MODE_ABS_PINNED_HARD);
	}
	mutex_unlock(&noise_mutex);
	return 0;
}

int wire_noise_show(struct seq_file *seq)
{
	mutex_lock(&noise_mutex);
	seq_printf(seq, "holds %llu\nheld_ns %llu\nlongest_ns %llu\n",
		   noise.holds, noise.held_ns, noise.longest_ns);
	mutex_unlock(&noise_mutex);
	return 0;
}
