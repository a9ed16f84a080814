// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a runtime says in the environment. Pure.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Pace an attachment.
    Add,
    /// Take all of it away.
    Del,
    /// Is it as the configuration says?
    Check,
    /// Would ADD work?
    Status,
    /// Take away what no valid attachment names.
    Gc,
    /// Which versions are known?
    Version,
}

const COMMANDS: &[(&str, Command)] = &[
    ("ADD", Command::Add),
    ("DEL", Command::Del),
    ("CHECK", Command::Check),
    ("STATUS", Command::Status),
    ("GC", Command::Gc),
    ("VERSION", Command::Version),
];

/// Longest id of a container: a file is named after it.
const ID_CHARS: usize = 200;
/// Longest namespace and name of a pod, those of a name of DNS.
const POD_CHARS: usize = 253;
const POD: &str = "a name of letters, digits, `_`, `.` and `-`, of up to 253 characters, that begins with a letter or digit";
/// Longest uid: a file is named after two of them.
const UID_CHARS: usize = 100;
/// What a uid of Kubernetes is here.
pub const UID: &str = "a uid of letters, digits, `_`, `.` and `-`, of up to 100 characters, that begins with a letter or digit";
/// Longest name of a device (IFNAMSIZ, with the zero at its end).
const NAME_BYTES: usize = 15;
const CONTAINER: &str = "an id of letters, digits, `_`, `.` and `-`, of up to 200 characters, that begins with a letter or digit";
const DEVICE: &str = "a name of a device, of up to 15 characters, without `/`, `:` and blanks";

/// An attachment: a container and a device in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attachment {
    /// The container's id.
    pub container: String,
    /// The device's name in its network namespace.
    pub device: String,
}

/// Whose an attachment is, if the runtime is one of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PodName {
    /// The pod's namespace.
    pub namespace: String,
    /// Its name there.
    pub name: String,
}

impl PodName {
    /// Reads `K8S_POD_NAMESPACE` and `K8S_POD_NAME` of `CNI_ARGS`; `None` if one is not there. Other
    /// arguments are for others.
    pub fn read(variable: &mut dyn FnMut(&str) -> Option<String>) -> Result<Option<Self>, Error> {
        let args = variable("CNI_ARGS").unwrap_or_default();
        let read = |key| argument(&args, key, POD_CHARS, POD);
        let (namespace, name) = (read("K8S_POD_NAMESPACE")?, read("K8S_POD_NAME")?);
        let both = namespace.zip(name);
        Ok(both.map(|(namespace, name)| Self { namespace, name }))
    }

    /// Returns it as people write it.
    pub fn text(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// Reads `K8S_POD_UID` of `CNI_ARGS`, if it is there.
pub fn pod_uid(variable: &mut dyn FnMut(&str) -> Option<String>) -> Result<Option<String>, Error> {
    let args = variable("CNI_ARGS").unwrap_or_default();
    argument(&args, "K8S_POD_UID", UID_CHARS, UID)
}

/// Returns an argument of `CNI_ARGS`; one that is empty is none.
fn argument(
    args: &str,
    key: &str,
    most_chars: usize,
    expected: &str,
) -> Result<Option<String>, Error> {
    let mut pairs = args.split(';').filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(known, _)| known.trim() == key);
    match found
        .map(|(_, value)| value)
        .filter(|value| !value.is_empty())
    {
        Some(value) if is_word(value, most_chars) => Ok(Some(value.to_owned())),
        Some(value) => {
            let place = format!("{key} of CNI_ARGS");
            Err(Error::environment(&place, Some(value), expected))
        }
        None => Ok(None),
    }
}

impl Command {
    /// Reads CNI_COMMAND.
    pub fn read(variable: &mut dyn FnMut(&str) -> Option<String>) -> Result<Self, Error> {
        let name = "CNI_COMMAND";
        let value = variable(name);
        let known = COMMANDS
            .iter()
            .find(|(word, _)| Some(*word) == value.as_deref());
        known.map(|(_, command)| *command).ok_or_else(|| {
            let expected = "ADD, DEL, CHECK, STATUS, GC or VERSION";
            Error::environment(name, value.as_deref(), expected)
        })
    }
}

impl Attachment {
    /// Reads CNI_CONTAINERID and CNI_IFNAME.
    pub fn read(variable: &mut dyn FnMut(&str) -> Option<String>) -> Result<Self, Error> {
        let container = variable("CNI_CONTAINERID");
        let device = variable("CNI_IFNAME");
        let wrong = |name, value: &Option<String>, expected| {
            Error::environment(name, value.as_deref(), expected)
        };
        match (container, device) {
            (Some(container), Some(device)) if is_id(&container) && is_device(&device) => {
                Ok(Self { container, device })
            }
            (Some(container), device) if is_id(&container) => {
                Err(wrong("CNI_IFNAME", &device, DEVICE))
            }
            (container, _) => Err(wrong("CNI_CONTAINERID", &container, CONTAINER)),
        }
    }
}

/// Returns whether a text is an id as CNI wants them, and no longer than a file's name may be.
pub fn is_id(text: &str) -> bool {
    is_word(text, ID_CHARS)
}

/// Returns whether a text can be a uid of Kubernetes, and part of a file's name.
pub fn is_uid(text: &str) -> bool {
    is_word(text, UID_CHARS)
}

fn is_word(text: &str, most_chars: usize) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    let known = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    begins && text.len() <= most_chars && text.chars().all(known)
}

/// Returns whether a text can be a device's name.
pub fn is_device(text: &str) -> bool {
    let known = |c: char| !(c == '/' || c == ':' || c.is_whitespace() || c.is_control());
    let length = 1..=NAME_BYTES;
    length.contains(&text.len()) && text != "." && text != ".." && text.chars().all(known)
}
