// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a host's file. A device that the file names by another of its names (altname) gets the one
//! that the kernel's tables have it by.

use host_config::{Error, Host};
use linux_io::links::{Link, named};

/// Reads a file of this host, whose devices are `links`.
pub(crate) fn host(file: &str, text: &str, links: &[Link]) -> Result<Host, Error> {
    let mut host = Host::read(file, text)?;
    for device in &mut host.devices {
        if let Some(link) = named(links, &device.name) {
            device.name.clone_from(&link.name);
        }
    }
    Ok(host)
}
