// SPDX-License-Identifier: MIT OR Apache-2.0
//! `make bench-stalls`: measures how fast `pspacer stalls` reads captures, beside `tshark` and
//! `tcptrace`.

mod rounds;
mod traffic;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use traffic::Traffic;

/// Arguments of `cargo xtask bench stalls`.
#[derive(Debug, Args)]
pub struct StallsArgs {
    /// The command under test
    #[arg(long)]
    pspacer: PathBuf,
    /// Packets of the capture
    #[arg(long, default_value_t = 10_000_000)]
    packets: u64,
    /// Packets of the one that tshark gets: it takes a hundred times as long
    #[arg(long, default_value_t = 500_000)]
    tshark_packets: u64,
    /// Where the captures go; they are written again if they are not there
    #[arg(long)]
    folder: PathBuf,
    /// Where the page goes
    #[arg(long)]
    docs: PathBuf,
    /// Each is run so often, and the fastest counts
    #[arg(long, default_value_t = 3)]
    times: u32,
}

/// The measurement of one program on one file.
struct Measured {
    packets: u64,
    /// Processor time of all threads, and time from begin to end.
    seconds: f64,
    wall_s: f64,
    /// Peak memory, in KiB; 0 if the program ended before the first look.
    peak_kib: u64,
}

impl Measured {
    fn packets_per_s(&self) -> f64 {
        self.packets as f64 / self.seconds
    }
}

