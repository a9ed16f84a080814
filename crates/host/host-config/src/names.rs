// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names that files give to classes: the kernel keeps none, so whoever shows a class looks here.

use std::collections::BTreeMap;

use tcpsp::Handle;

use crate::file::Device;
use crate::minor;

/// Names of classes, by device and id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassNames(BTreeMap<(String, u16), String>);

impl ClassNames {
    /// Adds the names of a device's classes.
    pub fn add(&mut self, device: &Device) {
        for class in &device.classes {
            let id = (device.name.clone(), class.minor);
            self.0.insert(id, class.name.clone());
        }
    }

    /// Adds the name of a class whose id comes from another name, the only one of its device.
    pub fn insert(&mut self, device: &str, id_of: &str, name: String) {
        for minor in minor::minors(&[(id_of, None)]) {
            self.0.insert((device.to_owned(), minor), name.clone());
        }
    }

    /// Returns the name of a class. A class of a qdisc that `pspacer apply` did not make has none,
    /// whatever its id.
    pub fn of(&self, device: &str, class: Handle) -> Option<&str> {
        let [first, last] = [0, minor::MOST_QUEUES - 1].map(|i| minor::below_mq(i).major());
        let is_below_mq = (first..=last).contains(&class.major());
        if class.qdisc() != minor::root() && !is_below_mq {
            return None;
        }
        let id = (device.to_owned(), class.minor());
        self.0.get(&id).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Host;

    #[test]
    fn only_classes_of_ours_have_names() {
        let text = "[[device]]\nname = \"eth0\"\n[[device.class]]\nname = \"video\"\n\
                    rate = \"1mbit\"\nminor = \"9000\"\n";
        let host = Host::read("host.toml", text).unwrap();
        let mut names = ClassNames::default();
        host.devices.iter().for_each(|device| names.add(device));
        let of = |device: &str, major: u16| names.of(device, Handle::new(major, 0x9000));
        assert_eq!(of("eth0", minor::MAJOR), Some("video"));
        assert_eq!(of("eth0", minor::below_mq(3).major()), Some("video"));
        // mq's own, another qdisc, another device, another class.
        assert_eq!(of("eth0", minor::MAJOR + 1), None);
        assert_eq!(of("eth0", 1), None);
        assert_eq!(of("eth1", minor::MAJOR), None);
        assert_eq!(names.of("eth0", Handle::new(minor::MAJOR, 0x9001)), None);
        // By the id that a file's class of that name would have.
        let text =
            "[[device]]\nname = \"veth1\"\n[[device.class]]\nname = \"pod\"\nrate = \"1mbit\"\n";
        let minor = Host::read("host.toml", text).unwrap().devices[0].classes[0].minor;
        names.insert("veth1", "pod", "default/web-0".to_owned());
        let found = names.of("veth1", Handle::new(minor::MAJOR, minor));
        assert_eq!(found, Some("default/web-0"));
    }
}
