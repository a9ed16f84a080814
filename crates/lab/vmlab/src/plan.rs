// SPDX-License-Identifier: MIT OR Apache-2.0
//! Translates a cell into the steps of the guest's agent (`docs/use/formats.md`, "Plan").
//!
//! The steps build every cell from nothing and take it down again, so that no cell sees what
//! another has left. Names inside the archive begin with `cell-N/`.

mod host_file;
mod impair;
mod later_tc;
mod network;
mod programs;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use scenario::topology::{hardware_address, leaving};
use scenario::{Backend, Cell, Direction, End, Flow, FlowKind, Pattern, Program, TcLine};
use units::ethernet::{HEADER_BYTES, IPV4_HEADER_BYTES, UDP_HEADER_BYTES};
use units::time::{PS_PER_NS, duration_ps};

use crate::error::Error;
use crate::host_command::COMMAND;
use crate::reports::tc_lists;

/// Socket buffer of UDP flows that set none, in bytes. It is so large that a class has packets
/// while the sender waits for the CPU: the kernel's default holds some 90 frames, 2 ms at 500
/// Mbit/s.
const SNDBUF_BYTES: u32 = 1 << 20;
const WIRE: &str = "/sys/kernel/debug/wire";
/// Time from the last preparation to t = 0, so that every sender is waiting by then.
const AHEAD_NS: u64 = 100_000_000;
/// Time that a program needs to start.
const START_NS: u64 = 30_000_000;
/// Time that a program which should have ended may still take, in seconds.
const GRACE_S: u64 = 10;
/// Fewest `tc` lines in a row that one `tc -batch` process executes.
const BATCH_MIN: usize = 8;
/// Bytes of the Ethernet, IPv4 and UDP headers.
const UDP_FRAME: u32 = HEADER_BYTES + IPV4_HEADER_BYTES + UDP_HEADER_BYTES;

/// The steps of a cell, and the files that they refer to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The steps, one a line.
    pub steps: String,
    /// Where the steps begin that take the cell down, in bytes.
    pub take_down: usize,
    /// The files: path inside the guest, without the leading `/`, and text.
    pub files: BTreeMap<String, String>,
}

/// Returns the steps that set a cell up, run it, keep its records and take it down.
///
/// # Errors
/// If no host's file can say what a line with `backend = "bpf"` says.
pub(crate) fn plan(cell: &Cell, seed: u64) -> Result<Plan, Error> {
    let mut writer = Writer {
        cell,
        plan: Plan::default(),
        later: Vec::new(),
    };
    writer.step(format_args!("say cell {} begin", cell.index));
    writer.network();
    writer.offloads();
    writer.tc_before();
    writer.host_files()?;
    let mut timed = writer.impairments(seed);
    timed.extend(writer.programs());
    timed.extend(writer.idle());
    let senders = writer.senders();
    // A frozen program continues before the plan waits for its end.
    timed.extend(writer.freezes());
    timed.extend(senders);
    writer.noise(seed);
    for cable in &cell.cables {
        writer.run(format_args!("echo 1 > {WIRE}/{}/reset", cable.name));
    }
    timed.extend(writer.later_tc());
    let ahead_ns = AHEAD_NS + START_NS * writer.later.len() as u64;
    writer.step(format_args!("zero {ahead_ns}"));
    timed.sort_by_key(|(at_ns, _)| *at_ns);
    writer.timed(&timed);
    writer.wait_for_tc();
    writer.results();
    writer.plan.take_down = writer.plan.steps.len();
    writer.take_down();
    writer.step(format_args!("say cell {} end", cell.index));
    Ok(writer.plan)
}

/// An instant after t = 0, and the step that is due then. `None`: the step follows `zero` at once,
/// ahead of t = 0.
type Timed = (Option<u64>, String);

struct Writer<'a> {
    cell: &'a Cell,
    plan: Plan,
    /// Started for lines of tc while the cell runs.
    later: Vec<String>,
}

