// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two ends of an attachment: the device in the pod, and what leads to it on the host.

use anyhow::Result;
use linux_io::links::{Link, links};
use serde::{Deserialize, Serialize};

use crate::netns::Netns;

/// The kind of device that has another end.
const VETH: &str = "veth";

/// A device. Its index and address tell it from one that has its name later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Its name.
    pub name: String,
    /// Its index in its network namespace.
    pub index: u32,
    /// Its hardware address.
    pub address: Vec<u8>,
}

/// What there is of an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The device in the pod.
    pub pod: End,
    /// What kind of device it is.
    pub kind: Option<String>,
    /// The end on the host: what it sends, the pod receives.
    pub host: Option<End>,
}

impl End {
    fn new(link: &Link) -> Self {
        Self {
            name: link.name.clone(),
            index: link.index,
            address: link.address.clone(),
        }
    }

    /// Returns whether the device is in the network namespace of this thread.
    ///
    /// # Errors
    /// If the kernel's table cannot be read.
    pub fn is_here(&self) -> Result<bool> {
        Ok(here()?.contains(self))
    }
}

/// Returns the devices in the network namespace of this thread.
///
/// # Errors
/// If the kernel's table cannot be read.
pub fn here() -> Result<Vec<End>> {
    Ok(links()?.iter().map(End::new).collect())
}

/// Finds the ends of a device of a pod. `None`: it is not there. The end on the host is one of
/// `host_names`: in different network namespaces devices may have the same index.
///
/// # Errors
/// The kernel's.
pub fn find(netns: &Netns, device: &str, host_names: &[String]) -> Result<Option<Ends>> {
    let in_pod = netns.within(|| Ok(links()?))?;
    let Some(pod) = in_pod.iter().find(|link| link.name == device) else {
        return Ok(None);
    };
    let is_veth = |link: &Link| link.kind.as_deref() == Some(VETH);
    let host = if is_veth(pod) {
        links()?.into_iter().find(|link| {
            is_veth(link)
                && host_names.contains(&link.name)
                && pod.tied_to == Some(link.index)
                && link.tied_to == Some(pod.index)
        })
    } else {
        None
    };
    Ok(Some(Ends {
        pod: End::new(pod),
        kind: pod.kind.clone(),
        host: host.as_ref().map(End::new),
    }))
}
