// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `[[flow]]` of type tcp, and the sysctls that apply to it.

use scenario::{Cell, Flow, FlowKind, Place, Sysctl};
use units::clock::{Span, Time};
use units::ethernet::{IPV4_HEADER_BYTES, TCP_HEADER_BYTES};
use units::parse;

use super::refusal::Refusal;
use crate::cpu::CpuCost;
use crate::rng::Rng;
use crate::stream::{Pacing, StreamConfig};
use crate::tcp::variant::{self, LostRetransmission, Recovery, SackHint, SackScan, SackSort};
use crate::tcp::{Congestion, ReceiverConfig, SenderConfig};

/// The TCP variant of a flow that names none.
const STACK: &str = "rack";
/// Length of the IPv4 and TCP headers, and of the timestamps option.
const HEADER_BYTES: u32 = IPV4_HEADER_BYTES + TCP_HEADER_BYTES;
const TIMESTAMPS_BYTES: u32 = 12;
/// Receive window of a flow that specifies none: what Linux's autotuning reaches
/// with `tcp_rmem`'s 6 MB, of which half is window.
const WINDOW_BYTES: u64 = 3 << 20;
/// Longest random delay of a flow's start. It depends on the seed, so that flows of
/// different seeds meet timers and policers at different phases.
const START_SPREAD: Span = Span::from_ns(1_000_000);

/// The TCP settings that sysctls determine for a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    pacing: Pacing,
    sack: bool,
    dsack: bool,
    timestamps: bool,
}

/// The properties of the network that a flow needs.
pub(super) struct Context<'a> {
    /// Settings, by host.
    pub tuning: &'a [Tuning],
    pub round_trip: Span,
    pub queue_paces: bool,
    /// Seed and stream.
    pub chance: (u64, u64),
}

