// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which backend paces a device.

use std::path::Path;

use anyhow::Result;
use host_config::Backend;

use crate::rights::{exists, told};

/// Where the kernel lists the modules that are loaded, and those that it can load or has built in.
const LOADED: &str = "/sys/module";
const MODULES: &str = "/lib/modules";
const LISTS: [&str; 2] = ["modules.dep", "modules.builtin"];
/// Where the kernel says its release, and the types that it has.
const RELEASE: &str = "/proc/sys/kernel/osrelease";
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// A function of kernels that take qdiscs of BPF (CONFIG_NET_SCH_BPF, Linux 6.16).
const OF_QDISCS: &[u8] = b"\0bpf_qdisc_watchdog_schedule\0";

/// Returns the backend of a device, and if the file leaves the choice, why.
///
/// # Errors
/// That only root knows.
pub fn choose(wanted: Option<Backend>) -> Result<(Backend, Option<String>)> {
    if let Some(backend) = wanted {
        return Ok((backend, None));
    }
    let (backend, why) = if let Some(why) = module()? {
        (Backend::Module, why)
    } else if !has_qdiscs()? {
        (
            Backend::Edt,
            "this kernel has no module sch_psp, and takes no qdiscs of BPF (Linux 6.16, \
             CONFIG_NET_SCH_BPF)",
        )
    } else if backend::qdisc::is_built() {
        (
            Backend::Bpf,
            "this kernel has no module sch_psp, and takes qdiscs of BPF",
        )
    } else {
        (
            Backend::Edt,
            "this kernel has no module sch_psp, and this pspacer no qdisc of BPF",
        )
    };
    let why = format!("backend auto is {}: {why}", backend.word());
    Ok((backend, Some(why)))
}

/// Returns why the module can be used, or `None` if it cannot.
fn module() -> Result<Option<&'static str>> {
    if is_loaded("sch_psp")? {
        return Ok(Some("sch_psp is loaded"));
    }
    Ok(is_installed("sch_psp")?.then_some("sch_psp is installed"))
}

fn is_loaded(module: &str) -> Result<bool> {
    exists(&Path::new(LOADED).join(module))
}

/// Returns whether the kernel can load a module, or has it built in.
fn is_installed(module: &str) -> Result<bool> {
    let release = told(Path::new(RELEASE))?;
    let folder = Path::new(MODULES).join(String::from_utf8_lossy(&release).trim());
    for list in LISTS {
        let list = told(&folder.join(list))?;
        let is_there = String::from_utf8_lossy(&list).lines().any(|line| {
            let file = line.split(':').next().unwrap_or_default();
            let name = file.rsplit('/').next().unwrap_or_default();
            name.split('.').next() == Some(module)
        });
        if is_there {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether the kernel has filters that run programs.
pub(crate) fn has_program_filters() -> Result<bool> {
    Ok(is_loaded("cls_bpf")? || is_installed("cls_bpf")?)
}

/// Returns whether the kernel takes qdiscs of BPF. O(bytes of its types), some ms.
fn has_qdiscs() -> Result<bool> {
    let types = told(Path::new(TYPES))?;
    Ok(types
        .windows(OF_QDISCS.len())
        .any(|window| window == OF_QDISCS))
}
