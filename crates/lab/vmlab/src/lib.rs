// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs scenarios on an unmodified kernel, in a virtual machine whose time is counted in
//! instructions.
//!
//! [`run`] does the whole work: it fetches QEMU, kernel and guest programs if the cache has none,
//! compiles the cable, the qdisc and the guest's own programs, packs an initial file system, boots
//! it, and writes what the guest recorded into folders. The same scenario, seed, kernel and
//! packages give the same bytes.

mod apt;
mod cache;
mod cell_files;
mod cell_modules;
mod command;
mod console;
mod cpu_timeout;
mod debug_kernel;
mod error;
mod fuzz_run;
mod guest_store;
mod host_command;
mod image;
mod kbuild;
mod kernels;
mod lint;
mod machine;
mod machine_run;
mod packages;
mod plan;
mod profile;
mod progress;
mod qemu;
mod remembered;
mod repo;
mod reports;
mod results;
mod run;
mod saved;
mod script;
mod setup;
mod snapshot;
pub mod source_text;
mod sources;
mod tdc;
mod tdc_run;

pub use cache::Cache;
pub use console::Failure;
pub use error::Error;
pub use fuzz_run::{FuzzSpec, run_fuzz, run_no_memory};
pub use guest_store::{Answers, FRESH, Key, Store};
pub use machine::{Machine, MachineSpec, run_on};
pub use machine_run::{MACHINE_ENDS, MACHINE_SCRIPTS, MachineTests, run_machine_tests};
pub use profile::Row as ProfileRow;
pub use progress::{Event, Progress, Quiet};
pub use repo::{Sources, named_root, roots};
pub use run::{BootStats, CellOutput, Keys, RunOutput, RunSpec, RunStats, keys, run};
pub use script::{QDISC_MODULES, ScriptOutput, ScriptSpec, run_script};
pub use setup::{Lab, apparmor, dpdk, etcd, prometheus, systemd};
pub use tdc::{Case, Plugins, Verdict, load as load_cases};
pub use tdc_run::{TdcOutput, run_tdc};