/// Reads the sysctls of every host, and adds a note for each that is not modelled.
pub(super) fn sysctls(cell: &Cell, notes: &mut Vec<String>) -> Result<Vec<Tuning>, Refusal> {
    let usual = Tuning {
        pacing: Pacing::default(),
        sack: true,
        dsack: true,
        timestamps: true,
    };
    let mut all = vec![usual; cell.hosts.len()];
    for sysctl in &cell.sysctls {
        let tuning = &mut all[sysctl.host];
        let number = |sysctl: &Sysctl| {
            sysctl.value.parse::<u32>().map_err(|_| Refusal {
                place: sysctl.place.clone(),
                reason: format!("{} is {:?}, expected a number", sysctl.key, sysctl.value),
            })
        };
        match sysctl.key.as_str() {
            "net.ipv4.tcp_pacing_ss_ratio" => tuning.pacing.slow_start_pct = number(sysctl)?,
            "net.ipv4.tcp_pacing_ca_ratio" => tuning.pacing.avoidance_pct = number(sysctl)?,
            "net.ipv4.tcp_limit_output_bytes" => {
                tuning.pacing.limit_output_bytes = number(sysctl)?.into();
            }
            "net.ipv4.tcp_sack" => tuning.sack = number(sysctl)? > 0,
            "net.ipv4.tcp_dsack" => tuning.dsack = number(sysctl)? > 0,
            "net.ipv4.tcp_timestamps" => tuning.timestamps = number(sysctl)? > 0,
            key => {
                let note = format!("{}: sysctl {key} is not modelled", sysctl.place);
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
    }
    Ok(all)
}

/// Returns the configuration of a flow's connection. The handshake is not modelled:
/// the first segment leaves one idle round trip after the start.
pub(super) fn stream(
    cell: &Cell,
    flow: &Flow,
    context: &Context<'_>,
) -> Result<StreamConfig, Refusal> {
    let FlowKind::Tcp {
        congestion,
        window_bytes,
        pacing_bps,
        sample_ns,
        stack,
        bytes,
        messages,
    } = &flow.kind
    else {
        return Err(refuse(&flow.place, "not a TCP flow".to_owned()));
    };
    if messages.is_some() {
        let reason = format!(
            "flow `{}`: `message` is not modelled: a simulated program sends without a pause",
            flow.name
        );
        return Err(refuse(&flow.place, reason));
    }
    let (from, to) = (&context.tuning[flow.from], &context.tuning[flow.to]);
    let timestamps = from.timestamps && to.timestamps;
    let mtu = flow.path.iter().map(|hop| cell.cables[hop.cable].mtu).min();
    let headers = HEADER_BYTES + if timestamps { TIMESTAMPS_BYTES } else { 0 };
    let mss_bytes = mtu.unwrap_or(0).saturating_sub(headers).max(1);
    let window_bytes = window_bytes.unwrap_or(WINDOW_BYTES);
    let congestion = self::congestion(flow, congestion)?;
    let stack = stack.as_deref().unwrap_or(STACK);
    let Stack { mut sender, cpu } = self::stack(flow, stack, congestion)?;
    sender.mss_bytes = mss_bytes;
    sender.sack = from.sack && to.sack;
    sender.timestamps = timestamps;
    sender.handshake_rtt = Some(context.round_trip);
    sender.initial_window_bytes = window_bytes.min(65_535);
    // Linux doubles the requested buffer size, and accounts about one and a half
    // times its payload for a full frame.
    sender.send_buffer_bytes = window_bytes.saturating_mul(5) / 4;
    let receiver = ReceiverConfig {
        mss_bytes,
        buffer_bytes: window_bytes,
        window_scale: window_scale(window_bytes),
        sack: sender.sack,
        dsack: to.dsack,
        timestamps,
        ..ReceiverConfig::default()
    };
    sender.is_paced = context.queue_paces || pacing_bps.is_some();
    let modern = sender.variant.recovery == Recovery::RackPrr;
    let (seed, stream) = context.chance;
    let later = Rng::new(seed, stream).within(START_SPREAD);
    let connect = Time::START + Span::from_ns(flow.start_ns) + later;
    Ok(StreamConfig {
        sender,
        receiver,
        bytes: *bytes,
        cpu,
        pacing_max_bps: *pacing_bps,
        pacing: modern.then_some(from.pacing),
        queue_paces: context.queue_paces,
        sample: sample_ns.map(Span::from_ns),
        connect,
        start: connect + context.round_trip,
        stop: Time::START + Span::from_ns(flow.stop_ns),
    })
}

fn refuse(place: &Place, reason: String) -> Refusal {
    Refusal {
        place: place.clone(),
        reason,
    }
}

fn congestion(flow: &Flow, name: &str) -> Result<Congestion, Refusal> {
    match name {
        "reno" => Ok(Congestion::Reno),
        "bic" => Ok(Congestion::Bic),
        "cubic" => Ok(Congestion::Cubic),
        "vegas" => Ok(Congestion::Vegas),
        other => Err(refuse(
            &flow.place,
            format!(
                "flow `{}`: congestion is \"{other}\", the simulator knows reno, bic, cubic and vegas",
                flow.name
            ),
        )),
    }
}

/// Returns the smallest scale with which the window can be announced.
fn window_scale(bytes: u64) -> u8 {
    (0..14).find(|scale| bytes >> scale <= 65_535).unwrap_or(14)
}

/// The TCP sender of a host, and the processing cost of acknowledgements.
struct Stack {
    sender: SenderConfig,
    cpu: CpuCost,
}

/// Reads `NAME [KEY=VALUE ...]`: a kernel's TCP variant, and changes to it.
fn stack(flow: &Flow, stack: &str, congestion: Congestion) -> Result<Stack, Refusal> {
    let fault = |what: String| refuse(&flow.place, format!("flow `{}`: stack {what}", flow.name));
    let mut tokens = stack.split_ascii_whitespace();
    let name = tokens.next().unwrap_or_default();
    let Some(variant) = variant::by_name(name) else {
        let names: Vec<_> = variant::ALL.iter().map(|variant| variant.name).collect();
        return Err(fault(format!(
            "is {name:?}, expected one of {}",
            names.join(", ")
        )));
    };
    let mut config = Stack {
        sender: SenderConfig {
            congestion,
            initial_ssthresh: variant.initial_ssthresh(congestion),
            ..SenderConfig::new(variant)
        },
        cpu: CpuCost::default(),
    };
    for word in tokens {
        let set = word
            .split_once('=')
            .and_then(|(key, value)| tune(&mut config, key, value));
        set.ok_or_else(|| {
            fault(format!(
                "has {word:?}, expected initial_cwnd=N, initial_ssthresh=N, rto_min=TIME, \
                 tick=TIME, ack_cost=TIME, step_cost=TIME, abc=on|off, abc_counts_in_loss=on|off, skip_seen_blocks=on|off, \
                 sack_sort=right|loses-blocks, sack_scan=whole-queue|hints, sack_hint=any|first or \
                 lost_retransmission=block|highest|own-walk"
            ))
        })?;
    }
    Ok(config)
}

fn tune(stack: &mut Stack, key: &str, value: &str) -> Option<()> {
    let switch = match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    };
    let number = value.parse::<u32>().ok().filter(|n| *n > 0);
    let time = parse::time_ns(value).map(Span::from_ns);
    let config = &mut stack.sender;
    let variant = &mut config.variant;
    match key {
        "initial_cwnd" => config.initial_cwnd = number?,
        "initial_ssthresh" => config.initial_ssthresh = number?,
        "rto_min" => config.rto_min = time?,
        "tick" => config.tick = time?,
        "ack_cost" => stack.cpu.ack = time?,
        "step_cost" => stack.cpu.step = time?,
        "abc" => variant.abc = switch?,
        "abc_counts_in_loss" => variant.abc_counts_in_loss = switch?,
        "skip_seen_blocks" => variant.skip_seen_blocks = switch?,
        "sack_sort" => {
            variant.sack_sort = match value {
                "right" => SackSort::Right,
                "loses-blocks" => SackSort::LosesBlocks,
                _ => return None,
            }
        }
        "sack_scan" => {
            variant.sack_scan = match value {
                "whole-queue" => SackScan::WholeQueue,
                "hints" => SackScan::Hints,
                _ => return None,
            }
        }
        "sack_hint" => {
            variant.sack_hint = match value {
                "any" => SackHint::AfterAnyBlock,
                "first" => SackHint::AfterFirstBlock,
                _ => return None,
            }
        }
        "lost_retransmission" => {
            variant.lost_retransmission = match value {
                "block" => LostRetransmission::EndOfItsBlock,
                "highest" => LostRetransmission::HighestEndOfBlocks,
                "own-walk" => LostRetransmission::OwnWalk,
                _ => return None,
            }
        }
        _ => return None,
    }
    Some(())
}
