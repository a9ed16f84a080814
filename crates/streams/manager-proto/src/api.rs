// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bodies of requests and answers over HTTP (`docs/use/reservations.md`, "The API").

use admission::{LinkBytes, Refusal, StreamRequest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Failure, View};
use crate::record::{Part, PartState};

/// Longest body of a request, bytes.
pub const MOST_BODY_BYTES: usize = 64 * 1024;
/// Longest body of another manager's messages, and of a topology, bytes.
pub const MOST_LONG_BODY_BYTES: usize = 8 << 20;

/// Body of `POST /v1/reservations`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReserveBody {
    /// Id of the request, the talker's choice. The same id again has the same answer.
    pub id: String,
    /// Length of the lease, ns.
    pub lease_ns: u64,
    pub stream: StreamRequest,
    /// Whether it takes the place of the caller's reservation of this id.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replace: bool,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Body of `POST /v1/topology`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopologyBody {
    /// The file of the topology, as text.
    pub topology: String,
    /// Whether what does not fit is ended, and nothing granted from now on that does not fit.
    #[serde(default)]
    pub drain: bool,
}

/// Body of `PUT /v1/reservations/{id}/lease`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseBody {
    /// Length of the lease from now on, ns; absent: as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ns: Option<u64>,
}

/// Body of `PUT /v1/reservations/{id}/in-force/{node}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InForceBody {
    /// Whether the node keeps to the reservation.
    pub in_force: bool,
}

/// Body of `PUT /v1/reservations/{id}/route/{node}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteBody {
    /// Name of the segment that the node sends the stream into.
    pub segment: String,
}

/// A link, as `GET /v1/links` lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkView {
    pub link: String,
    /// Length of its period, ns.
    pub period_ns: u64,
    /// Wire bytes that streams may take in a period.
    pub budget_bytes: u64,
    /// Those that reservations have.
    pub reserved_bytes: u64,
    /// Those that are left.
    pub free_bytes: u64,
}

/// Bytes of own links that a coordinator has, as `GET /v1/parts` lists them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartView {
    /// Name of the manager that granted it, or is about to.
    pub coordinator: String,
    /// Id of the request.
    pub id: String,
    /// Whether it is granted; it is held for a try under way otherwise.
    pub committed: bool,
    /// Name of the stream.
    pub stream_id: String,
    /// Wire bytes in each period, by link.
    pub links: Vec<LinkBytes>,
    /// Time until it is free, ns.
    pub expires_in_ns: u64,
}

impl PartView {
    /// Returns how a part looks at a time of its manager's clock.
    pub fn new(name: &str, part: &Part, now_ns: u64) -> Self {
        let (coordinator, id) = name.split_once('/').unwrap_or_default();
        Self {
            coordinator: coordinator.to_owned(),
            id: id.to_owned(),
            committed: part.state == PartState::Committed,
            stream_id: part.stream_id.to_string(),
            links: part.links.clone(),
            expires_in_ns: part.expires_ns.saturating_sub(now_ns),
        }
    }
}

/// Answer to a request to reserve that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedView {
    /// Id of the request.
    pub id: String,
    pub granted: bool,
    /// Failure code of IEEE 802.1Qcc, table 46-15.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_code: Option<u8>,
    /// The reason in a sentence.
    pub message: String,
    /// The reason, with the numbers.
    #[serde(flatten)]
    pub refusal: Refusal,
}

/// Answer to a request that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorView {
    /// The reason in a sentence.
    pub error: String,
    /// Id of the request, if what became of it is not known here (status 503 or 504).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// URL of the manager that decides instead of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
}

impl ErrorView {
    pub fn new(error: String) -> Self {
        Self {
            error,
            id: None,
            manager: None,
        }
    }
}

/// Answer to `DELETE /v1/reservations/{id}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleasedView {
    /// Id of the reservation.
    pub id: String,
    pub released: bool,
}

/// Reads a body.
///
/// # Errors
/// What is wrong, in a sentence with its line and column.
pub fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    read_within(body, MOST_BODY_BYTES)
}

/// Reads a body of at most so many bytes.
///
/// # Errors
/// What is wrong, in a sentence with its line and column.
pub fn read_within<T: DeserializeOwned>(body: &[u8], most_bytes: usize) -> Result<T, String> {
    if body.len() > most_bytes {
        let length = body.len();
        return Err(format!(
            "the body has {length} bytes, expected at most {most_bytes}"
        ));
    }
    serde_json::from_slice(body).map_err(|error| format!("the body is not valid: {error}"))
}

/// Returns the status and the JSON of an answer to the request of this id.
pub fn render(id: &str, answer: Answer) -> (u16, serde_json::Value) {
    let (status, value) = match answer {
        Answer::Granted(view) => (200, json::<View>(&view)),
        Answer::Misfits(misfits) => (200, json(&misfits)),
        Answer::Released(id) => (200, json(&ReleasedView { id, released: true })),
        Answer::Refused(Refusal::Invalid {
            field,
            value,
            expected,
        }) => {
            let error = format!("`{field}` is {value}, expected {expected}");
            (400, json(&ErrorView::new(error)))
        }
        Answer::Refused(refusal) => {
            let view = RefusedView {
                id: id.to_owned(),
                granted: false,
                failure_code: refusal.failure_code(),
                message: refusal.to_string(),
                refusal,
            };
            (409, json(&view))
        }
        Answer::Failed(failure) => {
            let status = match failure {
                Failure::Lease { .. }
                | Failure::Node(_)
                | Failure::Segment(_)
                | Failure::Listener(_)
                | Failure::Nothing => 400,
                Failure::Forbidden(_)
                | Failure::Role { .. }
                | Failure::Host { .. }
                | Failure::Quota { .. } => 403,
                Failure::Unknown(_) => 404,
                Failure::IdInUse(_) => 409,
                Failure::Ended(_) | Failure::Lost(_) => 410,
                Failure::Elsewhere(_) => 421,
                Failure::Busy | Failure::Later(_) => 503,
                Failure::NoAnswer(_) | Failure::NotInForce(_) => 504,
            };
            let error = failure.to_string();
            let id = (status >= 500 && !id.is_empty()).then(|| id.to_owned());
            (
                status,
                json(&ErrorView {
                    id,
                    ..ErrorView::new(error)
                }),
            )
        }
    };
    (status, value)
}

/// Returns a value as JSON: all of ours have a form.
pub fn json<T: Serialize>(value: &T) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}