impl Writer<'_> {
    fn step(&mut self, step: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.plan.steps, "{step}");
    }

    fn run(&mut self, command: std::fmt::Arguments<'_>) {
        self.step(format_args!("run {command}"));
    }

    fn host(&self, host: usize) -> &str {
        &self.cell.hosts[host].name
    }

    /// Returns the name of the device from which frames of the direction `hop` leave.
    fn device(&self, hop: Direction) -> &str {
        &self.cell.cables[hop.cable].ends[hop.end.index()].name
    }

    /// Returns the name of a started command or of a file in `/out`, unique in the boot.
    fn name(&self, rest: &str) -> String {
        format!("cell-{}.{rest}", self.cell.index)
    }

    /// Adds a file of lines and returns its path.
    fn file(&mut self, name: &str, lines: &[String]) -> String {
        let path = format!("cells/{}/{name}", self.cell.index);
        self.plan
            .files
            .insert(path.clone(), lines.join("\n") + "\n");
        path
    }

    fn tc_before(&mut self) {
        let lines: Vec<&TcLine> = self
            .cell
            .tc
            .iter()
            .filter(|line| line.at_ns.is_none() && line.backend == Backend::Module)
            .collect();
        let alike =
            |a: &&TcLine, b: &&TcLine| a.host == b.host && is_plain(&a.args) == is_plain(&b.args);
        for (number, run) in lines.chunk_by(alike).enumerate() {
            let host = self.host(run[0].host).to_owned();
            if run.len() >= BATCH_MIN && is_plain(&run[0].args) {
                let lines: Vec<String> = run.iter().map(|line| line.args.join(" ")).collect();
                let path = self.file(&format!("tc.{number}.{host}"), &lines);
                self.run(format_args!("tc -n {host} -batch /{path}"));
                continue;
            }
            for line in run {
                let command = tc_command(&host, line);
                self.run(format_args!("{command}"));
            }
        }
    }

    /// Applies the files of the hosts whose psp is of BPF.
    fn host_files(&mut self) -> Result<(), Error> {
        for host in 0..self.cell.hosts.len() {
            let lines = self.cell.tc.iter().filter(|line| line.host == host);
            let lines: Vec<&TcLine> = lines.filter(|l| l.backend == Backend::Bpf).collect();
            if lines.is_empty() {
                continue;
            }
            let text = host_file::of_lines(&lines)?;
            let host = self.host(host).to_owned();
            let path = self.file(&format!("host.{host}.toml"), &text);
            self.run(format_args!(
                "ip netns exec {host} {COMMAND} apply /{path} > /out/{}",
                self.name(&format!("apply.{host}"))
            ));
        }
        Ok(())
    }

    /// Returns the steps that keep the CPU's idle time at the instants where windows begin and end.
    fn idle(&self) -> Vec<Timed> {
        let windows = self.cell.windows.iter();
        let instants: BTreeSet<u64> = windows.flat_map(|w| [w.from_ns, w.to_ns]).collect();
        let keep = |at_ns: u64| {
            let name = format!("cell-{}/idle.{at_ns}", self.cell.index);
            (Some(at_ns), format!("keep {WIRE}/idle {name}"))
        };
        instants.into_iter().map(keep).collect()
    }

    fn noise(&mut self, seed: u64) {
        if let Some(noise) = &self.cell.noise {
            self.run(format_args!(
                "echo hold_max_ns={} every_ns={} seed={seed} > {WIRE}/noise",
                noise.hold_max_ns, noise.every_ns
            ));
        }
    }

    /// Starts the receivers, prepares the senders, and returns the steps that start and stop the
    /// senders.
    fn senders(&mut self) -> Vec<Timed> {
        self.udp_receivers();
        self.tcp_receivers();
        let mut timed = Vec::new();
        for host in 0..self.cell.hosts.len() {
            timed.extend(self.sender(host));
            timed.extend(self.pktgen(host));
        }
        timed
    }

    /// Starts the UDP receivers: one for each run of consecutive ports of a host that receives
    /// datagrams.
    fn udp_receivers(&mut self) {
        let mut ports: BTreeMap<usize, Vec<u16>> = BTreeMap::new();
        for flow in &self.cell.flows {
            let heard = flow
                .path
                .iter()
                .all(|hop| !self.cell.cables[hop.cable].sink);
            if flow.kind.protocol() == "udp" && heard {
                ports.entry(flow.to).or_default().push(flow.port);
            }
        }
        for (host, ports) in ports {
            self.receivers(host, "recv", ports, "");
        }
    }

    /// Starts the TCP receivers. TCP's receive buffer is set before a connection exists, so flows
    /// with different windows have receivers in different processes.
    fn tcp_receivers(&mut self) {
        let mut ports: BTreeMap<(usize, Option<u64>), Vec<u16>> = BTreeMap::new();
        for flow in &self.cell.flows {
            if let FlowKind::Tcp { window_bytes, .. } = flow.kind {
                let ports = ports.entry((flow.to, window_bytes)).or_default();
                ports.push(flow.port);
            }
        }
        for ((host, window_bytes), ports) in ports {
            let window =
                window_bytes.map_or_else(String::new, |bytes| format!(" --rcvbuf {bytes}"));
            self.receivers(host, "server", ports, &format!(" --tcp{window}"));
        }
    }

    fn receivers(&mut self, host: usize, kind: &str, mut ports: Vec<u16>, options: &str) {
        ports.sort_unstable();
        ports.dedup();
        let host = self.host(host).to_owned();
        for run in ports.chunk_by(|a, b| u32::from(*a) + 1 == u32::from(*b)) {
            let name = self.name(&format!("{kind}.{host}.{}", run[0]));
            self.step(format_args!(
                "start {name} ip netns exec {host} psp-recv --port {} --count {}{options}",
                run[0],
                run.len()
            ));
        }
    }

    /// Prepares one sender for all sockets of a host. The sender ends by itself.
    fn sender(&mut self, host: usize) -> Vec<Timed> {
        let flows = self.cell.flows.iter().filter(|flow| flow.from == host);
        let specs: Vec<String> = flows.clone().filter_map(flow_spec).collect();
        if specs.is_empty() {
            return Vec::new();
        }
        let sampled = |flow: &Flow| {
            matches!(
                flow.kind,
                FlowKind::Tcp {
                    sample_ns: Some(_),
                    ..
                }
            )
        };
        let samples = if flows.clone().any(sampled) {
            format!(" --samples /out/{}", self.name(""))
        } else {
            String::new()
        };
        let buffer = |flow: &Flow| match flow.kind {
            FlowKind::Udp { buffer_bytes, .. } => buffer_bytes,
            _ => None,
        };
        let sndbuf_bytes = flows.filter_map(buffer).max().unwrap_or(SNDBUF_BYTES);
        let name = self.host(host).to_owned();
        let path = self.file(&format!("flows.{name}"), &specs);
        let job = self.name(&format!("send.{name}"));
        let start = format!(
            "start {job} ip netns exec {name} psp-send --epoch-ns $ZERO_NS --stop-ns {} \
             --sndbuf {sndbuf_bytes}{samples} --flows /{path}",
            self.cell.duration_ns
        );
        let end = format!("wait {job} {GRACE_S}");
        vec![(None, start), (Some(self.cell.duration_ns), end)]
    }

    /// Returns the steps that freeze and thaw a host's senders or receivers. They find the
    /// receivers among the steps that are already written.
    fn freezes(&self) -> Vec<Timed> {
        let mut timed = Vec::new();
        for freeze in &self.cell.freezes {
            let host = self.host(freeze.host);
            let jobs = match freeze.program {
                Program::Sender => vec![self.name(&format!("send.{host}"))],
                Program::Receiver => self.receiving(Some(host)),
            };
            for job in jobs {
                timed.push((Some(freeze.from_ns), format!("freeze {job}")));
                timed.push((Some(freeze.to_ns), format!("thaw {job}")));
            }
        }
        timed
    }

    /// Returns the receivers that the plan starts, of one host or of all.
    fn receiving(&self, host: Option<&str>) -> Vec<String> {
        let is_one = |job: &str| {
            let (job, _port) = job.rsplit_once('.')?;
            let (kind, of) = job.strip_prefix(&self.name(""))?.split_once('.')?;
            let wanted = host.is_none_or(|host| host == of);
            Some(wanted && matches!(kind, "recv" | "server"))
        };
        let lines = self.plan.steps.lines();
        let names = lines.filter_map(|step| step.strip_prefix("start ")?.split(' ').next());
        let receivers = names.filter(|name| is_one(name) == Some(true));
        receivers.map(str::to_owned).collect()
    }

    /// Prepares the kernel's packet generator, which runs all flows of a host at once: from the
    /// first one's start to the last one's end. Its threads, one for each processor, share them.
    fn pktgen(&mut self, host: usize) -> Vec<Timed> {
        let mut lines = Vec::new();
        let (mut start_ns, mut stop_ns) = (u64::MAX, 0);
        for (number, flow) in self.cell.flows.iter().enumerate() {
            let FlowKind::Pktgen {
                payload_bytes,
                rate_bps,
            } = flow.kind
            else {
                continue;
            };
            let Some(hop) = flow.path.first().filter(|_| flow.from == host) else {
                continue;
            };
            start_ns = start_ns.min(flow.start_ns);
            stop_ns = stop_ns.max(flow.stop_ns);
            let device = format!("{}@{number}", self.device(*hop));
            let frame_bytes = payload_bytes + UDP_FRAME;
            let thread = number as u64 % u64::from(self.cell.cpus);
            lines.push(format!(
                "echo add_device {device} > /proc/net/pktgen/kpktgend_{thread}"
            ));
            let mut settings = vec![
                "count 0".to_owned(),
                format!("pkt_size {frame_bytes}"),
                format!("src_min {}", flow.source),
                format!("src_max {}", flow.source),
                format!("dst {}", flow.destination),
                format!("dst_mac {}", hardware_address(hop.cable, hop.end.other())),
                format!("udp_src_min {}", flow.source_port),
                format!("udp_src_max {}", flow.source_port),
                format!("udp_dst_min {}", flow.port),
                format!("udp_dst_max {}", flow.port),
                "xmit_mode queue_xmit".to_owned(),
            ];
            if let Some(rate_bps) = rate_bps {
                let delay_ps = duration_ps(frame_bytes, rate_bps.max(1)).unwrap_or(0);
                settings.push(format!("delay {}", delay_ps / PS_PER_NS));
            }
            for setting in settings {
                lines.push(format!("echo {setting} > /proc/net/pktgen/{device}"));
            }
        }
        if lines.is_empty() {
            return Vec::new();
        }
        lines.insert(0, "set -e".into());
        let name = self.host(host).to_owned();
        let path = self.file(&format!("pktgen.{name}"), &lines);
        self.run(format_args!("ip netns exec {name} sh /{path}"));
        let job = self.name(&format!("pktgen.{name}"));
        let start = format!(
            "start {job} ip netns exec {name} sh -c 'echo start > /proc/net/pktgen/pgctrl'"
        );
        vec![
            (Some(start_ns), start),
            (Some(stop_ns), format!("stop {job}")),
        ]
    }

    fn timed(&mut self, timed: &[Timed]) {
        let mut now_ns = None;
        for (at_ns, step) in timed {
            if let Some(at_ns) = at_ns.filter(|at_ns| Some(*at_ns) != now_ns) {
                self.step(format_args!("at {at_ns}"));
                now_ns = Some(at_ns);
            }
            self.step(format_args!("{step}"));
        }
        let end_ns = self.cell.duration_ns + self.cell.settle_ns;
        self.step(format_args!("at {end_ns}"));
    }

    fn results(&mut self) {
        let cell = self.cell;
        if cell.noise.is_some() {
            self.run(format_args!("echo hold_max_ns=0 > {WIRE}/noise"));
        }
        for host in 0..cell.hosts.len() {
            let name = self.host(host).to_owned();
            for hop in leaving(&cell.cables, host) {
                let device = self.device(hop).to_owned();
                for what in tc_lists(cell) {
                    let out = self.name(&format!("tc.{name}.{device}.{what}"));
                    self.run(format_args!(
                        "tc -n {name} -s -j {what} show dev {device} > /out/{out}"
                    ));
                }
            }
        }
        for cable in &cell.cables {
            let from = format!("{WIRE}/{}", cable.name);
            let to = format!("cell-{}", cell.index);
            self.step(format_args!(
                "keep {from}/counters {to}/counters.{}",
                cable.name
            ));
            for end in End::BOTH {
                for what in ["timeline", "flows", "snap"] {
                    if what != "snap" || cable.snap_bytes > 0 {
                        let name = format!("{what}.{}.{end}", cable.name);
                        self.step(format_args!("keep {from}/{what}.{end} {to}/{name}"));
                    }
                }
            }
        }
    }

    fn take_down(&mut self) {
        for job in self.receiving(None) {
            self.step(format_args!("stop {job}"));
        }
        self.end_programs();
        for cable in &self.cell.cables {
            self.run(format_args!("echo name={} > {WIRE}/delete", cable.name));
        }
        for host in &self.cell.hosts {
            self.run(format_args!("ip netns del {}", host.name));
        }
    }
}

