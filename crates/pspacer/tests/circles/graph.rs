// SPDX-License-Identifier: MIT OR Apache-2.0
//! The graph on which the search for circles works.

use std::collections::{BTreeMap, BTreeSet};

/// Which files each file imports.
pub type Graph = BTreeMap<String, BTreeSet<String>>;
