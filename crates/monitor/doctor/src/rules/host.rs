// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules about the host: module, kernel, timers, idle states, pacing sockets.

use units::terse;

use crate::facts::{Facts, Program};
use crate::finding::Severity;
use crate::rules::found::{Found, found, paces_without_module};

/// The oldest kernel whose laboratory psp passes.
const OLDEST: (u32, u32) = (6, 1);
/// Clocks whose reading takes no bus cycle.
const FAST_CLOCKS: &[&str] = &[
    "tsc",
    "kvm-clock",
    "arch_sys_counter",
    "tod",
    "hyperv_clocksource_tsc_page",
    "timebase",
];
/// DKMS' key for modules, `.key`, and its certificate, `.pub`.
const KEY: &str = "/var/lib/dkms/mok";
/// A processor that takes longer to wake than some frames of 1500 bytes at 1 Gbit/s take.
const SLOW_WAKE_US: u64 = 50;
/// Timers that are later than this miss what psp's mode hybrid leads by, see tc-psp(8).
const LATE_TIMER_NS: u64 = 100_000;

/// Returns whether the module is installed and not loaded, and nothing paces in its place.
fn is_only_installed(facts: &Facts) -> bool {
    facts.is_module_installed && !facts.is_module_loaded && !paces_without_module(facts)
}

pub fn module_not_loaded(facts: &Facts) -> Option<Found> {
    if !is_only_installed(facts) || facts.are_signatures_enforced {
        return None;
    }
    found(
        Severity::Note,
        "sch_psp is installed and not loaded.".to_owned(),
        "tc loads it when the first psp qdisc is made; programs that only read do not.",
        "modprobe sch_psp",
    )
}

/// Complains unless the module is installed.
pub fn module_missing(facts: &Facts) -> Option<Found> {
    if facts.is_module_loaded || facts.is_module_installed || paces_without_module(facts) {
        return None;
    }
    found(
        Severity::Fault,
        format!(
            "sch_psp is not installed for kernel {}.",
            facts.kernel_release
        ),
        "Without the module there is no qdisc psp on this kernel.",
        "make install",
    )
}

/// Complains unless the module is signed, if this kernel loads only signed ones.
pub fn module_not_signed(facts: &Facts) -> Option<Found> {
    let is_refused = facts.are_signatures_enforced && facts.is_module_signed == Some(false);
    if !is_only_installed(facts) || !is_refused {
        return None;
    }
    let sign = "/lib/modules/$(uname -r)/build/scripts/sign-file sha256";
    let file = facts.module_file.as_deref().unwrap_or_default();
    found(
        Severity::Fault,
        "sch_psp is not signed, and this kernel loads only signed modules.".to_owned(),
        "modprobe is refused: sign the module, enrol the key in the next boot's MOK manager.",
        format!("{sign} {KEY}.key {KEY}.pub {file} && mokutil --import {KEY}.pub"),
    )
}

/// The module is one that this kernel loads, as far as its file tells: not whether the kernel
/// trusts the key.
pub fn module_signature(facts: &Facts) -> Option<Found> {
    let is_doubtful = facts.are_signatures_enforced && facts.is_module_signed != Some(false);
    if !is_only_installed(facts) || !is_doubtful {
        return None;
    }
    found(
        Severity::Warning,
        "sch_psp is not loaded, and this kernel loads only modules of keys that it trusts."
            .to_owned(),
        "If modprobe is refused, enrol the key in the next boot's MOK manager.",
        format!("modprobe sch_psp || mokutil --import {KEY}.pub"),
    )
}

/// Complains unless module and program are of one version.
pub fn module_version(facts: &Facts) -> Option<Found> {
    let module = facts.module_version.as_ref()?;
    if *module == facts.program_version {
        return None;
    }
    found(
        Severity::Warning,
        format!(
            "sch_psp is version {module}, pspacer is {}.",
            facts.program_version
        ),
        "Statistics and options that only one of them knows are not shown.",
        "modprobe -r sch_psp && modprobe sch_psp",
    )
}