/// Returns what psp-send needs to know of a flow; `None` if psp-send does not send it.
fn flow_spec(flow: &Flow) -> Option<String> {
    let kind = match &flow.kind {
        FlowKind::Udp {
            payload_bytes,
            batch,
            rate_bps,
            spread,
            pattern,
            launch,
            ..
        } => {
            let rate = rate_bps.map_or_else(|| "max".to_owned(), |rate| rate.to_string());
            let mut kind = format!("payload={payload_bytes},batch={batch},rate={rate}");
            if let Some(class) = spread.class {
                let (major, minor) = (class >> 16, class & 0xffff);
                kind += &format!(",class={major:x}:{minor:x},classes={}", spread.classes);
            }
            if spread.ports > 1 {
                kind += &format!(",ports={}", spread.ports);
            }
            if spread.turn_ns > 0 {
                kind += &format!(",sockets={},turn={}", spread.sockets, spread.turn_ns);
            }
            if *pattern != Pattern::default() {
                kind += &format!(",ahead={},slack={}", pattern.ahead, pattern.slack_ns);
            }
            if let Some(launch) = launch {
                kind += &format!(",txtime={},lead={}", launch.clock, launch.lead_ns);
                if launch.jitter_ns > 0 {
                    kind += &format!(",jitter={}", launch.jitter_ns);
                }
            }
            kind
        }
        FlowKind::Tcp {
            congestion,
            window_bytes,
            pacing_bps,
            sample_ns,
            messages,
            ..
        } => {
            let mut kind = format!("proto=tcp,congestion={congestion}");
            let given = [
                ("window", *window_bytes),
                ("pacing", *pacing_bps),
                ("sample", *sample_ns),
                ("message", messages.map(|m| m.bytes)),
                ("every", messages.map(|m| m.every_ns)),
            ];
            for (key, value) in given {
                kind += &value.map_or_else(String::new, |value| format!(",{key}={value}"));
            }
            kind
        }
        FlowKind::Pktgen { .. } => return None,
    };
    Some(format!(
        "name={},from={}:{},to={}:{},{kind},start={},stop={}",
        flow.name,
        flow.source,
        flow.source_port,
        flow.destination,
        flow.port,
        flow.start_ns,
        flow.stop_ns
    ))
}

