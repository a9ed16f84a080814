// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules: each looks at facts and says what it finds.

mod account;
mod device;
mod files;
mod found;
mod host;
mod launch;
mod psp;

use crate::facts::{Device, Facts};
use crate::finding::Finding;
use found::Found;

#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name, which does not change; that of its findings, too.
    pub id: &'static str,
    check: Check,
}

/// What a rule looks at.
#[derive(Clone, Copy, Debug)]
enum Check {
    Host(fn(&Facts) -> Option<Found>),
    Device(fn(&Facts, &Device) -> Option<Found>),
}

const fn of_host(id: &'static str, check: fn(&Facts) -> Option<Found>) -> Rule {
    let check = Check::Host(check);
    Rule { id, check }
}

const fn of_device(id: &'static str, check: fn(&Facts, &Device) -> Option<Found>) -> Rule {
    let check = Check::Device(check);
    Rule { id, check }
}

/// All rules, those about the host first.
pub const RULES: &[Rule] = &[
    of_host("module-not-loaded", host::module_not_loaded),
    of_host("module-missing", host::module_missing),
    of_host("module-not-signed", host::module_not_signed),
    of_host("module-signature", host::module_signature),
    of_host("module-version", host::module_version),
    of_host("kernel-old", host::kernel),
    of_host("file-refused", host::file_refused),
    of_host("device-absent", host::absent_devices),
    of_host("timers-coarse", host::timer_resolution),
    of_host("clock-slow", host::clocksource),
    of_host("idle-deep", host::idle_states),
    of_host("timers-late", host::late_timers),
    of_host("sockets-paced", host::paced_sockets),
    of_host("launch-times-lost", host::lost_launch_times),
    of_host("socket-rates-lost", host::lost_rates),
    of_device("no-link", device::no_link),
    of_device("down", device::down),
    of_device("no-psp", device::not_paced),
    of_device("queues-not-paced", device::queues_not_paced),
    of_device("file-differs", files::differs),
    of_device("file-unread", files::unread),
    of_device("taken-before", files::taken_before),
    of_device("interface-renewed", files::interface_renewed),
    of_device("cgroup-renewed", files::cgroup_renewed),
    of_device("bypassed", account::bypassed),
    of_device("unmatched", account::unmatched),
    of_device("other-manager", files::other_manager),
    of_device("mtu-untested", device::mtu),
    of_device("no-wire", device::no_wire),
    of_device("line-unknown", device::line_rate),
    of_device("half-duplex", device::duplex),
    of_device("flow-control", device::held_by_pause),
    of_device("queue-limit", device::queue_limit),
    of_device("bursts-whole", device::bursts),
    of_device("bursts-near", device::near_bursts),
    of_device("inner-pacing", device::inner_pacing),
    of_device("drops-all", device::drops_all),
    of_device("launch-unused", launch::unused),
    of_device("launch-by-timer", launch::by_timer),
    of_device("launch-no-clock", launch::no_clock),
    of_device("launch-not-in-kernel", launch::not_in_kernel),
    of_device("etf-software", launch::software),
    of_device("gap-pause-dropped", psp::dropped_gap_frames),
    of_device("gap-pause-flow-control", psp::pause_replaced),
    of_device("no-gap-frames", psp::verdict),
    of_device("gap-frames-lost", psp::lost_gap_frames),
    of_device("wire-slow", psp::slow_wire),
    of_device("line-fast", psp::fast_line),
    of_device("wire-stops", psp::wire_stops),
    of_device("oversubscribed", psp::oversubscribed),
    of_device("statistics-unread", psp::unread),
    of_device("drops", psp::drops),
    of_device("beyond-horizon", device::beyond_horizon),
    of_device("unclassified", psp::unclassified),
    of_device("gap-memory", psp::gap_memory),
];

impl Rule {
    /// Applies the rule to the host, or to each of its devices.
    fn findings(self, facts: &Facts) -> Vec<Finding> {
        let finding = |device: Option<&Device>, found: Found| Finding {
            id: self.id,
            device: device.map(|device| device.name.clone()),
            severity: found.severity,
            what: found.what,
            why: found.why,
            command: found.command,
        };
        match self.check {
            Check::Host(check) => check(facts).map(|f| finding(None, f)).into_iter().collect(),
            Check::Device(check) => {
                let devices = facts.devices.iter();
                let found = |d| check(facts, d).map(|f| finding(Some(d), f));
                devices.filter_map(found).collect()
            }
        }
    }
}

/// Judges a host: the worst findings first, those of the host before those of devices.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let mut all: Vec<_> = RULES.iter().flat_map(|rule| rule.findings(facts)).collect();
    // Of one severity, device by device.
    let place = |finding: &Finding| {
        let is_of = |device: &Device| Some(&device.name) == finding.device.as_ref();
        facts.devices.iter().position(is_of)
    };
    all.sort_by_key(|finding| (finding.severity, place(finding)));
    all
}
