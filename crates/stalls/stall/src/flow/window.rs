// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver's window, as its acknowledgements tell it.

use std::num::NonZeroU64;

use capture::segment::Segment;

use super::Flow;
use super::at::At;

impl Flow {
    /// Processes the window of an acknowledgement. `una_before`: the first byte that was not acknowledged
    /// before; `was_closed`: whether the window was closed then.
    pub(super) fn on_window(
        &mut self,
        at: At,
        segment: &Segment,
        (ack, una_before): (u64, u64),
        was_closed: bool,
    ) {
        if ack < self.space.una {
            return; // an older acknowledgement that was overtaken
        }
        self.bound_scale(segment.window, ack.saturating_sub(una_before));
        self.window.field = Some(segment.window);
        self.window.field_max = self.window.field_max.max(segment.window);
        let least = self.pauses.gap.window_least.unwrap_or(u16::MAX);
        self.pauses.gap.window_least = Some(least.min(segment.window));
        let field = u64::from(segment.window);
        self.infer_scale(field);
        let window = field << self.window.scale.unwrap_or(self.window.scale_least);
        let edge_before = std::mem::replace(&mut self.window.edge, ack + window);
        if self.window.edge > edge_before {
            self.pauses.gap.update = Some(at);
            if ack == una_before {
                self.window.edge_untold = NonZeroU64::new(edge_before);
            }
        }
        self.note_room();
        let (least, most) = self.counts.window.unwrap_or((window, window));
        self.counts.window = Some((least.min(window), most.max(window)));
        self.rounds.note_window(window);
        let way_ns = self.trips.sender_rtt_ns().unwrap_or(0);
        self.sender_view
            .push(at.now, (self.space.una, self.window.edge), way_ns);
        match (was_closed, self.is_window_closed()) {
            (false, true) => {
                self.counts.zero_windows += 1;
                self.pauses.gap.dirty = true;
                self.pauses.gap.closed_ns = at.now;
                self.pauses.gap.closed_window.push(at.packet.get());
            }
            (true, true) => {
                self.pauses.gap.dirty = true;
                self.pauses.gap.closed_window.push(at.packet.get());
            }
            (true, false) => {
                self.pauses.gap.dirty = true;
                self.pauses.gap.opened.get_or_insert(at);
            }
            (false, false) => {}
        }
    }

    /// Notes the least room for new data since the pause began.
    pub(super) fn note_room(&mut self) {
        if self.window.field.is_some() {
            let room = self.edge_most().saturating_sub(self.space.sent_end());
            let least = self.pauses.gap.room_least_bytes.unwrap_or(u64::MAX);
            self.pauses.gap.room_least_bytes = Some(least.min(room));
        }
    }

    /// Bounds the window scale from above where a SYN was not captured. A receiver does not take
    /// back what it has allowed (RFC 9293, 3.8.6): a window falls by what was acknowledged at
    /// most.
    fn bound_scale(&mut self, field: u16, moved: u64) {
        let fell = self
            .window
            .field
            .map_or(0, |last| last.saturating_sub(field));
        // The window that the receiver has in mind is cut off to the scale's unit.
        let least = u64::from(fell.saturating_sub(1));
        if self.window.scale.is_some() || least == 0 || least >= moved {
            return;
        }
        let fits = (0..=14u8).rev().find(|&scale| least << scale < moved);
        let known = self.window.scale_most.unwrap_or(14);
        self.window.scale_most = fits.map(|scale| scale.min(known).max(self.window.scale_least));
    }

    /// Returns the window's edge, at most.
    pub(super) fn edge_most(&self) -> u64 {
        self.space.una + self.window.most()
    }

    /// Infers the least window scale where a SYN was not captured: if more is outstanding than
    /// the window field says, the field is scaled by at least that factor.
    fn infer_scale(&mut self, field: u64) {
        if self.window.scale.is_some() || field == 0 {
            return;
        }
        let out = self.space.nxt - self.space.una;
        while self.window.scale_least < 14 && out > field << self.window.scale_least {
            self.window.scale_least += 1;
        }
    }

    /// Returns whether the window has no room for a full segment, or for 536 bytes if that is
    /// less. Without a known scale only 0 is sure to be closed.
    pub(super) fn is_window_closed(&self) -> bool {
        match (self.window.field, self.window.scale) {
            (Some(0), _) => true,
            (Some(field), Some(scale)) => {
                let window = u64::from(field) << scale;
                window < 536 && window < self.sizes.mss()
            }
            _ => false,
        }
    }
}
