// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer manager`: decides over the reservations of segments.

use std::fmt::Write;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use admission::{Manager as ManagerEntry, Topology, TopologyFile, nrt_shares};
use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use linux_io::clock::{boot_id, boottime_ns};
use linux_io::signals::Signals;
use linux_io::wait::readable;
use rustls::ServerConfig;
use tokio::sync::oneshot;
use units::time::{NS_PER_MS, NS_PER_S};

use super::outcome::{CONNECTION, OUTPUT, Outcome, RUN, some_time, time};
use crate::access::{self, Access};
use crate::client::{Client, Tls};
use crate::engine::{self, Engine};
use crate::etcd;
use crate::etcd::gateway::Gateway;
use crate::etcd::shared::Shared;
use crate::machine::{Limits, Manager};
use crate::peers::Peers;
use crate::server::{ServerTls, serve};
use crate::service::{App, router};
use crate::store::{MemoryStore, SqliteStore, Store};

/// Where a manager listens unless it is told otherwise: this host alone.
const LISTEN: &str = "127.0.0.1:8646";
/// Longest wait for a signal, ns.
const SIGNAL_NS: u64 = 1_000_000_000;
/// Name of the only manager of a network.
const ONLY: &str = "manager";

/// Arguments of `pspacer manager`.
#[derive(Debug, Args)]
pub struct ManagerArgs {
    /// Hosts, routers and segments, as TOML
    #[arg(long, value_name = "NET.toml", help_heading = RUN)]
    pub topology: PathBuf,
    /// Where reservations survive a crash: sqlite:FILE; etcd:URL,... that several managers share, which
    /// all decide over all segments; or memory:
    #[arg(long, value_name = "STORE", help_heading = RUN, required_unless_present = "check")]
    pub store: Option<String>,
    /// Which manager of the topology this is [default: the only one]
    #[arg(long, value_name = "NAME", help_heading = RUN)]
    pub name: Option<String>,
    /// Longest lease that a talker may ask for
    #[arg(long, value_name = "TIME", help_heading = RUN, value_parser = some_time, default_value = "86400s")]
    pub longest_lease: u64,
    /// Tell a talker of its grant only when the agents of all nodes that send the stream have put it
    /// into force; without that in this time nothing is reserved [default: tell it at once]
    #[arg(long, value_name = "TIME", help_heading = RUN, value_parser = in_force_within)]
    pub in_force_within: Option<u64>,
    /// Only check the topology, and say what streams may take of each link
    #[arg(long, help_heading = RUN)]
    pub check: bool,
    /// Address and port; other than loopback only with --access and TLS
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = CONNECTION, default_value = LISTEN)]
    pub listen: SocketAddr,
    /// Who may ask for what, as TOML [default: everybody on this host]
    #[arg(long, value_name = "ACCESS.toml", help_heading = CONNECTION)]
    pub access: Option<PathBuf>,
    /// TLS: this manager's certificate, PEM
    #[arg(long, value_name = "FILE", help_heading = CONNECTION, requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// TLS: its key, PEM
    #[arg(long, value_name = "FILE", help_heading = CONNECTION, requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// TLS: the authority of the clients' certificates, PEM
    #[arg(long, value_name = "FILE", help_heading = CONNECTION, requires = "tls_cert")]
    pub client_ca: Option<PathBuf>,
    /// The authority of the certificates of other managers and etcd, PEM; they are shown --tls-cert
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    pub peer_ca: Option<PathBuf>,
    /// A file with the token that the other managers know this one by
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    pub peer_token_file: Option<PathBuf>,
    /// Write the address that it listens at to a file: for --listen with port 0
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub address_file: Option<PathBuf>,
}

/// Parses the time that agents have, ns: a talker waits so long for its answer.
fn in_force_within(text: &str) -> std::result::Result<u64, String> {
    let known = units::parse::time_ns(text);
    let known = known.filter(|ns| (NS_PER_MS..=20 * NS_PER_S).contains(ns));
    known.ok_or_else(|| "expected a time from 1ms to 20s".to_owned())
}

/// Reads a file; errors name it.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

/// Reads a file of one word.
pub fn read_word(path: &Path) -> Result<String> {
    let text = String::from_utf8(read(path)?);
    let text = text.map_err(|_| anyhow!("{}: expected text", path.display()))?;
    let word = text.trim();
    let fits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(fits, "{}: expected a token in one line", path.display());
    Ok(word.to_owned())
}

