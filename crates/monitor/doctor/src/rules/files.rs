// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules about files that configure a device: the host's own, and those of other programs.

use tcpsp::account::Renewable;

use crate::facts::{Device, Facts};
use crate::finding::Severity;
use crate::rules::found::{Found, found};

/// Complains unless it is as the host's file says.
pub fn differs(_: &Facts, device: &Device) -> Option<Found> {
    let changes = device.file_changes.as_ref()?;
    let first = changes.first()?;
    let more = match changes.len() {
        1 => String::new(),
        count => format!(" (1 of {count})"),
    };
    found(
        Severity::Warning,
        format!("It is not what the host's file says. apply would: {first}{more}."),
        "Something has changed it since, such as tc, another number of transmit queues, or the file itself.",
        format!("pspacer apply --device {}", device.name),
    )
}

/// Complains unless it was compared with the host's file.
pub fn unread(_: &Facts, device: &Device) -> Option<Found> {
    if !device.is_file_unread {
        return None;
    }
    found(
        Severity::Note,
        "It was not compared with the host's file, nor were its matches looked up.".to_owned(),
        "The kernel tells root alone what stands there, or what its file wants.",
        format!("sudo pspacer doctor {}", device.name),
    )
}

/// Complains if another program gives it a qdisc.
pub fn other_manager(_: &Facts, device: &Device) -> Option<Found> {
    if device.backends().next().is_none() && device.file_changes.is_none() {
        return None;
    }
    let Some(file) = device.manager_file.as_ref() else {
        return open_vswitch(device);
    };
    found(
        Severity::Warning,
        format!(
            "{} gives it a qdisc of its own: {} in {}.",
            file.manager, file.setting, file.file
        ),
        "When that program configures the device again, after a lost link or an update, its qdisc \
         replaces psp.",
        format!("$EDITOR {}", file.file),
    )
}

/// Complains of a port whose root ovs-vswitchd deletes. Its database, which may forbid that, is not
/// read.
fn open_vswitch(device: &Device) -> Option<Found> {
    if !device.is_open_vswitch_port {
        return None;
    }
    found(
        Severity::Note,
        "It is a port of Open vSwitch.".to_owned(),
        "ovs-vswitchd deletes a port's root qdisc when the port is added and at each start, without \
         a word, unless the port has a QoS of type linux-noop.",
        format!(
            "ovs-vsctl set port {} qos=@none -- --id=@none create qos type=linux-noop",
            device.name
        ),
    )
}

/// Complains if another program takes packets before they get their departure time.
pub fn taken_before(_: &Facts, device: &Device) -> Option<Found> {
    let all = &device.reasons.taken_by;
    if all.is_empty() {
        return None;
    }
    found(
        Severity::Fault,
        format!(
            "Packets are asked about before our classifier: {}.",
            all.join(", ")
        ),
        "What is taken or let pass there gets no departure time: its class is not kept to.",
        format!(
            "tc filter show dev {0} egress; pspacer verify {0}",
            device.name
        ),
    )
}

/// Complains unless rules in force name interfaces as they are.
pub fn interface_renewed(_: &Facts, device: &Device) -> Option<Found> {
    renewed(device, Renewable::Interface)
}

/// Complains unless rules in force name cgroups as they are.
pub fn cgroup_renewed(_: &Facts, device: &Device) -> Option<Found> {
    renewed(device, Renewable::Cgroup)
}

fn renewed(device: &Device, what: Renewable) -> Option<Found> {
    let mut all = device.reasons.renewed.iter();
    let renewed = all.find(|renewed| renewed.what == what)?;
    let now = match renewed.number {
        0 => "is gone".to_owned(),
        number => format!("has {number} now"),
    };
    let (what, number) = match what {
        Renewable::Interface => ("interface", "index"),
        Renewable::Cgroup => ("cgroup", "number"),
    };
    found(
        Severity::Fault,
        format!(
            "A rule in force names {what} {} by its {number} {}; it {now}.",
            renewed.name, renewed.number_in_force
        ),
        "What is made anew has another number: its packets go to the default class. apply with the \
         file that names it mends that, and apply --follow waits for the next time.",
        format!("pspacer apply --device {}", device.name),
    )
}
