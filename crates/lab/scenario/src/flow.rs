// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `[[flow]]`: who sends what to whom, over which path.

use toml_reader::{Error, quote};

use crate::expr::Env;
use crate::flow_kind::{FlowKind, Launch, Messages, OnOff, Pattern, Spread};
use crate::model::{Cell, Direction, Flow, Layer, Target};
use crate::reader::{Fill, Section};
use crate::tables::{
    Names, Reading, find, host, is_word, reference, required, sink_on, span, within,
};
use crate::topology;

const FLOW: &[&str] = &[
    "name",
    "type",
    "from",
    "to",
    "port",
    "start",
    "stop",
    "payload",
    "batch",
    "class",
    "classes",
    "ports",
    "sockets",
    "turn",
    "buffer",
    "on",
    "off",
    "ahead",
    "slack",
    "txtime",
    "jitter",
    "lead",
    "rate",
    "congestion",
    "window",
    "pacing_rate",
    "sample",
    "stack",
    "bytes",
    "message",
    "every",
    "target",
    "layer",
    "when",
    "each",
];
/// Keys that only some types have.
const ONLY: &[(&str, &[&str])] = &[
    ("payload", &["udp", "pktgen"]),
    ("rate", &["udp", "pktgen"]),
    ("batch", &["udp"]),
    ("class", &["udp"]),
    ("classes", &["udp"]),
    ("ports", &["udp"]),
    ("sockets", &["udp"]),
    ("turn", &["udp"]),
    ("buffer", &["udp"]),
    ("on", &["udp"]),
    ("off", &["udp"]),
    ("ahead", &["udp"]),
    ("slack", &["udp"]),
    ("txtime", &["udp"]),
    ("jitter", &["udp"]),
    ("lead", &["udp"]),
    ("congestion", &["tcp"]),
    ("window", &["tcp"]),
    ("pacing_rate", &["tcp"]),
    ("sample", &["tcp"]),
    ("stack", &["tcp"]),
    ("bytes", &["tcp"]),
    ("message", &["tcp"]),
    ("every", &["tcp"]),
];
const TYPES: [&str; 3] = ["udp", "tcp", "pktgen"];

const NAME: &str = "a name of letters, digits, `.`, `_` and `-`, a letter or digit first, not \"each\" or \"wire\"";

/// First source port; flows count up from it. The ports are below the kernel's ephemeral ones,
/// so that no other socket has them.
const SOURCE_PORT: u16 = 20_001;
/// First default destination port; flows count up from it.
const PORT: u64 = 5_001;
/// Most flows of a cell: the guest keeps a socket and a port for each.
const FLOWS_MAX: usize = 4_096;

/// Length of the IPv4 and UDP headers.
const UDP_HEADERS: u32 = 28;
/// Length of the sequence number and time in every datagram, see lab/send.
const PAYLOAD_MIN: u32 = 16;
/// Largest UDP payload of IPv4.
const PAYLOAD_MAX: u32 = 65_507;

/// Reads every flow of a cell whose hosts and cables are known.
pub(crate) fn read(
    reading: &Reading<'_>,
    cell: &mut Cell,
    env: &Env,
    clamp: bool,
) -> Result<(), Error> {
    let mut names = Names::default();
    reading.each_repetition("flow", "[[flow]]", FLOW, env, |section| {
        let fits = |name: &str| is_word(name, 63) && name != "each" && name != "wire";
        let name = names.take(section, NAME, fits)?;
        if cell.flows.len() == FLOWS_MAX {
            let expected = format!("at most {FLOWS_MAX} flows");
            return Err(section.require("name", &expected)?.fault(&expected));
        }
        let flow = flow(section, cell, name, clamp)?;
        cell.flows.push(flow);
        Ok(())
    })
}

