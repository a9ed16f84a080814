// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager over HTTP: who asks, what is asked, and the answer as JSON
//! (`docs/use/reservations.md`, "The API").

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post, put};
use axum::{Json, Router};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::access::{Access, Identity, Role};
use crate::answer::{Caller, Command, View};
use crate::api::{
    self, ErrorView, InForceBody, LeaseBody, LinkView, MOST_BODY_BYTES, ReserveBody, RouteBody,
    render,
};
use crate::enforce::node_duty;
use crate::engine::{Engine, Job, Refused};
use crate::machine::Manager;
use crate::message::Envelope;
use crate::record::{Measured, ReservationState};

/// The description of the API that `GET /openapi.json` returns.
pub const OPENAPI: &str = include_str!("openapi.json");

/// What every request needs.
#[derive(Clone)]
pub struct App {
    /// The manager.
    pub engine: Engine,
    /// Who may ask.
    pub access: Arc<Access>,
    /// Names of the other managers.
    pub peers: Arc<Vec<String>>,
}

/// SHA-256 of the certificate that a connection's client has shown, put there by whoever accepts
/// connections.
#[derive(Clone, Copy, Debug)]
pub struct PeerCertificate(pub [u8; 32]);

/// An answer that is an error, in a sentence.
struct Fault(StatusCode, String);

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let Self(status, error) = self;
        let mut response = (status, Json(ErrorView { error })).into_response();
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
        Self(StatusCode::SERVICE_UNAVAILABLE, refused.to_string())
    }
}

/// Who asks, from the token or else the certificate.
struct Who(Identity);

impl FromRequestParts<App> for Who {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Fault> {
        let unknown = |problem: &str| Fault(StatusCode::UNAUTHORIZED, problem.to_owned());
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
        let found = app.access.identify(token, certificate);
        let expected = "the token or certificate is not known to this manager";
        found.map(Self).ok_or_else(|| unknown(expected))
    }
}

impl Who {
    fn caller(self) -> Result<Caller, Fault> {
        let forbidden = || {
            let problem = "a manager may not do this, expected a talker or an operator";
            Fault(StatusCode::FORBIDDEN, problem.to_owned())
        };
        self.0.caller().ok_or_else(forbidden)
    }
}

