// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and attaches the BPF program that passes frames to a socket, and gives it the addresses of
//! this host.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;

use aya::maps::{HashMap, Map, MapData, XskMap};
use aya::programs::{ProgramError, Xdp, XdpFlags};
use aya::{Ebpf, EbpfLoader};

use super::error::{Error, refused};

/// The object that build.rs compiled; empty if clang was missing.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/router.bpf.o"));

const PROGRAM: &str = "to_router";
/// Name of the address map in error messages.
const OWN: &str = "map of own addresses";

/// The program of one device. It is detached when this value is dropped, and also when the process
/// ends for any reason, because a descriptor holds it (`bpf_link`).
pub(crate) struct Program {
    ebpf: Ebpf,
    sockets: XskMap<MapData>,
    own: OwnAddresses,
}

/// The map of this host's addresses, with a copy of its content.
struct OwnAddresses {
    map: HashMap<MapData, [u8; 4], u8>,
    known: BTreeSet<Ipv4Addr>,
}

impl Program {
    /// Loads the program for a device's MAC address; does not attach it.
    pub fn load(mac: [u8; 6], own: &[Ipv4Addr]) -> Result<Self, Error> {
        if OBJECT.is_empty() {
            return Err(Error::NotBuilt);
        }
        let mut ebpf = EbpfLoader::new()
            .set_global("mac", &mac, true)
            .load(OBJECT)
            .map_err(|error| refused("program", &error))?;
        let addresses = HashMap::try_from(map(&mut ebpf, "own_addresses")?);
        let own_addresses = OwnAddresses {
            map: addresses.map_err(|error| refused(OWN, &error))?,
            known: BTreeSet::new(),
        };
        let sockets = XskMap::try_from(map(&mut ebpf, "sockets")?);
        let mut program = Self {
            sockets: sockets.map_err(|error| refused("map of sockets", &error))?,
            ebpf,
            own: own_addresses,
        };
        program
            .xdp()?
            .load()
            .map_err(|error| refused("program", &error))?;
        program.set_own(own)?;
        Ok(program)
    }

    /// Attaches the program to the device: from now on its frames go to the socket.
    pub fn attach(&mut self, device_index: u32, socket: BorrowedFd<'_>) -> Result<(), Error> {
        let set = self.sockets.set(0, socket, 0);
        set.map_err(|error| refused("map of sockets", &error))?;
        // Only driver mode is used: generic mode (SKB_MODE), the kernel's own path before the
        // socket, copies frames as AF_PACKET does.
        let attached = self
            .xdp()?
            .attach_to_if_index(device_index, XdpFlags::DRV_MODE);
        attached.map_err(|error| refused("program in the driver", &error))?;
        Ok(())
    }

    /// Replaces the addresses of this host. O(addresses).
    pub fn set_own(&mut self, own: &[Ipv4Addr]) -> Result<(), Error> {
        let OwnAddresses { map, known } = &mut self.own;
        let now: BTreeSet<_> = own.iter().copied().collect();
        for new in now.difference(&known.clone()) {
            let insert = map.insert(new.octets(), 1, 0);
            insert.map_err(|error| refused(OWN, &error))?;
            known.insert(*new);
        }
        for old in known.clone().difference(&now) {
            let remove = map.remove(&old.octets());
            remove.map_err(|error| refused(OWN, &error))?;
            known.remove(old);
        }
        Ok(())
    }

    fn xdp(&mut self) -> Result<&mut Xdp, Error> {
        let program = self.ebpf.program_mut(PROGRAM);
        let program = program.ok_or_else(|| missing("program"))?;
        program
            .try_into()
            .map_err(|error: ProgramError| refused("program", &error))
    }
}

fn map(ebpf: &mut Ebpf, name: &'static str) -> Result<Map, Error> {
    ebpf.take_map(name).ok_or_else(|| missing(name))
}

fn missing(step: &'static str) -> Error {
    Error::Refused {
        step,
        detail: "it is not in the object".to_owned(),
    }
}
