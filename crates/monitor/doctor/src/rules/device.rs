// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules about a device: link, qdiscs, flow control, byte queue limits, bursts.

use host_config::{Backend, minor};
use tcpsp::{Handle, Mode, SplitGso, Why};
use units::queue_limit::{HELD_OFF_US, needed_bytes};
use units::terse;

use crate::facts::{Device, Facts, Psp, Qdisc};
use crate::finding::Severity;
use crate::rules::found::{Found, apply, found, paces_without_module};

/// Drivers of devices in virtual machines that look like a NIC and have no wire.
const VIRTUAL: &[&str] = &[
    "virtio_net",
    "vmxnet3",
    "hv_netvsc",
    "xen_netfront",
    "ena",
    "gve",
    "netvsc",
];
/// The longest MTU of the tests.
const TESTED_MTU_BYTES: u64 = 9000;
/// Qdiscs that hold frames back by themselves.
const PACING: &[&str] = &["fq", "tbf", "netem", "etf", "htb", "hfsc", "cake"];

/// Returns the command that sets the least byte queue limit of all transmit queues, and the key of a
/// host's file that keeps it.
pub fn set_limits(device: &Device, bytes: u64) -> String {
    format!(
        "for q in /sys/class/net/{}/queues/tx-*; do echo {bytes} > $q/byte_queue_limits/limit_min; \
         done  # in the host's file: byte_queue_limit_min = \"{bytes}b\"",
        device.name
    )
}

/// Whether nothing holds the device's sender back as a wire does.
pub fn is_virtual(device: &Device) -> bool {
    match device.driver.as_deref() {
        None => true,
        Some(driver) => VIRTUAL.contains(&driver),
    }
}

/// Complains unless it has a link, or is down.
pub fn no_link(_: &Facts, device: &Device) -> Option<Found> {
    if device.has_carrier != Some(false) {
        return None;
    }
    found(
        Severity::Fault,
        "It has no link.".to_owned(),
        "Nothing is sent, and the line rate is not known before there is a link.",
        format!("ethtool {}", device.name),
    )
}

pub fn down(_: &Facts, device: &Device) -> Option<Found> {
    if device.has_carrier.is_some() {
        return None;
    }
    found(
        Severity::Fault,
        "It is down.".to_owned(),
        "Nothing is sent, and the line rate is not known before it is up.",
        format!("ip link set {} up", device.name),
    )
}

/// Complains unless it has psp.
pub fn not_paced(facts: &Facts, device: &Device) -> Option<Found> {
    if device.backends().next().is_some() {
        return None;
    }
    let root = device.qdiscs.iter().find(|q| q.parent == Handle::ROOT);
    let kind = root.map_or("none", |root| root.kind.as_str());
    let why = if device.qdiscs.iter().any(|qdisc| qdisc.kind == "fq") {
        "fq paces each TCP connection by itself; classes with rates are psp's."
    } else {
        "psp paces nothing of what it sends."
    };
    found(
        Severity::Note,
        format!("It has no psp qdisc; its root is {kind}."),
        why,
        if paces_without_module(facts) {
            apply(device, "a [[device]] of this name")
        } else {
            format!(
                "tc qdisc replace dev {} root handle 1: psp default 1",
                device.name
            )
        },
    )
}

/// Complains unless below mq all transmit queues have psp.
pub fn queues_not_paced(_: &Facts, device: &Device) -> Option<Found> {
    let backend = device.backends().next()?;
    let root = device.qdiscs.iter().find(|q| q.kind == "mq")?;
    let paces = |qdisc: &Qdisc| match backend {
        Backend::Module => qdisc.kind == "psp",
        Backend::Bpf => qdisc.kind == "psp_bpf",
        Backend::Edt => qdisc.kind == "fq" && minor::is_at_its_place(qdisc.handle, qdisc.parent),
    };
    let mut others = device.qdiscs.iter().filter(|qdisc| {
        qdisc.parent.qdisc() == root.handle && qdisc.parent != Handle::ROOT && !paces(qdisc)
    });
    let first = others.next()?;
    found(
        Severity::Warning,
        format!(
            "Below mq {} transmit queues have a qdisc that is not psp's, the first of them {} at {}.",
            1 + others.count(),
            first.kind,
            first.parent
        ),
        "What they send takes the line from the paced queues.",
        if backend == Backend::Module {
            format!(
                "tc qdisc replace dev {} parent {} psp default 1",
                device.name, first.parent
            )
        } else {
            // What the kernel has put there has no id, and apply replaces it.
            let is_of_others = first.handle != Handle::NONE;
            let take_over = if is_of_others { " --take-over" } else { "" };
            format!("pspacer apply --device {}{take_over}", device.name)
        },
    )
}

