// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracks what the sender knows of the receiver, as seen from the capture: a sender that is
//! answered here now knew what was captured one round trip, from here to the sender and back,
//! ago.

use std::collections::VecDeque;

/// Steps in which a round trip is remembered. They bound the memory.
const STEPS: u64 = 64;

/// The first byte that is not acknowledged, and the window's edge.
type State = (u64, u64);

/// States of the receiver that are on their way to the sender, and the last one that data
/// captured now can reflect.
#[derive(Clone, Debug, Default)]
pub(crate) struct SenderView {
    on_the_way: VecDeque<(u64, State)>,
    /// The last state that data captured now can reflect, and since when.
    arrived: Option<(u64, State)>,
}

impl SenderView {
    /// Frees memory that is not used.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.on_the_way.shrink_to_fit();
    }

    /// Notes the receiver's state as of now. A state within a step counts as of the step's
    /// start. That may put the edge too far ahead for a step, so the window seems less full
    /// than it is, never fuller.
    pub(crate) fn push(&mut self, now: u64, state: State, way_ns: u64) {
        self.at(now, way_ns);
        let is_full = self.on_the_way.len() as u64 >= STEPS;
        let last = self.on_the_way.back_mut();
        match last.filter(|(at, _)| is_full || now.saturating_sub(*at) < way_ns / STEPS) {
            Some((_, last)) => *last = state,
            None => self.on_the_way.push_back((now, state)),
        }
    }

    /// Returns the state by which data that is captured now was sent, if the round trip to the
    /// sender takes `way_ns`, and since when captured data can reflect it (too early by a step
    /// at most). Amortised constant time.
    pub(crate) fn at(&mut self, now: u64, way_ns: u64) -> Option<(u64, State)> {
        while let Some(&(at, state)) = self.on_the_way.front() {
            let arrives = at.saturating_add(way_ns);
            if arrives > now {
                break;
            }
            self.arrived = Some((arrives, state));
            self.on_the_way.pop_front();
        }
        self.arrived
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reported_is_known_a_way_later() {
        let mut view = SenderView::default();
        view.push(100, (1, 10), 640);
        view.push(105, (2, 20), 640); // the same step
        view.push(300, (3, 30), 640);
        assert_eq!(view.at(739, 640), None);
        assert_eq!(view.at(740, 640), Some((740, (2, 20))));
        assert_eq!(view.at(939, 640), Some((740, (2, 20))));
        assert_eq!(view.at(940, 640), Some((940, (3, 30))));
        view.push(2000, (4, 40), 0);
        assert_eq!(view.at(2000, 0), Some((2000, (4, 40))));
    }

    #[test]
    fn memory_is_bounded() {
        let mut view = SenderView::default();
        for now in 0..10_000 {
            view.push(now, (now, now), 1_000);
        }
        // The way is longer than was thought: nothing arrives any more.
        for now in 10_000..20_000 {
            view.push(now, (now, now), u64::MAX / 2);
        }
        assert!(view.on_the_way.len() as u64 <= STEPS);
    }
}
