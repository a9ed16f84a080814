// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer reflect`: answers the probes of `pspacer ping`.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use anyhow::{Context, Result};
use clap::Args;
use linux_io::priority::{Scheduling, schedule};
use linux_io::signals::Signals;
use linux_io::udp::{Class, TimestampedSocket};
use ping::packet::PORT;
use ping::reflect::reflect;
use ping::reflector::{Reflected, Reflector};
use serde::Serialize;

use crate::headings::{OUTPUT, RUN};
use crate::output;

/// Default for the largest number of answers a second.
const RATE_PPS: u64 = 10_000;
/// Real-time priority, the same as that of the sender in ping.
const PRIORITY: u8 = 80;

/// Arguments of `pspacer reflect`.
#[derive(Debug, Args)]
pub struct ReflectArgs {
    /// Address to listen at
    #[arg(long, value_name = "ADDRESS", help_heading = RUN, default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    pub bind: IpAddr,
    /// UDP port; 0 for any that is free
    #[arg(long, value_name = "PORT", help_heading = RUN, default_value_t = PORT)]
    pub port: u16,
    /// Answers a second at most; probes beyond get none
    #[arg(long, value_name = "N", help_heading = RUN, default_value_t = RATE_PPS)]
    pub max_rate: u64,
    /// Priority of the socket and code point of the answers, as for ping
    #[arg(long, value_name = "PRIO/DSCP", help_heading = RUN, value_parser = clap::value_parser!(Class))]
    pub class: Option<Class>,
    /// One JSON object on standard output at the end, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

/// The JSON object that `--json` prints.
#[derive(Serialize)]
struct Report {
    format: &'static str,
    scheduling: String,
    #[serde(flatten)]
    reflected: Reflected,
    /// Answers that the kernel did not accept.
    unsent: u64,
}

/// Answers probes until SIGINT or SIGTERM, then prints how many.
///
/// # Errors
/// When the address does not exist, the port is in use, or the socket fails.
pub fn main(args: &ReflectArgs) -> Result<()> {
    let signals = Signals::block()?;
    let wanted = (args.bind, args.port);
    let named = || format!("{} port {}", args.bind, args.port);
    let socket = UdpSocket::bind(wanted).with_context(named)?;
    let socket = TimestampedSocket::new(socket, false)?;
    socket.set_class(args.class.unwrap_or_default())?;
    let granted = schedule(&[Scheduling::Fifo(PRIORITY)]);
    let port = socket.socket().local_addr()?.port();
    // The note goes to standard error, because standard output is for the report.
    let at = args.bind;
    output::note(&format!(
        "pspacer: reflecting at {at} port {port}; {granted}"
    ));
    let mut reflector = Reflector::new(args.max_rate);
    let unsent = reflect(&socket, &mut reflector, &signals)?;
    let report = Report {
        format: "pspacer-reflect-1",
        scheduling: granted.to_string(),
        reflected: reflector.counts(),
        unsent,
    };
    let mut out = output::out();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
        return Ok(());
    }
    let Reflected {
        answered,
        invalid,
        over_rate,
    } = report.reflected;
    writeln!(
        out,
        "{answered} probes answered, {over_rate} above the rate, {invalid} packets were no probes, \
         {unsent} answers not taken by the kernel"
    )?;
    Ok(())
}