/// Complains unless gap frames take time on it.
pub fn no_wire(_: &Facts, device: &Device) -> Option<Found> {
    // Of a software device psp says by itself whether it is a wire: the laboratory's is one.
    let has_none = |psp: &&Psp| device.driver.is_some() || psp.stats.why() == Some(Why::Software);
    let wants = |psp: &&Psp| psp.options.mode != Mode::Timer;
    if !is_virtual(device) {
        return None;
    }
    let psp = device.psp_of_module().filter(wants).find(has_none)?;
    let what = match &device.driver {
        Some(driver) => format!("It is a virtual NIC ({driver})."),
        None => "It is a software device.".to_owned(),
    };
    found(
        Severity::Note,
        what,
        "Sent bytes are no clock there: psp paces by timer, as exactly as timers are here.",
        format!(
            "tc qdisc change dev {} handle {} psp mode timer",
            device.name, psp.handle
        ),
    )
}

/// Complains unless its line rate is known.
pub fn line_rate(_: &Facts, device: &Device) -> Option<Found> {
    // Departure times go by no line.
    let has_line = |psp: &&Psp| psp.backend != Backend::Edt;
    let mut psps = device.psp.iter().filter(has_line);
    let psp = psps.find(|psp| psp.stats.line_known == 0)?;
    if device.has_carrier != Some(true) {
        return None;
    }
    let is_of_module = psp.backend == Backend::Module;
    let what = match device.line_rate_bps {
        Some(_) if !is_of_module => "It named no line rate when psp came",
        _ => "It names no line rate",
    };
    found(
        Severity::Fault,
        format!(
            "{what}; psp assumes {}.",
            terse::rate(psp.stats.line_rate_bps)
        ),
        "psp spaces frames in byte times of the line: a wrong rate makes every lateness and every \
         gap wrong.",
        if is_of_module {
            format!(
                "tc qdisc change dev {} handle {} psp line 10gbit",
                device.name, psp.handle
            )
        } else {
            apply(device, "line = \"10gbit\"")
        },
    )
}

/// Complains unless it sends and receives at once.
pub fn duplex(_: &Facts, device: &Device) -> Option<Found> {
    if device.is_full_duplex != Some(false) {
        return None;
    }
    found(
        Severity::Fault,
        "The link is half duplex.".to_owned(),
        "Received frames hold the sender back: sent bytes are no clock.",
        format!("ethtool -s {} duplex full autoneg on", device.name),
    )
}

/// Complains if somebody holds it by PAUSE frames.
pub fn held_by_pause(_: &Facts, device: &Device) -> Option<Found> {
    if device.is_held_by_pause != Some(true) || device.backends().next().is_none() {
        return None;
    }
    found(
        Severity::Warning,
        "It obeys PAUSE frames of its link partner.".to_owned(),
        "A switch that is full stops the wire, and with it all classes.",
        format!("ethtool -A {} rx off", device.name),
    )
}

/// Complains unless its byte queue limit lasts until the next interrupt.
pub fn queue_limit(facts: &Facts, device: &Device) -> Option<Found> {
    let by_wire = |psp: &&Psp| matches!(psp.stats.mode(), Some(Mode::Gap | Mode::Hybrid));
    let psp = device.psp_of_module().find(by_wire)?;
    let least = *device.queue_limits_min_bytes.iter().min()?;
    let sleep_us = facts.idle_states.iter().map(|s| s.latency_us).max();
    let held_us = device
        .tx_coalesce_us
        .unwrap_or(0)
        .max(sleep_us.unwrap_or(0))
        .max(HELD_OFF_US);
    let needed = needed_bytes(psp.stats.line_rate_bps, held_us);
    if least >= needed {
        return None;
    }
    found(
        Severity::Warning,
        format!(
            "A byte queue limit may shrink to {least} bytes; in {held_us} µs without an interrupt \
             the wire sends {needed}."
        ),
        "The wire runs dry whenever a completion is late, and frames behind it are late by that.",
        set_limits(device, needed),
    )
}

