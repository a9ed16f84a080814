// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of tc while a cell runs. A program takes 8 to 9 ms to start on the guest's processor, so
//! each host's tc is started before, and a shell that hands it a line when it is let go on.

use scenario::TcLine;

use super::{GRACE_S, Timed, Writer};

/// Time in which a shell has handed over its lines and has stopped again.
const TURN_NS: u64 = 10_000_000;

/// What a shell does: the lines that it hands over at instants, in order.
struct Script<'a> {
    host: usize,
    turns: Vec<(u64, Vec<&'a TcLine>)>,
}

impl Writer<'_> {
    /// Starts what hands over the later lines, and returns the steps that are due at their instants.
    pub(super) fn later_tc(&mut self) -> Vec<Timed> {
        let cell = self.cell;
        let mut steps = Vec::new();
        for (number, script) in scripts(&cell.tc).iter().enumerate() {
            let host = self.host(script.host).to_owned();
            let pipe = format!("/cells/{}/tc.later.{number}.pipe", cell.index);
            let (tc, shell) = (format!("tc.{number}"), format!("tc.{number}.lines"));
            let (tc, shell) = (self.name(&tc), self.name(&shell));
            // What tc loads for a line of psp it has loaded then.
            let mut lines = vec![format!("exec 3> {pipe}"), "echo qdisc show >&3".to_owned()];
            for (at_ns, turn) in &script.turns {
                lines.push("kill -STOP $$".to_owned());
                let words = |line: &&TcLine| format!("echo {} >&3", super::quote(&batch(line)));
                lines.extend(turn.iter().map(words));
                steps.push((Some(*at_ns), format!("thaw {shell}")));
            }
            let path = self.file(&format!("tc.later.{number}"), &lines);
            self.run(format_args!("mkfifo {pipe}"));
            self.step(format_args!(
                "start {tc} exec tc -n {host} -batch - < {pipe}"
            ));
            self.step(format_args!("start {shell} exec sh /{path}"));
            self.later.extend([shell, tc]);
        }
        steps
    }

    /// Waits for what [`Self::later_tc`] has started: a line that tc refused fails here.
    pub(super) fn wait_for_tc(&mut self) {
        for job in std::mem::take(&mut self.later) {
            self.step(format_args!("wait {job} {GRACE_S}"));
        }
    }
}

/// Returns scripts that hand over the later ones of `lines`, which are in order of their instants.
fn scripts(lines: &[TcLine]) -> Vec<Script<'_>> {
    let mut scripts: Vec<Script<'_>> = Vec::new();
    for line in lines {
        let Some(at_ns) = line.at_ns else {
            continue;
        };
        let mut of_host = scripts.iter_mut().filter(|s| s.host == line.host);
        let taken = of_host.find_map(|script| match script.turns.last_mut() {
            Some((last_ns, turn)) if *last_ns == at_ns => {
                turn.push(line);
                Some(())
            }
            Some((last_ns, _)) if at_ns - *last_ns >= TURN_NS => {
                script.turns.push((at_ns, vec![line]));
                Some(())
            }
            _ => None,
        });
        if taken.is_none() {
            scripts.push(Script {
                host: line.host,
                turns: vec![(at_ns, vec![line])],
            });
        }
    }
    scripts
}

/// Returns a line as `tc -batch` reads it.
fn batch(line: &TcLine) -> String {
    let words = line.args.iter().map(|word| {
        if word.contains([' ', '\t']) {
            format!("\"{word}\"")
        } else {
            word.clone()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}