fn flow(section: &Section<'_, '_>, cell: &Cell, name: String, clamp: bool) -> Result<Flow, Error> {
    let index = u16::try_from(cell.flows.len()).unwrap_or(u16::MAX);
    let kind = reference(section, "type", "type of flow", TYPES.into_iter())?;
    check_keys(section, TYPES[kind])?;
    let from = host(section, "from", cell)?;
    let (to, nth) = destination(section, cell)?;
    let path = path(section, cell, from, to)?;
    let (first, last) = match (path.first(), path.last()) {
        (Some(first), Some(last)) => (*first, *last),
        _ => {
            let expected = "another host than `from`";
            return Err(section.require("to", expected)?.fault(expected));
        }
    };
    let kind = kind_of(section, cell, TYPES[kind], &path)?;
    let port = section.number("port", 1..65_536)?;
    let port = port.unwrap_or(PORT + u64::from(index));
    let (start_ns, stop_ns) = span(section, "start", "stop", cell.duration_ns, clamp)?;
    Ok(Flow {
        name,
        kind,
        from,
        to,
        source: topology::address(first.cable, first.end, 0),
        source_port: SOURCE_PORT.saturating_add(index),
        destination: topology::address(last.cable, last.end.other(), nth),
        port: u16::try_from(port).unwrap_or(u16::MAX),
        start_ns,
        stop_ns,
        target: target(section)?,
        path,
        place: section.table.place(),
    })
}

fn check_keys(section: &Section<'_, '_>, kind: &str) -> Result<(), Error> {
    for (key, kinds) in ONLY {
        if let Some(item) = section.get(key).filter(|_| !kinds.contains(&kind)) {
            let kinds = kinds.join(" and ");
            return Err(item.fault(&format!(
                "nothing: only {kinds} flows have it, this is {kind}"
            )));
        }
    }
    Ok(())
}

/// Returns the host, and the number of its address from 0, of `HOST` or `HOST#N` (its N-th
/// address).
fn destination(section: &Section<'_, '_>, cell: &Cell) -> Result<(usize, u8), Error> {
    let expected = "a host, or \"HOST#N\" for its N-th address";
    let item = section.require("to", expected)?;
    let text = item.filled(section.env, expected)?;
    let (name, nth) = text.split_once('#').unwrap_or((&text, "1"));
    let names = cell.hosts.iter().map(|host| host.name.as_str());
    let to = find(item, name, "host", names)?;
    let addresses = cell.hosts[to].addresses;
    match nth.parse::<u8>() {
        Ok(nth) if (1..=addresses).contains(&nth) => Ok((to, nth - 1)),
        _ => Err(item.fault_of(
            &quote(&text),
            &format!("an address number from 1 to {addresses}, the host's `addresses`"),
        )),
    }
}

fn path(
    section: &Section<'_, '_>,
    cell: &Cell,
    from: usize,
    to: usize,
) -> Result<Vec<Direction>, Error> {
    match topology::path(&cell.cables, cell.hosts.len(), from, to) {
        Some(path) => Ok(path),
        None => {
            let from = &cell.hosts[from].name;
            let expected = format!("a host that cables connect with `{from}`");
            Err(section.require("to", &expected)?.fault(&expected))
        }
    }
}

fn kind_of(
    section: &Section<'_, '_>,
    cell: &Cell,
    kind: &str,
    path: &[Direction],
) -> Result<FlowKind, Error> {
    if kind == "tcp" {
        return tcp(section, cell, path);
    }
    let mtus = path.iter().map(|hop| cell.cables[hop.cable].mtu);
    let largest = mtus
        .min()
        .unwrap_or(0)
        .saturating_sub(UDP_HEADERS)
        .min(PAYLOAD_MAX);
    let payload_bytes = match section.size("payload")? {
        None => largest,
        Some(bytes) => u32::try_from(bytes).unwrap_or(u32::MAX),
    };
    if !(PAYLOAD_MIN..=largest).contains(&payload_bytes) {
        let expected = format!("\"{PAYLOAD_MIN}b\" to \"{largest}b\", what the MTU has room for");
        return Err(section.require("payload", &expected)?.fault(&expected));
    }
    let rate_bps = match section.text("rate")?.as_deref() {
        None | Some("max") => None,
        Some(_) => section.rate("rate")?,
    };
    if kind == "pktgen" {
        return Ok(FlowKind::Pktgen {
            payload_bytes,
            rate_bps,
        });
    }
    let batch = section.number("batch", 1..65)?.unwrap_or(1);
    let batch = u32::try_from(batch).unwrap_or(1);
    if batch * payload_bytes > PAYLOAD_MAX {
        let expected = format!("at most {} of this payload", PAYLOAD_MAX / payload_bytes);
        return Err(section.require("batch", &expected)?.fault(&expected));
    }
    let buffer_bytes = section.size("buffer")?;
    within(
        section,
        "buffer",
        buffer_bytes.unwrap_or(1 << 12),
        1 << 12,
        1 << 30,
    )?;
    Ok(FlowKind::Udp {
        payload_bytes,
        batch,
        rate_bps,
        spread: spread(section)?,
        buffer_bytes: buffer_bytes.and_then(|bytes| u32::try_from(bytes).ok()),
        on_off: on_off(section)?,
        pattern: pattern(section, rate_bps)?,
        launch: launch(section, batch, rate_bps)?,
    })
}

