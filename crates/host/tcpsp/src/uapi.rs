// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers of `uapi/sch_psp.h`: attributes as `u16`, all others as `u64`.

include!(concat!(env!("OUT_DIR"), "/uapi.rs"));
