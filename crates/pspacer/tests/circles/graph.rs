// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the checker of circles works on.

use std::collections::{BTreeMap, BTreeSet};

/// Which files each file imports.
pub type Graph = BTreeMap<String, BTreeSet<String>>;