/// Manages reservations until SIGINT or SIGTERM. `note` gets a line when it is ready.
///
/// # Errors
/// When a file cannot be read or is refused, the address is in use, or the store fails.
pub fn manager(args: &ManagerArgs, note: impl FnOnce(&str)) -> Result<Outcome> {
    let named = || args.topology.display().to_string();
    let text = fs::read_to_string(&args.topology).with_context(named)?;
    let file = admission::read(&text).with_context(named)?;
    if args.check {
        return Ok(Outcome {
            text: budgets(&file),
            status: 0,
        });
    }
    let name = own_name(args, &file)?;
    let (access, tls) = (access(args)?, tls(args)?);
    let is_alone = args.listen.ip().is_loopback();
    let is_guarded = matches!(access, Access::Known(_)) && tls.is_some();
    ensure!(
        is_alone || is_guarded,
        "--listen {}: expected a loopback address, or --access and --tls-cert beside it",
        args.listen
    );
    let tls = tls.map(|tls| tls.config()).transpose()?;
    let limits = Limits {
        most_lease_ns: args.longest_lease,
        in_force_ns: args.in_force_within,
        ..Limits::default()
    };
    let decider = decider(args, (&name, Arc::new(file.topology)), limits)?;
    let others = match decider {
        Decider::Alone(..) => peers(args, &name, &file.managers)?,
        // Managers that share a store send each other nothing.
        Decider::Shared(_) => Vec::new(),
    };
    // Before threads start, so that none of them is ended by a signal.
    let signals = Signals::block()?;
    let app_peers: Vec<_> = others.iter().map(|(name, _)| name.clone()).collect();
    let peers = Peers::start(&name, others);
    let listener = TcpListener::bind(args.listen);
    let listener = listener.with_context(|| format!("--listen {}", args.listen))?;
    let address = listener.local_addr()?;
    let (engine, jobs) = engine::queue();
    let app = App {
        engine: engine.clone(),
        access: Arc::new(access),
        peers: Arc::new(app_peers),
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    if let Some(path) = &args.address_file {
        let text = format!("{scheme}://{address}\n");
        fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    let (stop_serving, end) = oneshot::channel();
    thread::scope(|threads| {
        let on_failure = engine.clone();
        let serving = threads.spawn(move || {
            let served = run_service(listener, tls, app, end);
            // Without the service the manager is of no use.
            on_failure.stop();
            served
        });
        let waiting = threads.spawn(move || stop_on_signal(&engine, &signals));
        note(&format!(
            "pspacer: manager {name} at {scheme}://{address}; SIGINT or SIGTERM ends it"
        ));
        let post = |to: &str, message| peers.post(to, message);
        let ran = match decider {
            Decider::Alone(mut manager, mut store) => {
                engine::run(&mut manager, store.as_mut(), &jobs, boottime_ns, post)
            }
            Decider::Shared(shared) => {
                etcd::run::run(&shared, &jobs);
                Ok(())
            }
        };
        drop(jobs);
        drop(stop_serving);
        let served = serving.join().map_err(|_| anyhow!("the service failed"))?;
        waiting
            .join()
            .map_err(|_| anyhow!("waiting for signals failed"))?;
        ran?;
        served
    })?;
    Ok(Outcome::default())
}

/// Serves requests until `end`.
fn run_service(
    listener: TcpListener,
    tls: Option<ServerConfig>,
    app: App,
    end: oneshot::Receiver<()>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(serve(listener, tls, router(app), end))?)
}

/// Stops the manager when a signal comes, or cannot be waited for.
fn stop_on_signal(engine: &Engine, signals: &Signals) {
    while !engine.has_ended() {
        let waited = readable(&[signals.as_fd()], SIGNAL_NS);
        if waited.is_err() || signals.came().unwrap_or(true) {
            return engine.stop();
        }
    }
}

fn decider(args: &ManagerArgs, own: (&str, Arc<Topology>), limits: Limits) -> Result<Decider> {
    let boot = boot_id().context("the id of the boot")?;
    let given = args.store.as_deref().unwrap_or_default();
    if let Some(urls) = given.strip_prefix("etcd:") {
        return shared(args, own, limits, urls, boot);
    }
    let mut store = store(given)?;
    let records = store.load()?;
    let clock = (boot.as_str(), boottime_ns()?);
    let manager = Manager::restore(own.0, own.1, limits, records, clock)?;
    Ok(Decider::Alone(Box::new(manager), store))
}

/// Who decides.
enum Decider {
    /// This manager, by what it knows and stores.
    Alone(Box<Manager>, Box<dyn Store>),
    /// The transactions of an etcd that others use, too.
    Shared(Box<Shared>),
}

/// Makes a manager that shares an etcd with others.
fn shared(
    args: &ManagerArgs,
    (name, topology): (&str, Arc<Topology>),
    limits: Limits,
    urls: &str,
    boot: String,
) -> Result<Decider> {
    let urls: Vec<_> = urls
        .split(',')
        .map(|url| url.trim_end_matches('/'))
        .collect();
    for url in &urls {
        let host = ["http://", "https://"].iter();
        let host = host.filter_map(|scheme| url.strip_prefix(scheme)).next();
        let fits = host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '@', ' ']));
        ensure!(
            fits,
            "--store etcd:{url}: expected etcd:http://ADDRESS:PORT or etcd:https://ADDRESS:PORT, several \
             with commas"
        );
    }
    let mut own = topology.segments().iter().map(|segment| &segment.spec);
    let other = own.find(|spec| spec.manager.is_some());
    if let Some(spec) = other {
        bail!(
            "{}: segment {} has the manager {}, expected none with --store etcd: the managers that share \
             it decide over all segments",
            args.topology.display(),
            spec.name,
            spec.manager.as_deref().unwrap_or_default()
        );
    }
    ensure!(
        args.in_force_within.is_none(),
        "--in-force-within: expected --store sqlite: beside it: agents may report to another manager \
         than the one whose talker waits"
    );
    let urls = urls.into_iter().map(str::to_owned).collect();
    let etcd = Gateway::new(urls, &peer_tls(args, false)?)?;
    let shared = Shared::start(name, topology, limits, etcd, boot);
    let shared = shared.context("--store")?;
    Ok(Decider::Shared(Box::new(shared)))
}

