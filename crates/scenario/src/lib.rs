// SPDX-License-Identifier: MIT OR Apache-2.0
//! The laboratory's two formats: what to run ([`parse`], [`Scenario`]) and
//! what came out ([`result`]).
//!
//! Both are described in `docs/formats.md`. This crate does no input or
//! output of its own: it is given the text of a file, and gives back values.

mod cable;
mod cell;
mod closeup;
mod error;
mod expr;
mod flow;
mod freeze;
mod impairment;
pub mod isochronous;
mod model;
mod parse;
mod reader;
pub mod result;
mod sweep;
mod tables;
pub mod topology;
mod transfers;
mod truth;

pub use error::{Error, Place, Problem};
pub use expr::Env;
pub use model::{
    Bottleneck, BottleneckKind, Bound, Cable, Capture, Cell, Closeup, Device, Direction, End, Flow,
    FlowKind, Freeze, Host, Impairment, ImpairmentKind, Kernel, KnownStop, Layer, Messages, Noise,
    OnOff, Program, Scenario, Spread, StopSide, Subject, Sysctl, Target, TcLine, UnknownKernel,
    Window,
};
pub use parse::{Options, parse};
