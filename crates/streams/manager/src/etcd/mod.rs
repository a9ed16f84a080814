// SPDX-License-Identifier: MIT OR Apache-2.0
//! Managers of one name that stand by for each other: etcd elects the one that decides, and keeps its
//! records.

pub mod gateway;
pub mod seat;
pub mod store;
