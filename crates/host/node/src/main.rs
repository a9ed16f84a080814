// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command `pspacer-node`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::{Parser, Subcommand};
use cni::config::Budget;
use cni::environment::{UID, is_uid};
use node::api::{ACCOUNT, Api, url};
use node::driver::Driver;
use node::round::{Say, round};
use node::run::run;
use node::slice::Owner;
use node::sockets::Sockets;
use node::status::status;
use units::parse;

/// A name below a domain that nobody can own.
const DRIVER: &str = "bandwidth.pspacer.internal";
/// Longest time for one request to the API server.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Gives the bandwidth of a node of Kubernetes to pods, and keeps it in force.
#[derive(Parser)]
#[command(name = "pspacer-node", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves the kubelet, publishes what is left, and puts classes in force again, for good.
    Run(Box<RunArgs>),
    /// Puts classes in force again, once. Fails if one of them cannot be.
    Once {
        /// Prints an object for each change.
        #[arg(long)]
        json: bool,
    },
    /// Shows the budget, what is granted, claims and attachments.
    Status {
        /// Prints one object.
        #[arg(long)]
        json: bool,
    },
}

#[derive(clap::Args)]
struct RunArgs {
    /// What all pods of the node may be given to send, such as 9gbit.
    #[arg(long, value_parser = rate)]
    egress: u64,
    /// What they may be given to receive; nothing, if it is not said.
    #[arg(long, value_parser = rate)]
    ingress: Option<u64>,
    /// The node's name [default: $NODE_NAME].
    #[arg(long)]
    node: Option<String>,
    /// The uid of this pod, by which its sockets are named, so that a second instance can serve
    /// beside it during an upgrade [default: $POD_UID; without it there is one instance].
    #[arg(long, value_name = "UID")]
    instance: Option<String>,
    /// The driver's name, which a DeviceClass names.
    #[arg(long, default_value = DRIVER)]
    driver: String,
    /// The device that leads out of the node, published as an attribute.
    #[arg(long)]
    uplink: Option<String>,
    /// Time between two rounds, from 1s to 1h.
    #[arg(long, default_value = "30s", value_parser = time)]
    every: Duration,
    /// The API server [default: that of the pod's cluster].
    #[arg(long)]
    api: Option<String>,
    /// The folder with `token` and `ca.crt`.
    #[arg(long, default_value = ACCOUNT)]
    account: PathBuf,
    /// The kubelet's folder.
    #[arg(long, default_value = "/var/lib/kubelet")]
    kubelet: PathBuf,
    /// Prints an object for each change.
    #[arg(long)]
    json: bool,
}

fn rate(text: &str) -> Result<u64, String> {
    let known = parse::rate_bps(text).filter(|rate| (1..=10_000_000_000_000).contains(rate));
    known.ok_or_else(|| format!("expected {} above 0 and up to 10tbit", parse::RATE))
}

fn time(text: &str) -> Result<Duration, String> {
    let known = parse::time_ns(text).map(Duration::from_nanos);
    known
        .filter(|time| (Duration::from_secs(1)..=Duration::from_secs(3600)).contains(time))
        .ok_or_else(|| "expected a time from 1s to 1h".to_owned())
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Run(args) => serve(*args),
        Command::Once { json } => once(json),
        Command::Status { json } => {
            host_apply::folder().and_then(|run| status(&run, json, &mut std::io::stdout().lock()))
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pspacer-node: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn once(is_json: bool) -> Result<()> {
    let failed = round(&host_apply::folder()?, Say { is_json }, &[]).len();
    ensure!(failed == 0, "{failed} could not be put in force");
    Ok(())
}

fn serve(args: RunArgs) -> Result<()> {
    let variable = |name: &str| std::env::var(name).ok();
    let node = args
        .node
        .or_else(|| variable("NODE_NAME"))
        .unwrap_or_default();
    let instance = args.instance.or_else(|| variable("POD_UID"));
    let instance = instance.filter(|uid| !uid.is_empty());
    if let Some(uid) = instance.as_deref().filter(|uid| !is_uid(uid)) {
        bail!("--instance is {uid:?}, expected {UID}");
    }
    let api = Api {
        url: args.api.map_or_else(|| url(variable), Ok)?,
        account: args.account,
        timeout: TIMEOUT,
    };
    let line_mbps = args.uplink.as_deref().and_then(line_mbps);
    let owner = Owner {
        driver: args.driver,
        node,
        interface: args.uplink,
        line_mbps,
    };
    owner.slice().map_err(anyhow::Error::msg)?;
    let folder = host_apply::folder()?;
    let budget = Budget {
        egress_bps: Some(args.egress),
        // A direction that is not said has nothing to give.
        ingress_bps: Some(args.ingress.unwrap_or(0)),
    };
    let sockets = Sockets::new(&args.kubelet, &owner.driver, instance.as_deref());
    let driver = Driver {
        owner,
        run: folder,
        budget,
        api,
    };
    run(driver, &sockets, args.every, args.json)
}

/// Returns how fast a device is, if it says so.
fn line_mbps(device: &str) -> Option<u64> {
    let path = Path::new("/sys/class/net").join(device).join("speed");
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
