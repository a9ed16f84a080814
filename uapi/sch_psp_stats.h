/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * psp: the table of statistics.  A row is a member of the structs in sch_psp.h; rows are
 * in the order in which tc prints them.  kernel/psp_netlink.c, tc/stats.c and crates/host/tcpsp
 * are compiled from it, section STATISTICS of docs/man/tc-psp.8 is made from it, and
 * tc/stats-table.c checks that it has each member once.
 *
 * Whoever includes this file defines before what a row becomes, and may leave out some:
 *
 *   PSP_QDISC_STAT(member, key, unit, metric, total, shown, source, meaning)
 *   PSP_CLASS_STAT(member, key, unit, metric, total, shown, source, meaning)
 *   PSP_QDISC_LINE(shown), PSP_CLASS_LINE(shown): tc begins a line of text
 *
 * member	of struct tc_psp_qdisc_stats or struct tc_psp_class_stats
 * key		in text, and in JSON but for RATE and TIME
 * unit		FRAMES, BYTES
 *		COUNT: any other number; the meaning says of what
 *		RATE: bit/s; the key in JSON ends in _bps
 *		TIME: ns; the key in JSON ends in _ns
 *		MODE, WHY: enum tc_psp_mode, enum tc_psp_why; printed as a word
 *		ASSUMED: bool; text prints (assumed) for false
 *		HISTOGRAM: TC_PSP_LATE_BUCKETS numbers
 *		HIDDEN: not printed
 * metric	counter: only grows, from 0, as long as the qdisc or class lives
 *		gauge: any other
 * total	of several qdiscs or classes together
 *		sum: the sum of their numbers; of HISTOGRAM bucket by bucket
 *		none: it has no meaning
 * shown	always, or when
 *		nonzero: it is not 0
 *		hybrid: the mode in force is hybrid; JSON: always
 *		periods: a class goes by periods; JSON: always
 *		reserved: the class goes by periods
 *		paced: the class has a rate
 *		dynamic: the class has had flows
 * source	what the kernel copies the member of the same name from
 *		count: struct psp_counters, struct psp_class_counters
 *		drops: their struct psp_drops
 *		pace: struct pace_stats
 *		other: nothing, psp_netlink.c or psp_flow.c has a line for it
 * meaning	of the man page; `word` is printed bold.  "": as the qdisc's of this key, of
 *		this class alone
 */
#ifndef PSP_QDISC_STAT
#define PSP_QDISC_STAT(member, key, unit, metric, total, shown, source, meaning)
#endif
#ifndef PSP_QDISC_LINE
#define PSP_QDISC_LINE(shown)
#endif
#ifndef PSP_CLASS_STAT
#define PSP_CLASS_STAT(member, key, unit, metric, total, shown, source, meaning)
#endif
#ifndef PSP_CLASS_LINE
#define PSP_CLASS_LINE(shown)
#endif

/* The qdisc. */
PSP_QDISC_STAT(mode, "mode_in_force", MODE, gauge, none, always, other,
	"`gap`, `timer` or `hybrid`.")
PSP_QDISC_STAT(why_not_hybrid, "why_not_hybrid", WHY, gauge, none, nonzero, other,
	"Why gap frames are not sent. Of `mode auto`: `not_ethernet`, `no_transmit_queue`,\n"
	"`software_device`: the device has no wire that holds the sender back; `line_unknown`:\n"
	"it names no rate; `line_shared`: other transmit queues send on the wire. Of any mode:\n"
	"`no_wire_clock`: gap frames took less time than the line rate says; `not_proved`: gap\n"
	"frames have not shown yet that they take the time that the line says. Of any mode but\n"
	"gap: `host_slow`: the host makes gap frames hardly faster than the line takes them.")
PSP_QDISC_STAT(line_rate_bps, "line_in_force", RATE, gauge, none, always, other,
	"The line rate that psp uses.")
