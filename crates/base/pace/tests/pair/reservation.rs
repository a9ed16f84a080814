// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes by the period, in core and reference. The frames of rt classes are kept
//! here, as a host keeps them.

use pace::{Burst, ClassConfig, ClassId, Period};

use super::{Config, Pair};
use crate::reference::Type;

impl Pair {
    /// A frame arrives; an rt class keeps its length.
    pub(super) fn come(&mut self, id: ClassId, number: usize) {
        if let Some(frames) = self.frames.get_mut(&id) {
            let len_bytes = 1 + (number as u32).wrapping_mul(97) % self.cfg.max_frame_bytes;
            let wire_bytes = self.core.wire_bytes(len_bytes).unwrap();
            frames.push_back(len_bytes);
            self.core.arrived(id, wire_bytes, self.now_ns).unwrap();
            self.plain.arrived(id.index(), wire_bytes, self.now_ns);
        }
        self.activate(id);
    }

    /// The first frame of an rt class, and whether there is another.
    pub(super) fn take_frame(&mut self, id: ClassId) -> Option<(Burst, bool)> {
        let frames = self.frames.get_mut(&id)?;
        let len_bytes = frames.pop_front().expect("an active class has a frame");
        Some((self.plain.frame(len_bytes), !frames.is_empty()))
    }

    /// Drops the first frame of an rt class that has two.
    pub(super) fn drop_frame(&mut self, id: ClassId) {
        let Some(frames) = self.frames.get_mut(&id) else {
            return;
        };
        if frames.len() < 2 {
            return;
        }
        let len_bytes = frames.pop_front().expect("two frames");
        let wire_bytes = self.core.wire_bytes(len_bytes).unwrap();
        self.core.dropped(id, wire_bytes, self.now_ns).unwrap();
        self.plain.dropped(id.index(), self.now_ns);
    }

    /// Makes a class rt or nrt if the other reservations leave room for it. A class of
    /// another type that becomes rt loses its frames.
    pub(super) fn reservation(&mut self, id: ClassId, rt: bool, part: f64) {
        let Some(period) = self.cfg.period else {
            return;
        };
        let reserve_bytes = ((period.budget_bytes as f64 * part) as u64).max(1);
        let (config, class_type) = if rt {
            (
                ClassConfig::Rt { reserve_bytes },
                Type::Rt { reserve_bytes },
            )
        } else {
            (
                ClassConfig::Nrt { reserve_bytes },
                Type::Nrt { reserve_bytes },
            )
        };
        let was_rt = self.frames.contains_key(&id);
        let active = self.core.is_active(id).unwrap();
        if rt && !was_rt && active {
            self.core.deactivate(id, self.now_ns).unwrap();
            self.plain.deactivate(id.index(), self.now_ns);
        }
        if self.core.change_class(id, &config, self.now_ns).is_err() {
            return;
        }
        self.plain.change(id.index(), class_type, self.now_ns);
        if rt {
            self.frames.entry(id).or_default();
        } else {
            self.frames.remove(&id);
        }
    }

    /// Changes the period, if all reservations fit it.
    pub(super) fn period(&mut self, length_ns: u64, percent: u32, aligned: bool) {
        let line_rate_bps = self.cfg.line_rate_bps;
        let mut period = Period::percent(line_rate_bps, length_ns, percent);
        period.align_ns = aligned.then_some(length_ns * 3 / 7);
        self.reconfigure(Config {
            period: Some(period),
            ..self.cfg
        });
    }

    pub(super) fn check_periods(&self) {
        let stats = self.core.stats();
        assert_eq!(stats, self.plain.counted_periods(stats), "periods");
        for id in &self.classes {
            let counted = self.core.reservation_stats(*id).unwrap();
            assert_eq!(
                counted,
                self.plain.reservation_stats(id.index()),
                "of {id:?}"
            );
        }
    }
}
