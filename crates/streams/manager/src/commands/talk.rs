// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer reserve`, `reservations` and `release`: ask a manager.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use admission::{
    FrameSpecification, Interval, Listener, Requirements, StreamRequest, Talker,
    TrafficSpecification,
};
use anyhow::{Result, anyhow};
use clap::Args;
use draw::table::{Column, Table, Value};
use draw::terminal::{Style, table};
use units::display::count;

use super::outcome::{
    CONNECTION, OUTPUT, Outcome, REFUSED, RUN, STREAM, Usage, random, some_time, time,
};
use super::serve::read_word;
use crate::reload::read;
use manager_proto::answer::View;
use manager_proto::api::{LinkView, PartView, RefusedView, ReserveBody};
use manager_proto::client::{Client, ClientError, Reserved, Tls};
use manager_proto::quota;

/// Variable with the token, which no list of processes shows.
const TOKEN: &str = "PSPACER_TOKEN";
/// Times that a request without an answer is sent. The manager knows it by its id.
const TRIES: u32 = 3;
/// Longest time for which a manager is asked again that cannot say yet: one that has just started, or is
/// about to be elected.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two such questions.
const PAUSE: Duration = Duration::from_millis(200);
/// Status of an answer that says so.
const NOT_NOW: u16 = 503;

/// With whom to talk, and how.
#[derive(Debug, Args)]
pub struct Connection {
    /// The manager's URL; the token is in the environment, PSPACER_TOKEN, or in --token-file
    #[arg(long, value_name = "URL", help_heading = CONNECTION, default_value = "http://127.0.0.1:8646")]
    pub manager: String,
    /// How to show who asks, and whom to trust
    #[command(flatten)]
    pub credentials: Credentials,
}

/// Who asks, and whom it trusts.
#[derive(Debug, Args)]
pub struct Credentials {
    /// A file with the token
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    pub token_file: Option<PathBuf>,
    /// TLS: the authority of the manager's certificate, PEM [default: those that the web trusts]
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    pub ca: Option<PathBuf>,
    /// TLS: a certificate instead of a token, PEM
    #[arg(long, value_name = "FILE", help_heading = CONNECTION, requires = "key")]
    pub cert: Option<PathBuf>,
    /// TLS: its key, PEM
    #[arg(long, value_name = "FILE", help_heading = CONNECTION, requires = "cert")]
    pub key: Option<PathBuf>,
}

/// The managers whose reservations are shown.
#[derive(Debug, Args)]
pub struct Managers {
    /// Show the reservations of these managers, too: URLs with commas, and of those that stand by for each
    /// other one. A talker's token shows its own, an operator's
    /// all; it is in the environment, PSPACER_TOKEN, or in --token-file
    #[arg(long = "manager", value_name = "URL,...", help_heading = CONNECTION, value_delimiter = ',')]
    pub managers: Vec<String>,
    /// Who asks, and whom to trust
    #[command(flatten)]
    pub credentials: Credentials,
}

impl Managers {
    /// Returns a client of each manager, with its URL; none if none was named.
    ///
    /// # Errors
    /// When a file cannot be read, or a manager was named twice.
    pub fn clients(&self) -> Result<Vec<(String, Client)>> {
        for (n, url) in self.managers.iter().enumerate() {
            if self.managers.iter().take(n).any(|other| other == url) {
                let problem = format!("--manager {url}: expected each manager once");
                return Err(anyhow!(Usage(problem)));
            }
        }
        let all = self.managers.iter();
        all.map(|url| Ok((url.clone(), self.credentials.client(url)?)))
            .collect()
    }
}

impl Connection {
    /// Returns a client of the manager.
    pub fn client(&self) -> Result<Client> {
        self.credentials.client(&self.manager)
    }
}

