// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes docs/understand/benchmarks.md.

use crate::bench::figures::{CORE, DPDK, STRUCTURES, TAILS, is_core};
use crate::bench::goals::{Aim, Goal, goals};
use crate::bench::model::{Contest, Dpdk, DpdkContest, Machine, Rival, Spread, Structures, named};
use crate::bench::number_format::{short, spread, table};

/// Returns the page. If DPDK was not measured, its section says so.
pub fn page(s: &Structures, dpdk: Option<&Dpdk>) -> String {
    let mut out = String::from(HEAD);
    if s.quick || dpdk.is_some_and(|d| d.quick) {
        out.push_str(QUICK);
    }
    out.push_str(&machine(&s.machine, s.huge_pages));
    out.push_str("\n## What it comes to\n\n");
    out.push_str(&goal_table(&goals(s, dpdk)));
    out.push_str(&about_goals(s.wheel_from));
    out.push_str(WHAT);
    out.push_str(&standard(s));
    out.push_str(&one_operation(s));
    out.push_str(&weak_spots(s));
    out.push_str(&beside_dpdk(dpdk));
    out.push_str(NOT_MEASURED);
    out
}

const HEAD: &str = "\
<!-- SPDX-License-Identifier: MIT OR Apache-2.0 -->
# Benchmarks

Made by `make bench`: every figure below was measured by the programs in [bench/](../../bench) and
written here by them. Absolute times are those of one machine; what counts are ratios, taken side
by side in one run of one process.

";

const QUICK: &str = "\
**Taken with `--quick`: a look, not figures.**

";

const WHAT: &str = "\
## What is measured

One thread, bound to one CPU. Every class has a packet of 1500 bytes (1524 on the wire) waiting,
always; rates are spread over 100:1 evenly by their logarithm, their sum is 90 % of a line of
100 Gbit/s. A packet is: find the class with the smallest clock, move the port's clock (with the gap
before the frame, if there is one), move the class's clock by exactly what the frame costs at its rate,
remainder included, and put the class back in order. Time is the thread's own CPU time.

- **Identical order.** Every exact structure works on its own copy of the same classes; a checksum over
  all decisions, class and clock, is compared after every round, and the program fails if two
  differ. It did not.
- **Same loops.** All structures are compiled into the same loops; what they do is inlined, except for
  the core's own queue, which is called as the core calls it. Each class is one cache line of 64
  bytes; the tree's node is in it, so following the tree fetches what is needed anyway.
- **Floors.** *Touch*: read and write the line of a random class, each independent of the one
  before. *Replay*: the true order, known beforehand, lines fetched ahead.
- **Rivals.** The heaps keep the place of each id, as anything must that takes classes out of the middle;
  the red-black tree remembers its leftmost node, as sch_fq's does. The bucket queue is of Carousel's and
  Eiffel's kind: buckets of 16 KB of line time and a bitmap; its order is not exact.
- **Noise.** Rounds of all rivals alternate; an eighth of a round before each goes untimed, so that caches
  are the rival's own again.

";

const ABOUT_TAILS: &str = "\
A stamp of the processor's counter is taken after each operation, by an instruction that waits until all
before it is done; so single operations do not overlap, and cost more than above. What two stamps with
nothing between are apart is taken off. The same operations are run three times from the same
beginning and the least of the three counts for each, which removes what the machine did meanwhile and
leaves what the structure does; the last columns are one run as it came.

";

const ABOUT_DPDK: &str = "\
Real mbufs, one loop for both: what comes out in a burst of 64 goes in again; two packets wait in each
class. DPDK runs without huge pages, devices or root, and its libraries are the distribution's, as
compiled there; our side is compiled for the same instruction set and takes its memory from DPDK.

They are not the same thing. `rte_sched` is a hierarchy (port, subport, pipe, 13 traffic classes, queues)
that we use one level of: a class is a pipe, the level that has a rate, with one queue in use. It is
inexact by design: token buckets (of four frames here), filled when a pipe is visited, pipes
visited round robin, all waiting packets of a pipe in one visit. It keeps statistics of every
queue. The core orders all classes by exact clocks. Of its settings those are used that serve it best:
one subport, a strict class instead of the four best-effort queues, shortest queues, no congestion
management; number of classes a power of two, 256 different rates.