PSP_QDISC_STAT(line_known, "line_known", ASSUMED, gauge, none, always, other,
	"Whether the device or `line` names that rate. If not, text says `(assumed)`.")
PSP_QDISC_STAT(max_frame_bytes, "max_frame", BYTES, gauge, none, always, other,
	"Largest frame, and largest gap frame, in bytes with the Ethernet header. It follows\n"
	"the MTU.")
PSP_QDISC_STAT(queues, "queues", COUNT, gauge, none, nonzero, other,
	"Transmit queues that share the line: 1, or below `mq` those of the device.")
PSP_QDISC_LINE(always)
PSP_QDISC_STAT(sent_frames, "sent_frames", FRAMES, counter, sum, always, pace,
	"Frames given to the device. Gap frames are not among them, nor in `Sent`.")
PSP_QDISC_STAT(sent_wire_bytes, "sent_wire_bytes", BYTES, counter, sum, always, pace,
	"Bytes that these frames take on the wire.")
PSP_QDISC_STAT(gap_frames, "gap_frames", FRAMES, counter, sum, always, pace,
	"Gap frames given to the device. If they grow and the port's own counters of sent\n"
	"frames do not, the device drops them: `no_wire_clock`.")
PSP_QDISC_STAT(gap_wire_bytes, "gap_wire_bytes", BYTES, counter, sum, always, pace,
	"Bytes that gap frames take on the wire.")
PSP_QDISC_STAT(gap_failed, "gap_failed", FRAMES, counter, sum, always, count,
	"Gap frames for which there was no memory. The byte clock stands still meanwhile; psp\n"
	"tries again after 50 microseconds.")
PSP_QDISC_LINE(always)
PSP_QDISC_STAT(no_clock, "no_wire_clock", COUNT, counter, sum, always, count,
	"Times the wire was found to be no clock.")
PSP_QDISC_STAT(line_measured_bps, "line_measured", RATE, gauge, none, nonzero, other,
	"Modes gap and hybrid: rate of what was handed out over the last 100 ms during which a\n"
	"frame, or a gap frame, always waited for the device. Absent until that was so for 200\n"
	"ms. Less than `line_in_force` means that the bus, the host or a hypervisor is slower\n"
	"than the line, and so is every rate.")
PSP_QDISC_STAT(wire_stops, "wire_stops", COUNT, counter, sum, always, other,
	"Modes gap and hybrid: times the wire was silent although a frame was due, for longer\n"
	"than a largest frame takes and than 10 microseconds. The host was held for longer than\n"
	"the byte queue limit (without one: the ring) lasts, or in mode hybrid the timer was\n"
	"later than its lead.")
PSP_QDISC_STAT(wire_stop_max_ns, "wire_stop_max", TIME, gauge, none, always, other,
	"The longest such silence.")
PSP_QDISC_LINE(always)
PSP_QDISC_STAT(early_bytes_max, "early_bytes_max", BYTES, gauge, none, always, other,
	"The most bytes by which a frame was sent early because a shorter gap cannot be made:\n"
	"at most half of the smallest gap, 42.")
PSP_QDISC_STAT(late_bytes_max, "late_bytes_max", BYTES, gauge, none, always, other,
	"The most bytes by which a frame was late: behind another frame, because the line was\n"
	"oversubscribed, or in mode timer because the timer was.")
PSP_QDISC_STAT(rebases, "rebases", COUNT, counter, sum, always, pace,
	"Times the clocks of all classes were advanced together after the line had been\n"
	"oversubscribed.")
PSP_QDISC_STAT(rebased_bytes, "rebased_bytes", BYTES, counter, sum, always, other,
	"Bytes by which they were advanced, in all.")
PSP_QDISC_LINE(always)
PSP_QDISC_STAT(borrowed_frames, "borrowed_frames", FRAMES, counter, sum, always, pace,
	"Frames sent with borrowed rate: above the rate of their class and below its ceil.")
