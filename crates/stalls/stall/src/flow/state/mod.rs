// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of a flow that others read: they know nothing of the flow.

pub(crate) mod acks;
pub(crate) mod data;
pub(in crate::flow) mod pauses;
pub(crate) mod peer;
pub(in crate::flow) mod repairs;
pub(crate) mod window;
