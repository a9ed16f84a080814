// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer manager`: decides over the reservations of segments.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use admission::{Manager as ManagerEntry, Topology, TopologyFile};
use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use linux_io::clock::{boot_id, boottime_ns};
use linux_io::signals::{Asked, Signals};
use linux_io::wait::readable;
use tokio::sync::oneshot;
use units::time::{NS_PER_MS, NS_PER_S};

use super::budgets::{budgets, read_topology};
use super::outcome::{CONNECTION, OUTPUT, Outcome, RUN, random, some_time};
use crate::engine::{self, Engine, EngineError, Job};
use crate::etcd::gateway::{EtcdError, Gateway};
use crate::etcd::seat::{Elected, Seat, holder};
use crate::etcd::store::EtcdStore;
use crate::peers::{Fixed, Peers, WITHIN, Way};
use crate::reload::{Files, Reload, read};
use crate::server::serve_here;
use crate::service::{App, router};
use crate::store::{MemoryStore, SqliteStore, Store, StoreError};
use manager_proto::client::{Client, Tls};
use manager_proto::machine::{Limits, Manager, Start};
use manager_proto::record::Update;

/// Where a manager listens unless it is told otherwise: this host alone.
const LISTEN: &str = "127.0.0.1:8646";
/// Longest wait for a signal, ns.
const SIGNAL_NS: u64 = 1_000_000_000;
/// Longest time without an answer of etcd when the manager starts.
const FIRST_ANSWER: Duration = Duration::from_secs(5);
/// Between two questions until then.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// A seat that nobody else can have.
fn for_ever() -> Arc<AtomicU64> {
    Arc::new(AtomicU64::new(u64::MAX))
}
/// Name of the only manager of a network.
const ONLY: &str = "manager";

