// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the facts of this host: files of the kernel, tables over netlink, and what programs of BPF
//! count. What cannot be read is not known; only the tables of qdiscs and devices must be there.

mod ethtool;
mod managers;
mod netlink;
mod qdiscs;
mod sockets;
mod sysfs;

use std::io;
use std::path::Path;

use host_config::Backend;
use linux_io::clock::timer_resolution_ns;
use linux_io::links::{Link, links, named};
use tcpsp::ports::{Port, PortClass};
use tcpsp::stats::{Stats, Value};
use tcpsp::{ClassStats, ClassType, Tc, TypeOptions};

use crate::facts::{Device, Facts, Psp, PspClass, Qdisc, UnreadPsp};
use crate::trial;

/// Where the kernel's files are.
const ROOT: &str = "/";

/// What to look at.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The device; `None`: all with psp, and `others`, or if there is none all NICs with a link.
    pub device: Option<String>,
    /// Devices to look at without `device`, as far as they are there: those of the host's files.
    pub others: Vec<String>,
    /// Whether to measure for a second.
    pub is_tried: bool,
    pub program_version: String,
}

/// The psp of this network namespace: those whose statistics can be read, and others with the
/// interface index of the device.
#[derive(Default)]
struct Psps {
    read: Vec<(Backend, Port)>,
    unread: Vec<(u32, UnreadPsp)>,
}

impl Psps {
    fn read(tc: &mut Tc) -> io::Result<Self> {
        let mut all = Self::default();
        for psp in backend::standing(tc).map_err(io::Error::other)? {
            let (backend, device) = (psp.made.backend(), psp.device);
            let (handle, parent) = (psp.handle, psp.parent);
            let unread = |error: backend::Error| UnreadPsp {
                backend,
                handle,
                parent,
                why: error.to_string(),
            };
            match psp.statistics() {
                Ok(port) => all.read.push((backend, port)),
                Err(error) => all.unread.push((device, unread(error))),
            }
        }
        Ok(all)
    }

    /// Returns those of a device whose statistics can be read.
    fn of(&self, link: &Link) -> impl Iterator<Item = &(Backend, Port)> {
        let index = link.index;
        self.read
            .iter()
            .filter(move |(_, port)| port.index == index)
    }

    fn are_on(&self, link: &Link) -> bool {
        self.of(link).next().is_some() || self.unread.iter().any(|(of, _)| *of == link.index)
    }
}

/// Whether nothing cuts the bursts of a paced class: only the module does.
fn leaves_bursts_whole((backend, port): &(Backend, Port)) -> bool {
    let mut classes = port.classes.iter();
    *backend != Backend::Module
        && classes.any(|class| class.psp.options.class_type() == ClassType::Paced)
}

/// Reads the facts.
///
/// # Errors
/// The system's, of the tables of devices and qdiscs; [`io::ErrorKind::NotFound`] if the device
/// does not exist.
pub fn facts(wanted: &Wanted) -> io::Result<Facts> {
    let root = Path::new(ROOT);
    let mut tc = Tc::open()?;
    let links = links()?;
    let first = Psps::read(&mut tc)?;
    let qdiscs = tc.qdiscs()?;
    let chosen = choose(&links, wanted, &first, root)?;
    let frames = |link: &Link| sysfs::sent_frames(root, &link.name);
    let frames_before: Vec<_> = chosen.iter().map(|link| frames(link)).collect();
    let timers = wanted.is_tried.then(trial::timers).transpose()?;
    let (before, psps) = if wanted.is_tried {
        (Some(first), Psps::read(&mut tc)?)
    } else {
        (None, first)
    };
    let mut devices = Vec::new();
    for (link, device_frames) in chosen.iter().zip(frames_before) {
        let of_link = |qdisc: &&tcpsp::Qdisc| qdisc.device == link.index;
        let trial = before.as_ref().and_then(|before| {
            let instant = |psps: &Psps, device_frames| trial::Instant {
                ports: psps.of(link).map(|(_, port)| port.clone()).collect(),
                device_frames,
            };
            let after = instant(&psps, frames(link));
            trial::between(&link.name, &instant(before, device_frames), &after)
        });
        let qdiscs = qdiscs.iter().filter(of_link).map(|qdisc| Qdisc {
            kind: qdisc.kind.clone(),
            handle: qdisc.handle,
            parent: qdisc.parent,
            is_offloaded: (qdisc.kind == "etf")
                .then(|| qdiscs::etf_is_offloaded(&qdisc.options))
                .flatten(),
            drops_all: qdiscs::drops_all(&qdisc.kind, &qdisc.options, link.mtu_bytes),
            horizon_drops: qdisc.horizon_drops,
        });
        let unread = psps.unread.iter().filter(|(of, _)| *of == link.index);
        let mut device = Device {
            name: link.name.clone(),
            is_ethernet: link.is_ethernet,
            qdiscs: qdiscs.collect(),
            leaves_bursts_whole: psps.of(link).any(leaves_bursts_whole),
            psp: psps.of(link).map(psp).collect(),
            unread_psp: unread.map(|(_, psp)| psp.clone()).collect(),
            trial,
            ..Device::default()
        };
        sysfs::device(root, &mut device);
        ethtool::device(&mut device);
        if link.has_made_up_speed() {
            device.line_rate_bps = None;
        }
        device.manager_file = managers::file_of(root, &link.name);
        device.is_open_vswitch_port = sysfs::master(root, &link.name)
            .and_then(|master| links.iter().find(|link| link.name == master))
            .is_some_and(|master| master.kind.as_deref() == Some("openvswitch"));
        devices.push(device);
    }
    let has_kind = |kinds: &[&str]| qdiscs.iter().any(|q| kinds.contains(&q.kind.as_str()));
    let mut fqs = qdiscs.iter().filter(|qdisc| qdisc.kind == "fq");
    let has_class = |is_one: fn(&TypeOptions) -> bool| {
        let mut classes = psps.read.iter().flat_map(|(_, port)| &port.classes);
        classes.any(|class| is_one(&class.psp.options.by_type))
    };
    let connections = sockets::connections().ok();
    let mut facts = Facts {
        program_version: wanted.program_version.clone(),
        is_root: rustix::process::geteuid().is_root(),
        timer_resolution_ns: timer_resolution_ns()?,
        paced_sockets: connections.map(|all| all.paced),
        near_sockets: connections.map(|all| all.near),
        pacing_programs: sockets::programs().ok(),
        keeps_launch_times: has_kind(&["fq", "etf", "taprio"]) || has_class(launches),
        keeps_socket_rates: fqs.any(|fq| qdiscs::fq_keeps_rates(&fq.options))
            || has_class(is_dynamic),
        timers,
        devices,
        ..Facts::default()
    };
    sysfs::host(root, &mut facts);
    Ok(facts)
}

