// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several schedulers, the transmit queues of a device, that share its line and its classes:
//! `core/src/part.c`.

use std::sync::Arc;

use crate::config::{Error, Mode};
use crate::memory::Shared;
use crate::{ClassId, GroupId, Scheduler};

/// What the queues of a device share. Cloning it makes another handle.
#[derive(Clone)]
pub struct Device(Arc<Shared>);

/// The clocks of a class that the queues have in common.
#[derive(Clone)]
pub struct DeviceClass {
    rate: Arc<Shared>,
    ceil: Arc<Shared>,
}

impl Device {
    /// Makes a device of so many queues.
    pub fn new(queues: u32) -> Self {
        Device(Arc::new(Shared::device(queues)))
    }

    /// Makes a class of the device.
    pub fn class(&self) -> DeviceClass {
        let queues = self.0.slots();
        DeviceClass {
            rate: Arc::new(Shared::clock(queues)),
            ceil: Arc::new(Shared::clock(queues)),
        }
    }

    /// Returns what the active classes of the device offer to its line, each once, in bit/s of the
    /// wire.
    pub fn load_bps(&self) -> u64 {
        self.0.loads_bps()
    }
}

impl DeviceClass {
    /// Returns until where the time of the rate's clock has been given to queues, in
    /// picoseconds. It changes where a queue takes a step, and only there.
    pub fn given_ps(&self) -> u64 {
        self.rate.clock_ps()
    }
}

impl Scheduler {
    /// Joins the device as one of its queues, before the first class is added. Each queue is
    /// joined once. The line rate of all schedulers is the whole device's; `step_ns` is the time
    /// that a queue takes of a clock at once.
    ///
    /// # Errors
    /// [`Error::Device`] in another mode than [`Mode::Timer`], after a class was added, of a
    /// queue that the device does not have, or twice.
    pub fn join(&mut self, device: &Device, queue: u32, step_ns: u64) -> Result<(), Error> {
        let joins = self.mode == Mode::Timer
            && self.generations.is_empty()
            && self.queue.is_none()
            && queue < device.0.slots();
        if !joins {
            return Err(Error::Device);
        }
        self.queue = Some(queue);
        self.port
            .join(&device.0, queue, step_ns.saturating_mul(1000));
        Ok(())
    }

    /// Makes a paced class of this scheduler the device's.
    ///
    /// # Errors
    /// [`Error::UnknownClass`]; [`Error::Device`] if the scheduler has joined none, or one of
    /// fewer queues.
    pub fn share(&mut self, class: ClassId, with: &DeviceClass) -> Result<(), Error> {
        let slot = self.slot(class)?;
        let queue = self.queue.filter(|&queue| queue < with.rate.slots());
        let queue = queue.ok_or(Error::Device)?;
        self.port
            .class_join(slot, (&with.rate, &with.ceil), queue)
            .ok_or(Error::UnknownClass)
    }

    /// Makes a group the device's: its rate and its ceil.
    ///
    /// # Errors
    /// As [`Scheduler::share`].
    pub fn share_group(&mut self, group: GroupId, with: &DeviceClass) -> Result<(), Error> {
        self.share(self.id(group.node), with)
    }

    /// Makes a class of the device this scheduler's own again. No effect on others.
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub fn unshare(&mut self, class: ClassId) -> Result<(), Error> {
        let slot = self.slot(class)?;
        self.port.class_leave(slot).ok_or(Error::UnknownClass)
    }

    /// Says how many bytes of the class wait, before [`Scheduler::activate`] and
    /// [`Scheduler::sent`]: a queue that others wait for takes no more of the class's clock than
    /// that. No effect on classes that are not the device's.
    ///
    /// # Errors
    /// [`Error::UnknownClass`].
    pub fn set_backlog(&mut self, class: ClassId, bytes: u64) -> Result<(), Error> {
        let slot = self.slot(class)?;
        self.port
            .set_backlog(slot, bytes)
            .ok_or(Error::UnknownClass)
    }
}