*Unshaped*: `rte_sched` may send any pipe at any time and goes through them in the order of memory. The
core paces every class exactly even here, in byte times, at 90 % load. *Shaped*: both follow real
time, to 90 % of 100 Gbit/s. A packet then takes at least what the rate asks for; more means that
one CPU does not reach the rate. Each runs by itself, after all that had been saved up has gone.

";

const NOT_MEASURED: &str = "\
## What is not measured

Copying, classifying, locks, system calls, a NIC. What psp costs in a kernel, in instructions per
packet beside tbf, htb and fq, is measured by the experiment `kernel-path-cost` in the laboratory
([results](../results/README.md)), where time is counted in instructions and so is exact; what the
[laboratory](../use/laboratory.md) and the [simulator](../use/simulator.md) themselves take is said there. Other processors have other caches: the large numbers of
classes are about memory more than about anything else. Memory is in pages of 4 KB unless said
otherwise above.
";

/// Ratio of the fastest rate to the slowest, unless the page says otherwise.
const WIDE: f64 = 100.0;

fn machine(m: &Machine, huge_pages: bool) -> String {
    let gib = m.memory_bytes as f64 / f64::from(1u32 << 30);
    let pinned = m
        .pinned_to_cpu
        .map_or_else(String::new, |cpu| format!(", bound to CPU {cpu}"));
    format!(
        "Machine: {}{} ({}), {} CPUs{pinned}, caches {}, {gib:.0} GiB of memory; {}; {}, flags {}; \
         pages {}.\n",
        m.cpu,
        if m.is_virtual { ", virtual" } else { "" },
        m.architecture,
        m.cpus,
        m.caches.join(", "),
        m.kernel,
        m.compiler,
        m.flags,
        if huge_pages { "huge" } else { "of 4 KB" },
    )
}

fn about_goals(wheel_from: u32) -> String {
    format!(
        "
“The core's structure” is the one that the core itself chooses for so many classes: its heap, or from
{} on its wheel. Figures are medians over the rounds of a run, quartiles in brackets. A ratio is taken
within each round, in which all rivals run one after the other, and then the median of those; only a
ratio between two numbers of classes is one of medians. What was tried where a goal is missed, and why it is:
[A wheel for many classes](../decisions/core.md#a-wheel-for-many-classes).

",
        units::display::count(wheel_from.into())
    )
}

fn goal_table(goals: &[Goal]) -> String {
    let head = ["", "goal", "measured", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for goal in goals {
        let aim = match goal.aim {
            Aim::AtMost(v) => format!("≤ {v}"),
            Aim::AtLeast(v) => format!("≥ {v}"),
        };
        let met = match goal.met() {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "not measured",
        };
        let measured = spread(goal.measured);
        rows.push(vec![goal.what.clone(), aim, measured, met.to_owned()]);
    }
    table(&rows)
}

/// Returns a table with one row per rival and one column per contest.
fn cost_table(contests: &[&Contest], which: impl Fn(&Rival) -> bool) -> String {
    let mut head = vec!["ns per packet".to_owned()];
    head.extend(
        contests
            .iter()
            .map(|c| units::display::count(c.classes.into())),
    );
    let mut rows = vec![head];
    for rival in rivals(contests.iter().map(|c| c.rivals.as_slice()), which) {
        let mut row = vec![rival.title.clone()];
        row.extend(contests.iter().map(|c| {
            let found = named(&c.rivals, &rival.name);
            spread(found.and_then(|r| Spread::of(&r.ns)))
        }));
        rows.push(row);
    }
    table(&rows)
}

/// Returns every rival once, in the order of its first appearance.
fn rivals<'a>(
    contests: impl Iterator<Item = &'a [Rival]>,
    which: impl Fn(&Rival) -> bool,
) -> Vec<&'a Rival> {
    let mut found: Vec<&Rival> = Vec::new();
    for rival in contests.flatten() {
        if which(rival) && found.iter().all(|f| f.name != rival.name) {
            found.push(rival);
        }
    }
    found
}

