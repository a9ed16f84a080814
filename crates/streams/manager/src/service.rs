// SPDX-License-Identifier: MIT OR Apache-2.0
//! The manager over HTTP: who asks, what is asked, and the answer as JSON
//! (`docs/use/reservations.md`, "The API").

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post, put};
use axum::{Json, Router};
use linux_io::clock::boottime_ns;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use units::time::NS_PER_S;

use crate::access::{Access, Role};
use crate::engine::Refused;
use crate::request::{Answered, Asked, Body, Fault, Headers, Names, Who, body, query, read_body};
use crate::stored_view::StoredView;
use manager_proto::answer::{Action, Answer, Command, Failure, View};
use manager_proto::api::{
    ErrorView, InForceBody, LeaseBody, MOST_BODY_BYTES, MOST_LONG_BODY_BYTES, ReserveBody,
    RouteBody, TopologyBody, render,
};
use manager_proto::bounds;
use manager_proto::enforce::NodeDuty;
use manager_proto::message::Envelope;
use manager_proto::record::Measured;

pub use crate::request::{App, PeerCertificate};

/// Most entries of a page of a list.
const MOST_LISTED: usize = 250;
/// Longest wait for a change, ns.
const LONGEST_WAIT_NS: u64 = 15 * NS_PER_S;

/// The description of the API that `GET /openapi.json` returns.
pub const OPENAPI: &str = include_str!("openapi.json");
/// Longest wait for the answer to a command: beyond the protocol's deadline, 20 s for the agents and 3 s
/// for other managers.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(25);

async fn command(app: &App, command: Command) -> Answered {
    command_within(COMMAND_TIMEOUT, app, command).await
}

/// Carries out a command. If its answer is not known, the answer names the id: the caller asks what
/// became of it.
async fn command_within(most: Duration, app: &App, command: Command) -> Answered {
    let id = &command.id.clone();
    let unknown = |status, error| {
        let id = Some(id.to_owned());
        let view = ErrorView {
            id,
            ..ErrorView::new(error)
        };
        (status, Json(view)).into_response()
    };
    let answer = match timeout(most, app.engine.command(command)).await {
        Ok(Ok(answer)) => answer,
        // Nothing was begun here.
        Ok(Err(refused @ Refused::Elsewhere(Some(_)))) => return Err(refused.into()),
        Ok(Err(refused)) => {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Ok(unknown(status, refused.to_string()));
        }
        Err(_) => {
            let problem = "the manager has no answer in time; the request may still take effect";
            return Ok(unknown(StatusCode::GATEWAY_TIMEOUT, problem.to_owned()));
        }
    };
    if let Answer::Failed(Failure::Elsewhere(manager)) = &answer {
        return Err(Refused::Elsewhere(app.peers.get(manager).cloned()).into());
    }
    let (status, json) = render(id, answer);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok((status, Json(json)).into_response())
}

fn shown<T: Serialize>(value: &T) -> Response {
    Json(value).into_response()
}

async fn reserve(State(app): State<App>, who: Who, headers: Headers, bytes: Body) -> Answered {
    let caller = who.caller()?;
    let ReserveBody {
        id,
        lease_ns,
        stream,
        replace,
    } = body(&headers, bytes)?;
    let asked = Command::new(
        &id,
        caller,
        Action::Reserve {
            request: stream,
            lease_ns,
            is_replacing: replace,
        },
    );
    command(&app, asked).await
}

/// Where a page of a list begins.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageQuery {
    /// What comes behind this is listed.
    #[serde(default)]
    after: String,
    #[serde(default = "most_listed")]
    limit: usize,
}

fn most_listed() -> usize {
    MOST_LISTED
}

