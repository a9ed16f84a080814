// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes whose frames have a launch time, and what a host reports to meet it.

use crate::{ClassId, Error, Scheduler};

impl Scheduler {
    /// As [`Scheduler::activate`], for a [`ClassConfig::Launching`] class whose first frame may
    /// not leave before `launch_ns`. A host that has more packets reports to
    /// [`Scheduler::sent`] that it has none, and then the next one here. Changes the instant of
    /// an active class. O(log n).
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub fn activate_at(
        &mut self,
        class: ClassId,
        launch_ns: u64,
        now_ns: u64,
    ) -> Result<(), Error> {
        let slot = self.slot(class)?;
        self.port
            .activate_at(slot, launch_ns, now_ns)
            .ok_or(Error::UnknownClass)
    }

    /// Reports when the driver got the first frame of those that were handed out since the
    /// last report: at `got_ns`, at `latest_ns` at the latest. Launch times of the frames that
    /// follow are met by it. Returns true if the wire may have waited for it until
    /// `latest_ns`. O(1).
    pub fn started(&mut self, got_ns: u64, latest_ns: u64) -> bool {
        self.port.started(got_ns, latest_ns)
    }

    /// Returns the instant at which what is handed out at `now_ns` leaves the host: when the
    /// wire has carried what was handed out before. O(1).
    pub fn departure_ns(&mut self, now_ns: u64) -> u64 {
        self.port.departure_ns(now_ns)
    }
}