/// Arguments of `pspacer manager`.
#[derive(Debug, Args)]
pub struct ManagerArgs {
    /// Hosts, routers and segments, as TOML
    #[arg(long, value_name = "NET.toml", help_heading = RUN)]
    pub topology: PathBuf,
    /// Where reservations survive a crash: sqlite:FILE; etcd:URL,..., which also elects one of the managers
    /// of this name; or memory:
    #[arg(long, value_name = "STORE", help_heading = RUN, required_unless_present = "check")]
    pub store: Option<String>,
    /// Which manager of the topology this is [default: the only one]
    #[arg(long, value_name = "NAME", help_heading = RUN)]
    pub name: Option<String>,
    /// The store has all that this manager ever promised. Without that word, where there are others, it
    /// grants nothing after a start until they have said what they have here
    #[arg(long, help_heading = RUN)]
    pub store_is_whole: bool,
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
    /// With an etcd, the URL that others reach this manager at [default: that of --listen]
    #[arg(long, value_name = "URL", help_heading = CONNECTION)]
    pub url: Option<String>,
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

/// Reads a file of one word.
pub fn read_word(path: &Path) -> Result<String> {
    let text = String::from_utf8(read(path)?);
    let text = text.map_err(|_| anyhow!("{}: expected text", path.display()))?;
    let word = text.trim();
    let fits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(fits, "{}: expected a token in one line", path.display());
    Ok(word.to_owned())
}

/// Manages reservations until SIGINT or SIGTERM; SIGHUP reads callers and certificates again. `note` gets a line when it is ready.
///
/// # Errors
/// When a file cannot be read or is refused, the address is in use, or the store fails.
pub fn manager(args: &ManagerArgs, note: impl FnOnce(&str)) -> Result<Outcome> {
    let (_, file) = read_topology(&args.topology)?;
    if args.check {
        return Ok(Outcome {
            text: budgets(&file),
            status: 0,
        });
    }
    let name = own_name(args, &file)?;
    let reload = Reload::start(files(args))?;
    let is_alone = args.listen.ip().is_loopback();
    let is_guarded = args.access.is_some() && reload.tls.is_some();
    ensure!(
        is_alone || is_guarded,
        "--listen {}: expected a loopback address, or --access and --tls-cert beside it",
        args.listen
    );
    let limits = Limits {
        most_lease_ns: args.longest_lease,
        in_force_ns: args.in_force_within,
        ..Limits::default()
    };
    let keeper = keeper(args)?;
    // Before threads start, so that none of them is ended by a signal.
    let signals = Signals::block_with_reload()?;
    let others: Vec<_> = file.managers.iter().map(|of| of.name.clone()).collect();
    let others: Vec<_> = others.into_iter().filter(|of| *of != name).collect();
    let listener = TcpListener::bind(args.listen);
    let listener = listener.with_context(|| format!("--listen {}", args.listen))?;
    let address = listener.local_addr()?;
    let (engine, jobs) = engine::queue();
    let ways = ways(args, &keeper, &name, &file.managers)?;
    let on_reply = engine.clone();
    let replied = move |from: &str, reply| {
        let from = from.to_owned();
        // Lost, if too many wait.
        let _ = on_reply.submit(Job::Replied { from, reply });
    };
    let peers = Peers::start(&name, ways, &replied);
    let urls = file
        .managers
        .iter()
        .map(|of| (of.name.clone(), of.url.clone()));
    let app = App {
        engine: engine.clone(),
        access: Arc::clone(&reload.access),
        peers: Arc::new(urls.collect()),
    };
    let tls = reload.tls.clone();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let own_url = format!("{scheme}://{address}");
    if let Some(path) = &args.address_file {
        let text = format!("{own_url}\n");
        psp_files::write::replace(path, text).with_context(|| path.display().to_string())?;
    }
    let (stop_serving, end) = oneshot::channel();
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        let on_failure = engine.clone();
        let serving = threads.spawn(move || {
            let served = serve_here(listener, tls, router(app), end);
            // Without the service the manager is of no use.
            on_failure.stop();
            served
        });
        let (on_signal, over) = (engine.clone(), &is_over);
        let waiting = threads.spawn(move || wait_for_signals(&on_signal, &signals, &reload, over));
        note(&format!(
            "pspacer: manager {name} at {own_url}; SIGHUP reads --access and certificates again, \
             SIGINT or SIGTERM ends it"
        ));
        let mut tenure = Tenure {
            start: Start {
                name: &name,
                peers: &others,
                epoch: 0,
                boot: &boot_id().context("the id of the boot")?,
                now_ns: 0,
                is_store_whole: args.store_is_whole,
            },
            topology: Arc::new(file.topology),
            limits,
            engine: &engine,
            jobs: &jobs,
            peers: &peers,
        };
        let ran = match keeper {
            Keeper::Own(mut store) => tenure.run(store.as_mut(), for_ever(), None).map(|_| ()),
            Keeper::Etcd(etcd) => {
                let url = args.url.clone().unwrap_or(own_url);
                tenure.run_elected(&etcd, &url)
            }
        };
        is_over.store(true, Ordering::Release);
        drop(stop_serving);
        let served = serving.join().map_err(|_| anyhow!("the service failed"))?;
        waiting
            .join()
            .map_err(|_| anyhow!("waiting for signals failed"))?;
        ran?;
        anyhow::Ok(served?)
    })?;
    Ok(Outcome::default())
}

/// Reads files again at each SIGHUP. Stops the manager when another signal comes, or none can be
/// waited for.
fn wait_for_signals(engine: &Engine, signals: &Signals, reload: &Reload, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Acquire) {
        let waited = readable(&[signals.as_fd()], SIGNAL_NS);
        match waited.and_then(|()| signals.asked()) {
            Ok(None) => {}
            Ok(Some(Asked::Reload)) => {
                // The manager runs whether or not somebody reads this.
                let _ = writeln!(io::stderr().lock(), "{}", reload.again_in_words());
            }
            Ok(Some(Asked::End)) | Err(_) => return engine.stop(),
        }
    }
}

/// Who keeps the records.
enum Keeper {
    Own(Box<dyn Store>),
    /// An etcd, which also elects who decides.
    Etcd(Arc<Gateway>),
}

fn keeper(args: &ManagerArgs) -> Result<Keeper> {
    let given = args.store.as_deref().unwrap_or_default();
    let Some(urls) = given.strip_prefix("etcd:") else {
        return Ok(Keeper::Own(store(given)?));
    };
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
    let urls = urls.into_iter().map(str::to_owned).collect();
    let etcd = Gateway::new(urls, &peer_tls(args, false)?)?;
    Ok(Keeper::Etcd(Arc::new(etcd)))
}

/// What it takes to decide.
struct Tenure<'a> {
    start: Start<'a>,
    topology: Arc<Topology>,
    limits: Limits,
    engine: &'a Engine,
    jobs: &'a Receiver<Job>,
    peers: &'a Peers,
}

