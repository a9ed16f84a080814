// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules about launch times (SO_TXTIME): NICs that hold a frame until its time, and etf, which asks
//! them to (docs/use/media.md).

use tcpsp::Handle;

use crate::facts::{Device, Facts, Qdisc};
use crate::finding::Severity;
use crate::rules::found::{Found, found};
use crate::rules::host::kernel_version;

/// Drivers of the kernel that offer etf's offload for all their NICs. The kernel tells nobody
/// whether a driver does before it is asked to.
const LAUNCH: &[&str] = &["igc", "fsl_enetc", "intel-eth-pci", "qcom-ethqos"];
/// End of the names of stmmac's drivers, such as `imx-dwmac`.
const STMMAC: &str = "dwmac";
/// The driver whose i210 alone launches by time; and the i210, without the i211.
const IGB: &str = "igb";
const I210: &[u32] = &[
    0x8086_1533,
    0x8086_1536,
    0x8086_1537,
    0x8086_1538,
    0x8086_157b,
    0x8086_157c,
];
/// The driver whose E830 and E835 alone launch by time, since that kernel; and these.
const ICE: &str = "ice";
const ICE_SINCE: (u32, u32) = (6, 18);
const E830: &[u32] = &[
    0x8086_12d1,
    0x8086_12d2,
    0x8086_12d3,
    0x8086_12d4,
    0x8086_12d5,
    0x8086_12d8,
    0x8086_12da,
    0x8086_12dc,
    0x8086_12dd,
    0x8086_12de,
    0x8086_1248,
    0x8086_1249,
    0x8086_124a,
    0x8086_1261,
    0x8086_1262,
    0x8086_1263,
    0x8086_1265,
    0x8086_1266,
    0x8086_1267,
];
/// The driver that offers no launch times, and those of its NICs that have them: ConnectX-6 Dx and
/// later, BlueField-2 and later.
const MLX5: &str = "mlx5_core";
const MLX5_LAUNCH: &[u32] = &[
    0x15b3_101d,
    0x15b3_101f,
    0x15b3_1021,
    0x15b3_1023,
    0x15b3_a2d6,
    0x15b3_a2dc,
];

/// Whether the kernel can ask the NIC to launch frames by time.
fn launches<'a>(facts: &Facts, device: &'a Device) -> Option<&'a str> {
    let driver = device.driver.as_deref()?;
    let is_known = LAUNCH.contains(&driver) || driver.ends_with(STMMAC);
    let is_one_of = |ids: &[u32]| device.pci_id.is_some_and(|id| ids.contains(&id));
    let is_i210 = driver == IGB && is_one_of(I210);
    let is_e830 = driver == ICE && is_one_of(E830) && kernel_version(facts)? >= ICE_SINCE;
    (is_known || is_i210 || is_e830).then_some(driver)
}

fn etf(device: &Device) -> Option<&Qdisc> {
    device.qdiscs.iter().find(|qdisc| qdisc.kind == "etf")
}

/// Names where a qdisc is.
fn at(qdisc: &Qdisc) -> String {
    match qdisc.parent {
        Handle::ROOT => "root".to_owned(),
        parent => format!("parent {parent}"),
    }
}

/// Complains if the NIC launches by time, and nothing asks it to.
pub fn unused(facts: &Facts, device: &Device) -> Option<Found> {
    let driver = launches(facts, device)?;
    if etf(device).is_some() {
        return None;
    }
    let clock = match device.ptp_clock {
        Some(number) => format!(", by /dev/ptp{number}"),
        None => String::new(),
    };
    found(
        Severity::Note,
        format!(
            "Its NIC ({driver}) can hold each frame until its launch time{clock}; nothing asks it to."
        ),
        "etf with offload makes SO_TXTIME exact to the NIC's clock, whatever the host's timers do. It \
         needs a transmit queue of its own: gap frames of psp and launch times cannot share one, \
         whose frames leave in order.",
        format!("ethtool -T {}", device.name),
    )
}

/// Complains if etf could leave launching to the NIC.
pub fn by_timer(facts: &Facts, device: &Device) -> Option<Found> {
    let driver = launches(facts, device)?;
    let etf = etf(device).filter(|etf| etf.is_offloaded == Some(false))?;
    found(
        Severity::Warning,
        format!(
            "etf at {} launches by the host's timers, and the NIC ({driver}) could.",
            etf.parent
        ),
        "A timer sends a frame with SO_TXTIME its delta early, less what it is late, and drops one \
         whose time has passed.",
        // The kernel changes no etf, and "replace" by the same kind is a change.
        format!(
            "tc qdisc del dev {0} {1} && tc qdisc add dev {0} {1} etf clockid CLOCK_TAI delta 300000 offload",
            device.name,
            at(etf)
        ),
    )
}

/// Complains unless the clock that the NIC launches by can be set.
pub fn no_clock(facts: &Facts, device: &Device) -> Option<Found> {
    let driver = launches(facts, device)?;
    etf(device)?;
    if device.ptp_clock.is_some() || device.has_sent_timestamps.is_none() {
        return None;
    }
    found(
        Severity::Warning,
        format!("Its NIC ({driver}) launches by time, and the kernel names no clock of it."),
        "Without a clock in /dev that ptp4l or phc2sys set, launch times mean another instant on the \
         NIC than on the host.",
        format!("ethtool -T {}", device.name),
    )
}

/// Complains unless the kernel can use what the NIC has.
pub fn not_in_kernel(facts: &Facts, device: &Device) -> Option<Found> {
    let id = device.pci_id?;
    let missing = match device.driver.as_deref()? {
        MLX5 if MLX5_LAUNCH.contains(&id) => format!("does not offer it ({MLX5})"),
        ICE if E830.contains(&id) && kernel_version(facts)? < ICE_SINCE => format!(
            "offers it since {}.{} ({ICE}); this kernel is {}",
            ICE_SINCE.0, ICE_SINCE.1, facts.kernel_release
        ),
        _ => return None,
    };
    found(
        Severity::Note,
        format!("Its NIC launches by time, and the kernel's driver {missing}."),
        "Only programs that bypass the kernel (DPDK) have its launch times; etf with offload is \
         refused, and SO_TXTIME is as exact as timers are.",
        format!("ethtool -T {}", device.name),
    )
}

/// Complains unless etf is on a NIC that launches by time.
pub fn software(facts: &Facts, device: &Device) -> Option<Found> {
    let etf = etf(device)?;
    if launches(facts, device).is_some() || device.driver.as_deref() == Some(MLX5) {
        return None;
    }
    found(
        Severity::Note,
        format!(
            "etf at {} is on a NIC that does not launch by time, as far as is known.",
            etf.parent
        ),
        "It is a timer there: it sends a frame with SO_TXTIME its delta early, less what it is late, \
         and drops one whose time has passed.",
        format!("tc -s qdisc show dev {}", device.name),
    )
}
