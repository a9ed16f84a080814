// SPDX-License-Identifier: MIT OR Apache-2.0
//! What users and other managers may say: names, counts and sizes. Pure.

use admission::{FrameSpecification, LinkBytes, NAME, Refusal, check_stream, is_name};
use units::ethernet::wire_bytes;
use units::printable::printable;

use crate::message::{Claim, Message};

/// Most requests that wait for other managers at a time.
pub const MOST_PENDING: usize = 1024;
/// Most messages of an envelope, and of a reply.
pub const MOST_MESSAGES: usize = 64;
/// Most claims of what is granted in a page; all that are under way may be beside them.
pub const MOST_GRANTED: usize = 100;
/// Most ended reservations of an owner, and ended tries of a coordinator, that are remembered.
pub const MOST_ENDED: usize = 1024;
/// Longest text that is no name, bytes.
const MOST_TEXT_BYTES: usize = 1024;

fn wrong(field: &str, value: impl ToString, expected: impl ToString) -> Refusal {
    Refusal::Invalid {
        field: field.to_owned(),
        value: value.to_string(),
        expected: expected.to_string(),
    }
}

/// Returns the beginning of a name that somebody gave.
pub fn short(name: &str) -> String {
    name.chars().take(64).collect()
}

/// Checks the id of a request.
pub fn id(id: &str) -> Result<(), Refusal> {
    if is_name(id) {
        return Ok(());
    }
    Err(wrong("id", format!("\"{}\"", printable(&short(id))), NAME))
}

fn count(field: &str, count: usize, most: usize) -> Result<(), Refusal> {
    if count <= most {
        return Ok(());
    }
    Err(wrong(field, count, format!("at most {most}")))
}

/// Checks a text that a talker may be told.
fn text(field: &str, text: &str) -> Result<(), Refusal> {
    count(field, text.len(), MOST_TEXT_BYTES)?;
    if printable(text) == text {
        return Ok(());
    }
    Err(wrong(field, printable(text), "no control characters"))
}

/// Checks what a stream takes of links, at least the shortest frame. That each is there once is for who
/// knows them.
fn bytes(
    stream_id: &str,
    frames: &[FrameSpecification],
    links: &[LinkBytes],
) -> Result<(), Refusal> {
    check_stream(stream_id, frames)?;
    let least = u64::from(wire_bytes(0));
    if links.is_empty() {
        return Err(wrong("links", 0, "one link or more"));
    }
    match links.iter().find(|link| link.bytes < least) {
        Some(link) => Err(wrong("bytes", link.bytes, format!("{least} or more"))),
        None => Ok(()),
    }
}

fn claim(claim: &Claim) -> Result<(), Refusal> {
    id(&claim.id)?;
    let granted = claim.granted.as_ref();
    granted.map_or(Ok(()), |of| bytes(&of.stream_id, &of.frames, &of.links))
}

/// Checks another manager's message.
///
/// # Errors
/// The first name, count or size that no user may have.
pub fn message(of: &Message) -> Result<(), Refusal> {
    match of {
        Message::Hello { .. } | Message::Welcome { .. } | Message::Stale { .. } => Ok(()),
        Message::Hold {
            id: of,
            stream_id,
            frames,
            links,
            ..
        } => id(of).and_then(|()| bytes(stream_id, frames, links)),
        Message::Refused {
            id: of, refusal, ..
        } => id(of).and_then(|()| text("refusal", &refusal.to_string())),
        Message::Later { id: of, why, .. } => id(of).and_then(|()| text("why", why)),
        Message::Held { id: of, .. }
        | Message::Conflict { id: of, .. }
        | Message::Commit { id: of, .. }
        | Message::Committed { id: of, .. }
        | Message::Refresh { id: of, .. }
        | Message::Refreshed { id: of, .. }
        | Message::Gone { id: of, .. }
        | Message::Release { id: of, .. }
        | Message::Released { id: of, .. } => id(of),
        Message::Claim {
            after,
            until,
            claims,
            ..
        } => {
            let ends = [after.as_str(), until.as_deref().unwrap_or_default()];
            ends.into_iter()
                .filter(|end| !end.is_empty())
                .try_for_each(id)?;
            count("claims", claims.len(), MOST_GRANTED + MOST_PENDING)?;
            claims.iter().try_for_each(claim)
        }
        Message::Claimed { lost, .. } => {
            count("lost", lost.len(), MOST_GRANTED)?;
            lost.iter().try_for_each(|(of, _)| id(of))
        }
    }
}

/// Checks the messages of an envelope or a reply.
///
/// # Errors
/// If they are too many, or one of them has a name, count or size that no user may have.
pub fn messages(all: &[Message]) -> Result<(), Refusal> {
    count("messages", all.len(), MOST_MESSAGES)?;
    all.iter().try_for_each(message)
}
