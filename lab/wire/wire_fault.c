// SPDX-License-Identifier: GPL-2.0-only
/*
 * Injects faults and changes of a NIC: a busy driver, a lost link, a new speed,
 * fewer transmit queues. wire_tx.c obeys them.
 */
#define pr_fmt(fmt) "wire: " fmt

#include <linux/rtnetlink.h>
#include <linux/seq_file.h>

#include "wire.h"

static void fault_any(struct wire_end *end)
{
	end->fault.any = end->fault.busy_every || end->fault.no_carrier ||
			 end->fault.drop_control || end->fault.drop_gaps;
}

static void fault_busy(struct wire_end *end, u64 every, u64 seed)
{
	spin_lock_bh(&end->lock);
	end->fault.busy_every = every;
	end->fault.random = seed;
	fault_any(end);
	spin_unlock_bh(&end->lock);
}

static void fault_carrier(struct wire_cable *cable, bool cut)
{
	struct wire_end *end;
	int side;

	rtnl_lock();
	cable->cut = cut;
	for (side = 0; side < 2; side++) {
		end = cable->end[side];
		spin_lock_bh(&end->lock);
		end->fault.no_carrier = cut;
		fault_any(end);
		spin_unlock_bh(&end->lock);
	}
	wire_carrier_update(cable);
	rtnl_unlock();
}

/*
 * Sets which frames both NICs drop: control frames if drop_control is 1, and
 * drop_gaps of 100 gap frames. What is beyond its largest value stays.
 */
static void fault_drops(struct wire_cable *cable, u64 drop_control, u64 drop_gaps)
{
	struct wire_end *end;
	int side;

	for (side = 0; side < 2; side++) {
		end = cable->end[side];
		spin_lock_bh(&end->lock);
		if (drop_control <= 1)
			end->fault.drop_control = drop_control;
		if (drop_gaps <= 100) {
			end->fault.drop_gaps = drop_gaps;
			end->fault.drop_gaps_sum = 0;
		}
		fault_any(end);
		spin_unlock_bh(&end->lock);
	}
}

/* Changes flow control, as ethtool -A does on a NIC that renegotiates. */
static void fault_tx_pause(struct wire_cable *cable, bool on)
{
	int side;

	rtnl_lock();
	cable->tx_pause = on;
	for (side = 0; side < 2; side++)
		netdev_state_change(cable->end[side]->dev);
	rtnl_unlock();
}

/*
 * Changes the line rate and notifies listeners, as a NIC does after
 * negotiation.
 */
static void fault_rate(struct wire_cable *cable, u64 rate_bps)
{
	struct wire_end *end;
	int side;

	rtnl_lock();
	cable->set.rate_bps = rate_bps;
	for (side = 0; side < 2; side++) {
		end = cable->end[side];
		wire_catch_up(end);
		spin_lock_bh(&end->lock);
		end->rate = wire_rate_of(rate_bps);
		end->line.carry = 0;		/* loses less than 1 ps */
		spin_unlock_bh(&end->lock);
	}
	for (side = 0; side < 2; side++)
		netdev_state_change(cable->end[side]->dev);
	rtnl_unlock();
}

/*
 * Sets the number of transmit queues, as ethtool -L does. Frames in queues that
 * are no longer used are still sent.
 */
static int fault_queues(struct wire_cable *cable, u32 queues)
{
	int side, err = 0;

	rtnl_lock();
	for (side = 0; side < 2 && !err; side++)
		err = netif_set_real_num_tx_queues(cable->end[side]->dev, queues);
	rtnl_unlock();
	return err;
}

int wire_fault_write(struct wire_cable *cable, char *line)
{
	u64 busy_every = 0, seed = 1, carrier = 2 /* unchanged */, rate_bps = 0, queues = 0;
	u64 drop_control = 2, tx_pause = 2, drop_gaps = U64_MAX;
	char side[2] = "";
	struct wire_key keys[] = {
		{ "end", .text = side, .max = sizeof(side) },
		{ "busy_every", &busy_every, .max = U32_MAX },
		{ "seed", &seed, .max = U64_MAX },
		{ "carrier", &carrier, .max = 1 },
		{ "rate_bps", &rate_bps, .min = WIRE_RATE_MIN, .max = WIRE_RATE_MAX },
		{ "queues", &queues, .min = 1, .max = cable->set.queues },
		{ "drop_control", &drop_control, .max = 1 },
		{ "tx_pause", &tx_pause, .max = 1 },
		{ "drop_gaps", &drop_gaps, .max = 100 },
	};
	const struct wire_key *busy = &keys[1];
	int err = wire_parse(line, keys, ARRAY_SIZE(keys));

	if (err)
		return err;
	if (busy->seen && *side != 'a' && *side != 'b') {
		pr_err("busy_every= asks for end=a or end=b\n");
		return -EINVAL;
	}
	if (!busy->seen && (keys[0].seen || keys[2].seen)) {
		pr_err("end= and seed= ask for busy_every=\n");
		return -EINVAL;
	}
	if (busy->seen)
		fault_busy(cable->end[*side - 'a'], busy_every, seed);
	if (rate_bps)
		fault_rate(cable, rate_bps);
	if (carrier < 2)
		fault_carrier(cable, !carrier);
	fault_drops(cable, drop_control, drop_gaps);
	if (tx_pause < 2)
		fault_tx_pause(cable, tx_pause);
	return queues ? fault_queues(cable, queues) : 0;
}

void wire_fault_show(struct wire_cable *cable, struct seq_file *seq)
{
	u64 every;
	int side;

	for (side = 0; side < 2; side++) {
		spin_lock_bh(&cable->end[side]->lock);
		every = cable->end[side]->fault.busy_every;
		spin_unlock_bh(&cable->end[side]->lock);
		seq_printf(seq, "end=%c busy_every=%llu\n", 'a' + side, every);
	}
	rtnl_lock();
	seq_printf(seq, "carrier=%d rate_bps=%llu queues=%u\n", !cable->cut, cable->set.rate_bps,
		   cable->end[0]->dev->real_num_tx_queues);
	rtnl_unlock();
}
