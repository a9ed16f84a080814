// SPDX-License-Identifier: MIT OR Apache-2.0
//! What paces a device beside the module: [`qdisc`], the core as a qdisc of BPF, and [`edt`],
//! departure times that `fq` keeps.

pub mod edt;
pub mod qdisc;
