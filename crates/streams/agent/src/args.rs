// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments of `pspacer agent`.

use clap::Args;
use host_config::Backend;
use manager::commands::{CONNECTION, Credentials, OUTPUT, RUN, some_time};

/// Arguments of `pspacer agent`.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// Name of this host or router in the topology
    #[arg(long, value_name = "NODE", help_heading = RUN, value_parser = node)]
    pub node: String,
    /// The device that sends into a segment; several with commas. The agent owns its root qdisc
    #[arg(long = "port", value_name = "SEGMENT=DEVICE,...", help_heading = RUN, required = true,
        value_delimiter = ',', value_parser = port)]
    pub ports: Vec<(String, String)>,
    /// Longest time without an answer of a manager, at most 15 s: it answers at once when something changes,
    /// and else after this time
    #[arg(long, value_name = "TIME", help_heading = RUN, value_parser = some_time, default_value = "10s")]
    pub poll: u64,
    /// Replace qdiscs, classes and filters that others configured on the devices
    #[arg(long, help_heading = RUN)]
    pub take_over: bool,
    /// What keeps to the streams [default: the module, or where the kernel has none and takes qdiscs of
    /// BPF, those]
    #[arg(long, value_name = "module|bpf", help_heading = RUN, value_parser = backend)]
    pub backend: Option<Backend>,
    /// Follow the kernel's routes: a stream whose frames they lead by another device is not in
    /// force, and is negotiated anew
    #[arg(long, help_heading = RUN)]
    pub follow_routes: bool,
    /// Ask each manager once, and say the changes that each port needs; make none, and report nothing
    #[arg(long, help_heading = RUN)]
    pub dry_run: bool,
    /// URLs of all managers of the network, with commas; the token is an agent's of this node, in the
    /// environment, PSPACER_TOKEN, or in --token-file
    #[arg(long = "manager", value_name = "URL,...", help_heading = CONNECTION, value_delimiter = ',',
        default_value = "http://127.0.0.1:8646")]
    pub managers: Vec<String>,
    /// Who asks, and whom to trust
    #[command(flatten)]
    pub credentials: Credentials,
    /// One JSON object in a line for each event
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

fn node(text: &str) -> Result<String, String> {
    if admission::is_name(text) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "expected a name as in the topology: {}",
            admission::NAME
        ))
    }
}

/// Departure times keep no reservation: nothing there knows of periods.
fn backend(text: &str) -> Result<Backend, String> {
    let known = Backend::from_word(text).filter(|of| *of != Backend::Edt);
    known.ok_or_else(|| "expected module or bpf".to_owned())
}

fn port(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=');
    let known = pair.filter(|(segment, device)| admission::is_name(segment) && !device.is_empty());
    let known = known.map(|(segment, device)| (segment.to_owned(), device.to_owned()));
    known.ok_or_else(|| "expected a segment and its device, such as studio=eth0".to_owned())
}
