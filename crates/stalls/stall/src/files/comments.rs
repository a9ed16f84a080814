// SPDX-License-Identifier: MIT OR Apache-2.0
//! The findings as comments on the packets that show them.
//!
//! A comment begins with words of the form `key=value`, which the Lua post-dissector
//! (`crates/stalls/stall/lua/pspacer.lua`) makes into columns; on the first packet of a stall the
//! explanation and the advice follow.

use std::fmt::Write as _;

use capture::annotate::Comments;
use serde::Serialize;

use crate::Stall;
use crate::captures::CaptureResults;

/// What each comment begins with. Comments of an earlier run are told by it.
const MARK: &str = "pspacer stall=";

/// Returns the comments by the number of their packet.
pub fn comments(found: &CaptureResults) -> Comments {
    let mut comments = Comments {
        mark: MARK,
        ..Comments::default()
    };
    for index in &found.shown {
        let Some(connection) = found.analysis.connections.get(*index) else {
            continue;
        };
        for (place, stall) in connection.stalls.iter().enumerate() {
            let head = head(index + 1, place + 1, stall);
            for (i, packet) in stall.evidence.iter().enumerate() {
                let mut text = head.clone();
                if i == 0 {
                    let _ = write!(text, "\n{}", stall.explanation); // into memory
                    if !stall.advice.is_empty() {
                        let _ = write!(text, "\n→ {}", stall.advice);
                    }
                }
                comments.by_packet.entry(*packet).or_default().push(text);
            }
        }
    }
    comments
}

/// Returns the line that programs read: `pspacer stall=1.2 cause=rto-tail side=network ...`. The
/// stall's number is the connection's, and its own within the connection.
fn head(connection: usize, place: usize, stall: &Stall) -> String {
    let mut text = format!(
        "{MARK}{connection}.{place} cause={} side={} confidence={} kind={} direction={} \
         start_s={:.9} duration_s={:.9}",
        name(&stall.cause),
        name(&stall.side),
        name(&stall.confidence),
        name(&stall.kind),
        name(&stall.direction),
        stall.start_ns as f64 / 1e9,
        stall.duration_ns as f64 / 1e9,
    );
    if let Some(root) = &stall.root {
        let _ = write!(text, " root={}", name(root)); // into memory
    }
    text
}

/// Returns a value's name as in JSON.
fn name<T: Serialize>(value: &T) -> String {
    let name = serde_json::to_value(value).unwrap_or_default();
    name.as_str().unwrap_or_default().to_owned()
}