impl Tenure<'_> {
    /// Decides until the manager is stopped or another one has the seat; returns what it had then.
    /// `last` is what it had when it decided before.
    fn run(
        &mut self,
        store: &mut dyn Store,
        ends_ns: Arc<AtomicU64>,
        last: Option<&Manager>,
    ) -> Result<(Manager, Option<StoreError>)> {
        let mut records = store.load()?;
        // Nobody has decided since: then the store was brought back from a backup if it has less.
        let last = last.filter(|last| last.is_last_of(&records));
        if let Some(last) = last {
            let own: Vec<_> = last.records().iter().filter_map(Update::change).collect();
            store.rewrite(&own)?;
            records = own
                .into_iter()
                .filter_map(|change| Some((change.key, change.value?)))
                .collect();
        }
        self.start.now_ns = boottime_ns()?;
        self.start.epoch = u64::from_le_bytes(random()?);
        self.peers.begin(self.start.epoch);
        let (topology, limits) = (Arc::clone(&self.topology), self.limits);
        let mut manager = Manager::restore(&self.start, topology, limits, records)?;
        self.engine.begin(&manager, ends_ns);
        let post = |to: &str, message| self.peers.post(to, message);
        let jobs = (self.engine, self.jobs);
        let ran = engine::run(&mut manager, store, jobs, boottime_ns, post);
        self.engine.stand_by(None);
        match ran {
            Ok(()) => Ok((manager, None)),
            Err(EngineError::Store(error)) if error.is_deposed() => Ok((manager, Some(error))),
            Err(error) => Err(error.into()),
        }
    }

    /// Decides whenever etcd elects this manager, until it is stopped.
    fn run_elected(&mut self, etcd: &Arc<Gateway>, url: &str) -> Result<()> {
        let mut last = None;
        // Whoever starts it learns of an etcd that is not there; later it is waited for. One that has just
        // been started, too, may be slow with its first answer.
        let (engine, jobs) = (self.engine, self.jobs);
        let stop = |wait| match jobs.recv_timeout(wait) {
            // What came too late for the last tenure has no answer.
            Ok(job) => matches!(job, Job::Stop),
            Err(error) => error == RecvTimeoutError::Disconnected,
        };
        let begun = Instant::now();
        while let Err(error) = holder(etcd, self.start.name) {
            if begun.elapsed() > FIRST_ANSWER || !matches!(error, EtcdError::Away(_)) {
                return Err(error).context("--store");
            }
            if stop(ASK_AGAIN) {
                return Ok(());
            }
        }
        loop {
            let seat = Seat::campaign(etcd, (self.start.name, url), stop, |found| {
                engine.stand_by(found.ok().flatten())
            });
            let Some(seat) = seat else {
                return Ok(());
            };
            let ends_ns = seat.ends_ns();
            let mut store = EtcdStore::new(Arc::clone(etcd), self.start.name, seat);
            match self.run(&mut store, ends_ns, last.as_ref()) {
                Ok((_, None)) => return Ok(()),
                Ok((manager, Some(_))) => last = Some(manager),
                Err(error) if is_deposed(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_deposed(error: &anyhow::Error) -> bool {
    let of_store = error.downcast_ref::<StoreError>();
    of_store.is_some_and(StoreError::is_deposed)
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

/// Returns the files that are read again at SIGHUP.
fn files(args: &ManagerArgs) -> Files {
    Files {
        access: args.access.clone(),
        identity: args.tls_cert.clone().zip(args.tls_key.clone()),
        client_ca: args.client_ca.clone(),
    }
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

/// Returns the ways to the other managers.
fn ways(
    args: &ManagerArgs,
    keeper: &Keeper,
    own: &str,
    all: &[ManagerEntry],
) -> Result<Vec<(String, Arc<dyn Way>)>> {
    let token = args.peer_token_file.as_deref().map(read_word).transpose()?;
    let tls = peer_tls(args, token.is_some())?;
    let others = all.iter().filter(|manager| manager.name != own);
    others
        .map(|manager| {
            let way: Arc<dyn Way> = match keeper {
                Keeper::Own(_) => {
                    let client = Client::within(&manager.url, token.clone(), &tls, WITHIN)?;
                    Arc::new(Fixed(Arc::new(client)))
                }
                Keeper::Etcd(etcd) => Arc::new(Elected::new(
                    (Arc::clone(etcd), manager.name.clone()),
                    (token.clone(), tls.clone()),
                )),
            };
            Ok((manager.name.clone(), way))
        })
        .collect()
}
