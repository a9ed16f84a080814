// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong in a file.

/// What is wrong in a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A file is not what its name says.
    #[error("{file}:{line}: {what}")]
    Syntax {
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// A cell of a table.
    #[error("{file}:{line}: column {number}, `{column}`, is \"{value}\", expected {expected}")]
    Cell {
        file: String,
        /// The line, from 1.
        line: u64,
        /// Number of the column, from 1.
        number: usize,
        column: &'static str,
        /// What is there.
        value: String,
        /// What was expected.
        expected: String,
    },
    /// A node of a network.
    #[error("{file}: node {node}: {what}")]
    Node {
        file: String,
        /// Name of the node.
        node: String,
        /// What is wrong.
        what: String,
    },
    /// What was read makes no file of a host.
    #[error("{file}: the host's file would be refused: {what}")]
    Whole {
        file: String,
        /// What is wrong.
        what: String,
    },
}