fn choose<'a>(
    links: &'a [Link],
    wanted: &Wanted,
    psps: &Psps,
    root: &Path,
) -> io::Result<Vec<&'a Link>> {
    if let Some(name) = &wanted.device {
        let link = named(links, name);
        let known: Vec<_> = links.iter().map(|link| link.name.as_str()).collect();
        let none = format!(
            "{name}: no such device; expected one of {}",
            known.join(", ")
        );
        let link = link.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, none))?;
        return Ok(vec![link]);
    }
    let of_files = wanted.others.iter();
    let of_files: Vec<_> = of_files.filter_map(|name| named(links, name)).collect();
    let is_chosen = |link: &&Link| psps.are_on(link) || of_files.contains(link);
    let found: Vec<_> = links.iter().filter(is_chosen).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let is_nic = |link: &&Link| sysfs::is_nic_with_link(root, &link.name);
    Ok(links.iter().filter(is_nic).collect())
}

fn launches(options: &TypeOptions) -> bool {
    matches!(
        options,
        TypeOptions::Paced {
            launch: Some(_),
            ..
        }
    )
}

fn is_dynamic(options: &TypeOptions) -> bool {
    matches!(options, TypeOptions::Dynamic(_))
}

fn class(class: &PortClass) -> PspClass {
    PspClass {
        id: class.id,
        is_normal: matches!(class.psp.options.by_type, TypeOptions::Normal { .. }),
        is_dynamic: is_dynamic(&class.psp.options.by_type),
        has_launch_times: launches(&class.psp.options.by_type),
    }
}

fn psp((backend, port): &(Backend, Port)) -> Psp {
    let rates = port.classes.iter().map(|class| class.psp.stats.rate_bps);
    let of_class = |member: &'static str, stats: &ClassStats| {
        let row = ClassStats::TABLE.iter().find(|row| row.member == member);
        match row.map(|row| (row.value)(stats)) {
            Some(Value::Number(frames)) => frames,
            _ => 0,
        }
    };
    let causes = tcpsp::QdiscStats::TABLE
        .iter()
        .filter(|row| row.member.starts_with("drop_"));
    let drops = causes.map(|row| {
        // The qdisc counts what its classes do, and what never came to one.
        let frames = match (row.value)(&port.psp.stats) {
            Value::Number(frames) => frames,
            Value::Histogram(_) => 0,
        };
        let classes = port
            .classes
            .iter()
            .map(|class| of_class(row.member, &class.psp.stats));
        (row.key, frames.max(classes.sum()))
    });
    Psp {
        backend: *backend,
        handle: port.handle,
        parent: port.parent,
        options: port.psp.options.clone(),
        stats: port.psp.stats.clone(),
        classes: port.classes.iter().map(class).collect(),
        rates_bps: rates.fold(0, u64::saturating_add),
        drops: drops.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_can_be_read() {
        let lo = |is_tried| {
            facts(&Wanted {
                device: Some("lo".to_owned()),
                is_tried,
                program_version: "0".to_owned(),
                ..Wanted::default()
            })
        };
        let facts = lo(false).unwrap();
        assert!(facts.kernel_release.contains('.'), "{facts:?}");
        assert_eq!(facts.devices.len(), 1);
        let [device] = &facts.devices[..] else {
            unreachable!()
        };
        assert_eq!(
            (device.driver.as_deref(), device.is_ethernet),
            (None, false)
        );
        let timers = lo(true).unwrap().timers.unwrap();
        assert!(
            timers.timers > 0 && timers.median_ns <= timers.max_ns,
            "{timers:?}"
        );
    }

    #[test]
    fn devices_of_files_are_looked_at_where_they_are() {
        let wanted = Wanted {
            others: vec!["eth77".to_owned(), "lo".to_owned()],
            ..Wanted::default()
        };
        let links = links().unwrap();
        let found = choose(&links, &wanted, &Psps::default(), Path::new("/nowhere")).unwrap();
        let names: Vec<_> = found.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names, ["lo"]);
    }

    #[test]
    fn a_device_that_is_not_there_is_named() {
        let wanted = Wanted {
            device: Some("eth77".to_owned()),
            ..Wanted::default()
        };
        let error = facts(&wanted).unwrap_err().to_string();
        assert!(
            error.starts_with("eth77: no such device; expected one of "),
            "{error}"
        );
        assert!(error.contains("lo"), "{error}");
    }
}