/// Makes the captures, runs both programs and writes the page.
pub fn main(args: &StallsArgs) -> Result<()> {
    fs::create_dir_all(&args.folder)?;
    let side_by_side = |packets_each| {
        move |out: &mut BufWriter<File>, packets| {
            let traffic = Traffic {
                packets,
                side_by_side: 500,
                packets_each,
                snap_bytes: 64,
            };
            traffic::write(out, traffic)
        }
    };
    let long = capture(args, "stalls", args.packets, side_by_side(5000))?;
    let tenth = capture(args, "stalls", args.packets / 10, side_by_side(5000))?;
    let short = capture(args, "stalls", args.tshark_packets, side_by_side(5000))?;
    let many = capture(args, "many", args.packets, side_by_side(50))?;
    let rounds_packets = args.packets / 10 * 3;
    let rounds = capture(args, "rounds", rounds_packets, |out, packets| {
        rounds::write(out, packets)
    })?;
    let stalls = |path: &Path, packets: u64| {
        let mut command = Command::new(&args.pspacer);
        command.arg("stalls").arg("--json").arg(path);
        fastest(&mut command, packets, args.times)
    };
    let ours = stalls(&long, args.packets)?;
    let ours_tenth = stalls(&tenth, args.packets / 10)?;
    let ours_short = stalls(&short, args.tshark_packets)?;
    let ours_many = stalls(&many, args.packets)?;
    let stalls_of_rounds = stalls(&rounds, rounds_packets)?;
    let mut of_rounds = vec![("`pspacer stalls`".to_owned(), stalls_of_rounds)];
    let conversations = ["-n", "-q", "-z", "conv,tcp", "-r"];
    for (program, asked, arguments, times) in [
        ("tcptrace", "-v", &[][..], args.times),
        ("tshark", "--version", &conversations[..], 1),
    ] {
        if let Some(version) = version(program, asked) {
            let mut command = Command::new(program);
            command.args(arguments).arg(&rounds);
            let name = format!("`{program}` {version}");
            of_rounds.push((name, fastest(&mut command, rounds_packets, times)?));
        }
    }
    let theirs = match version("tshark", "--version") {
        Some(version) => {
            let mut rows = Vec::new();
            for what in ["conv,tcp", "io,stat,1,tcp.analysis.flags"] {
                let mut command = Command::new("tshark");
                // tshark looks up no names and prints nothing but the table.
                command
                    .args(["-n", "-q", "-r"])
                    .arg(&short)
                    .args(["-z", what]);
                rows.push((what, fastest(&mut command, args.tshark_packets, 1)?));
            }
            Some((format!("TShark {version}"), rows))
        }
        None => None,
    };
    let page = page(
        &[ours, ours_tenth, ours_short],
        &ours_many,
        &of_rounds,
        theirs.as_ref(),
    );
    print!("{page}");
    let path = args.docs.join("stalls-benchmark.md");
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the capture of this kind with `packets` packets, and makes it if the file does not exist.
fn capture(
    args: &StallsArgs,
    kind: &str,
    packets: u64,
    write: impl FnOnce(&mut BufWriter<File>, u64) -> std::io::Result<()>,
) -> Result<PathBuf> {
    let path = args.folder.join(format!("{kind}-{packets}.pcap"));
    if path.exists() {
        return Ok(path);
    }
    let part = path.with_extension("part");
    let file = File::create(&part).with_context(|| format!("cannot write {}", part.display()))?;
    write(&mut BufWriter::with_capacity(1 << 20, file), packets)?;
    fs::rename(&part, &path)?;
    Ok(path)
}

/// Returns the number of a program's version, if the program is there.
fn version(program: &str, asked: &str) -> Option<String> {
    let out = Command::new(program).arg(asked).output().ok()?;
    let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    text.split_whitespace().find(is_number).map(str::to_owned)
}

/// Runs a command several times; returns the least times and the peak memory of all runs.
fn fastest(command: &mut Command, packets: u64, times: u32) -> Result<Measured> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (mut best, mut best_wall_s) = (f64::INFINITY, f64::INFINITY);
    let mut peak_kib = 0;
    for _ in 0..times.max(1) {
        let begin = Instant::now();
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot run {command:?}"))?;
        let mut seconds = 0.0;
        let status = loop {
            // The kernel accumulates both values itself, so only the last look counts.
            peak_kib = peak_kib.max(peak_of(child.id()));
            seconds = processor_of(child.id()).unwrap_or(seconds);
            if let Some(status) = child.try_wait()? {
                break status;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        ensure!(status.success(), "{command:?} failed");
        best = best.min(seconds.max(LOOK_S));
        best_wall_s = best_wall_s.min(begin.elapsed().as_secs_f64());
    }
    Ok(Measured {
        packets,
        seconds: best,
        wall_s: best_wall_s,
        peak_kib,
    })
}

/// A tick of the kernel's count of processor time: shorter times are not visible.
const LOOK_S: f64 = 0.01;

/// Returns the processor time of a process, in the kernel's ticks of 10 ms (proc(5): utime and
/// stime, the 14th and 15th field).
fn processor_of(process: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in brackets, may contain any character.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse().ok()?;
    let more: u64 = fields.next()?.parse().ok()?;
    Some((ticks + more) as f64 * LOOK_S)
}

/// Returns the peak memory of a process, in KiB.
fn peak_of(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let number = line.and_then(|l| l.split_whitespace().next());
    number.and_then(|n| n.parse().ok()).unwrap_or(0)
}

const COLUMNS: &str = "| program | packets | processor, s | wall, s | million packets/s | MiB | processor, ratio | \
     wall, ratio |\n|---|---:|---:|---:|---:|---:|---:|---:|\n";

/// Adds a row; the ratios are to `ours`, of the same capture.
fn row(page: &mut String, what: &str, m: &Measured, ours: Option<&Measured>) {
    let ratios = ours.map_or(" | ".to_owned(), |ours| {
        let (processor, wall) = (m.seconds / ours.seconds, m.wall_s / ours.wall_s);
        format!("{processor:.2} | {wall:.2}")
    });
    // Writing to a String cannot fail.
    let _ = writeln!(
        page,
        "| {what} | {} | {:.2} | {:.2} | {:.2} | {:.0} | {ratios} |",
        units::display::count(m.packets),
        m.seconds,
        m.wall_s,
        m.packets_per_s() / 1e6,
        m.peak_kib as f64 / 1024.0,
    );
}

fn page(
    ours: &[Measured; 3],
    many: &Measured,
    of_rounds: &[(String, Measured)],
    theirs: Option<&(String, Vec<(&str, Measured)>)>,
) -> String {
    let mut page = String::from(
        "<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->\n\
         <!-- Written by `make bench-stalls`. -->\n\
         # How fast `pspacer stalls` is\n\n\
         A generated capture of 64 bytes a packet: 500 TCP connections at any time, about 5000 packets \
         each, losses with SACK, timeouts, pauses and closed windows among them (`xtask/src/bench_stalls/`). \
         Processor time is what the whole command had of all processors, system calls included; wall time is \
         from its start to the end of its JSON. The least of several runs; memory is the most a run had. \
         One thread reads, and up to four analyse; packets/s are of processor time.\n\n",
    );
    page += COLUMNS;
    let [long, tenth, short] = ours;
    row(&mut page, "`pspacer stalls`", long, None);
    row(&mut page, "`pspacer stalls`", tenth, None);
    row(&mut page, "`pspacer stalls`", short, Some(short));
    match theirs {
        Some((_, rows)) => {
            for (what, measured) in rows {
                let name = format!("`tshark -z {what}`");
                row(&mut page, &name, measured, Some(short));
            }
        }
        None => page.push_str("\n`tshark` is not on this machine: it is left out.\n"),
    }
    page.push_str(
        "\nMemory goes with the connections, not with the packets: what one had is a few KB until the end, \
         for its verdict. ",
    );
    if let Some((name, _)) = theirs {
        let _ = writeln!(
            page,
            "The ratios are to the same capture read by {name}. Neither of its reports tells of causes: \
             `conv,tcp` counts packets and bytes of each conversation, `io,stat` counts what its analysis of \
             sequence numbers marked, second by second."
        );
    } else {
        page.push('\n');
    }
    page.push_str(
        "\n## Many connections, and many pauses\n\
         The same kind of capture with 50 packets a connection, 500 of them at any time; and one of 50 \
         connections that send round by round, a pause in nearly each \
         (`xtask/src/bench_stalls/rounds.rs`). The ratios are to `pspacer stalls`.\n\n",
    );
    page += COLUMNS;
    row(&mut page, "`pspacer stalls`, many connections", many, None);
    let ours = of_rounds.first().map(|(_, ours)| ours);
    for (name, measured) in of_rounds {
        row(&mut page, &format!("{name}, rounds"), measured, ours);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_compare_the_same_capture() {
        let m = |packets, seconds| Measured {
            packets,
            seconds,
            wall_s: seconds / 2.0,
            peak_kib: 2048,
        };
        let ours = [m(1_000_000, 0.5), m(100_000, 0.1), m(10_000, 0.01)];
        let theirs = ("TShark 4".to_owned(), vec![("conv,tcp", m(10_000, 2.0))]);
        let rounds = [
            ("`pspacer stalls`".to_owned(), m(3000, 0.5)),
            ("`tcptrace` 6".to_owned(), m(3000, 1.0)),
        ];
        let many = m(10_000, 0.2);
        let text = page(&ours, &many, &rounds, Some(&theirs));
        assert!(
            text.contains("| 1,000,000 | 0.50 | 0.25 | 2.00 | 2 |  |  |"),
            "{text}"
        );
        assert!(
            text.contains(
                "| `tshark -z conv,tcp` | 10,000 | 2.00 | 1.00 | 0.01 | 2 | 200.00 | 200.00 |"
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "| `tcptrace` 6, rounds | 3,000 | 1.00 | 0.50 | 0.00 | 2 | 2.00 | 2.00 |"
            ),
            "{text}"
        );
        assert!(page(&ours, &many, &[], None).contains("not on this machine"));
    }

    #[test]
    fn the_peak_of_a_process_is_known() {
        assert!(peak_of(std::process::id()) > 100);
        assert_eq!(peak_of(u32::MAX), 0);
    }
}
