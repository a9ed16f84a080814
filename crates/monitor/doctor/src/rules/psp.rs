// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules about psp on a device: its options beside the driver, and what its statistics say.

use host_config::{Backend, minor};
use tcpsp::{Gap, Handle, Mode, Why};
use units::terse;

use crate::facts::{Device, Facts, Psp, PspClass};
use crate::finding::Severity;
use crate::rules::device::{is_virtual, set_limits};
use crate::rules::found::{Found, apply, found};

/// Drivers whose NICs drop what the host makes of EtherType 0x8808, docs/use/real-nics.md.
const DROP_PAUSE: &[&str] = &["i40e", "ice", "ixgbevf", "iavf"];
/// A wire slower than this share of its line, in percent, is found slow.
const SLOW_PERCENT: u64 = 97;
/// Major numbers of the qdiscs that `pspacer apply` makes.
const APPLIED: std::ops::Range<u16> = minor::MAJOR..0x8000;
/// Fewer gap frames in a second prove nothing.
const FEW_GAP_FRAMES: u64 = 100;

fn change(device: &Device, handle: Handle, options: &str) -> String {
    format!(
        "tc qdisc change dev {} handle {handle} psp {options}",
        device.name
    )
}

/// Complains unless the NIC lets the gap frames pass that psp makes.
pub fn dropped_gap_frames(_: &Facts, device: &Device) -> Option<Found> {
    let driver = device.driver.as_deref()?;
    let mut psps = device.psp_of_module();
    let psp = psps.find(|psp| psp.options.gap == Gap::Pause)?;
    if !DROP_PAUSE.contains(&driver) {
        return None;
    }
    found(
        Severity::Fault,
        format!("gap is pause, and {driver} drops frames of EtherType 0x8808 that the host makes."),
        "Gap frames then take no time: psp finds no wire clock and paces by timer.",
        change(device, psp.handle, "gap multicast"),
    )
}

/// Complains if psp sends PAUSE frames beside the device's own.
pub fn pause_replaced(_: &Facts, device: &Device) -> Option<Found> {
    let mut psps = device.psp_of_module();
    if !psps.any(|psp| psp.options.gap == Gap::Pause) || device.sends_pause != Some(true) {
        return None;
    }
    found(
        Severity::Note,
        "gap is pause, and the device sends PAUSE frames of its own.".to_owned(),
        "psp's PAUSE frames of time 0 would cancel them; psp therefore sends gap frames of gap multicast.",
        format!("ethtool -A {} tx off", device.name),
    )
}

/// Complains unless psp sends gap frames where it was to.
pub fn verdict(_: &Facts, device: &Device) -> Option<Found> {
    let wants = |psp: &&Psp| psp.options.mode != Mode::Timer;
    let mut psps = device.psp_of_module().filter(wants);
    let psp = psps.find(|psp| psp.stats.why().is_some())?;
    let why = psp.stats.why()?;
    let (severity, what, matters, command) = match why {
        // Known of the device without psp: see no_wire() and line_rate().
        Why::Software if is_virtual(device) => return None,
        Why::NoRate => return None,
        // For milliseconds after the link came up.
        Why::NotProved => return None,
        Why::NoClock => (
            Severity::Fault,
            format!(
                "psp found that the wire is no clock, {} times.",
                psp.stats.no_clock
            ),
            "Gap frames took less time than the line rate says: the NIC drops them, or is virtual.",
            change(device, psp.handle, "mode timer"),
        ),
        Why::HostSlow => (
            Severity::Note,
            "The host makes gap frames hardly faster than the line takes them.".to_owned(),
            "Sent bytes are no clock then: psp paces by timer. A change of the qdisc is a new try.",
            change(device, psp.handle, "mode timer"),
        ),
        Why::Shared => (
            Severity::Note,
            format!("{} transmit queues share the line.", psp.stats.queues),
            "Sent bytes are a clock in one queue alone: psp paces by timer. As the root it uses one.",
            format!(
                "tc qdisc replace dev {} root handle 1: psp default 1",
                device.name
            ),
        ),
        Why::NotEthernet | Why::NoQueue | Why::Software => (
            Severity::Note,
            format!("psp sends no gap frames: {why}."),
            "It paces by timer, as exactly as timers are here.",
            change(device, psp.handle, "mode timer"),
        ),
    };
    found(severity, what, matters, command)
}

