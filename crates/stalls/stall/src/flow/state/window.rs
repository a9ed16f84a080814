// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of the receiver's window.

use std::num::NonZeroU64;

use crate::flow::packed::fields;
use crate::flow::sequence::ORIGIN;

/// What is known of the receiver's window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// The receiver's window scale; `None`: not both SYNs were captured with all their options.
    pub(in crate::flow) scale: Option<u8>,
    /// The least and the largest scale that fit what the windows say.
    pub(in crate::flow) scale_least: u8,
    pub(in crate::flow) scale_most: Option<u8>,
    /// The field of the last segment, and the largest one.
    pub(in crate::flow) field: Option<u16>,
    pub(in crate::flow) field_max: u16,
    pub(in crate::flow) edge: u64,
    /// The window's edge before the update that last told of room.
    pub(in crate::flow) edge_untold: Option<NonZeroU64>,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            scale: None,
            scale_least: 0,
            scale_most: None,
            field: None,
            field_max: 0,
            edge: ORIGIN,
            edge_untold: None,
        }
    }
}

impl Window {
    /// Returns the window that was announced last, at most, in bytes. Where nothing bounds the
    /// scale it is the least.
    pub(in crate::flow) fn most(&self) -> u64 {
        let scale = self.scale.or(self.scale_most).unwrap_or(self.scale_least);
        u64::from(self.field.unwrap_or(0)) << scale
    }

    /// Returns the window that was announced last, in bytes, if its scale is known.
    pub(in crate::flow) fn bytes(&self) -> Option<u64> {
        let both = self.field.zip(self.scale);
        both.map(|(field, scale)| u64::from(field) << scale)
    }
}

/// The window in a pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowBefore {
    pub(crate) bytes: Option<u64>,
    /// Whether it is known how much room the window has at most.
    pub(crate) is_room_known: bool,
    /// The window's edge at most, before what ended the pause; whether that advanced it, and
    /// made the window as large as it ever was.
    pub(crate) edge: u64,
    pub(crate) has_grown: bool,
    pub(crate) is_whole: bool,
    /// Largest value of the window field so far.
    pub(crate) field_max: u16,
    /// Largest window so far, in bytes.
    pub(crate) max_bytes: u64,
}

fields!(WindowBefore {
    bytes,
    is_room_known,
    edge,
    has_grown,
    is_whole,
    field_max,
    max_bytes,
});
