// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes lines of tc(8) about a psp as a host's file (docs/use/host-file.md), which makes the psp
//! by another backend. Ids are the same: those that a file can give.

use std::collections::BTreeMap;

use scenario::{TcHead, TcLine};
use units::tc::class_id;

use crate::error::Error;

/// The major number that `pspacer apply` gives, which begins the id of a class and of the qdisc.
const MAJOR: u32 = 0x7073;
/// Words of psp and of its classes whose values a file says in the same words.
const OF_QDISC: &[&str] = &["line", "mode", "layer", "order", "period", "budget"];
const OF_CLASS: &[&str] = &["rate", "ceil", "deadline", "quantum", "reserve"];
/// Words of flower, and the keys of a match.
const OF_MATCH: &[(&str, &str)] = &[
    ("ip_proto", "protocol"),
    ("src_ip", "from"),
    ("dst_ip", "to"),
    ("src_port", "from_port"),
    ("dst_port", "to_port"),
];

#[derive(Default)]
struct Device {
    keys: Vec<String>,
    /// By minor number.
    classes: BTreeMap<String, Class>,
}

#[derive(Default)]
struct Class {
    keys: Vec<String>,
    matches: Vec<String>,
}

/// Returns the lines of the file that says what all lines of a host say.
///
/// # Errors
/// If a file cannot say it, or this function does not know how.
pub(super) fn of_lines(lines: &[&TcLine]) -> Result<Vec<String>, Error> {
    let mut devices: BTreeMap<&str, Device> = BTreeMap::new();
    for line in lines {
        let added = line.head().ok().and_then(|head| add(&mut devices, &head));
        added.ok_or_else(|| Error::HostFile {
            place: line.place.clone(),
            detail: format!(
                "`{}`: expected with `backend = \"bpf\"` a root psp {MAJOR:x}:, its classes {MAJOR:x}:8000 to \
                 {MAJOR:x}:fffe or filters of flower with a pref",
                line.args.join(" ")
            ),
        })?;
    }
    Ok(devices
        .iter()
        .flat_map(|(name, device)| device.lines(name))
        .collect())
}

/// Adds a line. `None`: it is none of those that are known.
fn add<'l>(devices: &mut BTreeMap<&'l str, Device>, head: &TcHead<'l>) -> Option<()> {
    let device = devices.entry(head.device).or_default();
    let is_in_psp = head.parent == Some((MAJOR, 0)) && !head.is_root;
    match (head.verb, head.object, head.kind) {
        ("add", "qdisc", "psp") if head.is_root && head.handle == Some(MAJOR) => {
            for (key, value) in pairs(head.options)? {
                device.keys.push(match key {
                    "default" => format!("default = \"c{value}\""),
                    key if OF_QDISC.contains(&key) => format!("{key} = \"{value}\""),
                    _ => return None,
                });
            }
        }
        ("add", "class", "psp") if is_in_psp => {
            let class = device.classes.entry(minor(head.classid)?).or_default();
            for (key, value) in pairs(head.options)? {
                class.keys.push(match key {
                    "mode" => format!("type = \"{value}\""),
                    "rate" | "ceil" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                        format!("{key} = \"{value}bit\"")
                    }
                    key if OF_CLASS.contains(&key) => format!("{key} = \"{value}\""),
                    _ => return None,
                });
            }
        }
        ("add", "filter", "flower") if is_in_psp => {
            (head.protocol == Some("ip") && head.pref.is_some()).then_some(())?;
            let (mut keys, mut class) = (Vec::new(), None);
            for (key, value) in pairs(head.options)? {
                if matches!(key, "classid" | "flowid") {
                    class = Some(minor(class_id(value))?);
                    continue;
                }
                let (_, key) = OF_MATCH.iter().find(|(word, _)| *word == key)?;
                keys.push(format!("{key} = \"{value}\""));
            }
            let class = device.classes.entry(class?).or_default();
            class.matches.push(format!("{{ {} }}", keys.join(", ")));
        }
        _ => return None,
    }
    Some(())
}

fn pairs(words: &[String]) -> Option<Vec<(&str, &str)>> {
    let pairs = words.chunks(2).map(|pair| match pair {
        [key, value] => Some((key.as_str(), value.as_str())),
        _ => None,
    });
    pairs.collect()
}