fn standard(s: &Structures) -> String {
    let contests = s.of_case("standard");
    let Some(last) = contests.last() else {
        return String::new();
    };
    let load: Vec<_> = contests.iter().map(|c| format!("{:.3}", c.load)).collect();
    format!(
        "## By number of classes\n\n![Cost by structure](figures/{STRUCTURES}.svg)\n\n{}\n\
         {} packets of each rival in each of {} rounds; measured load {}.\n\n\
         The whole core: a packet comes (`pace_activate`), who is next (`pace_next`), the gap \
         (`pace_gap_sent`), what was sent (`pace_sent`), in mode `gap`, by each order of service, held \
         to heap or wheel.\n\n![Cost in the core](figures/{CORE}.svg)\n\n{}\n\
         Bytes of memory per class, the class itself not counted for structures, counted for the \
         core:\n\n{}\n",
        cost_table(&contests, |r| !is_core(r)),
        units::display::count(last.decisions),
        last.rivals.first().map_or(0, |r| r.ns.len()),
        load.join(", "),
        cost_table(&contests, is_core),
        bytes_table(last),
    )
}

fn bytes_table(contest: &Contest) -> String {
    let head = vec![
        "bytes per class".to_owned(),
        format!("at {}", units::display::count(contest.classes.into())),
    ];
    let counted = contest.rivals.iter().filter(|r| r.bytes_per_class > 0.0);
    let rows: Vec<_> = counted
        .map(|r| vec![r.title.clone(), short(r.bytes_per_class)])
        .collect();
    table(&[vec![head], rows].concat())
}

fn one_operation(s: &Structures) -> String {
    let mut out = format!(
        "## One operation\n\n{ABOUT_TAILS}A stamp costs {} ns here; the counter moves in steps of {} \
         ns.\n\n![Tails](figures/{TAILS}.svg)\n\n",
        short(s.machine.timestamp_ns),
        short(s.machine.timestamp_step_ns),
    );
    for at in &s.latency {
        let head = [
            format!("{} classes, ns", units::display::count(at.classes.into())),
            "mean".into(),
            "p50".into(),
            "p99".into(),
            "p99.99".into(),
            "of mean".into(),
            "max".into(),
            "once: p99.99".into(),
            "max".into(),
        ];
        let rows = at.rivals.iter().map(|r| {
            let mut row = vec![r.title.clone()];
            let values = [
                r.mean_ns,
                r.p50_ns,
                r.p99_ns,
                r.p9999_ns,
                r.p9999_ns / r.mean_ns,
                r.max_ns,
                r.once_p9999_ns,
                r.once_max_ns,
            ];
            row.extend(values.map(short));
            row
        });
        let rows: Vec<_> = std::iter::once(head.to_vec()).chain(rows).collect();
        out.push_str(&table(&rows));
        out.push_str(&format!(
            "\n{} operations.\n\n",
            units::display::count(at.operations)
        ));
    }
    out
}

fn weak_spots(s: &Structures) -> String {
    let mut cases: Vec<&str> = Vec::new();
    for contest in &s.contests {
        if contest.case != "standard" && !cases.contains(&contest.case.as_str()) {
            cases.push(&contest.case);
        }
    }
    let mut out = String::from("## Weak spots\n\nThe same, but for what is named.\n\n");
    for case in cases {
        let contests = s.of_case(case);
        let title = contests.first().map_or("", |c| c.title.as_str());
        out.push_str(&format!(
            "### {}\n\n{}\n",
            capital(title),
            cost_table(&contests, |_| true)
        ));
        if let Some(note) = note_on(case) {
            out.push_str(note);
            out.push('\n');
        }
    }
    out
}

