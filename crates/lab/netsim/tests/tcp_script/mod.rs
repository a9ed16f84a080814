// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads packetdrill's notation, as far as it concerns a sender: what arrives, what must leave,
//! what the application does, and the sender's variables. Anything else is an error that names
//! it.

pub mod play;

use std::path::Path;

use units::clock::Span;

/// One line of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Line number for messages.
    pub line: usize,
    /// Whether `at` counts from the step before, else from the start.
    pub relative: bool,
    pub at: Span,
    /// How much later the event may be, where the script says so.
    pub slack: Option<Span>,
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An event of the socket that a sender does not see.
    Nothing,
    Write(u64),
    Close,
    Arrives(Packet),
    Leaves(Packet),
    /// `tcpi_...` and its value.
    Asserts(Vec<(String, u64)>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Packet {
    pub flags: String,
    pub seq: u64,
    pub len: u64,
    pub ack: u64,
    pub window: Option<u64>,
    pub mss: Option<u64>,
    pub sack_ok: bool,
    pub wscale: Option<u32>,
    pub timestamps: Option<(u64, u64)>,
    pub sack: Vec<(u64, u64)>,
}

/// A script: its settings and its steps.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Settings `key=value` of lines in back quotes that begin with `netsim`.
    pub settings: Vec<(String, String)>,
    pub steps: Vec<Step>,
}

/// Reads a script. The error names the line that it cannot express.
pub fn read(text: &str) -> Result<Script, String> {
    let mut script = Script::default();
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let line_number = index + 1;
        let fail = |what: &str| format!("line {line_number}: {what}");
        let mut line = strip(line).to_owned();
        if line.starts_with('`') {
            while line.matches('`').count() < 2 {
                let (_, more) = lines
                    .next()
                    .ok_or_else(|| fail("a shell line without end"))?;
                line.push(' ');
                line.push_str(more.trim());
            }
            settings(&line, &mut script);
            continue;
        }
        while line.contains("%{") && !line.contains("}%") {
            let (_, more) = lines.next().ok_or_else(|| fail("assertions without end"))?;
            line.push('\n');
            line.push_str(more.split('#').next().unwrap_or(""));
        }
        if line.is_empty() {
            continue;
        }
        let (time, event) = line
            .split_once(char::is_whitespace)
            .ok_or_else(|| fail(&line))?;
        let (relative, at, slack) = time_of(time).ok_or_else(|| fail(time))?;
        let event = event_of(event.trim()).map_err(|what| fail(&what))?;
        script.steps.push(Step {
            line: line_number,
            relative,
            at,
            slack,
            event,
        });
    }
    Ok(script)
}

fn strip(line: &str) -> &str {
    line.split("//").next().unwrap_or("").trim()
}

fn settings(line: &str, script: &mut Script) {
    let mut words = line.trim_matches('`').split_whitespace();
    let ours = words.next() == Some("netsim");
    for (key, value) in words.filter_map(|word| word.split_once('=')) {
        let sysctl = Path::new(key).file_name() == Some("tcp_slow_start_after_idle".as_ref());
        if ours || sysctl {
            let key = key.trim_start_matches("/proc/sys/net/ipv4/");
            script.settings.push((key.to_owned(), value.to_owned()));
        }
    }
}

/// Reads a time such as `+.1`, `0`, `+.1~+.105` or `+0...0.010`.
fn time_of(word: &str) -> Option<(bool, Span, Option<Span>)> {
    let seconds = |text: &str| {
        let value: f64 = text.trim_start_matches('+').parse().ok()?;
        (0.0..1e6)
            .contains(&value)
            .then(|| Span::from_ns((value * 1e9).round() as u64))
    };
    let relative = word.starts_with('+');
    if let Some((at, _)) = word.split_once("...") {
        return Some((relative, seconds(at)?, None));
    }
    match word.split_once('~') {
        Some((from, to)) => {
            let (from, to) = (seconds(from)?, seconds(to)?);
            Some((relative, from, Some(to - from)))
        }
        None => Some((relative, seconds(word)?, None)),
    }
}

