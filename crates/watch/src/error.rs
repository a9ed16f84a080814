// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reasons why watching is not possible.

use std::io;

/// An error. Each message is one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// clang was missing when this program was built.
    #[error(
        "this pspacer was built without its BPF program, because clang was missing: install \
         clang and build it again (make build does both)"
    )]
    NotBuilt,
    /// The kernel has no type information.
    #[error(
        "this kernel does not describe its types: there is no {0} (it needs \
         CONFIG_DEBUG_INFO_BTF, which distributions set)"
    )]
    NoBtf(&'static str),
    /// Not root.
    #[error(
        "the kernel does not let this user watch: run it as root, or with CAP_BPF, CAP_PERFMON \
         and CAP_NET_ADMIN"
    )]
    NoRights,
    /// BPF, or its tracing, is not in the kernel.
    #[error(
        "this kernel has no BPF tracing (it needs CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS): {0}"
    )]
    NoBpf(String),
    /// A tracepoint is missing.
    #[error("this kernel has no tracepoint {0}: Linux 5.19 or newer is needed")]
    NoTracepoint(&'static str),
    /// The kernel's verifier or linker refuses a program.
    #[error("the kernel refuses the BPF program {program}: {detail}")]
    Refused {
        /// Its name.
        program: &'static str,
        /// What the kernel says.
        detail: String,
    },
    /// There is no such process, or it may not be looked at.
    #[error("cannot look at process {pid}")]
    Process {
        /// Which.
        pid: u32,
        /// What the kernel says.
        source: io::Error,
    },
    /// There is no clock.
    #[error("the kernel's clock: {0}")]
    Clock(io::Error),
    /// A map cannot be read or written.
    #[error("a BPF map")]
    Map(#[from] aya::maps::MapError),
    /// A record has a format that this version does not know.
    #[error(transparent)]
    Malformed(#[from] crate::Malformed),
}
