// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the BPF program into the kernel, attaches it, and reads its records.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use aya::maps::{Array, HashMap, MapData, PerCpuArray, RingBuf};
use aya::programs::{BtfTracePoint, ProgramError};
use aya::sys::{Stats, enable_stats};
use aya::{Btf, BtfError, Ebpf, EbpfLoader};
use rustix::io::Errno;

use crate::error::Error;
use crate::filter::{Filter, words};
use crate::owner::{self, Process};
use crate::reasons::Reasons;
use crate::records::Record;

/// The object file that build.rs compiled; empty where clang was missing.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/watch.bpf.o"));

const KERNEL_BTF: &str = "/sys/kernel/btf/vmlinux";

/// The programs, and the tracepoints that they attach to. Watching needs all but the last.
const PROGRAMS: [(&str, &str); 6] = [
    ("on_segment", "tcp_probe"),
    ("on_retransmit", "tcp_retransmit_skb"),
    ("on_ca_state", "tcp_cong_state_set"),
    ("on_state", "inet_sock_set_state"),
    ("on_destroy", "tcp_destroy_sock"),
    DROPS,
];
const DROPS: (&str, &str) = ("on_drop", "kfree_skb");

/// Most records read in one call, so that the caller gets to its other work.
const DRAIN_MOST: usize = 100_000;

/// The indices of `enum lost_what` of bpf/records.h.
const LOST_RECORDS: u32 = 0;
const LOST_SOCKETS: u32 = 1;

/// What a program has cost; counted while [`Tracer::count_costs`] is on.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Cost {
    pub tracepoint: &'static str,
    /// Number of times the program ran.
    pub runs: u64,
    /// Time spent in the program, in ns, all CPUs together.
    pub total_ns: u64,
}

/// An attached BPF program. Dropping it detaches the program.
pub struct Tracer {
    ebpf: Ebpf,
    ring: RingBuf<MapData>,
    lost: PerCpuArray<MapData, u64>,
    tick_ns: u64,
    stats: Option<OwnedFd>,
    process: Option<Process>,
    drops: Result<(), Error>,
    ended: Array<MapData, u32>,
}

impl Tracer {
    /// Loads the program for the connections that `filter` wants, and attaches it.
    ///
    /// # Errors
    /// When the program, the rights, BTF, BPF or one of the tracepoints is missing; when the
    /// process of the filter cannot be inspected. Nothing stays attached then.
    pub fn attach(filter: &Filter) -> Result<Self, Error> {
        if OBJECT.is_empty() {
            return Err(Error::NotBuilt);
        }
        if !Path::new(KERNEL_BTF).exists() {
            return Err(Error::NoBtf(KERNEL_BTF));
        }
        let process = filter.pid.map(Process::open).transpose()?;
        let btf = Btf::from_sys_fs().map_err(|error| refused("kernel types", &error))?;
        let mut ebpf = load(filter, &btf)?;
        for (name, tracepoint) in PROGRAMS.into_iter().filter(|program| *program != DROPS) {
            attach(&mut ebpf, name, tracepoint, &btf)?;
        }
        let drops = attach(&mut ebpf, DROPS.0, DROPS.1, &btf);
        if let Some(process) = &process {
            own(&mut ebpf, process)?;
        }
        Ok(Self {
            ring: RingBuf::try_from(map(&mut ebpf, "records")?)?,
            lost: PerCpuArray::try_from(map(&mut ebpf, "lost")?)?,
            ended: Array::try_from(map(&mut ebpf, "ended")?)?,
            process,
            drops,
            ebpf,
            tick_ns: linux_io::clock::tick_ns().map_err(Error::Clock)?,
            stats: None,
        })
    }

    /// Passes the records that have arrived to `take`. Call it every few milliseconds: nothing
    /// wakes the reader.
    ///
    /// # Errors
    /// When a record has a format that this version does not know.
    pub fn drain(&mut self, take: &mut impl FnMut(Record)) -> Result<(), Error> {
        for _ in 0..DRAIN_MOST {
            let Some(bytes) = self.ring.next() else {
                break;
            };
            take(Record::parse(&bytes, self.tick_ns)?);
        }
        Ok(())
    }

    /// Returns whether the process of the filter has ended since the last call. From then on no
    /// new socket counts as its own, whichever process gets its number or its ports; the
    /// sockets that it had are followed to their end.
    pub fn process_ended(&mut self) -> Result<bool, Error> {
        let Some(process) = &self.process else {
            return Ok(false);
        };
        if !process.has_ended()? {
            return Ok(false);
        }
        self.ended.set(0, 1, 0)?;
        self.process = None;
        Ok(true)
    }

    /// Returns the records that the ring buffer had no room for so far, by CPU.
    pub fn lost(&self) -> Result<Vec<u64>, Error> {
        Ok(self.lost.get(&LOST_RECORDS, 0)?.to_vec())
    }

    /// Returns the names of the kernel's reasons to drop a packet.
    ///
    /// # Errors
    /// When this kernel does not let drops be counted, which watching does without.
    pub fn drop_reasons(&self) -> Result<Reasons, &Error> {
        self.drops.as_ref()?;
        let btf = std::fs::read(KERNEL_BTF).unwrap_or_default();
        Ok(Reasons::of_btf(&btf))
    }

