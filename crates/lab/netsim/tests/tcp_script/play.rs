// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plays a script against a sender.

use std::collections::VecDeque;

use netsim::tcp::{Congestion, SackBlock, Segment, Sender, SenderConfig, variant};
use sender_log::variables::State;
use units::clock::{Span, Time};

use super::{Event, Packet, Script, Step};

/// How far from the script's time a packet may leave: packetdrill's default, which also covers
/// timers of whole milliseconds.
const TOLERANCE: Span = Span::from_ns(5_000_000);
/// Largest payload of our segments on Ethernet.
const OWN_MSS: u64 = 1460;

/// Settings for a script that has none.
#[derive(Clone, Debug)]
pub struct Defaults {
    pub variant: &'static str,
    pub congestion: Congestion,
    /// Whether any unexpected packet is an error. For packetdrill it is only if something else
    /// is expected after it.
    pub strict: bool,
}

/// Plays a script to its end. The error names the line at which the sender differed.
pub fn play(script: &Script, defaults: &Defaults) -> Result<(), String> {
    let mut player = Player::new(script, defaults)?;
    for step in &script.steps {
        player
            .step(step)
            .map_err(|what| format!("line {}: {what}", step.line))?;
    }
    Ok(())
}

struct Player {
    config: SenderConfig,
    strict: bool,
    now: Time,
    /// The sender; `None` before the handshake ends.
    sender: Option<Sender>,
    /// When our last packet of the handshake left.
    handshake: Option<Time>,
    wscale: u32,
    left: VecDeque<(Time, Segment)>,
}

impl Player {
    fn new(script: &Script, defaults: &Defaults) -> Result<Player, String> {
        let known = |name: &str| variant::by_name(name).ok_or(format!("variant {name}"));
        let mut config = SenderConfig {
            congestion: defaults.congestion,
            sack: false,
            timestamps: false,
            restart_after_idle: false,
            ..SenderConfig::new(known(defaults.variant)?)
        };
        for (key, value) in &script.settings {
            let number = value.parse::<u32>().map_err(|_| format!("{key}={value}"));
            match (key.as_str(), value.as_str()) {
                ("variant", name) => {
                    config.variant = known(name)?;
                    config.initial_cwnd = config.variant.initial_cwnd;
                    config.congestion = config.variant.default_congestion;
                }
                ("congestion", "reno") => config.congestion = Congestion::Reno,
                ("congestion", "bic") => config.congestion = Congestion::Bic,
                ("congestion", "cubic") => config.congestion = Congestion::Cubic,
                ("tcp_slow_start_after_idle", _) => {
                    config.restart_after_idle = number? > 0;
                }
                ("cwnd", _) => config.initial_cwnd = number?,
                ("ssthresh", _) => config.initial_ssthresh = number?,
                _ => return Err(format!("setting {key}={value}")),
            }
        }
        Ok(Player {
            config,
            strict: defaults.strict,
            now: Time::START,
            sender: None,
            handshake: None,
            wscale: 0,
            left: VecDeque::new(),
        })
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        let base = if step.relative { self.now } else { Time::START };
        let at = base + step.at;
        if let Event::Leaves(packet) = &step.event {
            return self.leaves(packet, at, step.slack.unwrap_or(Span::ZERO));
        }
        self.run_until(at);
        let looks_only = matches!(step.event, Event::Asserts(_) | Event::Nothing);
        let surplus = self.left.front().filter(|_| self.strict && !looks_only);
        if let Some((time, segment)) = surplus {
            return Err(format!("at {time} left what was not expected: {segment:?}"));
        }
        self.now = at;
        match &step.event {
            Event::Arrives(packet) => self.arrives(packet),
            Event::Write(bytes) => self.with_sender(|sender, _| sender.write(*bytes)),
            Event::Close => self.with_sender(|sender, _| sender.close()),
            Event::Asserts(asserts) => self.asserts(asserts),
            Event::Nothing | Event::Leaves(_) => Ok(()),
        }
    }

    fn with_sender(&mut self, act: impl FnOnce(&mut Sender, Time)) -> Result<(), String> {
        let sender = self.sender.as_mut().ok_or("no connection yet")?;
        act(sender, self.now);
        self.poll();
        Ok(())
    }

    fn poll(&mut self) {
        if let Some(sender) = &mut self.sender {
            while let Some(segment) = sender.poll_transmit(self.now) {
                self.left.push_back((self.now, segment));
            }
        }
    }

    fn run_until(&mut self, at: Time) {
        while let Some(timer) = self.sender.as_ref().and_then(Sender::next_timer) {
            if timer > at {
                break;
            }
            self.now = self.now.max(timer);
            if let Some(sender) = &mut self.sender {
                sender.on_timer(self.now, &mut ());
            }
            self.poll();
        }
        self.now = self.now.max(at);
    }

