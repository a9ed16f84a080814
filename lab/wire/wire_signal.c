// SPDX-License-Identifier: GPL-2.0-only
/* What an end signals to its host: the interrupt, for which a timer stands, and the carrier. */
#include "wire.h"
#include "wire_compat.h"

static enum hrtimer_restart wire_interrupt(struct hrtimer *timer)
{
	struct wire_end *end = container_of(timer, struct wire_end, timer);

	WRITE_ONCE(end->armed_ns, WIRE_NEVER);
	napi_schedule(&end->napi);
	return HRTIMER_NORESTART;
}

/*
 * Arms the interrupt for @due_ps, unless it is armed for an earlier instant.
 * The timer's function does not take the lock: if the timer expires meanwhile,
 * the poll that it starts arms it again for what is due next. Softirqs are
 * disabled, because the poll takes the lock in softirq context.
 */
void wire_arm(struct wire_end *end, u64 due_ps)
{
	u64 due_ns;

	if (due_ps == WIRE_NEVER)
		return;
	due_ns = div_u64(due_ps + 999, 1000);
	if (due_ns >= READ_ONCE(end->armed_ns))
		return;
	spin_lock(&end->timer_lock);
	if (end->up && due_ns < READ_ONCE(end->armed_ns)) {
		WRITE_ONCE(end->armed_ns, due_ns);
		hrtimer_start(&end->timer, ns_to_ktime(due_ns), HRTIMER_MODE_ABS_PINNED);
	}
	spin_unlock(&end->timer_lock);
}

void wire_interrupt_init(struct wire_end *end)
{
	hrtimer_setup(&end->timer, wire_interrupt, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED);
}

/* Sets the carrier of both ends from their state. The caller holds the RTNL. */
void wire_carrier_update(struct wire_cable *cable)
{
	bool on = !cable->cut;
	int side;

	for (side = 0; side < 2; side++)
		on = on && cable->end[side]->up;
	for (side = 0; side < 2; side++) {
		if (on)
			netif_carrier_on(cable->end[side]->dev);
		else
			netif_carrier_off(cable->end[side]->dev);
	}
}
