// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a runtime is told of a failure: a number, a sentence, and what helps.

use host_config::Refusal;
use serde_json::{Value, json};

/// Numbers that CNI defines.
pub const INCOMPATIBLE_VERSION: u32 = 1;
/// A key that is not known.
pub const UNSUPPORTED_FIELD: u32 = 2;
/// A variable of the environment.
pub const INVALID_ENVIRONMENT: u32 = 4;
/// Reading or writing.
pub const IO_FAILURE: u32 = 5;
/// No JSON.
pub const DECODING_FAILURE: u32 = 6;
/// A value of the configuration.
pub const INVALID_CONFIGURATION: u32 = 7;
/// STATUS: ADD would fail.
pub const NOT_AVAILABLE: u32 = 50;
/// Numbers of this plugin, from 100: the kernel refuses, or something of others is in the way.
pub const NOT_PACED: u32 = 100;
/// CHECK: what is there is not what the configuration says.
pub const DIFFERS: u32 = 101;
/// More than is left of the node's budget.
pub const OVER_BUDGET: u32 = 102;

/// What the stock plugin `bandwidth` puts on the host's end of a veth, as a refusal names it.
const STOCK: &str = "qdisc tbf 1: at root";
/// Most characters of a value that a message shows.
const VALUE_CHARS: usize = 80;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub code: u32,
    /// A sentence: key, value, and what was expected.
    pub msg: String,
    /// More, if there is more to say.
    pub details: String,
}

impl Error {
    /// Makes one without details.
    pub fn new(code: u32, msg: impl Into<String>) -> Self {
        Self {
            code,
            msg: msg.into(),
            details: String::new(),
        }
    }

    /// A value of the configuration that is wrong.
    pub fn wrong(key: &str, value: &Value, expected: &str) -> Self {
        let value = shown(&value.to_string());
        let msg = format!("`{key}` is {value}, expected {expected}");
        Self::new(INVALID_CONFIGURATION, msg)
    }

    /// A key that the configuration lacks.
    pub fn lacks(key: &str, expected: &str) -> Self {
        let msg = format!("`{key}` is missing, expected {expected}");
        Self::new(INVALID_CONFIGURATION, msg)
    }

    /// A variable of the environment.
    pub fn environment(name: &str, value: Option<&str>, expected: &str) -> Self {
        let said = match value {
            Some(value) => format!("{name} is {}", shown(&format!("{value:?}"))),
            None => format!("{name} is not set"),
        };
        Self::new(INVALID_ENVIRONMENT, format!("{said}, expected {expected}"))
    }

    /// What keeps a device from being paced.
    pub fn not_paced(error: &anyhow::Error) -> Self {
        let Some(Refusal::OfOthers { what, .. }) = error.downcast_ref() else {
            return Self::new(NOT_PACED, format!("{error:#}"));
        };
        let mut new = Self::new(NOT_PACED, what);
        if what.contains(STOCK) {
            new.details =
                "the stock plugin `bandwidth` puts such a qdisc there: one of the two goes \
                           out of the list of plugins, expected this one alone"
                    .to_owned();
        }
        new
    }

    /// What keeps a device from being compared: that of others is a difference.
    pub fn not_compared(error: &anyhow::Error) -> Self {
        let is_of_others = matches!(error.downcast_ref(), Some(Refusal::OfOthers { .. }));
        Self {
            code: if is_of_others { DIFFERS } else { NOT_PACED },
            ..Self::not_paced(error)
        }
    }

    /// Returns CNI's form, of a version.
    pub fn json(&self, version: &str) -> Value {
        let mut json = json!({ "cniVersion": version, "code": self.code, "msg": self.msg });
        if let (Some(object), false) = (json.as_object_mut(), self.details.is_empty()) {
            object.insert("details".to_owned(), self.details.as_str().into());
        }
        json
    }
}

/// Returns the beginning of a value.
fn shown(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS) {
        Some((at, _)) => format!("{}...", text.split_at(at).0),
        None => text.to_owned(),
    }
}
