// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filters of the module's qdiscs by the cgroup of the sender: the kernel's `bpf`, with a program
//! that compares one number.

use std::os::fd::{AsFd, AsRawFd};

use aya::EbpfLoader;
use aya::programs::{ProgramError, SchedClassifier};
use tcpsp::attribute::Attribute;
use tcpsp::{FilterId, Handle, Match, PlainFilter, Sender, Tc};

use crate::error::{Error, refused};

/// The object that build.rs compiled; empty if clang was missing.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/sender.bpf.o"));

const PROGRAM: &str = "match_sender";
/// TCA_BPF_FD.
const BPF_FD: u16 = 6;

/// Puts a filter, or exchanges the class that one names. The filter holds the program.
///
/// # Errors
/// The kernel's; nothing has changed then.
pub(crate) fn put(
    tc: &mut Tc,
    device: u32,
    at: FilterId,
    sender: &Sender,
    class: Handle,
    replace: bool,
) -> Result<(), Error> {
    if OBJECT.is_empty() {
        return Err(Error::NotBuilt);
    }
    let level = sender.level();
    let mut loader = EbpfLoader::new();
    loader.set_global("cgroup_id", &sender.id, true);
    loader.set_global("cgroup_level", &level, true);
    let load = loader.load(OBJECT);
    let mut ebpf = load.map_err(|error| refused("program", &error))?;
    let program = ebpf.program_mut(PROGRAM).ok_or(Error::Version)?;
    let program: Result<&mut SchedClassifier, ProgramError> = program.try_into();
    let program = program.map_err(|error| refused("program", &error))?;
    program.load().map_err(|error| refused("program", &error))?;
    let fd = program.fd().map_err(|error| refused("program", &error))?;
    let number = u32::try_from(fd.as_fd().as_raw_fd()).unwrap_or(u32::MAX);
    let matching = Match::Sender(sender.clone());
    let mut options = matching.write(class);
    options.push(Attribute::u32(BPF_FD, number));
    let filter = PlainFilter {
        at,
        kind: matching.kind(),
        protocol: matching.protocol(),
        options,
    };
    Ok(tc.put_filter(device, &filter, replace)?)
}
