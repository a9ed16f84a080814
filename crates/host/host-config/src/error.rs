// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why there is no plan.

/// The reason why there is no plan, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);