/// Returns the kernel's version, of two numbers.
pub fn kernel_version(facts: &Facts) -> Option<(u32, u32)> {
    let mut numbers = facts.kernel_release.split(['.', '-', '+']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Complains unless the host's files can be applied.
pub fn file_refused(facts: &Facts) -> Option<Found> {
    let why = facts.file_refusal.as_ref()?;
    found(
        Severity::Fault,
        format!("The host's files cannot be applied: {why}."),
        "After the next boot nothing is paced as they say.",
        "pspacer plan",
    )
}

/// Complains unless the devices of the host's files are there.
pub fn absent_devices(facts: &Facts) -> Option<Found> {
    let (first, others) = facts.absent_devices.split_first()?;
    let (all, are) = match others {
        [] => (first.clone(), "is"),
        _ => (facts.absent_devices.join(", "), "are"),
    };
    found(
        Severity::Note,
        format!("The host's files name {all}, which {are} not there."),
        "Other devices are paced as their files say. One that comes later is paced then if its unit \
         pspacer@ is enabled.",
        format!("systemctl enable \"$(systemd-escape --template=pspacer@.service {first})\""),
    )
}

/// Complains unless the kernel is one that psp is tested on.
pub fn kernel(facts: &Facts) -> Option<Found> {
    if kernel_version(facts)? >= OLDEST {
        return None;
    }
    found(
        Severity::Warning,
        format!(
            "Kernel {} is older than {}.{}.",
            facts.kernel_release, OLDEST.0, OLDEST.1
        ),
        "psp is tested on 6.1, 6.12 and 7; older kernels may lack what it calls.",
        "apt install linux-image-amd64",
    )
}

/// Complains unless timers are of high resolution.
pub fn timer_resolution(facts: &Facts) -> Option<Found> {
    if facts.timer_resolution_ns <= 1 {
        return None;
    }
    found(
        Severity::Fault,
        format!(
            "Timers have a resolution of {}.",
            terse::ms(facts.timer_resolution_ns)
        ),
        "Modes timer and hybrid wait by timers: frames leave in bursts of a tick.",
        "sed -i 's/ *highres=off//' /etc/default/grub && update-grub && reboot",
    )
}

/// Complains unless the kernel's clock is read fast.
pub fn clocksource(facts: &Facts) -> Option<Found> {
    let clock = facts.clocksource.as_deref()?;
    if FAST_CLOCKS.contains(&clock) {
        return None;
    }
    found(
        Severity::Warning,
        format!("The kernel's clock is {clock}."),
        "psp reads the clock for each frame; this one takes a microsecond or more.",
        "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
    )
}

/// Complains unless processors wake fast enough.
pub fn idle_states(facts: &Facts) -> Option<Found> {
    let deepest = facts.idle_states.iter().max_by_key(|s| s.latency_us)?;
    if deepest.latency_us <= SLOW_WAKE_US {
        return None;
    }
    found(
        Severity::Warning,
        format!(
            "Processors may sleep in {}, which takes {} µs to leave.",
            deepest.name, deepest.latency_us
        ),
        "Timers and completions of sent frames are late by that whenever a processor slept.",
        format!("cpupower idle-set -D {SLOW_WAKE_US}"),
    )
}

/// Complains unless timers were on time when they were measured.
pub fn late_timers(facts: &Facts) -> Option<Found> {
    let timers = facts.timers?;
    if timers.p99_ns <= LATE_TIMER_NS {
        return None;
    }
    found(
        Severity::Warning,
        format!(
            "One of a hundred timers was later than {}, the latest of {} by {}.",
            terse::ms(timers.p99_ns),
            timers.timers,
            terse::ms(timers.max_ns)
        ),
        "Mode timer sends frames as late as its timers are; mode hybrid must lead by as much.",
        "tuned-adm profile network-latency",
    )
}

/// Complains if sockets pace themselves beside psp.
pub fn paced_sockets(facts: &Facts) -> Option<Found> {
    let count = facts.paced_sockets.filter(|count| *count > 0)?;
    let psps = facts.devices.iter().flat_map(|device| &device.psp);
    // Classes of type dynamic, which only the module has, take the rates of sockets.
    let mut classes = psps.flat_map(|psp| &psp.classes);
    if !classes.any(|class| !class.is_dynamic && !class.is_normal) {
        return None;
    }
    let why = if paces_without_module(facts) {
        "They pace themselves before psp does: a class gets no more than they send."
    } else {
        "They pace themselves before psp does: a class gets no more than they send. A class of \
         type dynamic takes their rates."
    };
    found(
        Severity::Note,
        format!("TCP connections with SO_MAX_PACING_RATE: {count}."),
        why,
        "ss -tin state established",
    )
}

/// Names programs, each with its sockets of a kind.
fn name_programs(facts: &Facts, sockets: fn(&Program) -> u64) -> Option<String> {
    let programs = facts.pacing_programs.as_ref()?.iter();
    let named = programs.filter(|program| sockets(program) > 0);
    let named: Vec<_> = named
        .map(|program| format!("{} {}", program.name, sockets(program)))
        .collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// Complains unless something keeps the launch times of sockets.
pub fn lost_launch_times(facts: &Facts) -> Option<Found> {
    let programs = name_programs(facts, |program| program.with_launch_times)?;
    if facts.keeps_launch_times {
        return None;
    }
    found(
        Severity::Warning,
        format!("Sockets have launch times (SO_TXTIME), and no qdisc keeps them: {programs}."),
        "Each frame leaves when it is sent. psp with txtime, etf or fq keep launch times.",
        if paces_without_module(facts) {
            "pspacer apply  # in the host's file: backend = \"edt\", whose fq keeps them"
        } else {
            "tc class change dev DEV classid 1:1 psp rate 100mbit txtime monotonic"
        },
    )
}

/// Complains unless something keeps the rates of sockets of datagrams.
pub fn lost_rates(facts: &Facts) -> Option<Found> {
    let programs = name_programs(facts, |program| program.with_rate)?;
    if facts.keeps_socket_rates {
        return None;
    }
    found(
        Severity::Warning,
        format!("Sockets of datagrams have SO_MAX_PACING_RATE, and no qdisc keeps it: {programs}."),
        "They send as fast as their program does. fq, unless it has nopacing, and psp's classes of type dynamic keep such rates.",
        if paces_without_module(facts) {
            "pspacer apply  # in the host's file: a class with a rate for what they send"
        } else {
            "tc class change dev DEV classid 1:1 psp mode dynamic"
        },
    )
}