fn note_on(case: &str) -> Option<&'static str> {
    Some(match case {
        "coincide" => "One rate for all, and all clocks begin at the same byte: ids decide.\n",
        "light" => {
            "Nearly all of the line is gap. The core is left out: in mode `gap` it would be busy with gap \
             frames.\n"
        }
        "spread" => {
            "Where a number of classes is missing, the slowest rate would be lower than the core \
             takes.\n"
        }
        "coming" => {
            "Half of the classes have no packet. After half of the frames the class runs empty and \
             another one comes; of the structures alone, one in 16 frames also has a class lose its \
             packets, wherever it stands in the order.\n"
        }
        "rates" => {
            "Two classes exchange their rates. A structure alone takes both out and puts them in \
             elsewhere; the core keeps their clocks.\n"
        }
        _ => return None,
    })
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

fn beside_dpdk(dpdk: Option<&Dpdk>) -> String {
    let mut out = String::from("## Beside DPDK's scheduler\n\n");
    let Some(dpdk) = dpdk else {
        out.push_str("Not measured in this run: DPDK was not to be had, or did not run.\n\n");
        return out;
    };
    out.push_str(ABOUT_DPDK);
    out.push_str(&format!(
        "{}; flags {}.\n\n![Beside DPDK](figures/{DPDK}.svg)\n\n",
        dpdk.dpdk, dpdk.machine.flags
    ));
    out.push_str(&dpdk_table(dpdk, false));
    out.push('\n');
    out.push_str(&dpdk_table(dpdk, true));
    out.push('\n');
    out.push_str(&narrow_rates(dpdk));
    out
}

/// Returns a paragraph on the contests whose rates are not spread over 100:1.
fn narrow_rates(dpdk: &Dpdk) -> String {
    let narrow: Vec<_> = dpdk
        .contests
        .iter()
        .filter(|c| c.spread < WIDE)
        .map(|c| {
            let classes = units::display::count(c.classes.into());
            format!("with {classes} classes over {}:1", short(c.spread))
        })
        .collect();
    if narrow.is_empty() {
        return String::new();
    }
    format!(
        "`rte_sched` keeps a pipe's rate as a share of the port's, to 1e-7 of it, which is 10 kbit/s \
         here, and takes none that is less. So that both have the same, rates are, shaped, spread \
         {}.\n\n",
        narrow.join(", ")
    )
}

fn dpdk_table(dpdk: &Dpdk, shaped: bool) -> String {
    let mut contests: Vec<_> = dpdk
        .contests
        .iter()
        .filter(|c| c.shaped == shaped)
        .collect();
    contests.sort_by_key(|c| c.classes);
    let what = if shaped { "shaped" } else { "unshaped" };
    let mut head = vec![format!("{what}, ns per packet")];
    head.extend(
        contests
            .iter()
            .map(|c| units::display::count(c.classes.into())),
    );
    let mut rows = vec![head];
    for rival in rivals(contests.iter().map(|c| c.rivals.as_slice()), |_| true) {
        let column = |text: &dyn Fn(&DpdkContest, &Rival) -> String| -> Vec<String> {
            let cell = |c: &&DpdkContest| {
                named(&c.rivals, &rival.name).map_or_else(|| "–".to_owned(), |r| text(c, r))
            };
            contests.iter().map(cell).collect()
        };
        let mut row = vec![rival.title.clone()];
        row.extend(column(&|_, r| spread(Spread::of(&r.ns))));
        rows.push(row);
        if shaped {
            let mut row = vec![format!("{}: of the rate", rival.title)];
            row.extend(column(&of_the_rate));
            rows.push(row);
        } else {
            let mut row = vec![format!("{}: bytes per class", rival.title)];
            row.extend(column(&|_, r| short(r.bytes_per_class)));
            rows.push(row);
        }
    }
    table(&rows)
}

/// Returns how much of the requested rate was sent.
fn of_the_rate(contest: &DpdkContest, rival: &Rival) -> String {
    let took = Spread::of(&rival.ns).map(|s| s.median);
    match (contest.asked_ns, took) {
        (Some(asked), Some(took)) if took > 0.0 => format!("{:.0} %", 100.0 * asked / took),
        _ => "–".to_owned(),
    }
}
