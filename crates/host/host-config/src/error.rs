// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why there is no plan.

/// The reason why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{0}")]
    Wrong(String),
    /// What others have configured is in the way, and what `--take-over` would do to it.
    #[error("{what}; --take-over {does}")]
    OfOthers {
        /// What is there, and what was expected.
        what: String,
        /// What taking over does.
        does: &'static str,
    },
}
