// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes the laboratory's two formats: the scenario, which says what to run
//! ([`parse`], [`Scenario`]), and the result of a run ([`result`]).
//!
//! `docs/use/formats.md` describes both. This crate opens no file: it takes the text of a file and
//! returns values.

mod cable;
mod cell;
mod closeup;
mod expr;
mod flow;
mod flow_kind;
mod freeze;
mod ground_truth;
mod host_program;
mod impairment;
pub mod isochronous;
mod model;
mod offload;
mod parse;
mod reader;
pub mod result;
mod sweep;
mod tables;
mod tc_head;
pub mod topology;
mod transfers;

pub use expr::Env;
pub use flow_kind::{FlowKind, Launch, Messages, OnOff, Pattern, Spread};
pub use model::{
    Backend, Bottleneck, BottleneckKind, Bound, Cable, Capture, Cell, Closeup, Device, Direction,
    End, Flow, Freeze, Host, HostProgram, Impairment, ImpairmentKind, Kernel, KnownStop, Layer,
    Noise, Offload, Program, ProgramFile, Scenario, StopSide, Subject, Sysctl, Target, TcLine,
    UnknownKernel, Window,
};
pub use parse::{Options, parse};
pub use tc_head::TcHead;
pub use toml_reader::{Error, Place, Problem};
