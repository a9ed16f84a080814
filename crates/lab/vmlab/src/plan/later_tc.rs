// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of tc while a cell runs. A program takes 8 to 9 ms to start on the guest's processor, so
//! each host's tc is started before, and a shell that hands it a line when it is let go on.

use scenario::TcLine;

use super::{GRACE_S, Timed, Writer, is_plain, quote, tc_command};

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
        let later = cell.tc.iter().filter_map(|line| Some((line.at_ns?, line)));
        // Where tc would not take a line word for word in a batch, it starts for each line of the host
        // when that is due: lines of one instant keep their order.
        let is_quoted = |host| {
            let mut of_host = later.clone().filter(|(_, line)| line.host == host);
            of_host.any(|(_, line)| !is_plain(&line.args))
        };
        let (others, plain): (Vec<_>, Vec<_>) =
            later.clone().partition(|(_, line)| is_quoted(line.host));
        let run = |line: &TcLine| format!("run {}", tc_command(self.host(line.host), line));
        let steps = others.iter().map(|(at_ns, line)| (Some(*at_ns), run(line)));
        let mut steps: Vec<Timed> = steps.collect();
        for (number, script) in scripts(&plain).iter().enumerate() {
            let host = self.host(script.host).to_owned();
            let pipe = format!("/cells/{}/tc.later.{number}.pipe", cell.index);
            let (tc, shell) = (format!("tc.{number}"), format!("tc.{number}.lines"));
            let (tc, shell) = (self.name(&tc), self.name(&shell));
            // What tc loads for a line of psp it has loaded then.
            let mut lines = vec![format!("exec 3> {pipe}"), "echo qdisc show >&3".to_owned()];
            for (at_ns, turn) in &script.turns {
                lines.push("kill -STOP $$".to_owned());
                let words = |line: &&TcLine| format!("echo {} >&3", quote(&line.args.join(" ")));
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

/// Returns scripts that hand over `lines`, which are in order of their instants.
fn scripts<'a>(lines: &[(u64, &'a TcLine)]) -> Vec<Script<'a>> {
    let mut scripts: Vec<Script<'a>> = Vec::new();
    for &(at_ns, line) in lines {
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

#[cfg(test)]
mod tests {
    /// tc takes a `#` in a batch for a comment, and words are words there.
    #[test]
    fn quoted_words_are_given_to_a_tc_of_their_own_in_the_order_of_the_lines() {
        let text = "name = \"s\"\ntitle = \"\"\nduration = \"1s\"\n\
             [[host]]\nname = \"tx\"\n[[host]]\nname = \"rx\"\n\
             [[cable]]\nname = \"wire\"\nends = [\"tx:eth0\", \"rx:eth0\"]\nrate = \"1gbit\"\n\
             [[tc]]\nhost = \"tx\"\nat = \"1ms\"\nlines = [\"qdisc add dev eth0 root fq\", \
             \"qdisc add dev eth0 root 'a#b'\"]\n\
             [[tc]]\nhost = \"rx\"\nat = \"1ms\"\nlines = [\"qdisc add dev eth0 root fq\"]\n";
        let scenario = scenario::parse("s.toml", text, &Default::default()).unwrap();
        let steps = crate::plan::plan(&scenario.cells[0], 1).unwrap().steps;
        let due = "at 1000000\nrun tc -n tx qdisc add dev eth0 root fq\n\
                   run tc -n tx qdisc add dev eth0 root 'a#b'\nthaw cell-0.tc.0.lines\n";
        assert!(steps.contains(due), "{steps}");
    }
}