/// Reads a body of JSON.
fn body<T: DeserializeOwned>(
    parts: &header::HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<T, Fault> {
    let body = body.map_err(|rejection| {
        let problem = format!("the body cannot be read, expected at most {MOST_BODY_BYTES} bytes");
        Fault(rejection.status(), problem)
    })?;
    let kind = parts
        .get(header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok());
    let is_json = kind.is_some_and(|kind| kind.split(';').next() == Some("application/json"));
    if !is_json {
        let problem = "`content-type` is not valid, expected application/json";
        return Err(Fault(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            problem.to_owned(),
        ));
    }
    api::read(&body).map_err(|problem| Fault(StatusCode::BAD_REQUEST, problem))
}

type Answered = Result<Response, Fault>;
type Body = Result<Bytes, BytesRejection>;
type Headers = header::HeaderMap;

async fn command(app: &App, id: &str, command: Command) -> Answered {
    let answer = app.engine.command(command).await?;
    let (status, json) = render(id, answer);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok((status, Json(json)).into_response())
}

fn shown<T: Serialize>(value: &T) -> Response {
    Json(api::json(value)).into_response()
}

async fn reserve(State(app): State<App>, who: Who, headers: Headers, bytes: Body) -> Answered {
    let caller = who.caller()?;
    let ReserveBody {
        id,
        lease_ns,
        stream,
    } = body(&headers, bytes)?;
    let asked = Command::Reserve {
        id: id.clone(),
        caller,
        request: stream,
        lease_ns,
    };
    command(&app, &id, asked).await
}

/// Returns whether a caller may see a reservation.
fn sees(caller: &Caller, owner: &str) -> bool {
    caller.is_operator || caller.name == owner
}

async fn list(State(app): State<App>, who: Who) -> Answered {
    let caller = who.caller()?;
    let look = move |manager: &Manager| {
        let all = manager.reservations().iter();
        let granted = all.filter(|(_, of)| of.state == ReservationState::Granted);
        let seen = granted.filter(|(_, of)| sees(&caller, &of.owner));
        let now_ns = manager.now_ns();
        seen.map(|(id, of)| View::new(id, of, now_ns))
            .collect::<Vec<_>>()
    };
    Ok(shown(&app.engine.query(look).await?))
}

async fn one(State(app): State<App>, who: Who, Path(id): Path<String>) -> Answered {
    let caller = who.caller()?;
    let look = move |manager: &Manager| {
        let of = manager.reservations().get(&id)?;
        sees(&caller, &of.owner).then(|| View::new(&id, of, manager.now_ns()))
    };
    let view = app.engine.query(look).await?;
    let unknown = || {
        let problem = "no reservation of yours has this id";
        Fault(StatusCode::NOT_FOUND, problem.to_owned())
    };
    view.map(|view| shown(&view)).ok_or_else(unknown)
}

async fn refresh(
    State(app): State<App>,
    who: Who,
    Path(id): Path<String>,
    headers: Headers,
    bytes: Body,
) -> Answered {
    let caller = who.caller()?;
    let LeaseBody { lease_ns } = body(&headers, bytes)?;
    let asked = Command::Refresh {
        id: id.clone(),
        caller,
        lease_ns,
    };
    command(&app, &id, asked).await
}

async fn release(State(app): State<App>, who: Who, Path(id): Path<String>) -> Answered {
    let caller = who.caller()?;
    let asked = Command::Release {
        id: id.clone(),
        caller,
    };
    command(&app, &id, asked).await
}

async fn in_force(
    State(app): State<App>,
    who: Who,
    Path((id, node)): Path<(String, String)>,
    headers: Headers,
    bytes: Body,
) -> Answered {
    let caller = who.caller()?;
    let InForceBody { in_force } = body(&headers, bytes)?;
    let asked = Command::Report {
        id: id.clone(),
        caller,
        node,
        is_in_force: in_force,
    };
    command(&app, &id, asked).await
}

async fn route(
    State(app): State<App>,
    who: Who,
    Path((id, node)): Path<(String, String)>,
    headers: Headers,
    bytes: Body,
) -> Answered {
    let caller = who.caller()?;
    let RouteBody { segment } = body(&headers, bytes)?;
    let asked = Command::Reroute {
        id: id.clone(),
        caller,
        node,
        segment,
    };
    command(&app, &id, asked).await
}

async fn measured(
    State(app): State<App>,
    who: Who,
    Path((id, listener)): Path<(String, String)>,
    headers: Headers,
    bytes: Body,
) -> Answered {
    let caller = who.caller()?;
    let measured: Measured = body(&headers, bytes)?;
    let asked = Command::Measure {
        id: id.clone(),
        caller,
        listener,
        measured,
    };
    command(&app, &id, asked).await
}

async fn links(State(app): State<App>, who: Who) -> Answered {
    who.caller()?;
    let look = |manager: &Manager| {
        let topology = manager.topology();
        let parts = manager.parts();
        let view = |id: admission::LinkId| {
            let link = topology.link(id);
            LinkView {
                link: link.name.clone(),
                period_ns: topology.segment(link.segment).spec.period_ns,
                budget_bytes: link.budget_bytes,
                reserved_bytes: parts.ledger().reserved_bytes(id),
                free_bytes: parts.ledger().free_bytes(topology, id),
            }
        };
        let own = (0..topology.links().len()).map(admission::LinkId);
        own.filter(|id| parts.is_own(*id))
            .map(view)
            .collect::<Vec<_>>()
    };
    Ok(shown(&app.engine.query(look).await?))
}

async fn node(State(app): State<App>, who: Who, Path(node): Path<String>) -> Answered {
    let caller = who.caller()?;
    if !caller.is_operator {
        let problem = "a talker may not do this, expected an operator";
        return Err(Fault(StatusCode::FORBIDDEN, problem.to_owned()));
    }
    let duty = app
        .engine
        .query(move |manager: &Manager| node_duty(manager, &node));
    let unknown = || {
        let problem = "the topology has no such node";
        Fault(StatusCode::NOT_FOUND, problem.to_owned())
    };
    duty.await?.map(|duty| shown(&duty)).ok_or_else(unknown)
}

async fn peer(State(app): State<App>, Who(who): Who, headers: Headers, bytes: Body) -> Answered {
    let Envelope { from, message } = body(&headers, bytes)?;
    let is_open = matches!(*app.access, Access::Open);
    let is_it = is_open || (who.role == Role::Manager && who.name == from);
    if !is_it || !app.peers.contains(&from) {
        let problem =
            "`from` is not valid, expected the manager that the token or certificate names";
        return Err(Fault(StatusCode::FORBIDDEN, problem.to_owned()));
    }
    app.engine.submit(Job::Message { from, message })?;
    Ok(StatusCode::ACCEPTED.into_response())
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// Returns every path with its methods and their handlers.
fn routes() -> Vec<(&'static str, &'static [&'static str], MethodRouter<App>)> {
    vec![
        (
            "/v1/reservations",
            &["get", "post"],
            get(list).post(reserve),
        ),
        (
            "/v1/reservations/{id}",
            &["get", "delete"],
            delete(release).get(one),
        ),
        ("/v1/reservations/{id}/lease", &["put"], put(refresh)),
        (
            "/v1/reservations/{id}/in-force/{node}",
            &["put"],
            put(in_force),
        ),
        ("/v1/reservations/{id}/route/{node}", &["put"], put(route)),
        (
            "/v1/reservations/{id}/measured/{listener}",
            &["put"],
            put(measured),
        ),
        ("/v1/links", &["get"], get(links)),
        ("/v1/nodes/{node}", &["get"], get(node)),
        ("/v1/peer", &["post"], post(peer)),
        ("/openapi.json", &["get"], get(openapi)),
    ]
}

/// Returns the service.
pub fn router(app: App) -> Router {
    let mut router = Router::new();
    for (path, _, methods) in routes() {
        router = router.route(path, methods);
    }
    let fault = |status, problem: &'static str| async move { Fault(status, problem.to_owned()) };
    router
        .fallback(move || {
            fault(
                StatusCode::NOT_FOUND,
                "no such path, expected one of /openapi.json",
            )
        })
        .method_not_allowed_fallback(move || {
            fault(
                StatusCode::METHOD_NOT_ALLOWED,
                "the path has no such method, expected one of /openapi.json",
            )
        })
        .layer(DefaultBodyLimit::max(MOST_BODY_BYTES))
        .with_state(app)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeMap;

    /// The description has every route and every method, and no others.
    #[test]
    fn the_description_has_every_route() {
        let described: Value = serde_json::from_str(OPENAPI).unwrap();
        let paths = described["paths"].as_object().unwrap();
        let of = |path: &str| -> Vec<String> {
            let methods = paths.get(path).and_then(Value::as_object);
            let mut names: Vec<_> = methods
                .into_iter()
                .flatten()
                .map(|(m, _)| m.clone())
                .collect();
            names.retain(|name| name != "parameters");
            names.sort();
            names
        };
        let routes = routes();
        assert_eq!(paths.len(), routes.len());
        for (path, methods, _) in &routes {
            let mut methods: Vec<_> = methods.iter().map(|m| (*m).to_owned()).collect();
            methods.sort();
            assert_eq!(of(path), methods, "{path}");
        }
    }

    /// Every reference of the description leads somewhere, and the schemas of what we send have the
    /// fields that we send.
    #[test]
    fn the_description_has_every_field() {
        let described: Value = serde_json::from_str(OPENAPI).unwrap();
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(fields) => {
                    if let Some(Value::String(to)) = fields.get("$ref") {
                        found.push(to.clone());
                    }
                    fields.values().for_each(|v| references(v, found));
                }
                Value::Array(all) => all.iter().for_each(|v| references(v, found)),
                _ => {}
            }
        }
        let mut found = vec![];
        references(&described, &mut found);
        assert!(found.len() > 10);
        for to in found {
            let pointer = to.trim_start_matches('#');
            assert!(described.pointer(pointer).is_some(), "{to}");
        }
        let link = LinkView {
            link: String::new(),
            period_ns: 1,
            budget_bytes: 1,
            reserved_bytes: 1,
            free_bytes: 1,
        };
        let view = View {
            id: String::new(),
            granted: true,
            stream_id: String::new(),
            owner: String::new(),
            bound_ns: 1,
            lease_ns: 1,
            expires_in_ns: 1,
            in_force: true,
            not_in_force: vec![],
            spread_periods: 1,
            listeners: vec![],
            links: vec![],
            measured: BTreeMap::new(),
        };
        for (name, value) in [
            ("Link", api::json(&link)),
            ("Reservation", api::json(&view)),
            (
                "Measured",
                api::json(&Measured {
                    worst_delay_ns: 1,
                    packets: 1,
                    lost_packets: 0,
                }),
            ),
            (
                "Error",
                api::json(&ErrorView {
                    error: String::new(),
                }),
            ),
        ] {
            let schema = &described["components"]["schemas"][name]["properties"];
            let mut expected: Vec<_> = schema.as_object().unwrap().keys().collect();
            let mut sent: Vec<_> = value.as_object().unwrap().keys().collect();
            expected.sort();
            sent.sort();
            assert_eq!(sent, expected, "{name}");
        }
    }
}
