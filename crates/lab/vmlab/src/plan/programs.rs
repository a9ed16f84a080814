// SPDX-License-Identifier: MIT OR Apache-2.0
//! The steps that switch offloads, and that start and end programs on hosts.

use scenario::HostProgram;
use scenario::topology::leaving;

use super::{GRACE_S, Timed, Writer, quote};
use crate::host_command::{COMMAND, NAME};

/// Looks so often whether a program is ready, this many times in a second.
const LOOKS_HZ: u64 = 100;

impl Writer<'_> {
    /// Switches the offloads of each host's devices. A device that keeps another state fails the run
    /// with what ethtool says of it.
    pub(super) fn offloads(&mut self) {
        let cell = self.cell;
        for (host, named) in cell.hosts.iter().enumerate() {
            let of_host: Vec<_> = cell.offloads.iter().filter(|o| o.host == host).collect();
            if of_host.is_empty() {
                continue;
            }
            let state = |is_on| if is_on { "on" } else { "off" };
            let words = of_host
                .iter()
                .map(|o| format!(" {} {}", o.word, state(o.is_on)));
            let words: String = words.collect();
            for hop in leaving(&cell.cables, host) {
                let ethtool = format!("ip netns exec {} ethtool", named.name);
                let device = self.device(hop).to_owned();
                self.run(format_args!("{ethtool} -K {device}{words}"));
                for offload in &of_host {
                    // A device that cannot switch a feature says so here, mostly with `[fixed]`.
                    self.run(format_args!(
                        "now=$({ethtool} -k {device} | grep '^{}:'); echo {device}: \"$now\"; \
                         case \"$now \" in *': {} '*) ;; *) exit 1;; esac",
                        offload.listed,
                        state(offload.is_on)
                    ));
                }
            }
        }
    }

    /// Starts the programs that run before t = 0, and returns the steps that start the others and end
    /// those that end before the cell.
    pub(super) fn programs(&mut self) -> Vec<Timed> {
        let mut timed = Vec::new();
        for (number, program) in self.cell.host_programs.iter().enumerate() {
            let job = self.program_job(number, program);
            let start = self.program_start(number, program);
            match program.start_ns {
                None => self.step(format_args!("{start}")),
                Some(start_ns) => timed.push((Some(start_ns), start)),
            }
            if let Some(ready) = &program.ready {
                self.run(format_args!(
                    "n=0; until grep -qF -e {} /out/{job} /out/{job}.err; do n=$((n + 1)); \
                     if [ $n -gt {} ]; then cat /out/{job}.err; exit 1; fi; sleep 0.01; done",
                    quote(ready),
                    GRACE_S * LOOKS_HZ
                ));
            }
            if let Some(stop_ns) = program.stop_ns {
                timed.push((Some(stop_ns), format!("stop {job}")));
            }
        }
        timed
    }

    /// Ends the programs that run until the cell is taken down.
    pub(super) fn end_programs(&mut self) {
        for (number, program) in self.cell.host_programs.iter().enumerate() {
            if program.stop_ns.is_none() {
                let job = self.program_job(number, program);
                self.step(format_args!("stop {job}"));
            }
        }
    }

    fn program_job(&self, number: usize, program: &HostProgram) -> String {
        self.name(&format!("program.{number}.{}", self.host(program.host)))
    }

    /// Returns the step that starts a program, in a folder of its own if it has a file.
    fn program_start(&mut self, number: usize, program: &HostProgram) -> String {
        let job = self.program_job(number, program);
        let words = program.args.iter().enumerate().map(|(at, word)| {
            let is_command = at == 0 && word == NAME;
            if is_command {
                COMMAND.to_owned()
            } else {
                quote(word)
            }
        });
        let words = words.collect::<Vec<_>>().join(" ");
        let folder = program.file.as_ref().map_or_else(String::new, |file| {
            let path = format!("cells/{}/program.{number}", self.cell.index);
            let files = &mut self.plan.files;
            files.insert(format!("{path}/{}", file.name), file.text.clone());
            format!("cd /{path} && ")
        });
        let host = self.host(program.host);
        format!("start {job} {folder}exec ip netns exec {host} {words}")
    }
}

#[cfg(test)]
mod tests {
    /// The cell of a scenario with the lines of `more`.
    fn steps(offloads: &str, more: &str) -> crate::plan::Plan {
        let text = format!(
            "name = \"s\"\ntitle = \"\"\nduration = \"1s\"\n\
             [[host]]\nname = \"tx\"\n{offloads}\n[[host]]\nname = \"rx\"\n\
             [[cable]]\nname = \"wire\"\nends = [\"tx:eth0\", \"rx:eth0\"]\nrate = \"1gbit\"\n{more}"
        );
        let scenario = scenario::parse("s.toml", &text, &Default::default()).unwrap();
        crate::plan::plan(&scenario.cells[0], 1).unwrap()
    }

    #[test]
    fn offloads_are_switched_before_the_queues_and_looked_at() {
        let tc = "[[tc]]\nhost = \"tx\"\nlines = [\"qdisc add dev eth0 root fq\"]\n";
        let steps = steps("offloads = \"gso off gro on\"", tc).steps;
        let expected = "run ip netns exec tx ethtool -K eth0 gso off gro on\n\
            run now=$(ip netns exec tx ethtool -k eth0 | grep '^generic-segmentation-offload:'); \
            echo eth0: \"$now\"; case \"$now \" in *': off '*) ;; *) exit 1;; esac\n\
            run now=$(ip netns exec tx ethtool -k eth0 | grep '^generic-receive-offload:'); \
            echo eth0: \"$now\"; case \"$now \" in *': on '*) ;; *) exit 1;; esac\n\
            run tc -n tx qdisc add dev eth0 root fq\n";
        assert!(steps.contains(expected), "{steps}");
        assert_eq!(steps.matches("ethtool -K").count(), 1, "{steps}");
    }

    #[test]
    fn programs_have_their_file_and_are_waited_for_and_ended() {
        let plan = steps(
            "",
            "[[program]]\nhost = \"rx\"\nrun = \"pspacer router 'r 1'\"\nfile = \"r\"\ntext = \"t\"\n\
             ready = \"routing;\"\n\
             [[program]]\nhost = \"tx\"\nrun = \"sleep 9\"\nstart = \"1ms\"\nstop = \"2ms\"\n",
        );
        assert_eq!(plan.files["cells/0/program.0/r"], "t");
        let steps = plan.steps;
        for expected in [
            "start cell-0.program.0.rx cd /cells/0/program.0 && exec ip netns exec rx \
             /pspacer/ld.so --library-path /pspacer /pspacer/pspacer router 'r 1'\n\
             run n=0; until grep -qF -e 'routing;' /out/cell-0.program.0.rx \
             /out/cell-0.program.0.rx.err; do n=$((n + 1)); ",
            "at 1000000\nstart cell-0.program.1.tx exec ip netns exec tx sleep 9\n\
             at 2000000\nstop cell-0.program.1.tx\n",
        ] {
            assert!(steps.contains(expected), "{steps}");
        }
        let (run, down) = steps.split_at(plan.take_down);
        assert_eq!(run.matches("stop cell").count(), 1, "{run}");
        assert!(down.contains("stop cell-0.program.0.rx\n"), "{down}");
    }
}
