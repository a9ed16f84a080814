// SPDX-License-Identifier: MIT OR Apache-2.0
//! A request over HTTP: who asks, the names in its path, its query and its body; and an answer that is an
//! error.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

use crate::access::{Access, Identity};
use crate::connections::Place;
use crate::engine::{Engine, Refused};
use crate::replaceable::Replaceable;
use manager_proto::answer::{Caller, Failure};
use manager_proto::api::{self, ErrorView, MOST_BODY_BYTES};

/// What every request needs.
#[derive(Clone)]
pub struct App {
    pub engine: Engine,
    /// Who may ask; a request is judged by what is current then.
    pub access: Arc<Replaceable<Access>>,
    /// URLs of the other managers, by name.
    pub peers: Arc<BTreeMap<String, String>>,
}

/// SHA-256 of the certificate that a connection's client has shown, put there by whoever accepts
/// connections.
#[derive(Clone, Copy, Debug)]
pub struct PeerCertificate(pub [u8; 32]);

/// An answer that is an error, in a sentence.
pub(crate) struct Fault(pub StatusCode, pub ErrorView);

impl Fault {
    pub fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self(status, ErrorView::new(error.into()))
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let Self(status, error) = self;
        let mut response = (status, Json(error)).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let scheme = header::HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        let (status, manager) = match &refused {
            Refused::Elsewhere(Some(url)) => (StatusCode::MISDIRECTED_REQUEST, Some(url.clone())),
            _ => (StatusCode::SERVICE_UNAVAILABLE, None),
        };
        Self(
            status,
            ErrorView {
                manager,
                ..ErrorView::new(refused.to_string())
            },
        )
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self(StatusCode::FORBIDDEN, ErrorView::new(failure.to_string()))
    }
}

/// Who asks, from the token or else the certificate.
pub(crate) struct Who(pub Identity);

impl FromRequestParts<App> for Who {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Fault> {
        let unknown = |problem: &str| Fault::new(StatusCode::UNAUTHORIZED, problem);
        let token = match parts.headers.get(header::AUTHORIZATION) {
            None => None,
            Some(value) => {
                let value = value.to_str().ok();
                let token = value.and_then(|value| value.strip_prefix("Bearer "));
                let expected = "`authorization` is not valid, expected \"Bearer TOKEN\"";
                Some(token.ok_or_else(|| unknown(expected))?)
            }
        };
        let certificate = parts.extensions.get::<PeerCertificate>().map(|c| c.0);
        let found = app.access.get().identify(token, certificate);
        let expected = "the token or certificate is not known to this manager";
        let identity = found.ok_or_else(|| unknown(expected))?;
        // From its first accepted request on the connection is somebody's.
        if let Some(place) = parts.extensions.get::<Arc<Place>>() {
            let placed = place.identify(&identity.name);
            placed.map_err(|full| Fault::new(StatusCode::SERVICE_UNAVAILABLE, full.to_string()))?;
        }
        Ok(Self(identity))
    }
}

/// The names in a path.
pub(crate) struct Names<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Names<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Fault> {
        let names = Path::<T>::from_request_parts(parts, state).await;
        let wrong = |problem: PathRejection| {
            let problem = format!("the path is not valid: {}", problem.body_text());
            Fault::new(StatusCode::BAD_REQUEST, problem)
        };
        names.map(|Path(names)| Self(names)).map_err(wrong)
    }
}

impl Who {
    pub fn caller(self) -> Result<Caller, Fault> {
        let forbidden = || {
            let problem = "a manager may not do this, expected a talker or an operator";
            Fault::new(StatusCode::FORBIDDEN, problem)
        };
        self.0.caller().ok_or_else(forbidden)
    }
}

/// Reads a body of JSON of an ordinary length.
pub(crate) fn body<T: DeserializeOwned>(parts: &header::HeaderMap, body: Body) -> Result<T, Fault> {
    read_body(parts, body, MOST_BODY_BYTES)
}

/// Reads a body of JSON.
pub(crate) fn read_body<T: DeserializeOwned>(
    parts: &header::HeaderMap,
    body: Body,
    most_bytes: usize,
) -> Result<T, Fault> {
    let body = body.map_err(|rejection| {
        let problem = format!("the body cannot be read, expected at most {most_bytes} bytes");
        Fault::new(rejection.status(), problem)
    })?;
    let kind = parts
        .get(header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok());
    let is_json = kind.is_some_and(|kind| kind.split(';').next() == Some("application/json"));
    if !is_json {
        let problem = "`content-type` is not valid, expected application/json";
        return Err(Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, problem));
    }
    let read = api::read_within(&body, most_bytes);
    read.map_err(|problem| Fault::new(StatusCode::BAD_REQUEST, problem))
}

/// What a handler returns.
pub(crate) type Answered = Result<Response, Fault>;
/// A body, or why it cannot be read.
pub(crate) type Body = Result<Bytes, BytesRejection>;
/// Headers of a request.
pub(crate) type Headers = header::HeaderMap;

/// What a query says, or why it cannot be read.
pub(crate) type Asked<T> = Result<Query<T>, QueryRejection>;

pub(crate) fn query<T>(asked: Asked<T>) -> Result<T, Fault> {
    let problem = |error: QueryRejection| Fault::new(StatusCode::BAD_REQUEST, error.body_text());
    asked.map(|Query(of)| of).map_err(problem)
}
