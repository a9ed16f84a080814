// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of classes: one level above classes.

use crate::config::{ClassConfig, Error};
use crate::groups::GroupId;
use crate::layout::TYPE_RT;
use crate::{ClassId, Config, Scheduler};

impl Scheduler {
    /// Adds a group without classes: together they are guaranteed `rate_bps`, and borrow up
    /// to `ceil_bps`.
    ///
    /// # Errors
    /// As [`Scheduler::add_class`] of a class with that rate and ceil.
    pub fn add_group(&mut self, rate_bps: u64, ceil_bps: u64) -> Result<GroupId, Error> {
        let node = self.add_class(&ClassConfig::Borrowing { rate_bps, ceil_bps })?;
        match self.port.add_group(node.index(), ceil_bps) {
            Ok(index) => Ok(GroupId {
                index,
                node: node.index(),
            }),
            Err(code) => {
                self.remove_class(node)?;
                Err(Error::from_code(code))
            }
        }
    }

    /// Changes the rate and the ceil of a group. `config` is that of the port.
    ///
    /// # Errors
    /// As [`Scheduler::add_group`], and those of a class that does not fit.
    pub fn change_group(
        &mut self,
        group: GroupId,
        config: &Config,
        rate_bps: u64,
        ceil_bps: u64,
        now_ns: u64,
    ) -> Result<(), Error> {
        match self.port.groups.check(&config.raw(), group.index, ceil_bps) {
            0 => {}
            code => return Err(Error::from_code(code)),
        }
        self.change_class(
            self.id(group.node),
            &ClassConfig::Borrowing { rate_bps, ceil_bps },
            now_ns,
        )?;
        self.port.configure_group(group.index, ceil_bps, now_ns);
        Ok(())
    }

    /// Adds an inactive class of type paced, borrowing or normal to a group.
    ///
    /// # Errors
    /// As [`Scheduler::add_class`], with the group's ceil as the line rate;
    /// [`Error::Busy`] for other types; [`Error::Full`] beyond [`GROUP_CLASSES_MAX`].
    pub fn add_class_in(&mut self, group: GroupId, config: &ClassConfig) -> Result<ClassId, Error> {
        let raw = config.raw();
        if raw.launches || raw.class_type >= TYPE_RT {
            return Err(Error::Busy);
        }
        let slot = self.port.groups.add_class(group.index, &raw);
        Ok(ClassId {
            slot: slot.map_err(Error::from_code)?,
            generation: 0,
        })
    }
}