fn now_ns() -> Result<u64, Fault> {
    boottime_ns().map_err(|error| Fault::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

/// Looks at what is stored, and at the time.
fn look<T>(app: &App, look: impl FnOnce(&StoredView, u64) -> T) -> Result<T, Fault> {
    let now_ns = now_ns()?;
    Ok(app.engine.look(now_ns, |view| look(view, now_ns))?)
}

async fn list(State(app): State<App>, who: Who, asked: Asked<PageQuery>) -> Answered {
    let caller = who.caller()?;
    let PageQuery { after, limit } = query(asked)?;
    let owner = (!caller.is_operator).then_some(caller.name.as_str());
    let limit = limit.min(MOST_LISTED);
    let (found, now_ns) = look(&app, |view, now_ns| {
        (view.page(owner, &after, limit), now_ns)
    })?;
    let views = found.iter().map(|(id, of)| View::new(id, of, now_ns));
    Ok(shown(&views.collect::<Vec<_>>()))
}

async fn one(State(app): State<App>, who: Who, Names(id): Names<String>) -> Answered {
    let caller = who.caller()?;
    let (found, now_ns) = look(&app, |view, now_ns| (view.reservation(&id), now_ns))?;
    let seen = found.filter(|of| caller.is_operator || caller.name == of.owner);
    let unknown = || Fault::new(StatusCode::NOT_FOUND, "no reservation of yours has this id");
    let view = seen.map(|of| View::new(&id, &of, now_ns));
    view.map(|view| shown(&view)).ok_or_else(unknown)
}

async fn parts(State(app): State<App>, who: Who, asked: Asked<PageQuery>) -> Answered {
    who.caller()?.may_operate()?;
    let PageQuery { after, limit } = query(asked)?;
    let limit = limit.min(MOST_LISTED);
    Ok(shown(&look(&app, |view, now_ns| {
        view.parts(&after, limit, now_ns)
    })?))
}

async fn free_part(
    State(app): State<App>,
    who: Who,
    Names((coordinator, id)): Names<(String, String)>,
) -> Answered {
    let asked = Command::new(&id, who.caller()?, Action::FreePart { coordinator });
    command(&app, asked).await
}

async fn topology(State(app): State<App>, who: Who, headers: Headers, bytes: Body) -> Answered {
    let caller = who.caller()?;
    let TopologyBody { topology, drain } = read_body(&headers, bytes, MOST_LONG_BODY_BYTES)?;
    let read = admission::read(&topology);
    let file = read.map_err(|error| Fault::new(StatusCode::BAD_REQUEST, error.to_string()))?;
    let asked = Command::new(
        "",
        caller,
        Action::Fit {
            topology: Arc::new(file.topology),
            is_draining: drain,
        },
    );
    command(&app, asked).await
}

async fn refresh(
    State(app): State<App>,
    who: Who,
    Names(id): Names<String>,
    headers: Headers,
    bytes: Body,
) -> Answered {
    let caller = who.caller()?;
    let LeaseBody { lease_ns } = body(&headers, bytes)?;
    let asked = Command::new(&id, caller, Action::Refresh { lease_ns });
    command(&app, asked).await
}

async fn release(State(app): State<App>, who: Who, Names(id): Names<String>) -> Answered {
    let caller = who.caller()?;
    let asked = Command::new(&id, caller, Action::Release);
    command(&app, asked).await
}

async fn in_force(
    State(app): State<App>,
    who: Who,
    Names((id, node)): Names<(String, String)>,
    headers: Headers,
    bytes: Body,
) -> Answered {
    let caller = who.caller()?;
    let InForceBody { in_force } = body(&headers, bytes)?;
    let asked = Command::new(
        &id,
        caller,
        Action::Report {
            node,
            is_in_force: in_force,
        },
    );
    command(&app, asked).await
}

async fn route(
    State(app): State<App>,
    who: Who,
    Names((id, node)): Names<(String, String)>,
    headers: Headers,
    bytes: Body,
) -> Answered {
    let caller = who.caller()?;
    let RouteBody { segment } = body(&headers, bytes)?;
    let asked = Command::new(&id, caller, Action::Reroute { node, segment });
    command(&app, asked).await
}

async fn measured(
    State(app): State<App>,
    who: Who,
    Names((id, listener)): Names<(String, String)>,
    headers: Headers,
    bytes: Body,
) -> Answered {
    let caller = who.caller()?;
    let measured: Measured = body(&headers, bytes)?;
    let asked = Command::new(&id, caller, Action::Measure { listener, measured });
    command(&app, asked).await
}

async fn links(State(app): State<App>, who: Who) -> Answered {
    who.caller()?;
    Ok(shown(&look(&app, |view, _| view.links())?))
}

/// Which change of a node's duty the caller knows, and how long it waits for the next.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DutyQuery {
    known: Option<u64>,
    #[serde(default)]
    wait_ns: u64,
}

async fn node(
    State(app): State<App>,
    who: Who,
    Names(node): Names<String>,
    asked: Asked<DutyQuery>,
) -> Answered {
    who.caller()?.may_report(&node)?;
    let DutyQuery { known, wait_ns } = query(asked)?;
    let came_ns = now_ns()?;
    let unknown = || Fault::new(StatusCode::NOT_FOUND, "the topology has no such node");
    let changes = look(&app, |view, _| view.changes(&node))?;
    let mut changes = changes.ok_or_else(unknown)?;
    if known == Some(*changes.borrow_and_update()) {
        let wait = Duration::from_nanos(wait_ns.min(LONGEST_WAIT_NS));
        // Without a change, or after one of who decides, the answer is as it is then.
        let _ = timeout(wait, changes.changed()).await;
    }
    let duty = look(&app, |view, now_ns| {
        let waited_ns = now_ns.saturating_sub(came_ns);
        let duty = view.duty(&node, now_ns);
        duty.map(|duty| NodeDuty { waited_ns, ..duty })
    })?;
    duty.map(|duty| shown(&duty)).ok_or_else(unknown)
}

async fn peer(State(app): State<App>, Who(who): Who, headers: Headers, bytes: Body) -> Answered {
    let came_ns = now_ns()?;
    let envelope: Envelope = read_body(&headers, bytes, MOST_LONG_BODY_BYTES)?;
    let from = &envelope.from;
    let is_open = matches!(*app.access.get(), Access::Open);
    let is_it = is_open || (who.role == Role::Manager && who.name == *from);
    if !is_it || !app.peers.contains_key(from) {
        let problem =
            "`from` is not valid, expected the manager that the token or certificate names";
        return Err(Fault::new(StatusCode::FORBIDDEN, problem));
    }
    let checked = bounds::messages(&envelope.messages);
    checked.map_err(|why| Fault::new(StatusCode::BAD_REQUEST, why.to_string()))?;
    Ok(shown(&app.engine.messages(came_ns, envelope).await?))
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
        ("/v1/parts", &["get"], get(parts)),
        (
            "/v1/parts/{coordinator}/{id}",
            &["delete"],
            delete(free_part),
        ),
        (
            "/v1/topology",
            &["post"],
            post(topology).layer(DefaultBodyLimit::max(MOST_LONG_BODY_BYTES)),
        ),
        (
            "/v1/peer",
            &["post"],
            post(peer).layer(DefaultBodyLimit::max(MOST_LONG_BODY_BYTES)),
        ),
        ("/openapi.json", &["get"], get(openapi)),
    ]
}

