// SPDX-License-Identifier: MIT OR Apache-2.0
//! Phrases that describe a connection and a stall, for the page and the terminal.

use capture::process::Process;
use units::display::count;
use units::terse::{ms, size};

use crate::{Connection, Place, Stall};

/// Most packet numbers that are named for a stall.
const MOST_EVIDENCE: usize = 8;

/// Returns the name of a cause, side, confidence or place: as in JSON, with spaces instead of
/// dashes and abbreviations in capitals.
pub fn words<T: serde::Serialize>(value: &T) -> String {
    let name = serde_json::to_value(value).unwrap_or_default();
    let spaced = name.as_str().unwrap_or_default().replace('-', " ");
    let word = |w: &str| match w {
        "ack" | "pmtu" | "rto" => w.to_uppercase(),
        other => other.to_owned(),
    };
    spaced.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Says when the connection took place, how much data it carried, and where it was captured.
pub fn facts(c: &Connection) -> String {
    let directions = c.flows.iter().zip(["to the server", "to the client"]);
    let data: Vec<_> = directions
        .filter(|(f, _)| f.data_packets > 0)
        .map(|(f, direction)| {
            let retransmitted = match f.retransmissions.total() {
                0 => String::new(),
                1 => " (1 segment retransmitted)".to_owned(),
                n => format!(" ({} segments retransmitted)", count(n)),
            };
            format!("{} {direction}{retransmitted}", size(f.bytes))
        })
        .collect();
    let place = match c.vantage.place {
        Place::Unknown => "where it was captured is not known".to_owned(),
        Place::Middle => "captured between them".to_owned(),
        place => format!("captured at the {}", words(&place)),
    };
    let data = match data.as_slice() {
        [] => "no data".to_owned(),
        some => some.join(", "),
    };
    format!(
        "from {} for {}; {data}; {place}",
        ms(c.start_ns),
        ms(c.duration_ns),
    )
}

/// Names a process, with its container and pod.
pub fn process(process: &Process) -> String {
    let command = match process.command.as_str() {
        "" => "an unknown program",
        command => command,
    };
    let mut text = format!("process {command}");
    if let Some(pid) = process.pid {
        text += &format!(" (pid {pid})");
    }
    let short: String = process.container_id.chars().take(12).collect();
    match (process.container.as_str(), short.as_str()) {
        ("", "") => {}
        ("", id) => text += &format!(", container {id}"),
        (name, "") => text += &format!(", container {name}"),
        (name, id) => text += &format!(", container {name} ({id})"),
    }
    match (process.pod_namespace.as_str(), process.pod.as_str()) {
        (_, "") => {}
        ("", pod) => text += &format!(", pod {pod}"),
        (namespace, pod) => text += &format!(", pod {namespace}/{pod}"),
    }
    text
}

/// Returns the cause, and the root cause behind it if there is one.
pub fn cause(s: &Stall) -> String {
    match &s.root {
        Some(root) => format!("{}, behind it {}", words(&s.cause), words(root)),
        None => words(&s.cause),
    }
}

/// Says in words whose side caused the stall.
pub fn side(side: crate::Side) -> &'static str {
    match side {
        crate::Side::Sender => "the sender's side",
        crate::Side::Receiver => "the receiver's side",
        crate::Side::Network => "the network's side",
        crate::Side::Unknown => "whose side is not to be seen",
    }
}

/// Lists the first [`MOST_EVIDENCE`] packet numbers, and counts the rest.
pub fn evidence(packets: &[u64]) -> String {
    let named: Vec<_> = packets
        .iter()
        .take(MOST_EVIDENCE)
        .map(u64::to_string)
        .collect();
    let more = packets.len() - named.len();
    match more {
        0 => named.join(", "),
        n => format!("{} and {n} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_a_stall() {
        assert_eq!(evidence(&[1, 2]), "1, 2");
        assert_eq!(
            evidence(&(1..=10).collect::<Vec<_>>()),
            "1, 2, 3, 4, 5, 6, 7, 8 and 2 more"
        );
    }
}