/// Returns which manager of the topology this is.
fn own_name(args: &ManagerArgs, file: &TopologyFile) -> Result<String> {
    let names: Vec<_> = file.managers.iter().map(|m| m.name.as_str()).collect();
    match (&args.name, names.as_slice()) {
        (None, []) => Ok(ONLY.to_owned()),
        (None, [one]) => Ok((*one).to_owned()),
        (Some(name), []) if admission::is_name(name) => Ok(name.clone()),
        (Some(name), all) if all.contains(&name.as_str()) => Ok(name.clone()),
        (given, all) => bail!(
            "--name {}: expected one of the managers of {}: {}",
            given.as_deref().unwrap_or("is missing"),
            args.topology.display(),
            all.join(", ")
        ),
    }
}

fn access(args: &ManagerArgs) -> Result<Access> {
    let Some(path) = &args.access else {
        return Ok(Access::Open);
    };
    let named = || path.display().to_string();
    let text = fs::read_to_string(path).with_context(named)?;
    access::read(&text).with_context(named)
}

fn tls(args: &ManagerArgs) -> Result<Option<ServerTls>> {
    let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) else {
        return Ok(None);
    };
    Ok(Some(ServerTls {
        certificate: read(certificate)?,
        key: read(key)?,
        client_ca: args.client_ca.as_deref().map(read).transpose()?,
    }))
}

fn store(given: &str) -> Result<Box<dyn Store>> {
    match given.split_once(':') {
        Some(("memory", "")) => Ok(Box::new(MemoryStore::default())),
        Some(("sqlite", path)) if !path.is_empty() => {
            Ok(Box::new(SqliteStore::open(Path::new(path))?))
        }
        _ => bail!("--store {given}: expected sqlite:FILE, etcd:URL,... or memory:"),
    }
}

/// Returns the certificates that this manager shows and trusts as a client.
fn peer_tls(args: &ManagerArgs, has_token: bool) -> Result<Tls> {
    let identity = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) if !has_token => Some((read(certificate)?, read(key)?)),
        _ => None,
    };
    Ok(Tls {
        ca: args.peer_ca.as_deref().map(read).transpose()?,
        identity,
    })
}

/// Returns the other managers with clients of theirs.
fn peers(args: &ManagerArgs, own: &str, all: &[ManagerEntry]) -> Result<Vec<(String, Client)>> {
    let token = args.peer_token_file.as_deref().map(read_word).transpose()?;
    let tls = peer_tls(args, token.is_some())?;
    let others = all.iter().filter(|manager| manager.name != own);
    others
        .map(|manager| {
            let client = Client::new(&manager.url, token.clone(), &tls)?;
            Ok((manager.name.clone(), client))
        })
        .collect()
}

/// Says what streams and best effort may take of each segment.
fn budgets(file: &TopologyFile) -> String {
    let topology = &file.topology;
    let empty = admission::Ledger::default();
    let mut out = String::new();
    for link in topology.links() {
        let spec = &topology.segment(link.segment).spec;
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "{}: {} bytes for streams in each period of {}",
            link.name,
            link.budget_bytes,
            time(spec.period_ns)
        );
        if let Some(manager) = &spec.manager {
            let _ = write!(out, "; manager {manager}");
        }
        out.push('\n');
    }
    for (n, segment) in topology.segments().iter().enumerate() {
        let shares = nrt_shares(topology, &empty, admission::SegmentId(n));
        let least = shares.iter().map(|share| share.bytes).min().unwrap_or(0);
        let _ = writeln!(
            out,
            "{}: {least} bytes of best effort for each of {} nodes without streams",
            segment.spec.name,
            segment.members.len()
        );
    }
    out
}