fn tc_command(host: &str, line: &TcLine) -> String {
    let words: Vec<String> = line.args.iter().map(|word| quote(word)).collect();
    format!("tc -n {host} {}", words.join(" "))
}

/// Returns whether a shell and `tc -batch` take every word literally.
fn is_plain(words: &[String]) -> bool {
    words
        .iter()
        .all(|word| word == &quote(word) && !word.contains('#'))
}

/// Quotes a word for the shell. It can contain neither NUL nor newline.
fn quote(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| "''".to_owned(), |word| word.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell() -> Cell {
        let text = include_str!("../tests/plans/routed.toml");
        let mut scenario = scenario::parse("routed.toml", text, &Default::default()).unwrap();
        scenario.cells.remove(0)
    }

    /// The plan and its files are those in `tests/plans`. After a change, read what differs
    /// before copying it there.
    #[test]
    fn the_plan_is_the_expected_one() {
        let plan = plan(&cell(), 7).unwrap();
        let mut text = plan.steps;
        for (path, lines) in plan.files {
            text += &format!("== {path}\n{lines}");
        }
        let expected = include_str!("../tests/plans/routed.plan");
        let (_licence, expected) = expected.split_once('\n').unwrap();
        assert!(text == expected, "the plan is now:\n{text}");
    }

    #[test]
    fn modules_are_looked_for_by_the_words_of_tc_and_by_flows() {
        let names = crate::cell_modules::module_candidates(&cell());
        for name in [
            "sch_psp",
            "sch_fq",
            "cls_basic",
            "em_cmp",
            "tcp_bic",
            "pktgen",
        ] {
            assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
        }
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quote("eth0"), "eth0");
        assert_eq!(quote("two words"), "'two words'");
        assert_eq!(quote("$HOME;x"), "'$HOME;x'");
        assert!(is_plain(&["1:a".to_owned(), "10mbit".to_owned()]));
        assert!(!is_plain(&["two words".to_owned()]));
        assert!(!is_plain(&["a#b".to_owned()]));
    }
}
