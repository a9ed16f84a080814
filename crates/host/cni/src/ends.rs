// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two ends of an attachment: the device in the pod, and what leads to it on the host.

use anyhow::{Context, Result};
use linux_io::links::{Link, links, namespace_number};
use serde::{Deserialize, Serialize};

use crate::netns::Netns;

/// The kind of device that has another end.
const VETH: &str = "veth";

/// A device. Its index and address tell it from one that has its name later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
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

    /// Returns the device as it is now in the network namespace of this thread, if it is there: others
    /// may have given it another name, or another address.
    pub fn here(&self) -> Result<Option<Self>> {
        Ok(self.among(&here()?).cloned())
    }

    /// The same of a device that has to be there.
    ///
    /// # Errors
    /// That it is another's by now, or that the kernel's table cannot be read.
    pub fn now(&self) -> Result<Self> {
        let gone = || format!("{} is another device now, expected the pod's", self.name);
        self.here()?.with_context(gone)
    }

    /// Returns the device as it is among those that there are.
    pub fn among<'a>(&self, here: &'a [Self]) -> Option<&'a Self> {
        here.iter().find(|other| {
            other.index == self.index && (other.name == self.name || other.address == self.address)
        })
    }
}

/// Returns the devices in the network namespace of this thread.
pub fn here() -> Result<Vec<End>> {
    Ok(links()?.iter().map(End::new).collect())
}

/// Finds the ends of a device of a pod. `None`: it is not there. The one on the host is the device
/// here that the kernel ties to that one, in that network namespace: not every plugin names it.
pub fn find(netns: &Netns, device: &str) -> Result<Option<Ends>> {
    let in_pod = netns.within(|| Ok(links()?))?;
    let Some(pod) = in_pod.iter().find(|link| link.name == device) else {
        return Ok(None);
    };
    let is_veth = |link: &Link| link.kind.as_deref() == Some(VETH);
    let host = if is_veth(pod) {
        let here = links()?;
        let number = namespace_number(&netns.file)?;
        here.into_iter().find(|link| {
            is_veth(link)
                && (pod.tied_to, link.tied_to) == (Some(link.index), Some(pod.index))
                && link.tied_namespace.is_some()
                && link.tied_namespace == number
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
