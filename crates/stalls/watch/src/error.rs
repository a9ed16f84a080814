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
    /// The kernel offers no type information (BTF).
    #[error(
        "this kernel does not describe its types: there is no {0} (it needs \
         CONFIG_DEBUG_INFO_BTF, which distributions set)"
    )]
    NoBtf(&'static str),
    /// The user lacks the rights to watch.
    #[error(
        "the kernel does not let this user watch: run it as root, or with CAP_BPF and CAP_PERFMON"
    )]
    NoRights,
    /// The kernel lacks BPF, or BPF tracing.
    #[error(
        "this kernel has no BPF tracing (it needs CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS): {0}"
    )]
    NoBpf(String),
    /// The kernel lacks a tracepoint.
    #[error("this kernel has no tracepoint {0}: Linux 5.19 or newer is needed")]
    NoTracepoint(&'static str),
    /// The kernel's verifier or linker refused a program.
    #[error("the kernel refuses the BPF program {program}: {detail}")]
    Refused {
        /// Name of the program.
        program: &'static str,
        /// The kernel's message.
        detail: String,
    },
    /// There is no such process, or this user may not inspect it.
    #[error("cannot look at process {pid}")]
    Process {
        /// Number of the process.
        pid: u32,
        source: io::Error,
    },
    /// The kernel's clock cannot be read.
    #[error("the kernel's clock: {0}")]
    Clock(io::Error),
    /// A BPF map cannot be read or written.
    #[error("a BPF map")]
    Map(#[from] aya::maps::MapError),
    /// A record has a format that this version does not know.
    #[error(transparent)]
    Malformed(#[from] crate::Malformed),
}