pub fn router(app: App) -> Router {
    let mut router = Router::new();
    for (path, _, methods) in routes() {
        router = router.route(path, methods);
    }
    let fault = |status, problem: &'static str| async move { Fault::new(status, problem) };
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
    use crate::replaceable::Replaceable;
    use admission::Topology;
    use manager_proto::answer::Caller;
    use manager_proto::api::{self, LinkView};
    use manager_proto::machine::{Limits, Manager, Start};
    use serde_json::Value;
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicU64;

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

    /// Nobody takes the jobs of this manager; then it has ended.
    #[test]
    fn an_answer_that_is_not_known_names_the_id() {
        let (engine, jobs) = crate::engine::queue();
        let start = Start::alone("m", "boot", 1);
        let topology = Arc::new(Topology::new(&[], &[]).unwrap());
        let manager = Manager::restore(&start, topology, Limits::default(), []).unwrap();
        engine.begin(&manager, Arc::new(AtomicU64::new(u64::MAX)));
        let app = App {
            engine,
            access: Arc::new(Replaceable::new(Access::Open)),
            peers: Arc::default(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let ask = || {
            let released = Command::new("x", Caller::operator("a"), Action::Release);
            let most = Duration::from_millis(10);
            runtime.block_on(async {
                let answer = command_within(most, &app, released).await;
                let answer = answer.unwrap_or_else(IntoResponse::into_response);
                let status = answer.status().as_u16();
                let body = axum::body::to_bytes(answer.into_body(), 1000).await;
                let view: ErrorView = serde_json::from_slice(&body.unwrap()).unwrap();
                (status, view.id)
            })
        };
        assert_eq!(ask(), (504, Some("x".to_owned())));
        drop(jobs);
        assert_eq!(ask(), (503, Some("x".to_owned())));
        // Nothing has become of a command that another manager decides over.
        app.engine.stand_by(Some("http://other".to_owned()));
        assert_eq!(ask(), (421, None));
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
                    id: Some(String::new()),
                    manager: Some(String::new()),
                    ..ErrorView::new(String::new())
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
