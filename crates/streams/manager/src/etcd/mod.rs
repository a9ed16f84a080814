// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several managers that decide over the same segments, with their reservations in etcd: each
//! command is a transaction, and each reservation hangs on a lease of etcd's
//! (`docs/decisions/reservations.md`, "etcd").

pub mod gateway;
mod leases;
mod look;
mod records;
pub mod run;
pub mod shared;