PSP_QDISC_STAT(guard_band_held, "guard_band_held", COUNT, counter, sum, always, pace,
	"Times `guard` held a normal frame back.")
PSP_QDISC_STAT(bursts_cut, "bursts_cut", COUNT, counter, sum, always, count,
	"Bursts (GSO packets) cut into frames.")
PSP_QDISC_STAT(bursts_whole, "bursts_whole", COUNT, counter, sum, always, count,
	"Bursts sent whole.")
PSP_QDISC_LINE(hybrid)
PSP_QDISC_STAT(waits, "waits", COUNT, counter, sum, hybrid, pace,
	"Mode hybrid: timers that ran out.")
PSP_QDISC_STAT(wait_late_max_ns, "wait_late_max", TIME, gauge, none, hybrid, pace,
	"Mode hybrid: how late the latest of them was.")
PSP_QDISC_STAT(lead_ns, "lead", TIME, gauge, none, hybrid, pace,
	"Mode hybrid: how early the next timer is set.")
PSP_QDISC_LINE(always)
PSP_QDISC_STAT(unclassified_frames, "unclassified", FRAMES, counter, sum, always, count,
	"Frames that neither a filter nor `default` gave a class.")
PSP_QDISC_STAT(drop_filter, "drop_filter", FRAMES, counter, sum, always, count,
	"Frames dropped because a filter's action said so.")
PSP_QDISC_STAT(drop_child, "drop_child", FRAMES, counter, sum, always, drops,
	"Frames that a class's queue refused.")
PSP_QDISC_STAT(drop_segment, "drop_segment", FRAMES, counter, sum, always, drops,
	"Bursts that could not be cut.")
PSP_QDISC_STAT(drop_long, "drop_long", FRAMES, counter, sum, always, drops,
	"Frames longer than the device's MTU, for example queued before it shrank. VLAN tags\n"
	"are not counted, whether in the frame or inserted by the device.")
PSP_QDISC_STAT(drop_late, "drop_late", FRAMES, counter, sum, always, drops,
	"Frames that had waited for longer than the `deadline` of their class.")
PSP_QDISC_STAT(drop_flow, "drop_flow", FRAMES, counter, sum, always, drops,
	"Type dynamic: frames of a flow whose queue was full, `flow-limit`.")
PSP_QDISC_STAT(child_retries, "child_retries", COUNT, counter, sum, always, count,
	"Times a class's queue was asked for a frame, held some, and gave none (`netem`, `tbf`,\n"
	"`fq`). psp asks such a class again whenever the device asks psp: of k such classes one\n"
	"that has a frame by then is asked within k/2 frames of a busy device. An idle device\n"
	"asks 64 of them at once, and the others at 64 every 50 microseconds.")
PSP_QDISC_LINE(always)
PSP_QDISC_STAT(drop_limit, "drop_limit", FRAMES, counter, sum, always, drops,
	"Type dynamic: frames that came while all flows together held as many as they may,\n"
	"`limit`.")
PSP_QDISC_STAT(drop_horizon, "drop_horizon", FRAMES, counter, sum, always, drops,
	"Type dynamic: frames that would have waited beyond the `horizon`.")
PSP_QDISC_STAT(drop_evicted, "drop_evicted", FRAMES, counter, sum, always, drops,
	"Type dynamic: frames of flows that made room for another user's.")
PSP_QDISC_STAT(drop_txtime_invalid, "drop_txtime_invalid", FRAMES, counter, sum, nonzero, drops,
	"Frames refused by a class with `txtime`: without a launch time on its clock, of a\n"
	"socket in the other mode (`txtime-deadline`), too late already, or beyond the\n"
	"`horizon`.")
PSP_QDISC_STAT(drop_txtime_missed, "drop_txtime_missed", FRAMES, counter, sum, nonzero, drops,
	"Frames that would have left later than their launch time by more than `txtime-late`.")