/// Complains unless the device sends the gap frames that it is given.
pub fn lost_gap_frames(_: &Facts, device: &Device) -> Option<Found> {
    let trial = device.trial?;
    let psp = device.psp_of_module().next()?;
    // A tenth may be under way, or counted later.
    let least = trial.sent_frames + trial.gap_frames - trial.gap_frames / 10;
    if trial.gap_frames < FEW_GAP_FRAMES || trial.device_frames >= least {
        return None;
    }
    found(
        Severity::Fault,
        format!(
            "In a second psp gave {} frames and {} gap frames, and the device sent {}.",
            trial.sent_frames, trial.gap_frames, trial.device_frames
        ),
        "Gap frames that the device drops take no time: frames leave early.",
        change(device, psp.handle, "mode timer"),
    )
}

/// Complains unless the wire is as fast as its line.
pub fn slow_wire(_: &Facts, device: &Device) -> Option<Found> {
    let slow = |psp: &&Psp| {
        let measured = psp.stats.line_measured_bps;
        measured != 0 && measured < psp.stats.line_rate_bps / 100 * SLOW_PERCENT
    };
    let psp = device.psp_of_module().find(slow)?;
    let measured = psp.stats.line_measured_bps;
    found(
        Severity::Warning,
        format!(
            "The wire takes {}, its line is {}.",
            terse::rate(measured),
            terse::rate(psp.stats.line_rate_bps)
        ),
        "The bus, the host or a hypervisor is slower than the line: every rate is too low by that.",
        change(device, psp.handle, &format!("line {measured}bit")),
    )
}

/// Complains unless psp's line is no faster than the device's.
pub fn fast_line(_: &Facts, device: &Device) -> Option<Found> {
    let rate_bps = device.line_rate_bps?;
    let fast = |psp: &&Psp| psp.options.line_rate_bps > Some(rate_bps);
    let psp = device.psp.iter().find(fast)?;
    found(
        Severity::Fault,
        format!(
            "line is {}, the device sends {}.",
            terse::rate(psp.options.line_rate_bps?),
            terse::rate(rate_bps)
        ),
        "psp takes the wire for faster than it is: classes get less than their rates.",
        if psp.backend == Backend::Module {
            change(device, psp.handle, &format!("line {rate_bps}bit"))
        } else {
            apply(device, &format!("line = \"{rate_bps}bit\""))
        },
    )
}

/// Complains if the wire runs dry.
pub fn wire_stops(_: &Facts, device: &Device) -> Option<Found> {
    let stops = |psp: &Psp| match device.trial {
        Some(trial) => trial.wire_stops,
        None => psp.stats.wire_stops,
    };
    let psp = device.psp_of_module().find(|psp| stops(psp) > 0)?;
    let since = if device.trial.is_some() {
        "in a second"
    } else {
        "so far"
    };
    found(
        Severity::Warning,
        format!(
            "The wire was silent {} times {since} although a frame was due, for up to {}.",
            stops(psp),
            terse::ms(psp.stats.wire_stop_max_ns)
        ),
        "The host was held for longer than the byte queue limit lasts; frames were late by that.",
        set_limits(device, queue_bytes(psp)),
    )
}