    /// Returns the number of sockets that could not be followed.
    pub fn lost_sockets(&self) -> Result<u64, Error> {
        Ok(self.lost.get(&LOST_SOCKETS, 0)?.iter().sum())
    }

    /// Makes the kernel measure the time of each run from now on, which itself costs some tens
    /// of nanoseconds a run.
    pub fn count_costs(&mut self) -> Result<(), Error> {
        let stats = enable_stats(Stats::RunTime);
        self.stats = Some(stats.map_err(|error| refused("statistics", &error))?);
        Ok(())
    }

    /// Returns what each program has cost.
    pub fn costs(&self) -> Result<Vec<Cost>, Error> {
        let mut costs = Vec::new();
        for (name, tracepoint) in PROGRAMS {
            let Some(program) = self.ebpf.program(name) else {
                continue;
            };
            if name == DROPS.0 && self.drops.is_err() {
                continue;
            }
            let info = program.info().map_err(|error| refused(name, &error))?;
            costs.push(Cost {
                tracepoint,
                runs: info.run_count(),
                total_ns: u64::try_from(info.run_time().as_nanos()).unwrap_or(u64::MAX),
            });
        }
        Ok(costs)
    }
}

fn load(filter: &Filter, btf: &Btf) -> Result<Ebpf, Error> {
    let (net, mask) = filter.destination.map(words).unwrap_or_default();
    let (pid, port) = (filter.pid.unwrap_or(0), filter.port.unwrap_or(0));
    let (dev, ino) = owner::pid_space().map_err(|source| Error::Process { pid, source })?;
    let mut loader = EbpfLoader::new();
    loader.btf(Some(btf));
    // The library does not know the sockets' storage map, which only the BPF program uses.
    loader.allow_unsupported_maps();
    loader.set_global("want_pid", &pid, true);
    loader.set_global("pid_space_dev", &dev, true);
    loader.set_global("pid_space_ino", &ino, true);
    let cgroup = filter.cgroup.unwrap_or(0);
    loader.set_global("want_cgroup", &cgroup, true);
    loader.set_global("want_port", &port, true);
    loader.set_global("want_net", &net, true);
    loader.set_global("want_mask", &mask, true);
    loader
        .load(OBJECT)
        .map_err(|error| refused("watch", &error))
}

fn attach(
    ebpf: &mut Ebpf,
    name: &'static str,
    tracepoint: &'static str,
    btf: &Btf,
) -> Result<(), Error> {
    let missing = || Error::Refused {
        program: name,
        detail: "it is not in the object".to_owned(),
    };
    let program = ebpf.program_mut(name).ok_or_else(missing)?;
    let program: &mut BtfTracePoint = program
        .try_into()
        .map_err(|error: ProgramError| refused(name, &error))?;
    match program.load(tracepoint, btf) {
        Err(ProgramError::Btf(BtfError::UnknownBtfTypeName { .. })) => {
            return Err(Error::NoTracepoint(tracepoint));
        }
        other => other.map_err(|error| refused(name, &error))?,
    }
    program.attach().map_err(|error| refused(name, &error))?;
    Ok(())
}

/// Registers the sockets that the process has open already. The program itself sees those that
/// the process opens from now on.
fn own(ebpf: &mut Ebpf, process: &Process) -> Result<(), Error> {
    let sockets = process.sockets()?;
    let mut owned: HashMap<_, u64, u8> = HashMap::try_from(map(ebpf, "owned")?)?;
    for cookie in sockets.connected {
        owned.insert(cookie, 1, 0)?;
    }
    let mut listeners: HashMap<_, u64, u64> = HashMap::try_from(map(ebpf, "listeners")?)?;
    let mut listening: HashMap<_, u64, i32> = HashMap::try_from(map(ebpf, "listening")?)?;
    for (cookie, port) in sockets.listening {
        let key = (u64::from(sockets.network) << 32) | u64::from(port);
        // A socket that began to listen meanwhile is registered already, by the program.
        if listeners.get(&cookie, 0).is_err() {
            listeners.insert(cookie, key, 0)?;
            listening.insert(key, listening.get(&key, 0).unwrap_or(0) + 1, 0)?;
        }
    }
    Ok(())
}

fn map(ebpf: &mut Ebpf, name: &'static str) -> Result<aya::maps::Map, Error> {
    ebpf.take_map(name).ok_or_else(|| Error::Refused {
        program: "watch",
        detail: format!("it has no map {name}"),
    })
}

/// Converts an error of the library: the kernel's own message is at the root of its chain.
fn refused(program: &'static str, error: &(dyn std::error::Error + 'static)) -> Error {
    let mut detail = error.to_string();
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(cause) = error.downcast_ref::<io::Error>() {
            match Errno::from_io_error(cause) {
                Some(Errno::PERM) => return Error::NoRights,
                Some(Errno::NOSYS) => return Error::NoBpf(cause.to_string()),
                _ => {}
            }
        }
        next = error.source();
        if let Some(source) = next {
            detail = format!("{detail}: {source}");
        }
    }
    Error::Refused { program, detail }
}
