// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names for the classes of pods, for whoever shows what this host's devices send: the host's end of
//! a veth has one class, and its record says whose. Needs no privilege. What is inside of a pod's
//! network namespace cannot be seen from the host's.

use std::path::Path;

use anyhow::Result;
use host_config::ClassNames;

use crate::ends::{End, here};
use crate::pacing::CLASS;
use crate::record::{Record, Records};

/// Adds the names of the pods that this host paces.
///
/// # Errors
/// A folder, a record or the kernel's table that cannot be read, as a sentence. The names of other
/// records are added.
pub fn add_names(names: &mut ClassNames) -> Result<(), String> {
    let mut add = || {
        let run = host_apply::path();
        // Most hosts have no pods, and need not ask the kernel.
        if Records::all(&run)?.is_empty() {
            return Ok(());
        }
        add_names_of(&run, &here()?, names)
    };
    add().map_err(|error: anyhow::Error| format!("{error:#}"))
}

/// Adds those of the records of a folder, whose devices are `here`: one that has the name of an
/// earlier one is not that pod's.
///
/// # Errors
/// The first folder or record that cannot be read; the names of others are added.
pub fn add_names_of(run: &Path, here: &[End], names: &mut ClassNames) -> Result<()> {
    let mut done = Ok(());
    for records in Records::all(run)? {
        let attachments = match records.attachments() {
            Ok(attachments) => attachments,
            Err(error) => {
                done = done.and(Err(error));
                continue;
            }
        };
        for of in attachments {
            match records.load(&of) {
                Ok(Some(Record {
                    host: Some(host),
                    ingress: Some(_),
                    pod_name: Some(pod),
                    ..
                })) => {
                    if let Some(end) = host.among(here) {
                        names.insert(&end.name, CLASS, pod.text());
                    }
                }
                Ok(_) => {}
                Err(error) => done = done.and(Err(error)),
            }
        }
    }
    done
}
