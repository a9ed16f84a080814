// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls the plugin as a runtime does.

use cni::{Io, run};
use serde_json::Value;

/// What a call said.
pub struct Said {
    /// Whether it was well.
    pub is_well: bool,
    /// Standard output.
    pub out: String,
}

impl Said {
    /// Returns the error, its number and its sentence.
    ///
    /// # Panics
    /// If it is none as CNI has them.
    pub fn error(&self) -> (u64, String) {
        assert!(!self.is_well, "{}", self.out);
        let error: Value = serde_json::from_str(&self.out).unwrap();
        let text = |key: &str| error[key].as_str().unwrap().to_owned();
        assert!(!text("cniVersion").is_empty());
        (error["code"].as_u64().unwrap(), text("msg"))
    }
}

/// Calls the plugin with a configuration and variables.
pub fn call(input: &[u8], variables: &[(&str, &str)]) -> Said {
    let (mut out, mut log) = (Vec::new(), Vec::new());
    let mut variable = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let mut input = input;
    let mut io = Io {
        input: &mut input,
        out: &mut out,
        log: &mut log,
    };
    let is_well = run(&[], &mut variable, &mut io);
    let out = String::from_utf8(out).unwrap();
    Said { is_well, out }
}

/// Variables of a command for `eth0`, in a namespace that is not there.
pub fn variables(command: &str) -> [(&str, &str); 4] {
    [
        ("CNI_COMMAND", command),
        ("CNI_CONTAINERID", "c1"),
        ("CNI_IFNAME", "eth0"),
        ("CNI_NETNS", "/nowhere/ns"),
    ]
}
