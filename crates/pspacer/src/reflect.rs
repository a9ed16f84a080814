// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer reflect`: answers the probes of `pspacer ping`.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;

use anyhow::{Context, Result};
use clap::Args;
use live::clock::{monotonic_ns, tai_ns};
use live::priority::{Scheduling, schedule};
use live::signals::Signals;
use live::udp::{Class, StampedSocket};
use live::wait::{BATCH, readable};
use ping::packet::{MOST_BYTES, PORT};
use ping::reflector::{Reflected, Reflector, stamp};
use serde::Serialize;

use crate::cli::{OUTPUT, RUN};
use crate::output;

/// Answers a second where nothing else is asked for.
const RATE_PPS: u64 = 10_000;
/// How long nothing may come before the signals are looked at again.
const IDLE_NS: u64 = 1_000_000_000;
/// As the sender of ping.
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
    #[arg(long, value_name = "PRIO/DSCP", help_heading = RUN, value_parser = crate::ping::class)]
    pub class: Option<Class>,
    /// One JSON object on standard output at the end, nothing else there
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    format: &'static str,
    scheduling: String,
    #[serde(flatten)]
    reflected: Reflected,
    /// Answers that the kernel did not take.
    unsent: u64,
}

/// Answers probes until SIGINT or SIGTERM, then says how many.
///
/// # Errors
/// When there is no such address, the port is taken, or the socket fails.
pub fn main(args: &ReflectArgs) -> Result<()> {
    let signals = Signals::block()?;
    let wanted = (args.bind, args.port);
    let named = || format!("{} port {}", args.bind, args.port);
    let socket = UdpSocket::bind(wanted).with_context(named)?;
    let socket = StampedSocket::new(socket, false)?;
    socket.set_class(args.class.unwrap_or_default())?;
    let granted = schedule(&[Scheduling::Fifo(PRIORITY)]);
    let port = socket.socket().local_addr()?.port();
    // Standard output is the report's.
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

/// How many answers the kernel did not take.
fn reflect(socket: &StampedSocket, reflector: &mut Reflector, signals: &Signals) -> Result<u64> {
    let mut buffer = vec![0; MOST_BYTES];
    let mut unsent = 0;
    loop {
        readable(&[socket.as_fd(), signals.as_fd()], IDLE_NS)?;
        for _ in 0..BATCH {
            let received = match socket.receive(&mut buffer) {
                Ok(Some(received)) => received,
                Ok(None) => break,
                // What became of an earlier answer.
                Err(_) => continue,
            };
            let received_ns = received.kernel_ns.unwrap_or(tai_ns()?);
            let datagram = buffer.get_mut(..received.bytes).unwrap_or_default();
            let Some(from) = received.from else { continue };
            if !reflector.answer(datagram, received_ns, monotonic_ns()?) {
                continue;
            }
            stamp(datagram, tai_ns()?);
            if socket.socket().send_to(datagram, from).is_err() {
                unsent += 1;
            }
        }
        if signals.came()? {
            return Ok(unsent);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A signal has come, and the socket is full: it ends all the same, after one batch.
    #[test]
    fn a_signal_is_seen_while_datagrams_come() {
        let signals = Signals::block().unwrap();
        let local = (Ipv4Addr::LOCALHOST, 0);
        let socket = StampedSocket::new(UdpSocket::bind(local).unwrap(), false).unwrap();
        let sender = UdpSocket::bind(local).unwrap();
        let to = socket.socket().local_addr().unwrap();
        for _ in 0..200 {
            sender.send_to(b"no probe", to).unwrap();
        }
        // To this thread alone.
        nix::sys::signal::raise(nix::sys::signal::SIGTERM).unwrap();
        let mut reflector = Reflector::new(RATE_PPS);
        assert_eq!(reflect(&socket, &mut reflector, &signals).unwrap(), 0);
        let taken = reflector.counts().invalid;
        assert!((1..=BATCH as u64).contains(&taken), "{taken}");
    }
}
