// SPDX-License-Identifier: MIT OR Apache-2.0
//! A row of the tables of rules.

use doctor::Severity;
use doctor::facts::Facts;

type Change = fn(&mut Facts);

/// What is changed, the one finding, words of what it says, and of its command.
pub(crate) type Row = (Change, &'static str, Severity, &'static str, &'static str);
