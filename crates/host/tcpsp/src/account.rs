// SPDX-License-Identifier: MIT OR Apache-2.0
//! What classes counted beside what their device sent, and what the kernel's tables say of why it may
//! differ. Pure; needs no tap.

use serde::Serialize;

use crate::ports::Port;

/// A rule that names an interface by an index that is no longer its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Renewed {
    /// The interface.
    pub name: String,
    /// The index that is in force.
    pub index_in_force: u32,
    /// The index that it has; 0: it is gone.
    pub index: u32,
}

/// Why packets may not come to the class that the file gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reasons {
    /// Filters and programs of others that are asked before the classifier.
    pub taken_by: Vec<String>,
    /// Interfaces that were made anew.
    pub renewed: Vec<Renewed>,
}

/// What a device has counted at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// Bytes that the device sent.
    pub device_bytes: u64,
    /// Packets that it sent.
    pub device_packets: u64,
    /// Bytes of all classes.
    pub classes_bytes: u64,
    /// Packets of all classes.
    pub classes_packets: u64,
    /// Bytes of the default class.
    pub default_bytes: u64,
    /// Packets of the default class, and those of no class.
    pub default_packets: u64,
}

/// What became of what a device sent between two instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Bytes that the device sent.
    pub device_bytes: u64,
    /// Bytes that no rule claims: of the default class, or of no class.
    pub unmatched_bytes: u64,
    /// Bytes that the classes with a rule counted.
    pub matched_bytes: u64,
}

impl Sent {
    /// Sums up the psp qdiscs of one device. Groups hold classes, so they are left out. O(classes).
    #[must_use]
    pub fn new(ports: &[&Port], device_bytes: u64, device_packets: u64) -> Self {
        let mut sent = Self {
            device_bytes,
            device_packets,
            ..Self::default()
        };
        for port in ports {
            let default = port.psp.options.default_minor;
            for class in &port.classes {
                if class.psp.options.class_type() == crate::ClassType::Group {
                    continue;
                }
                let counters = &class.counters;
                sent.classes_bytes += counters.sent_bytes;
                sent.classes_packets += counters.sent_packets;
                if class.id.minor() == default {
                    sent.default_bytes += counters.sent_bytes;
                    sent.default_packets += counters.sent_packets;
                }
            }
        }
        sent
    }

    /// Returns what was sent since; `None` if a counter began anew.
    #[must_use]
    pub fn since(&self, before: &Self) -> Option<Account> {
        let device_bytes = self.device_bytes.checked_sub(before.device_bytes)?;
        let classes = self.classes_bytes.checked_sub(before.classes_bytes)?;
        let of_default = self.default_bytes.checked_sub(before.default_bytes)?;
        let matched_bytes = classes.saturating_sub(of_default);
        Some(Account {
            device_bytes,
            unmatched_bytes: device_bytes.saturating_sub(matched_bytes),
            matched_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_class_with_a_rule_counted_is_unmatched() {
        let before = Sent {
            device_bytes: 1000,
            classes_bytes: 500,
            default_bytes: 100,
            ..Sent::default()
        };
        let after = Sent {
            device_bytes: 11_000,
            classes_bytes: 4500,
            default_bytes: 3100,
            ..before
        };
        let account = Account {
            device_bytes: 10_000,
            unmatched_bytes: 9000,
            matched_bytes: 1000,
        };
        assert_eq!(after.since(&before), Some(account));
        assert_eq!(before.since(&after), None);
    }
}