fn minor(id: Option<(u32, u32)>) -> Option<String> {
    let (major, minor) = id?;
    (major == MAJOR).then(|| format!("{minor:x}"))
}

impl Device {
    fn lines(&self, name: &str) -> Vec<String> {
        let mut lines = vec![
            "[[device]]".to_owned(),
            format!("name = \"{name}\""),
            "backend = \"bpf\"".to_owned(),
        ];
        lines.extend(self.keys.iter().cloned());
        for (minor, class) in &self.classes {
            lines.push("[[device.class]]".to_owned());
            lines.push(format!("name = \"c{minor}\""));
            lines.push(format!("minor = \"{minor}\""));
            lines.extend(class.keys.iter().cloned());
            // A class of tc's has none, and a file's one by default.
            if !class.keys.iter().any(|key| key.starts_with("deadline ")) {
                lines.push("deadline = \"off\"".to_owned());
            }
            if !class.matches.is_empty() {
                lines.push(format!("match = [{}]", class.matches.join(", ")));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tc: &str) -> Result<String, String> {
        let text = format!(
            "name = \"s\"\ntitle = \"\"\nsource = \"\"\nduration = \"1s\"\nkernel = \"7\"\n\
             [[host]]\nname = \"tx\"\n[[host]]\nname = \"rx\"\n\
             [[cable]]\nname = \"wire\"\nends = [\"tx:eth0\", \"rx:eth0\"]\nrate = \"1gbit\"\n\
             [[tc]]\nhost = \"tx\"\nbackend = \"bpf\"\nlines = [{tc}]\n\
             [[flow]]\nname = \"f\"\ntype = \"udp\"\nfrom = \"tx\"\nto = \"rx\"\n\
             [[window]]\nname = \"all\"\n"
        );
        let scenario = scenario::parse("s.toml", &text, &Default::default()).unwrap();
        let lines: Vec<&TcLine> = scenario.cells[0].tc.iter().collect();
        let lines = of_lines(&lines).map_err(|error| error.to_string())?;
        Ok(lines.join("\n"))
    }

    #[test]
    fn lines_become_a_hosts_file() {
        let file = of(
            r#""qdisc add dev eth0 root handle 7073: psp default 8001 mode timer",
            "class add dev eth0 parent 7073: classid 7073:8001 psp mode normal",
            "class add dev eth0 parent 7073: classid 7073:8002 psp rate 5000 ceil 1mbit",
            "filter add dev eth0 parent 7073: protocol ip pref 1 flower ip_proto udp dst_port 5001 classid 7073:8002""#,
        );
        let expected = r#"[[device]]
name = "eth0"
backend = "bpf"
default = "c8001"
mode = "timer"
[[device.class]]
name = "c8001"
minor = "8001"
type = "normal"
deadline = "off"
[[device.class]]
name = "c8002"
minor = "8002"
rate = "5000bit"
ceil = "1mbit"
deadline = "off"
match = [{ protocol = "udp", to_port = "5001" }]"#;
        assert_eq!(file.unwrap(), expected);
        // What stands before the kind has any order, as for tc.
        let other = of(
            r#""tc qdisc add root dev eth0 handle 7073: psp default 8001 mode timer",
            "class add classid 7073:8001 parent 7073: dev eth0 psp mode normal",
            "class add dev eth0 classid 7073:8002 parent 7073: psp rate 5000 ceil 1mbit",
            "filter add dev eth0 protocol ip prio 1 parent 7073: flower flowid 7073:8002 ip_proto udp dst_port 5001""#,
        );
        assert_eq!(other.unwrap(), expected);
    }

    #[test]
    fn what_a_file_cannot_say_is_refused_with_its_line() {
        for line in [
            "qdisc add dev eth0 root handle 1: psp",
            "qdisc add dev eth0 root handle 7073: fq",
            "qdisc add dev eth0 root handle 7073: psp tick 1ms",
            "class add dev eth0 parent 7073: classid 1:1 psp rate 1mbit",
            "class add dev eth0 parent 7073: classid 7073:8001 psp rate",
            "qdisc add dev eth0 parent 7073:8001 pfifo limit 100",
        ] {
            let error = of(&format!("\"{line}\"")).unwrap_err();
            assert!(error.starts_with("s.toml:"), "{error}");
            assert!(error.contains(line), "{error}");
        }
    }
}