/// Complains unless psp cuts bursts.
pub fn bursts(_: &Facts, device: &Device) -> Option<Found> {
    let whole = |psp: &&Psp| psp.options.split_gso == SplitGso::Off && psp.rates_bps > 0;
    let psp = device.psp_of_module().find(whole)?;
    found(
        Severity::Warning,
        "split-gso is off, and TCP hands over bursts of up to 64 kB, also with TSO and GSO off."
            .to_owned(),
        "Each burst of a paced class leaves in one piece, at line rate.",
        format!(
            "tc qdisc change dev {} handle {} psp split-gso auto",
            device.name, psp.handle
        ),
    )
}

/// Complains if TCP makes longer bursts because the other host is near. Only the module cuts them.
pub fn near_bursts(facts: &Facts, device: &Device) -> Option<Found> {
    let near = facts.near_sockets.filter(|near| *near > 0)?;
    let is_longer = device.leaves_bursts_whole && facts.tso_rtt_log? > 0;
    is_longer.then_some(())?;
    found(
        Severity::Note,
        format!(
            "{near} TCP connections have round trips below half a millisecond, and nothing cuts their bursts."
        ),
        "TCP makes longer bursts over shorter round trips, and without the module each leaves in one \
         piece. With tcp_tso_rtt_log 0 they are shorter, still of several frames: \
         docs/use/without-a-module.md has what was measured.",
        "sysctl -w net.ipv4.tcp_tso_rtt_log=0",
    )
}

/// Complains unless its packets are no longer than those of tests.
pub fn mtu(_: &Facts, device: &Device) -> Option<Found> {
    let mtu_bytes = device.mtu_bytes.filter(|mtu| *mtu > TESTED_MTU_BYTES)?;
    device.backends().next()?;
    found(
        Severity::Note,
        format!("Its MTU is {mtu_bytes}; psp is tested up to {TESTED_MTU_BYTES}."),
        "The time of one such frame is what every bound on lateness is made of; a switch that drops \
         long frames drops gap frames as well.",
        format!("ip link set {} mtu {TESTED_MTU_BYTES}", device.name),
    )
}

/// Complains if a class's queue paces a second time.
pub fn inner_pacing(_: &Facts, device: &Device) -> Option<Found> {
    let of_psp = |handle: Handle| device.psp_of_module().any(|psp| psp.handle == handle);
    let inner = device.qdiscs.iter().find(|qdisc| {
        PACING.contains(&qdisc.kind.as_str())
            && qdisc.parent != Handle::ROOT
            && of_psp(qdisc.parent.qdisc())
    })?;
    found(
        Severity::Note,
        format!("The queue of class {} is {}.", inner.parent, inner.kind),
        "It holds frames back by its own clock: psp sees them only when it gives them, and the \
         class may get less than its rate.",
        format!(
            "tc qdisc replace dev {} parent {} pfifo limit 1000",
            device.name, inner.parent
        ),
    )
}

/// Complains if the options of a qdisc let no packet pass.
pub fn drops_all(_: &Facts, device: &Device) -> Option<Found> {
    let mut all = device.qdiscs.iter();
    let (qdisc, why) = all.find_map(|qdisc| Some((qdisc, qdisc.drops_all.as_ref()?)))?;
    let at = match qdisc.parent {
        Handle::ROOT => "root".to_owned(),
        parent => format!("parent {parent}"),
    };
    found(
        Severity::Fault,
        format!("{} at {at}: {why}.", qdisc.kind),
        "The kernel takes such options and says nothing.",
        format!("tc -s qdisc show dev {} {at}", device.name),
    )
}

/// Complains unless fq keeps what sockets ask for.
pub fn beyond_horizon(_: &Facts, device: &Device) -> Option<Found> {
    let dropped = |qdisc: &&Qdisc| qdisc.horizon_drops.is_some_and(|packets| packets > 0);
    let fq = device.qdiscs.iter().find(dropped)?;
    found(
        Severity::Warning,
        format!(
            "fq {} dropped {} packets so far: their sockets' times (SO_TXTIME) were beyond its horizon.",
            fq.handle,
            fq.horizon_drops.unwrap_or(0)
        ),
        "It keeps no packet for longer than its horizon, 10 s unless it is told another. Times on \
         CLOCK_TAI are such to it, also of a pod or container behind a veth; backend edt converts them.",
        format!("tc -s qdisc show dev {}", device.name),
    )
}
