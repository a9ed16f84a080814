// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds where a connection was captured: from what its packets say of themselves, and from how
//! long each end takes to answer what passed the capture.

use std::borrow::Cow;

use crate::analysis::{Place, Vantage};
use crate::cause::Confidence;
use crate::connection::Connection;
use crate::flow::Flow;
pub(crate) use units::terse::ms;

/// Share of the whole round trip, in percent, up to which an end is where the capture is.
const NEAR_PERCENT: u64 = 5;
/// Share, in percent, up to which an end may be where the capture is.
const PERHAPS_PERCENT: u64 = 15;
/// A whole round trip shorter than this, in ns, is due to the hosts, not to distance: it tells
/// nothing of the place.
const LOCAL_NS: u64 = 150_000;

/// Where the capture was made, as seen from one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Sender,
    Receiver,
    Middle,
    Unknown,
}

impl View {
    /// Returns the view of the client's data, or of the server's.
    pub(crate) fn of(place: Place, from_client: bool) -> Self {
        match (place, from_client) {
            (Place::Client, true) | (Place::Server, false) => Self::Sender,
            (Place::Client, false) | (Place::Server, true) => Self::Receiver,
            (Place::Middle, _) => Self::Middle,
            (Place::Unknown, _) => Self::Unknown,
        }
    }
}

/// Returns the shortest time in which an end answers: as receiver of the other end's data, and
/// as sender.
fn answer_ns(own: &Flow, other: &Flow) -> Option<u64> {
    match (other.trips.receiver_rtt_ns(), own.trips.sender_rtt_ns()) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Finds the place of the capture. `client` is the index of the client's end.
pub(crate) fn find(connection: &Connection, client: usize) -> Vantage {
    let (own, other) = (&connection.flows[client], &connection.flows[1 - client]);
    let client_rtt_ns = answer_ns(own, other);
    let server_rtt_ns = answer_ns(other, own);
    let (place, confidence, reason) = by_way(connection, client)
        .or_else(|| by_delay(client_rtt_ns, server_rtt_ns))
        .or_else(|| by_hops(connection, client))
        .unwrap_or_else(|| {
            let reason = "neither round trips nor hop limits tell the two ends apart";
            (Place::Unknown, Confidence::Low, reason.into())
        });
    Vantage {
        place,
        confidence,
        reason,
        server_rtt_ns,
        client_rtt_ns,
    }
}

type PlaceEstimate = (Place, Confidence, Cow<'static, str>);

/// Finds the place where the capture file says which packets its host sent.
fn by_way(connection: &Connection, client: usize) -> Option<PlaceEstimate> {
    let sent_by = |end: usize| connection.out[end] > 0 && connection.into[end] == 0;
    let place = match (sent_by(client), sent_by(1 - client)) {
        (true, false) => Place::Client,
        (false, true) => Place::Server,
        _ => return None,
    };
    let reason = format!(
        "the file marks the {}'s packets as sent by the capturing host",
        if place == Place::Client {
            "client"
        } else {
            "server"
        }
    );
    Some((place, Confidence::High, reason.into()))
}

fn by_delay(client: Option<u64>, server: Option<u64>) -> Option<PlaceEstimate> {
    let (client, server) = (client?, server?);
    let whole = client + server;
    if whole < LOCAL_NS {
        return None;
    }
    let percent = |part: u64| part.saturating_mul(100) / whole;
    let near = |place, name: &str, part: u64| {
        let confidence = if percent(part) <= NEAR_PERCENT {
            Confidence::High
        } else {
            Confidence::Medium
        };
        let reason = format!(
            "the {name} answers within {} of a round trip of {}",
            ms(part),
            ms(whole)
        );
        Some((place, confidence, reason.into()))
    };
    if percent(client) <= PERHAPS_PERCENT {
        return near(Place::Client, "client", client);
    }
    if percent(server) <= PERHAPS_PERCENT {
        return near(Place::Server, "server", server);
    }
    let reason = format!(
        "the client answers after {}, the server after {}",
        ms(client),
        ms(server)
    );
    Some((Place::Middle, Confidence::High, reason.into()))
}

/// Finds the place by hop limits: hosts send with 64, 128 or 255, and each router takes one
/// away.
fn by_hops(connection: &Connection, client: usize) -> Option<PlaceEstimate> {
    let whole = |end: usize| connection.whole_hops[end] > 0 && connection.cut_hops[end] == 0;
    let cut = |end: usize| connection.cut_hops[end] > 0 && connection.whole_hops[end] == 0;
    let server = 1 - client;
    let (place, name) = if whole(client) && cut(server) {
        (Place::Client, "client")
    } else if whole(server) && cut(client) {
        (Place::Server, "server")
    } else {
        return None;
    };
    let reason = format!("no router lies between the {name} and the capture");
    Some((place, Confidence::Medium, reason.into()))
}
