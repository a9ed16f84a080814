// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer-node`, the agent of a node of Kubernetes (docs/use/pods.md): as a driver of dynamic
//! resource allocation it tells the scheduler how much of the node's uplink pods may be given, and
//! keeps for `pspacer-cni` what they were given; in rounds it puts classes in force again.

#![forbid(unsafe_code)]

pub mod api;
mod authority;
pub mod claim;
pub mod driver;
pub mod grpc;
pub mod proto;
pub mod publish;
pub mod quantity;
pub mod round;
pub mod run;
pub mod slice;
pub mod sockets;
pub mod status;