    fn arrives(&mut self, packet: &Packet) -> Result<(), String> {
        if packet.flags.contains('S') {
            self.wscale = packet.wscale.unwrap_or(0);
            self.config.sack = packet.sack_ok;
            self.config.timestamps = packet.timestamps.is_some();
            self.config.mss_bytes = packet.mss.unwrap_or(536).min(OWN_MSS) as u32;
            if packet.flags.contains('.') {
                self.open(packet.window.unwrap_or(0)); // ours was the SYN
            }
            return Ok(());
        }
        let window = packet.window.unwrap_or(0) << self.wscale.min(14);
        if self.sender.is_none() {
            self.open(window);
            return Ok(());
        }
        if packet.len > 0 {
            return Err("cannot express: data from the peer".to_owned());
        }
        let mut segment = Segment {
            ack: packet.ack.saturating_sub(1),
            window_bytes: window,
            timestamps: packet
                .timestamps
                .map(|(value, echo)| (value as u32, echo as u32)),
            ..Segment::default()
        };
        for (slot, &(start, end)) in segment.sack.iter_mut().zip(&packet.sack) {
            *slot = SackBlock {
                start: start.saturating_sub(1),
                end: end.saturating_sub(1),
            };
            segment.sack_count += 1;
        }
        self.with_sender(|sender, now| sender.on_segment(now, &segment, &mut ()))
    }

    fn open(&mut self, window: u64) {
        self.config.initial_window_bytes = window;
        self.config.handshake_rtt = self.handshake.map(|at| self.now.since(at));
        self.sender = Some(Sender::new(&self.config));
    }

    fn leaves(&mut self, packet: &Packet, at: Time, slack: Span) -> Result<(), String> {
        if packet.flags.contains('S') {
            self.now = at;
            self.handshake = Some(at);
            return Ok(());
        }
        if packet.len == 0 && !packet.flags.contains('F') {
            return self.leaves_empty(at, slack);
        }
        let (mut next, end) = (packet.seq - 1, packet.seq - 1 + packet.len);
        let latest = at + slack + TOLERANCE;
        let mut first = None;
        loop {
            while self.left.is_empty() {
                let timer = self.sender.as_ref().and_then(Sender::next_timer);
                match timer.filter(|timer| *timer <= latest) {
                    Some(timer) => self.run_until(timer.max(self.now)),
                    None => return Err(format!("{next}..{end} did not leave, {}", self.state())),
                }
            }
            let Some((time, segment)) = self.left.pop_front() else {
                return Err("nothing left".to_owned());
            };
            let first = *first.get_or_insert(time);
            if segment.seq != next || segment.seq + u64::from(segment.len_bytes) > end {
                return Err(format!(
                    "expected {next}..{end}, at {time} left {segment:?}, {}",
                    self.state()
                ));
            }
            next += u64::from(segment.len_bytes);
            if next == end && segment.fin == packet.flags.contains('F') {
                self.now = self.now.max(first);
                let early = at.since(first) > TOLERANCE;
                let late = first > latest;
                return if early || late {
                    Err(format!("left at {first}, not at {at}"))
                } else {
                    Ok(())
                };
            }
        }
    }

    /// Expects an empty packet: a probe of a closed window, or an acknowledgement of the peer's
    /// data, which no sender makes.
    fn leaves_empty(&mut self, at: Time, slack: Span) -> Result<(), String> {
        self.run_until(at + slack);
        self.now = at;
        let is_probe = |segment: &Segment| segment.len_bytes == 0 && !segment.fin;
        if let Some((time, _)) = self.left.front().filter(|(_, segment)| is_probe(segment)) {
            self.now = *time;
            self.left.pop_front();
        }
        Ok(())
    }

    fn state(&self) -> String {
        format!("{:?}", self.sender.as_ref().map(Sender::vars))
    }

    fn asserts(&self, asserts: &[(String, u64)]) -> Result<(), String> {
        let vars = self
            .sender
            .as_ref()
            .map(Sender::vars)
            .ok_or("no connection yet")?;
        for (name, expected) in asserts {
            let value = match name.as_str() {
                "tcpi_ca_state" => match vars.state {
                    State::Open => 0,
                    State::Disorder => 1,
                    State::Cwr => 2,
                    State::Recovery => 3,
                    State::Loss => 4,
                },
                "tcpi_snd_cwnd" => vars.cwnd.into(),
                "tcpi_snd_ssthresh" => vars.ssthresh.into(),
                "tcpi_unacked" => vars.packets_out.into(),
                "tcpi_sacked" => vars.sacked_out.into(),
                "tcpi_lost" => vars.lost_out.into(),
                "tcpi_retrans" => vars.retrans_out.into(),
                "tcpi_reordering" => vars.reordering.into(),
                _ => return Err(format!("cannot express: {name}")),
            };
            if value != *expected {
                return Err(format!("{name} is {value}, not {expected}; {vars:?}"));
            }
        }
        Ok(())
    }
}
