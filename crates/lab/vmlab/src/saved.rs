// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of a snapshot, and how QEMU writes them.
//!
//! QEMU writes the devices by a command that is made for Xen, which keeps memory and devices apart
//! too. It is the one that works while QEMU records: `migrate` looks at a clock without the lock,
//! and QEMU ends itself. A guest that boots without the record is not always the same.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The memory and devices of a guest, and what it printed to its console.
const MEMORY: &str = "memory";
const DEVICES: &str = "devices";
const CONSOLE: &str = "console.log";

/// Returns the file with the memory of a snapshot.
pub(crate) fn memory(folder: &Path) -> PathBuf {
    folder.join(MEMORY)
}

/// Returns the file with the devices of a snapshot.
pub(crate) fn devices(folder: &Path) -> PathBuf {
    folder.join(DEVICES)
}

/// Returns the file with the console's text up to the snapshot.
pub(crate) fn console(folder: &Path) -> PathBuf {
    folder.join(CONSOLE)
}

/// Talks to QEMU's monitor: waits until the guest has stopped, lets QEMU write the devices into
/// `folder`, and ends QEMU. Returns whether the snapshot is complete.
pub(crate) fn save(from: impl BufRead, mut to: impl Write, folder: &Path) -> io::Result<bool> {
    const SAVE: &str = "save";
    let mut tell = |command: Value| writeln!(to, "{command}").and_then(|()| to.flush());
    tell(json!({"execute": "qmp_capabilities"}))?;
    for line in from.lines() {
        let said: Value = serde_json::from_str(&line?)?;
        if said["event"] == "STOP" {
            let file = devices(folder);
            tell(json!({
                "execute": "xen-save-devices-state",
                "arguments": {"filename": file, "live": false},
                "id": SAVE,
            }))?;
        } else if said["id"] == SAVE {
            tell(json!({"execute": "quit"}))?;
            return Ok(said.get("return").is_some());
        }
    }
    // The guest did not get so far, and QEMU has ended.
    Ok(false)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;

    /// Returns the commands that QEMU got, and the result.
    fn commands_of(said: &[&str]) -> (Vec<String>, bool) {
        let mut to = Vec::new();
        let said = said.join("\n");
        let complete = save(said.as_bytes(), &mut to, Path::new("cache/x")).unwrap();
        let commands = String::from_utf8(to).unwrap();
        let name = |line: &str| {
            let value: Value = serde_json::from_str(line).unwrap();
            let file = value["arguments"]["filename"].as_str().unwrap_or_default();
            format!("{} {file}", value["execute"].as_str().unwrap())
        };
        (commands.lines().map(name).collect(), complete)
    }

    #[test]
    fn a_stopped_guest_is_saved() {
        let greeting = r#"{"QMP": {"version": {}}}"#;
        let ready = r#"{"return": {}}"#;
        let stop = r#"{"event": "STOP", "timestamp": {}}"#;
        let saved = r#"{"return": {}, "id": "save"}"#;
        let failed = r#"{"error": {"class": "GenericError", "desc": "no"}, "id": "save"}"#;
        let begin = "qmp_capabilities ";
        let save = "xen-save-devices-state cache/x/devices";

        let (commands, complete) = commands_of(&[greeting, ready, stop, saved]);
        assert_eq!(commands, [begin, save, "quit "]);
        assert!(complete);
        let (commands, complete) = commands_of(&[greeting, stop, ready, failed]);
        assert_eq!(commands, [begin, save, "quit "]);
        assert!(!complete);
        // The guest ended before it stopped.
        let (commands, complete) = commands_of(&[greeting, ready]);
        assert_eq!(commands, [begin]);
        assert!(!complete);
    }
}
