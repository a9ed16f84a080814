// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is for the kernel's own tree follows the sources: each patch series can be made, and
//! its scheduler decides what core decides.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::root;
use testkit::{has, has_none};

/// Each goes on top of the one before.
const SERIES: [&str; 4] = ["first", "ceil", "launch", "gap"];
/// Of so many wrong schedulers `make test` looks for one, `make test-all` for each.
const FOUND_OF: usize = 3;

fn sources() -> PathBuf {
    root().join("packaging/upstream/pspacer")
}

fn said(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn ran(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{command:?}:\n{said}");
    said
}

/// Runs one of our Perl scripts on a text.
fn perl(script: &str, argument: &Path, text: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text");
    fs::write(&path, text).unwrap();
    let mut perl = Command::new("perl");
    perl.arg(sources().join(script)).arg(argument);
    perl.stdin(fs::File::open(path).unwrap()).output().unwrap()
}

fn made(output: Output) -> String {
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns one of our files as a series has it.
fn text(series: &str, name: &str) -> String {
    let all = fs::read_to_string(sources().join(name)).unwrap();
    made(perl("upto.pl", Path::new(series), &all))
}

/// Makes the C file of a series from its template.
fn qdisc(series: &str) -> String {
    let template = text(series, "sch_pspacer.c.in");
    made(perl("take.pl", &root().join("core"), &template))
}

/// Compiles a series' comparison with a scheduler, and runs it.
fn compare(series: &str, scheduler: &str, runs: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("scheduler.c"), scheduler).unwrap();
    for name in ["differential.c", "kernel.h"] {
        fs::write(folder.path().join(name), text(series, name)).unwrap();
    }
    let program = folder.path().join("differential");
    let mut compile = Command::new("cc");
    compile.args(["-std=gnu11", "-O1", "-Wall", "-Wno-unused-function", "-I"]);
    compile.arg(folder.path());
    for folder in ["core", "core/include", "core/deps/host"] {
        compile.arg("-I").arg(root().join(folder));
    }
    compile.arg("-o").arg(&program);
    ran(compile.arg(folder.path().join("differential.c")));
    Command::new(program).args(["1", runs]).output().unwrap()
}

/// Returns the part of the C file that decides.
fn scheduler(series: &str) -> String {
    let qdisc = qdisc(series);
    let (decides, _) = qdisc.split_once("\n/* The qdisc */\n").unwrap();
    let code = decides.lines().filter(|line| !line.starts_with("#include"));
    code.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_scheduler_of_the_series_decides_what_core_decides() {
    for series in SERIES {
        let output = compare(series, &scheduler(series), "400");
        assert!(output.status.success(), "{series}: {}", said(&output));
    }
}

/// Looks for each mutant, or for one in [`FOUND_OF`].
fn finds(series: &str, mutants: &[(&str, &str)]) {
    let scheduler = scheduler(series);
    let every = if testkit::everything() { 1 } else { FOUND_OF };
    for (number, (from, to)) in mutants.iter().enumerate() {
        assert!(scheduler.contains(from), "{from}");
        if number % every != 0 {
            continue;
        }
        let output = compare(series, &scheduler.replace(from, to), "400");
        assert!(!output.status.success(), "{from}: {}", said(&output));
    }
}

#[test]
fn a_scheduler_that_decides_otherwise_is_found() {
    finds(
        "first",
        &[
            ("frac >= rate_bps", "frac > rate_bps"),
            ("whole + (frac != 0)", "whole"),
            (
                "return c->clock.ps + c->max_cost_ps;",
                "return c->clock.ps;",
            ),
            ("(u64)s->active_paced + 2", "(u64)s->active_paced + 3"),
            ("100000000ull", "100001000ull"),
            (
                "c->deficit_bytes -= len_bytes;",
                "c->deficit_bytes -= 2 * len_bytes;",
            ),
        ],
    );
    finds(
        "ceil",
        &[
            ("2 * c->ceil_quot", "c->ceil_quot"),
            ("(pspacer_over_subscribed(s) ? lag : 0)", "0"),
            ("s->offset_ps += lag;", "s->offset_ps += lag / 2;"),
            ("s->borrow_time_ps = c->borrow_clock.ps;", ""),
            (
                "pspacer_clock_rescale(&c->clock, pspacer_schedule_clock(s),\n\t\t\t      c->rate_bps, rate_bps);",
                "",
            ),
            (
                "clock = pspacer_clock_earlier(clock, c->ceil_clock.ps);",
                ";",
            ),
            ("pspacer_lag_settle(s, was_over, c);", ""),
        ],
    );
    finds(
        "launch",
        &[
            (
                "(c->launches ? s->burst_ps : c->max_cost_ps)",
                "c->max_cost_ps",
            ),
            (
                "c->place = PSPACER_LAUNCHING;\n\tc->key = c->launch_ns",
                "c->place = PSPACER_LAUNCHING;\n\tc->key = 0 * c->launch_ns",
            ),
            (
                "u64 clock = position - s->offset_ps;",
                "u64 clock = position;",
            ),
            ("clock -= pspacer_virtual_time_lag(s);", ";"),
            ("ns > (s64)PSPACER_LAUNCH_LOOK_NS", "ns > 1000"),
            (
                "clock_earlier(*clock, launch) : launch",
                "clock_earlier(*clock, launch) : launch + 2000",
            ),
        ],
    );
    finds(
        "gap",
        &[
            ("bytes + (rem != 0)", "bytes"),
            ("(u32)gap_bytes - least : least", "(u32)gap_bytes : least"),
            ("if (gap_ps <= s->half_gap_ps)", "if (!gap_ps)"),
            (
                "(pspacer_by_timer(s) ? PSPACER_STALL_PS : 0)",
                "PSPACER_STALL_PS",
            ),
            (
                "(pspacer_by_timer(s) ? PSPACER_SLACK_PS : 0)",
                "PSPACER_SLACK_PS",
            ),
            (
                "s->idled_ps = pspacer_schedule_clock(s);\n\tWRITE_ONCE(s->gap_packets",
                "WRITE_ONCE(s->gap_packets",
            ),
            ("\tif (s->gaps)\n\t\tpspacer_paced_advance(s);", ""),
            ("min(pspacer_ahead(s) - half, most)", "0 * most"),
            ("min(-pspacer_ahead(s) - half, most)", "0 * most"),
            ("(pspacer_ahead(s) >= -(s64)PSPACER_STALL_PS)", "(true)"),
            (
                "if (pspacer_ahead(s) > (s64)PSPACER_STALL_PS)",
                "if (pspacer_ahead(s) > 2 * (s64)PSPACER_STALL_PS)",
            ),
            (
                "if (pspacer_ahead(s) > -(s64)PSPACER_STALL_PS)",
                "if (true)",
            ),
            (
                "at = s->global_ps + gap_ps + PSPACER_STALL_PS;",
                "at = s->global_ps + PSPACER_STALL_PS;",
            ),
            ("s->global_ps = s->line.ps;\n\ts->idled_ps", "s->idled_ps"),
        ],
    );
}

#[test]
fn what_core_does_not_have_is_not_taken() {
    for (template, complaint) in [
        ("@take clock.c pace_no_such\n", "has no pace_no_such"),
        ("@take no.c pace_later\n", "no file no.c"),
        (
            "@take clock.c pace_later\n@- no such text\n",
            "not in what was taken",
        ),
        ("@give clock.c pace_later\n", "@give"),
    ] {
        let output = perl("take.pl", &root().join("core"), template);
        assert!(!output.status.success(), "{template}");
        has(said(&output), [complaint]);
    }
}

#[test]
fn a_series_has_what_is_up_to_it() {
    let all = "a\n@from ceil\nb\n@until ceil\nc\n@only ceil gap\ne\n@always\nd\n";
    for (series, expected) in [
        ("first", "a\nc\nd\n"),
        ("ceil", "a\nb\ne\nd\n"),
        ("launch", "a\nb\nd\n"),
        ("gap", "a\nb\ne\nd\n"),
    ] {
        let output = perl("upto.pl", Path::new(series), all);
        assert_eq!(made(output), expected, "{series}");
    }
    for (series, text) in [
        ("no", ""),
        ("first", "@from no\n"),
        ("first", "@only ceil no\n"),
    ] {
        let output = perl("upto.pl", Path::new(series), text);
        assert!(!output.status.success(), "{series} {text}");
        let said = said(&output);
        has(&said, ["one of first, ceil, launch, gap"]);
    }
}

/// Files of a kernel with what the series looks for.
const KERNEL: &[(&str, &str)] = &[
    (
        "net/sched/Kconfig",
        "config NET_SCH_PIE\n\tbool\n\nconfig NET_SCH_INGRESS\n\tbool\n",
    ),
    (
        "net/sched/Makefile",
        "obj-$(CONFIG_NET_SCH_PLUG)\t+= sch_plug.o\nobj-$(CONFIG_NET_SCH_ETS)\t+= sch_ets.o\n",
    ),
    (
        "include/uapi/linux/pkt_sched.h",
        "struct last {\n};\n\n#endif\n",
    ),
    (
        "Documentation/netlink/specs/tc.yaml",
        "attribute-sets:\n  -\n    name: other\n\nsub-messages:\n  -\n    name: options-msg\n    \
         formats:\n      -\n        value: qfq\n  -\n    name: tca-stats-app-msg\n    formats:\n      \
         -\n        value: red\n",
    ),
    (
        "tools/testing/selftests/net/Makefile",
        "TEST_PROGS := \\\n\trtnetlink.sh \\\n\tsrv6_end.sh \\\n# end\nTEST_GEN_FILES := \\\n\tipsec \\\n\
         \tsctp_hello \\\n# end\n",
    ),
    (
        "tools/testing/selftests/net/.gitignore",
        "rxtimestamp\nsctp_hello\nsocket\n",
    ),
    ("scripts/checkpatch.pl", "exit 0;\n"),
];

fn kernel() -> tempfile::TempDir {
    let kernel = tempfile::tempdir().unwrap();
    for (name, text) in KERNEL {
        let path = kernel.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    kernel
}

fn series(kernel: &Path, out: &Path, name: &str) -> Output {
    let mut series = Command::new("sh");
    series.arg(root().join("packaging/upstream/series.sh"));
    series.arg(kernel).arg(out).arg(name);
    for name in ["AUTHOR", "COMMITTER"] {
        series.env(format!("GIT_{name}_NAME"), "a test");
        series.env(format!("GIT_{name}_EMAIL"), "test@example.org");
    }
    series.output().unwrap()
}

#[test]
fn each_series_applies_and_is_small() {
    let kernel = kernel();
    let patched = self::kernel();
    let read = |name: &str| fs::read_to_string(patched.path().join(name)).unwrap();
    let page = fs::read_to_string(root().join("docs/contribute/upstream.md")).unwrap();
    let (mut lines, mut of_code) = (0, 0);
    for (name, most) in [
        ("first", 1500),
        ("ceil", 400),
        ("launch", 460),
        ("gap", 360),
    ] {
        let out = tempfile::tempdir().unwrap();
        let made = series(kernel.path(), out.path(), name);
        assert!(made.status.success(), "{}", said(&made));
        let mut patches: Vec<_> = fs::read_dir(out.path()).unwrap().collect();
        patches.sort_by_key(|patch| patch.as_ref().unwrap().file_name());
        assert_eq!(patches.len(), 7, "{}", said(&made));
        for patch in patches.into_iter().skip(1) {
            let mut apply = Command::new("git");
            apply.args(["apply", "--whitespace=error-all"]);
            apply.arg(patch.unwrap().path());
            ran(apply.current_dir(patched.path()));
        }
        let code = read("net/sched/sch_pspacer.c");
        assert_eq!(code, qdisc(name));
        let code = code.lines().count();
        let now = code + text(name, "pkt_sched_pspacer.h").lines().count();
        assert!(now - lines <= most, "{name}: {}", now - lines);
        let attributes = now - lines - (code - of_code);
        let of_page = match name {
            "first" => format!(
                "1,{:03} lines and its attributes {attributes}.",
                code - 1000
            ),
            _ => format!(
                "\n{} lines of C and {attributes} of attributes more",
                code - of_code
            ),
        };
        assert!(page.contains(&of_page), "upstream.md has not: {of_page}");
        (lines, of_code) = (now, code);
    }
    let qdisc = read("net/sched/sch_pspacer.c");
    has_none(&qdisc, ["#include \"", "pace_div_rem"]);
    let specification = read("Documentation/netlink/specs/tc.yaml");
    assert_eq!(specification.matches("value: pspacer\n").count(), 2);
    assert_eq!(specification.matches("name: class-ceil\n").count(), 1);
    has(read("net/sched/Kconfig"), ["config NET_SCH_PSPACER\n"]);
    has(read("net/sched/Makefile"), ["sch_pspacer.o\n"]);
    let attributes = read("include/uapi/linux/pkt_sched.h");
    has(
        &attributes,
        [
            "TCA_PSPACER_LINE_RATE",
            "TCA_PSPACER_CLASS_CEIL",
            "TCA_PSPACER_CLASS_CLOCKID",
            "TCA_PSPACER_GAP",
        ],
    );
    for name in ["Makefile", ".gitignore"] {
        let lists = read(&format!("tools/testing/selftests/net/{name}"));
        assert_eq!(lists.matches("sch_pspacer_txtime").count(), 1, "{lists}");
    }
    read("tools/testing/selftests/net/sch_pspacer_txtime.c");
}

#[test]
fn a_series_that_is_none_is_refused() {
    let kernel = kernel();
    let out = tempfile::tempdir().unwrap();
    let refused = series(kernel.path(), out.path(), "second");
    assert!(!refused.status.success());
    let said = said(&refused);
    has(&said, ["no series: expected one of first ceil launch gap"]);
}

#[test]
fn a_folder_that_is_no_kernel_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = tempfile::tempdir().unwrap();
    let refused = series(folder.path(), out.path(), "first");
    assert!(!refused.status.success());
    let said = said(&refused);
    has(&said, ["no net/sched/Kconfig: expected"]);
}

#[test]
fn the_specification_names_every_attribute() {
    for series in SERIES {
        let attributes = text(series, "pkt_sched_pspacer.h");
        let specification = text(series, "tc.yaml");
        let names = attributes
            .lines()
            .filter_map(|line| line.strip_prefix("\tTCA_PSPACER_"));
        let mut named = 0;
        for name in names.filter_map(|line| line.split(',').next()) {
            let name = name.strip_prefix("STATS_").unwrap_or(name);
            if name != "UNSPEC" {
                let name = name.to_lowercase().replace('_', "-");
                assert!(specification.contains(&format!("name: {name}\n")), "{name}");
                named += 1;
            }
        }
        assert_eq!(specification.matches("        name: ").count(), named);
    }
}