PSP_QDISC_LINE(periods)
PSP_QDISC_STAT(period_ns, "period_in_force", TIME, gauge, none, periods, other,
	"The period. Text shows it and what follows while a class goes by periods.")
PSP_QDISC_STAT(budget_bytes, "budget_bytes", BYTES, gauge, none, periods, other,
	"Bytes of a period for all classes of types rt and nrt.")
PSP_QDISC_STAT(reserved_bytes, "reserved_bytes", BYTES, gauge, none, periods, other,
	"Bytes of a period that these classes have reserved.")
PSP_QDISC_STAT(periods, "periods", COUNT, counter, sum, periods, pace,
	"Periods begun.")
PSP_QDISC_STAT(periods_spent, "periods_spent", COUNT, counter, sum, periods, pace,
	"Periods that ended with frames held back by the budget.")
PSP_QDISC_LINE(periods)
PSP_QDISC_STAT(rt_over, "rt_over", COUNT, counter, sum, periods, pace,
	"Periods of rt classes in which more had come than was reserved.")
PSP_QDISC_STAT(rt_deferred, "rt_deferred", COUNT, counter, sum, periods, pace,
	"Periods of rt classes that left late frames: the budget, or the period's one late\n"
	"reservation, was spent. As long as `rt_deferred`, `rt_overrun` and `rt_excess` stand\n"
	"still no rt frame has waited for more than two periods.")
PSP_QDISC_STAT(rt_overrun, "rt_overrun", COUNT, counter, sum, periods, pace,
	"Periods of rt classes that left frames although the budget was not spent: the line or\n"
	"the host was too slow.")
PSP_QDISC_STAT(rt_catchup_bytes, "rt_catchup_bytes", BYTES, counter, sum, periods, pace,
	"Bytes that rt classes sent beyond a period's reservation, of what was reserved before,\n"
	"paid from the budget.")
PSP_QDISC_STAT(rt_excess, "rt_excess", COUNT, counter, sum, periods, pace,
	"Periods of rt classes in which more had come than all of them had reserved: the rest\n"
	"goes behind normal frames.")
PSP_QDISC_STAT(nrt_deferred, "nrt_deferred", COUNT, counter, sum, periods, pace,
	"Periods of nrt classes whose share, or the budget, was spent with frames waiting.")

/* A class. */
PSP_CLASS_STAT(active, "active", COUNT, gauge, sum, always, other,
	"1: the class has frames and takes part in decisions.")
PSP_CLASS_STAT(rate_bps, "rate_in_force", RATE, gauge, sum, nonzero, other,
	"The rate of the class: at most the line's.")
PSP_CLASS_STAT(ceil_bps, "ceil_in_force", RATE, gauge, sum, nonzero, other,
	"The ceil of the class: at most the line's rate.")
PSP_CLASS_LINE(always)
PSP_CLASS_STAT(sent_frames, "sent_frames", FRAMES, counter, sum, always, count, "")
PSP_CLASS_STAT(sent_wire_bytes, "sent_wire_bytes", BYTES, counter, sum, always, count, "")
PSP_CLASS_STAT(borrowed_frames, "borrowed_frames", FRAMES, counter, sum, always, count, "")
PSP_CLASS_STAT(throttled, "throttled", COUNT, counter, sum, always, count,
	"Times the class's next frame had to wait for the clock of the class.")