/// Returns how a flow with a rate begins and keeps to it.
fn pattern(section: &Section<'_, '_>, rate_bps: Option<u64>) -> Result<Pattern, Error> {
    if rate_bps.is_none() {
        for key in ["ahead", "slack"] {
            if let Some(item) = section.get(key) {
                return Err(item.fault("nothing: only flows with a `rate` have it"));
            }
        }
    }
    let ahead = section.number("ahead", 0..1_000_001)?.unwrap_or(0);
    let slack_ns = section.time("slack")?.unwrap_or(0);
    within(section, "slack", slack_ns, 0, 1_000_000_000)?;
    Ok(Pattern {
        ahead: u32::try_from(ahead).unwrap_or(u32::MAX),
        slack_ns,
    })
}

/// Returns how the datagrams get launch times: one each, at the flow's rate.
fn launch(
    section: &Section<'_, '_>,
    batch: u32,
    rate_bps: Option<u64>,
) -> Result<Option<Launch>, Error> {
    let lead_ns = section.time("lead")?;
    let jitter_ns = section.time("jitter")?.unwrap_or(0);
    if section.get("txtime").is_none() {
        let stray = section.get("lead").or_else(|| section.get("jitter"));
        return match stray {
            Some(item) => Err(item.fault("nothing: only flows with `txtime` have it")),
            None => Ok(None),
        };
    }
    let clocks = ["monotonic", "tai"];
    let clock = clocks[reference(section, "txtime", "clock", clocks.into_iter())?];
    if batch > 1 {
        let expected = "1, because each datagram has a launch time";
        return Err(section.require("batch", expected)?.fault(expected));
    }
    if let Some(item) = section.get("ports") {
        return Err(item.fault("nothing: a flow with `txtime` goes to one port"));
    }
    if rate_bps.is_none() {
        let expected = "a rate, because launch times follow one another at it";
        return Err(section.require("rate", expected)?.fault(expected));
    }
    within(section, "lead", lead_ns.unwrap_or(0), 0, 1_000_000_000)?;
    within(section, "jitter", jitter_ns, 0, 1_000_000_000)?;
    Ok(Some(Launch {
        clock,
        jitter_ns,
        lead_ns: lead_ns.unwrap_or(1_000_000),
    }))
}

/// Returns the alternating times of sending and of silence.
fn on_off(section: &Section<'_, '_>) -> Result<Option<OnOff>, Error> {
    let (on_ns, off_ns) = (section.time("on")?, section.time("off")?);
    let longest = 1_000_000_000_000;
    within(section, "on", on_ns.unwrap_or(1), 1, longest)?;
    within(section, "off", off_ns.unwrap_or(1), 1, longest)?;
    match (on_ns, off_ns) {
        (None, None) => Ok(None),
        (Some(on_ns), Some(off_ns)) => Ok(Some(OnOff { on_ns, off_ns })),
        (Some(_), None) => Err(section.missing("off", "the time of silence after each `on`")),
        (None, Some(_)) => Err(section.missing("on", "the time of sending before each `off`")),
    }
}

fn spread(section: &Section<'_, '_>) -> Result<Spread, Error> {
    let first = match section.get("class") {
        None => None,
        Some(item) => {
            let expected = "a class id as tc writes it, such as \"1:10\"";
            let text = item.filled(section.env, expected)?;
            let class = class_id(&text).ok_or_else(|| item.fault_of(&quote(&text), expected))?;
            Some(class)
        }
    };
    let minor = first.map_or(u64::from(u16::MAX), |class| u64::from(class & 0xffff));
    let classes = section.number("classes", 1..0x1_0001 - minor)?;
    let port = section.number("port", 1..65_536)?.unwrap_or(PORT);
    let ports = section.number("ports", 1..65_537 - port)?;
    let (sockets, turn_ns) = turns(section)?;
    let narrow = |number: Option<u64>| u16::try_from(number.unwrap_or(1)).unwrap_or(u16::MAX);
    Ok(Spread {
        class: first,
        classes: narrow(classes),
        ports: narrow(ports),
        sockets: narrow(sockets),
        turn_ns,
    })
}