/// Arguments of `pspacer reserve`.
#[derive(Debug, Args)]
pub struct ReserveArgs {
    /// Whom to ask
    #[command(flatten)]
    pub connection: Connection,
    /// The host that sends
    #[arg(long, value_name = "HOST", help_heading = STREAM)]
    pub from: String,
    /// The host that receives; several with commas
    #[arg(long, value_name = "HOST,...", help_heading = STREAM, required = true, value_delimiter = ',')]
    pub to: Vec<String>,
    /// UDP payload in each period of the stream, bytes, in datagrams that fill the MTU
    #[arg(long, value_name = "N", help_heading = STREAM, value_parser = payload_bytes)]
    pub bytes: u32,
    /// Period of the stream
    #[arg(long, value_name = "TIME", help_heading = STREAM, value_parser = interval, default_value = "10ms")]
    pub period: Interval,
    /// Longest delay that is of use [default: any]
    #[arg(long, value_name = "TIME", help_heading = STREAM, value_parser = some_time)]
    pub latency: Option<u64>,
    /// How long it is needed, from the grant on: 30s, 10m or 2h. `pspacer renew` makes it longer; the same
    /// request again does not
    #[arg(long = "for", value_name = "TIME", help_heading = STREAM, value_parser = lease)]
    pub lease: u64,
    /// Names from the sender to the receiver, with commas [default: the shortest route]
    #[arg(long, value_name = "NAME,...", help_heading = STREAM, value_delimiter = ',')]
    pub route: Vec<String>,
    /// Which frames are the stream's: UDP to this address and port; several with commas. The agents
    /// of the nodes need it
    #[arg(long, value_name = "ADDRESS:PORT,...", help_heading = STREAM, value_delimiter = ',')]
    pub udp_to: Vec<SocketAddr>,
    /// Name of the stream in the network [default: the id]
    #[arg(long, value_name = "NAME", help_heading = STREAM)]
    pub stream_id: Option<String>,
    /// Id of the request: the same id again has the same answer [default: a random one]
    #[arg(long, value_name = "ID", help_heading = STREAM)]
    pub id: Option<String>,
    /// Take the place of your reservation of this id, which may have another stream or route. Where it
    /// does not fit it stays as it is, unless another manager refuses it
    #[arg(long, help_heading = STREAM, requires = "id")]
    pub replace: bool,
    /// One JSON object on standard output, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

/// Arguments of `pspacer reservations`.
#[derive(Debug, Args)]
pub struct ReservationsArgs {
    /// Whom to ask
    #[command(flatten)]
    pub connection: Connection,
    /// The links instead, with what is reserved and free of each
    #[arg(long, help_heading = OUTPUT)]
    pub links: bool,
    /// What coordinators have of this manager's links instead: bytes that a manager has granted, or holds
    /// while it decides. An operator may ask for it
    #[arg(long, help_heading = OUTPUT, conflicts_with = "links")]
    pub parts: bool,
    /// One JSON array on standard output, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

/// Arguments of `pspacer renew`.
#[derive(Debug, Args)]
pub struct RenewArgs {
    /// Whom to ask
    #[command(flatten)]
    pub connection: Connection,
    /// The reservation
    pub id: String,
    /// How long it is needed, from now on: 30s, 10m or 2h [default: the length of its last lease]
    #[arg(long = "for", value_name = "TIME", help_heading = STREAM, value_parser = lease)]
    pub lease: Option<u64>,
    /// One JSON object on standard output, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

/// Arguments of `pspacer release`.
#[derive(Debug, Args)]
pub struct ReleaseArgs {
    /// Whom to ask
    #[command(flatten)]
    pub connection: Connection,
    /// The reservation
    pub id: String,
    /// Free only what this manager's links give to the reservation, which the manager COORDINATOR granted.
    /// The coordinator hears of it when it refreshes the lease; then the reservation ends. For an operator,
    /// and for a coordinator that is gone: `reservations --parts` shows both names
    #[arg(long, value_name = "COORDINATOR", help_heading = RUN)]
    pub part: Option<String>,
    /// One JSON object on standard output, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

fn interval(text: &str) -> Result<Interval, String> {
    let known = units::parse::time_ns(text).filter(|ns| *ns > 0);
    let known = known.and_then(Interval::from_ns);
    known.ok_or_else(|| "expected a time above 0 and below 4.29s, such as 10ms".to_owned())
}

/// Parses a length of time in seconds, minutes or hours, ns.
/// Parses bytes in a period: a plain number, or a size.
fn payload_bytes(text: &str) -> Result<u32, String> {
    let size = || units::parse::size_bytes(text)?.try_into().ok();
    let bytes = text.parse().ok().or_else(size);
    bytes.ok_or_else(|| format!("expected a number of bytes, or {}", units::parse::SIZE))
}

fn lease(text: &str) -> Result<u64, String> {
    quota::lease_ns(text).ok_or_else(|| format!("expected {}", quota::LEASE))
}

impl Credentials {
    /// Returns a client of the manager at a URL.
    pub fn client(&self, url: &str) -> Result<Client> {
        let token = match &self.token_file {
            Some(path) => Some(read_word(path)?),
            None => std::env::var(TOKEN).ok().filter(|token| !token.is_empty()),
        };
        let identity = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
            _ => None,
        };
        let tls = Tls {
            ca: self.ca.as_deref().map(read).transpose()?,
            identity,
        };
        Ok(Client::new(url, token, &tls)?)
    }
}

/// Returns an id that nobody else chooses.
fn random_id() -> Result<String> {
    let bytes: [u8; 16] = random()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns a value as the text that `--json` prints.
pub fn json(value: &impl serde::Serialize, status: u8) -> Result<Outcome> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(Outcome { text, status })
}

/// Asks for a reservation.
///
/// # Errors
/// When the manager cannot be reached, or refuses what it was asked for another reason than that
/// the stream does not fit.
pub fn reserve(args: &ReserveArgs) -> Result<Outcome> {
    let client = args.connection.client()?;
    let id = args.id.clone().map_or_else(random_id, Ok)?;
    let listener = |name: &String| Listener {
        name: name.clone(),
        user_to_network_requirements: Requirements::default(),
        route: args.route.clone(),
    };
    let stream = StreamRequest {
        stream_id: args.stream_id.clone().unwrap_or_else(|| id.clone()),
        talker: Talker {
            name: args.from.clone(),
            data_frame_specification: args
                .udp_to
                .iter()
                .copied()
                .map(FrameSpecification::udp_to)
                .collect(),
            traffic_specification: TrafficSpecification {
                interval: args.period,
                max_frames_per_interval: None,
                max_frame_size: None,
                bytes_per_interval: Some(args.bytes),
            },
            user_to_network_requirements: Requirements {
                max_latency: args.latency.unwrap_or(0),
            },
        },
        listeners: args.to.iter().map(listener).collect(),
    };
    let body = ReserveBody {
        id,
        lease_ns: args.lease,
        stream,
        replace: args.replace,
    };
    let mut tries = 1;
    let since = Instant::now();
    let answer = loop {
        match client.reserve(&body) {
            Err(ClientError::Transport { .. }) if tries < TRIES => tries += 1,
            Err(ClientError::Refused {
                status: NOT_NOW, ..
            }) if since.elapsed() < PATIENCE => sleep(PAUSE),
            answer => break answer,
        }
    };
    match answer {
        Ok(Reserved::Granted(view)) if args.json => json(&view, 0),
        Ok(Reserved::Granted(view)) => Ok(Outcome {
            text: granted(&view),
            status: 0,
        }),
        Ok(Reserved::Refused(view)) if args.json => json(&view, REFUSED),
        Ok(Reserved::Refused(view)) => Ok(Outcome {
            text: refused(&view),
            status: REFUSED,
        }),
        Err(error) => failed(error),
    }
}

/// Returns the outcome of a request that is not valid; other errors are passed on.
pub fn failed(error: ClientError) -> Result<Outcome> {
    match error {
        ClientError::Refused {
            status: 400,
            message,
        } => Err(anyhow!(Usage(message))),
        error => Err(error.into()),
    }
}

fn granted(view: &View) -> String {
    let mut text = format!("granted {}: at most {}", view.id, time(view.bound_ns));
    for listener in &view.listeners {
        let delay = time(listener.bound_ns);
        text += &format!(
            "\n  {} within {delay}: {}",
            listener.name,
            listener.route.join(" ")
        );
    }
    for link in &view.links {
        text += &format!(
            "\n  {} bytes of each period of {}",
            count(link.bytes),
            link.link
        );
    }
    if view.spread_periods > 1 {
        text += &format!(
            "\n  each interval spread over {} periods",
            view.spread_periods
        );
    }
    text += &format!("\n  for {}", time(view.expires_in_ns));
    if !view.in_force {
        text += &format!("; not in force yet at {}", view.not_in_force.join(", "));
    }
    text + "\n"
}

fn refused(view: &RefusedView) -> String {
    format!("refused {}: {}\n", view.id, view.message)
}

/// Returns a column of a table.
fn column(title: &str, unit: &str) -> Column {
    Column {
        title: title.to_owned(),
        unit: unit.to_owned(),
        is_text: unit.is_empty(),
    }
}

/// Lists reservations, links or parts.
pub fn reservations(args: &ReservationsArgs, style: Style) -> Result<Outcome> {
    let client = args.connection.client()?;
    let shown = if args.links {
        let links = client.links()?;
        if args.json {
            return json(&links, 0);
        }
        table_of_links(&links)
    } else if args.parts {
        let parts = client.parts()?;
        if args.json {
            return json(&parts, 0);
        }
        table_of_parts(&parts)
    } else {
        let views = client.reservations()?;
        if args.json {
            return json(&views, 0);
        }
        table_of_reservations(&views)
    };
    let text = table(&shown, style);
    Ok(Outcome { text, status: 0 })
}

fn table_of_links(links: &[LinkView]) -> Table {
    let row = |link: &LinkView| {
        let period_ms = link.period_ns as f64 / units::time::NS_PER_MS as f64;
        let row = [
            link.link.clone(),
            units::display::short(period_ms, 3),
            count(link.budget_bytes),
            count(link.reserved_bytes),
            count(link.free_bytes),
        ];
        row.into_iter().map(Value::from).collect()
    };
    Table {
        columns: vec![
            column("link", ""),
            column("period", "ms"),
            column("budget", "bytes"),
            column("reserved", "bytes"),
            column("free", "bytes"),
        ],
        rows: links.iter().map(row).collect(),
    }
}

/// Returns a row for each link of each part.
fn table_of_parts(parts: &[PartView]) -> Table {
    let rows = parts.iter().flat_map(|part| {
        part.links.iter().map(|link| {
            let state = if part.committed { "granted" } else { "held" };
            let row = [
                part.coordinator.clone(),
                part.id.clone(),
                state.to_owned(),
                link.link.to_string(),
                count(link.bytes),
                count(part.expires_in_ns / units::time::NS_PER_S),
            ];
            row.into_iter().map(Value::from).collect()
        })
    });
    Table {
        columns: vec![
            column("coordinator", ""),
            column("reservation", ""),
            column("state", ""),
            column("link", ""),
            column("of a period", "bytes"),
            column("ends in", "s"),
        ],
        rows: rows.collect(),
    }
}

fn table_of_reservations(views: &[View]) -> Table {
    let ms = |ns: u64| units::display::short(ns as f64 / 1e6, 3);
    let row = |view: &View| {
        let first = view.listeners.first();
        let from = first
            .and_then(|of| of.route.first())
            .map(admission::Name::as_str);
        let to = view.listeners.iter().filter_map(|of| of.route.last());
        let to: Vec<_> = to.map(admission::Name::as_str).collect();
        let row = [
            view.id.clone(),
            format!("{}, {}", from.unwrap_or_default(), to.join(" ")),
            view.owner.clone(),
            ms(view.bound_ns),
            count(view.expires_in_ns / units::time::NS_PER_S),
            if view.in_force {
                "yes".to_owned()
            } else {
                format!("not at {}", view.not_in_force.join(" "))
            },
        ];
        row.into_iter().map(Value::from).collect()
    };
    Table {
        columns: vec![
            column("reservation", ""),
            column("from, to", ""),
            column("owner", ""),
            column("delay", "at most, ms"),
            column("ends in", "s"),
            column("in force", ""),
        ],
        rows: views.iter().map(row).collect(),
    }
}

/// Begins the lease of a reservation anew.
///
/// # Errors
/// When the manager cannot be reached, or has no such reservation.
pub fn renew(args: &RenewArgs) -> Result<Outcome> {
    let client = args.connection.client()?;
    match client.refresh(&args.id, args.lease) {
        Ok(view) if args.json => json(&view, 0),
        Ok(view) => Ok(Outcome {
            text: format!("renewed {}: for {}\n", view.id, time(view.expires_in_ns)),
            status: 0,
        }),
        Err(error) => failed(error),
    }
}

/// Frees a reservation, or a part of one.
///
/// # Errors
/// When the manager cannot be reached, or has no such reservation.
pub fn release(args: &ReleaseArgs) -> Result<Outcome> {
    let client = args.connection.client()?;
    let (answer, of) = match &args.part {
        Some(coordinator) => {
            let of = format!(" of {coordinator} here");
            (client.free_part(coordinator, &args.id), of)
        }
        None => (client.release(&args.id), String::new()),
    };
    match answer {
        Ok(view) if args.json => json(&view, 0),
        Ok(view) => Ok(Outcome {
            text: format!("released {}{of}\n", view.id),
            status: 0,
        }),
        Err(error) => failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_a_number_or_a_size() {
        assert_eq!(payload_bytes("1200"), Ok(1200));
        assert_eq!(payload_bytes("10kb"), Ok(10_240));
        for wrong in ["10k", "-1", "5gb", ""] {
            let why = payload_bytes(wrong).map_err(|why| why.contains("a size such as"));
            assert_eq!(why, Err(true), "{wrong}");
        }
    }
}