PSP_CLASS_LINE(always)
PSP_CLASS_STAT(drop_child, "drop_child", FRAMES, counter, sum, always, drops, "")
PSP_CLASS_STAT(drop_segment, "drop_segment", FRAMES, counter, sum, always, drops, "")
PSP_CLASS_STAT(drop_long, "drop_long", FRAMES, counter, sum, always, drops, "")
PSP_CLASS_STAT(drop_late, "drop_late", FRAMES, counter, sum, always, drops, "")
PSP_CLASS_STAT(drop_flow, "drop_flow", FRAMES, counter, sum, always, drops, "")
PSP_CLASS_STAT(drop_txtime_invalid, "drop_txtime_invalid", FRAMES, counter, sum, nonzero, drops, "")
PSP_CLASS_STAT(drop_txtime_missed, "drop_txtime_missed", FRAMES, counter, sum, nonzero, drops, "")
PSP_CLASS_LINE(reserved)
PSP_CLASS_STAT(reserve_bytes, "reserve", HIDDEN, gauge, sum, always, other,
	"Bytes of a period that the class reserves, 0 of other types. The option `reserve`\n"
	"says it.")
PSP_CLASS_STAT(over, "over", COUNT, counter, sum, reserved, other,
	"Periods of this class, as `rt_over` of the qdisc.")
PSP_CLASS_STAT(deferred, "deferred", COUNT, counter, sum, reserved, other,
	"As `rt_deferred`, or of an nrt class `nrt_deferred`.")
PSP_CLASS_STAT(overrun, "overrun", COUNT, counter, sum, reserved, other,
	"As `rt_overrun`.")
PSP_CLASS_STAT(rt_catchup_bytes, "rt_catchup_bytes", BYTES, counter, sum, reserved, other, "")
PSP_CLASS_STAT(excess, "excess", COUNT, counter, sum, reserved, other,
	"As `rt_excess`.")
PSP_CLASS_LINE(paced)
PSP_CLASS_STAT(late_frames, "late_frames", HISTOGRAM, counter, sum, paced, other,
	"Frames by their lateness, in byte times of the line: buckets in use and the frames in\n"
	"each. `0`: on time or early. JSON has all buckets as an array.")
PSP_CLASS_LINE(dynamic)
PSP_CLASS_STAT(flows, "flows_known", COUNT, gauge, sum, dynamic, other,
	"Type dynamic: flows that psp knows now. This and what follows is shown once there was\n"
	"a flow.")
PSP_CLASS_STAT(flows_active, "flows_active", COUNT, gauge, sum, dynamic, other,
	"Flows with frames waiting.")
PSP_CLASS_STAT(flows_seen, "flows_seen", COUNT, counter, sum, dynamic, other,
	"Flows since the start.")
PSP_CLASS_STAT(flows_refused, "flows_refused", FRAMES, counter, sum, dynamic, other,
	"Frames whose flow found no place or no memory; they were sent with those that have\n"
	"none.")
PSP_CLASS_STAT(flows_evicted, "flows_evicted", COUNT, counter, sum, dynamic, other,
	"Flows that made room for another user's.")
PSP_CLASS_STAT(flow_users, "flow_users", COUNT, gauge, sum, dynamic, other,
	"Users that have flows now.")
PSP_CLASS_LINE(dynamic)
PSP_CLASS_STAT(drop_limit, "drop_limit", FRAMES, counter, sum, dynamic, drops, "")
PSP_CLASS_STAT(drop_horizon, "drop_horizon", FRAMES, counter, sum, dynamic, drops, "")
PSP_CLASS_STAT(drop_evicted, "drop_evicted", FRAMES, counter, sum, dynamic, drops, "")
PSP_CLASS_LINE(dynamic)
PSP_CLASS_STAT(flow_rate_min_bps, "flow_rate_min", RATE, gauge, none, dynamic, other,
	"The slowest flow's rate, of the flows known now.")
PSP_CLASS_STAT(flow_rate_max_bps, "flow_rate_max", RATE, gauge, none, dynamic, other,
	"The fastest flow's rate.")
PSP_CLASS_STAT(flow_rate_sum_bps, "flow_rate_sum", RATE, gauge, sum, dynamic, other,
	"All flows' rates.")

#undef PSP_QDISC_STAT
#undef PSP_QDISC_LINE
#undef PSP_CLASS_STAT
#undef PSP_CLASS_LINE