/// Returns the number of sockets that send one after the other, and for how long each does.
fn turns(section: &Section<'_, '_>) -> Result<(Option<u64>, u64), Error> {
    let sockets = section.number("sockets", 1..65)?;
    let turn_ns = section.time("turn")?;
    within(section, "turn", turn_ns.unwrap_or(1), 1, 1_000_000_000_000)?;
    let turn_ns = match (sockets, turn_ns) {
        (None, None) => return Ok((None, 0)),
        (Some(_), Some(turn_ns)) => turn_ns,
        (Some(_), None) => {
            return Err(section.missing("turn", "the time for which each of the `sockets` sends"));
        }
        (None, Some(_)) => {
            return Err(section.missing("sockets", "the number of sockets that send in turn"));
        }
    };
    for key in ["classes", "ports", "ahead", "txtime"] {
        if let Some(item) = section.get(key) {
            return Err(item.fault("nothing: a flow with `sockets` has no such key"));
        }
    }
    Ok((sockets, turn_ns))
}

/// Parses `MAJOR:MINOR`, both hexadecimal and not 0.
fn class_id(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    let part = |text: &str| {
        let number = u16::from_str_radix(text, 16).ok()?;
        (number > 0 && !text.starts_with('+')).then_some(u32::from(number))
    };
    Some((part(major)? << 16) | part(minor)?)
}

fn tcp(section: &Section<'_, '_>, cell: &Cell, path: &[Direction]) -> Result<FlowKind, Error> {
    if let Some(cable) = sink_on(cell, path) {
        let expected = format!(
            "udp or pktgen: nothing answers from `{}`, a sink",
            cable.name
        );
        return Err(section.require("type", &expected)?.fault(&expected));
    }
    let expected = "the name of a congestion control, such as \"cubic\"";
    let congestion = section
        .text("congestion")?
        .unwrap_or_else(|| "cubic".into());
    if !is_word(&congestion, 15) {
        return Err(section.require("congestion", expected)?.fault(expected));
    }
    let window_bytes = section.size("window")?;
    within(section, "window", window_bytes.unwrap_or(1), 1, 1 << 30)?;
    let pacing_bps = section.rate("pacing_rate")?;
    let pacing = pacing_bps.unwrap_or(1_000);
    within(section, "pacing_rate", pacing, 1_000, 1_000_000_000_000)?;
    let sample_ns = section.time("sample")?;
    let sample = sample_ns.unwrap_or(1_000_000);
    within(section, "sample", sample, 1_000_000, 1_000_000_000_000)?;
    let bytes = section.size("bytes")?;
    within(section, "bytes", bytes.unwrap_or(1), 1, 1 << 50)?;
    Ok(FlowKind::Tcp {
        congestion,
        window_bytes,
        pacing_bps,
        sample_ns,
        stack: section.text("stack")?,
        bytes,
        messages: messages(section)?,
    })
}

/// Returns the length and interval of a program's messages.
fn messages(section: &Section<'_, '_>) -> Result<Option<Messages>, Error> {
    let (bytes, every_ns) = (section.size("message")?, section.time("every")?);
    within(section, "message", bytes.unwrap_or(1), 1, 1 << 30)?;
    within(
        section,
        "every",
        every_ns.unwrap_or(1),
        1,
        1_000_000_000_000,
    )?;
    match (bytes, every_ns) {
        (None, None) => Ok(None),
        (Some(bytes), Some(every_ns)) => Ok(Some(Messages { bytes, every_ns })),
        (Some(_), None) => Err(section.missing("every", "the time from one `message` to the next")),
        (None, Some(_)) => Err(section.missing("message", "what is sent at once `every` so often")),
    }
}

fn target(section: &Section<'_, '_>) -> Result<Option<Target>, Error> {
    let layer = match section.get("layer") {
        None => Layer::default(),
        Some(_) => {
            let names = ["link", "wire", "ip"];
            let layer = reference(section, "layer", "layer", names.into_iter())?;
            required(
                section,
                "target",
                section.rate("target")?,
                "the rate that `layer` is about",
            )?;
            [Layer::Link, Layer::Wire, Layer::Ip][layer]
        }
    };
    let rate_bps = section.rate("target")?;
    Ok(rate_bps.map(|rate_bps| Target { rate_bps, layer }))
}