/// Returns the bytes that the wire sends in the longest silence, at least in 60 µs.
fn queue_bytes(psp: &Psp) -> u64 {
    let held_ns = psp.stats.wire_stop_max_ns.max(60_000);
    let bytes = u128::from(psp.stats.line_rate_bps) * u128::from(held_ns) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Complains unless the classes' rates fit the line.
pub fn oversubscribed(_: &Facts, device: &Device) -> Option<Found> {
    // Departure times go by no line: what they give the device waits there, or is dropped.
    let line_bps = |psp: &Psp| match psp.backend {
        Backend::Edt => device.line_rate_bps,
        Backend::Module | Backend::Bpf => Some(psp.stats.line_rate_bps),
    };
    let mut psps = device.psp.iter();
    let (psp, line_bps) = psps.find_map(|psp| {
        let line_bps = line_bps(psp).filter(|line_bps| psp.rates_bps > *line_bps)?;
        Some((psp, line_bps))
    })?;
    found(
        Severity::Warning,
        format!(
            "The rates of the classes of {} sum up to {}, the line is {}.",
            psp.handle,
            terse::rate(psp.rates_bps),
            terse::rate(line_bps)
        ),
        "While all send, each gets less than its rate, and frames are late.",
        show_classes(device, psp, "tc class"),
    )
}

/// The cause of frames without a launch time, in a class that asks for one.
const TXTIME_INVALID: &str = "drop_txtime_invalid";

/// Returns what shows the classes of a psp: tc knows those of the module alone.
fn show_classes(device: &Device, psp: &Psp, tc: &str) -> String {
    match psp.backend {
        Backend::Module => format!("{tc} show dev {}", device.name),
        Backend::Bpf | Backend::Edt => "pspacer top --once".to_owned(),
    }
}

/// What fq drops for departure times, of which [`crate::rules::device::beyond_horizon`] complains.
const BEYOND_HORIZON: &str = "drop_horizon";

/// Complains if something is dropped.
pub fn drops(_: &Facts, device: &Device) -> Option<Found> {
    let is_dropped = |psp: &Psp, (cause, frames): &(&str, u64)| {
        *frames > 0 && (psp.backend != Backend::Edt || *cause != BEYOND_HORIZON)
    };
    let mut psps = device.psp.iter();
    let (psp, causes) = psps.find_map(|psp| {
        let causes = psp.drops.iter().filter(|drop| is_dropped(psp, drop));
        let causes: Vec<_> = causes
            .map(|(cause, frames)| format!("{cause} {frames}"))
            .collect();
        (!causes.is_empty()).then_some((psp, causes))
    })?;
    let default = psp.options.default_minor;
    let is_default = |class: &&PspClass| class.id.minor() == default;
    let class = psp.classes.iter().find(is_default);
    let has_invalid = |(cause, frames): &(&str, u64)| *cause == TXTIME_INVALID && *frames > 0;
    if class.is_some_and(|class| class.has_launch_times) && psp.drops.iter().any(has_invalid) {
        return found(
            Severity::Warning,
            format!("Frames were dropped so far: {}.", causes.join(", ")),
            "The default class has txtime, so it drops each frame without a launch time: ARP, ssh \
             and all else that no match claims. Another class should be the default.",
            classify(device, psp),
        );
    }
    found(
        Severity::Warning,
        format!("Frames were dropped so far: {}.", causes.join(", ")),
        "More came than classes may send for longer than their queues hold, or frames were too long \
         or too late; tc-psp(8) explains each cause.",
        show_classes(device, psp, "tc -s class"),
    )
}

/// Returns the command that gives a class to frames without one: a normal class that exists, or one
/// that the command makes, because a paced class may be too slow for them. What `pspacer apply`
/// made keeps to the host's file.
fn classify(device: &Device, psp: &Psp) -> String {
    let handle = psp.handle;
    if APPLIED.contains(&handle.major()) {
        return "pspacer apply  # in the host's file: default = \"NAME\" of one of its classes"
            .to_owned();
    }
    let normal = psp.classes.iter().filter(|class| class.is_normal);
    if let Some(minor) = normal.map(|class| class.id.minor()).min() {
        return change(device, handle, &format!("default {minor:x}"));
    }
    let is_free = |minor: &u16| psp.classes.iter().all(|class| class.id.minor() != *minor);
    let minor = (1..=u16::MAX).find(is_free).unwrap_or(u16::MAX);
    format!(
        "tc class add dev {} parent {handle} classid {handle}{minor:x} psp mode normal && {}",
        device.name,
        change(device, handle, &format!("default {minor:x}"))
    )
}

/// Complains unless every frame has a class.
pub fn unclassified(_: &Facts, device: &Device) -> Option<Found> {
    let psp = device
        .psp
        .iter()
        .find(|psp| psp.stats.unclassified_frames > 0)?;
    found(
        Severity::Warning,
        format!(
            "{} frames had no class: neither a filter nor default claimed them.",
            psp.stats.unclassified_frames
        ),
        match psp.backend {
            Backend::Module => "They are sent behind all classes, unpaced.",
            Backend::Bpf => "They are dropped.",
            Backend::Edt => "They leave at once, unpaced.",
        },
        classify(device, psp),
    )
}

/// Complains unless there is memory for gap frames.
pub fn gap_memory(_: &Facts, device: &Device) -> Option<Found> {
    let psp = device
        .psp_of_module()
        .find(|psp| psp.stats.gap_failed > 0)?;
    found(
        Severity::Warning,
        format!("{} gap frames found no memory.", psp.stats.gap_failed),
        "The byte clock stands still meanwhile, and frames are late.",
        "sysctl vm.min_free_kbytes=262144".to_owned(),
    )
}

/// Complains unless the statistics of each psp were read.
pub fn unread(facts: &Facts, device: &Device) -> Option<Found> {
    let psp = device.unread_psp.first()?;
    let word = psp.backend.word();
    let (why, command) = if facts.is_root {
        (psp.why.as_str(), "pspacer plan".to_owned())
    } else {
        let command = format!("sudo pspacer doctor {}", device.name);
        ("that takes root", command)
    };
    found(
        Severity::Note,
        format!(
            "The statistics of psp {} (backend {word}) were not read: {why}.",
            psp.handle
        ),
        "Whether it drops frames, and has a class for each, is not known.",
        command,
    )
}