fn event_of(text: &str) -> Result<Event, String> {
    if let Some(packet) = text.strip_prefix('<') {
        return packet_of(packet).map(Event::Arrives);
    }
    if let Some(packet) = text.strip_prefix('>') {
        return packet_of(packet).map(Event::Leaves);
    }
    if let Some(code) = text.strip_prefix("%{") {
        let code = code.split("}%").next().unwrap_or("");
        return asserts(code).map(Event::Asserts);
    }
    let call = text.split('(').next().unwrap_or("");
    match call {
        "socket" | "bind" | "listen" | "accept" | "connect" | "setsockopt" | "fcntl" | "poll" => {
            Ok(Event::Nothing)
        }
        "close" => Ok(Event::Close),
        "write" | "send" => {
            let result = text.rsplit('=').next().unwrap_or("").trim();
            result
                .parse()
                .map(Event::Write)
                .map_err(|_| text.to_owned())
        }
        _ => Err(format!("cannot express: {text}")),
    }
}

/// Reads `assert tcpi_x == value, ...`; nothing else is allowed.
fn asserts(code: &str) -> Result<Vec<(String, u64)>, String> {
    let mut all = Vec::new();
    for line in code.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let cannot = || format!("cannot express: {line}");
        let condition = line.strip_prefix("assert ").ok_or_else(cannot)?;
        let condition = condition.split(',').next().unwrap_or("");
        let (name, value) = condition.split_once("==").ok_or_else(cannot)?;
        let value = match value.trim() {
            "TCP_CA_Open" => 0,
            "TCP_CA_Disorder" => 1,
            "TCP_CA_CWR" => 2,
            "TCP_CA_Recovery" => 3,
            "TCP_CA_Loss" => 4,
            number => number.parse().map_err(|_| cannot())?,
        };
        all.push((name.trim().to_owned(), value));
    }
    Ok(all)
}

/// Reads a packet such as `P. 1:1001(1000) ack 1 win 320 <sack 1:2,nop,nop>`.
fn packet_of(text: &str) -> Result<Packet, String> {
    let cannot = || format!("cannot express: {text}");
    let (head, options) = text.split_once('<').unwrap_or((text, ""));
    let mut words = head.split_whitespace();
    let mut packet = Packet {
        flags: words.next().ok_or_else(cannot)?.to_owned(),
        ..Packet::default()
    };
    if packet.flags.starts_with('[') || packet.flags.contains(|c: char| !"SFP.WE".contains(c)) {
        return Err(cannot());
    }
    let (from, to) = words
        .next()
        .and_then(|w| w.split_once(':'))
        .ok_or_else(cannot)?;
    packet.seq = from.parse().map_err(|_| cannot())?;
    let len = to.split(['(', ')']).nth(1).ok_or_else(cannot)?;
    packet.len = len.parse().map_err(|_| cannot())?;
    while let Some(word) = words.next() {
        let value = words
            .next()
            .and_then(|word| word.parse().ok())
            .ok_or_else(cannot)?;
        match word {
            "ack" => packet.ack = value,
            "win" => packet.window = Some(value),
            _ => return Err(cannot()),
        }
    }
    for option in options.trim_end().trim_end_matches('>').split(',') {
        option_of(option.trim(), &mut packet).ok_or_else(cannot)?;
    }
    Ok(packet)
}

fn option_of(option: &str, packet: &mut Packet) -> Option<()> {
    let mut words = option.split_whitespace();
    match words.next() {
        None | Some("nop" | "eol" | "...") => {}
        Some("sackOK") => packet.sack_ok = true,
        Some("mss") => packet.mss = Some(words.next()?.parse().ok()?),
        Some("wscale") => packet.wscale = Some(words.next()?.parse().ok()?),
        Some("TS") => {
            let value = words.nth(1)?.parse().ok()?;
            packet.timestamps = Some((value, words.nth(1)?.parse().ok()?));
        }
        Some("sack") => {
            for block in words {
                let (start, end) = block.split_once(':')?;
                packet.sack.push((start.parse().ok()?, end.parse().ok()?));
            }
        }
        Some(_) => return None,
    }
    Some(())
}
