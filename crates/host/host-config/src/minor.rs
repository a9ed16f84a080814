// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ids of what `pspacer apply` makes. The kernel keeps no names, so ids tell what is ours: the
//! qdisc's major number, and the upper half of the minor numbers for classes. A class has its id by
//! its name alone, so a class that another is put before keeps its id, and no state is kept.

use std::collections::BTreeSet;

use tcpsp::Handle;

/// Major number of psp as the root qdisc: "ps" in ASCII. mq has the next one, and what is below it
/// those behind.
pub const MAJOR: u16 = 0x7073;
/// First minor number of classes.
pub const FIRST_MINOR: u16 = 0x8000;
/// Last minor number of classes.
pub const LAST_MINOR: u16 = 0xfffe;
/// Most classes of a device.
pub const MOST_CLASSES: usize = (LAST_MINOR - FIRST_MINOR) as usize + 1;
/// Most transmit queues of a device: their major numbers stay below those that the kernel gives
/// away, 8001.
pub const MOST_QUEUES: u16 = 0x8000 - MAJOR - 2;
/// Handle of the filters that have one of ours: the first of a list, and the last.
pub const FILTER: u32 = 0x7073_0001;
pub const FILTER_LAST: u32 = 0x7073_ffff;
/// Last priority of filters: behind it are those that the kernel gives away.
pub const LAST_PRIORITY: u16 = 0x7fff;

/// Returns the id of psp as the root qdisc.
pub const fn root() -> Handle {
    Handle::new(MAJOR, 0)
}

/// Returns the id of mq as the root qdisc.
pub const fn mq() -> Handle {
    Handle::new(MAJOR + 1, 0)
}

/// Returns the class of mq of a transmit queue, from 0.
pub const fn mq_class(queue: u16) -> Handle {
    Handle::new(MAJOR + 1, queue + 1)
}

/// Returns the id of the qdisc of a transmit queue, from 0, below mq.
pub const fn below_mq(queue: u16) -> Handle {
    Handle::new(MAJOR + 2 + queue, 0)
}

/// Returns the transmit queue, from 0, of an id of [`below_mq`].
pub fn queue_below_mq(handle: Handle) -> Option<u16> {
    let queue = handle.major().checked_sub(MAJOR + 2)?;
    (queue < MOST_QUEUES && handle.minor() == 0).then_some(queue)
}

/// Returns whether a qdisc of this id stands where `apply` puts the one of this id: at the root, or at
/// its transmit queue below our mq.
pub fn is_at_its_place(handle: Handle, parent: Handle) -> bool {
    match queue_below_mq(handle) {
        Some(queue) => parent == mq_class(queue),
        None => handle == root() && parent == Handle::ROOT,
    }
}

/// Returns whether a class of this minor number is ours.
pub const fn is_ours(minor: u16) -> bool {
    minor >= FIRST_MINOR && minor <= LAST_MINOR
}

/// Returns the first choice of a minor number for a name: FNV-1a.
fn wanted(name: &str) -> u16 {
    let hash = name.bytes().fold(0x811c_9dc5u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let numbers = u32::from(LAST_MINOR - FIRST_MINOR) + 1;
    FIRST_MINOR + u16::try_from(hash % numbers).unwrap_or(0)
}

/// Returns the minor numbers of named classes, of which some have chosen theirs. Where two names
/// want the same number, the one that comes first in the alphabet has it and the other the next
/// that is free. There are at most [`MOST_CLASSES`].
pub fn minors(names: &[(&str, Option<u16>)]) -> Vec<u16> {
    let chosen = names.iter().filter_map(|(_, chosen)| *chosen);
    let mut taken: BTreeSet<u16> = chosen.collect();
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|i| names[*i].0);
    let mut minors = vec![0; names.len()];
    for i in order {
        let (name, chosen) = names[i];
        minors[i] = chosen.unwrap_or_else(|| {
            let mut minor = wanted(name);
            while !taken.insert(minor) {
                minor = match minor {
                    LAST_MINOR => FIRST_MINOR,
                    _ => minor + 1,
                };
            }
            minor
        });
    }
    minors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_number_whoever_is_beside_it() {
        let few = minors(&[("bulk", None), ("video", None)]);
        let more = minors(&[("a", None), ("video", None), ("b", None), ("bulk", None)]);
        assert_eq!((few[0], few[1]), (more[3], more[1]));
        assert!(few.iter().all(|minor| is_ours(*minor)));
        assert!(!is_ours(1) && !is_ours(0xffff));
    }

    #[test]
    fn no_number_is_given_twice() {
        let taken = minors(&[("bulk", None)])[0];
        let both = minors(&[("bulk", None), ("chosen", Some(taken))]);
        assert_eq!(both[1], taken);
        assert_eq!(both[0], taken + 1);
        let names: Vec<String> = (0..3000).map(|i| format!("class{i}")).collect();
        let names: Vec<_> = names.iter().map(|name| (name.as_str(), None)).collect();
        let mut all = minors(&names);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 3000);
    }
}
