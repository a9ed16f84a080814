// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver's window, as its acknowledgements tell it.

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
        if ack < self.una {
            return; // an older acknowledgement that was overtaken
        }
        self.bound_scale(segment.window, ack.saturating_sub(una_before));
        self.window_field = Some(segment.window);
        self.window_field_max = self.window_field_max.max(segment.window);
        let least = self.gap.window_least.unwrap_or(u16::MAX);
        self.gap.window_least = Some(least.min(segment.window));
        let field = u64::from(segment.window);
        self.infer_scale(field);
        let window = field << self.scale.unwrap_or(self.scale_least);
        let edge_before = std::mem::replace(&mut self.edge, ack + window);
        if self.edge > edge_before {
            self.gap.update = Some((at.now, at.packet));
            if ack == una_before {
                self.edge_untold = edge_before;
            }
        }
        self.note_room();
        let (least, most) = self.counts.window.unwrap_or((window, window));
        self.counts.window = Some((least.min(window), most.max(window)));
        self.rounds.note_window(window);
        let way_ns = self.sender_rtt_ns().unwrap_or(0);
        self.sender_view.push(at.now, (self.una, self.edge), way_ns);
        match (was_closed, self.is_window_closed()) {
            (false, true) => {
                self.counts.zero_windows += 1;
                self.gap.dirty = true;
                self.gap.closed_ns = at.now;
                self.gap.closed_window.push(at.packet);
            }
            (true, true) => {
                self.gap.dirty = true;
                self.gap.closed_window.push(at.packet);
            }
            (true, false) => {
                self.gap.dirty = true;
                self.gap.opened.get_or_insert((at.now, at.packet));
            }
            (false, false) => {}
        }
    }

    /// Notes the least room for new data since the pause began.
    pub(super) fn note_room(&mut self) {
        if self.window_field.is_some() {
            let room = self.edge_most().saturating_sub(self.sent_end());
            let least = self.gap.room_least_bytes.unwrap_or(u64::MAX);
            self.gap.room_least_bytes = Some(least.min(room));
        }
    }

    /// Bounds the window scale from above where a SYN was not captured. A receiver does not take
    /// back what it has allowed (RFC 9293, 3.8.6): a window falls by what was acknowledged at
    /// most.
    fn bound_scale(&mut self, field: u16, moved: u64) {
        let fell = self
            .window_field
            .map_or(0, |last| last.saturating_sub(field));
        // The window that the receiver has in mind is cut off to the scale's unit.
        let least = u64::from(fell.saturating_sub(1));
        if self.scale.is_some() || least == 0 || least >= moved {
            return;
        }
        let fits = (0..=14u8).rev().find(|&scale| least << scale < moved);
        let known = self.scale_most.unwrap_or(14);
        self.scale_most = fits.map(|scale| scale.min(known).max(self.scale_least));
    }

    /// Returns the window that was announced last, at most, in bytes. Where nothing bounds the
    /// scale it is the least.
    pub(super) fn window_most(&self) -> u64 {
        let scale = self.scale.or(self.scale_most).unwrap_or(self.scale_least);
        u64::from(self.window_field.unwrap_or(0)) << scale
    }

    /// Returns the window's edge, at most.
    pub(super) fn edge_most(&self) -> u64 {
        self.una + self.window_most()
    }

    /// Infers the least window scale where a SYN was not captured: if more is outstanding than
    /// the window field says, the field is scaled by at least that factor.
    fn infer_scale(&mut self, field: u64) {
        if self.scale.is_some() || field == 0 {
            return;
        }
        let out = self.nxt - self.una;
        while self.scale_least < 14 && out > field << self.scale_least {
            self.scale_least += 1;
        }
    }

    /// Returns whether the window has no room for a full segment, or for 536 bytes if that is
    /// less. Without a known scale only 0 is sure to be closed.
    pub(super) fn is_window_closed(&self) -> bool {
        match (self.window_field, self.scale) {
            (Some(0), _) => true,
            (Some(field), Some(scale)) => {
                let window = u64::from(field) << scale;
                window < 536 && window < self.mss()
            }
            _ => false,
        }
    }
}
