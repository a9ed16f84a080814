// SPDX-License-Identifier: MIT OR Apache-2.0
//! Senders play scripts in packetdrill's notation: our own, and packetdrill's, made against
//! real kernels, if a checkout of them is there.

use std::fs;
use std::path::{Path, PathBuf};

use netsim::tcp::Congestion;

use crate::tcp_script::play::{Defaults, play};
use crate::tcp_script::{Event, read};

/// The defaults for which packetdrill's scripts are written.
const TODAY: Defaults = Defaults {
    variant: "rack",
    congestion: Congestion::Cubic,
    strict: false,
};

/// Returns the scripts of a folder; none if there is no folder.
fn scripts(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut all: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "pkt"))
        .collect();
    all.sort();
    all
}

/// Returns the scripts that ended otherwise, with their errors.
fn failures(folders: &[PathBuf], defaults: &Defaults, differs: &[&str]) -> Vec<String> {
    let mut failures = Vec::new();
    for path in folders.iter().flat_map(|folder| scripts(folder)) {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(&path).unwrap_or_default();
        let result = read(&text).and_then(|script| play(&script, defaults));
        match (result, differs.contains(&name.as_str())) {
            (Ok(()), false) => println!("as scripted: {name}"),
            (Err(what), true) => println!("differs, as listed: {name}: {what}"),
            (Ok(()), true) => failures.push(format!("{name} is listed as different and is not")),
            (Err(what), false) => failures.push(format!("{name}: {what}")),
        }
    }
    failures
}

#[test]
fn our_own_scripts_end_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcp_scripts");
    assert!(scripts(&folder).len() >= 5);
    let strict = Defaults {
        strict: true,
        ..TODAY
    };
    let failures = failures(&[folder], &strict, &[]);
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Packetdrill's scripts that end otherwise here; docs/decisions/simulator.md, "Scripts of
/// packetdrill", says why.
const DIFFERS: [&str; 3] = [
    "cwnd-moderation-ecn-enter-cwr-no-moderation-700.pkt", // ECN
    "fr-4pkt-fack-last-mss.pkt",                           // jiffies of 4 ms
    "slow-start-fq-ack-per-2pkt.pkt",                      // fq paces
];

#[test]
#[ignore = "needs a checkout of google/packetdrill, its path in PACKETDRILL"]
fn packetdrills_scripts_end_as_written() {
    let Ok(root) = std::env::var("PACKETDRILL") else {
        panic!("PACKETDRILL is not set");
    };
    let tcp = Path::new(&root).join("gtests/net/tcp");
    let folders = [
        "sack",
        "fast_recovery",
        "fast_retransmit",
        "limited_transmit",
        "slow_start",
        "cwnd_moderation",
    ]
    .map(|name| tcp.join(name));
    for folder in &folders {
        assert!(
            !scripts(folder).is_empty(),
            "no scripts in {}",
            folder.display()
        );
    }
    let failures = failures(&folders, &TODAY, &DIFFERS);
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_line_that_cannot_be_expressed_is_named() {
    let cannot = |text: &str| read(text).err().unwrap_or_default();
    assert!(cannot("+0 ioctl(3, SIOCOUTQ, [1]) = 0").contains("line 1: cannot express"));
    assert!(cannot("\n+0 < R. 1:1(0) ack 1 win 1").contains("line 2: cannot express"));
    assert!(cannot("+0 %{ print(tcpi_lost) }%").contains("cannot express"));
    assert!(cannot("+x write(3, ..., 1) = 1").contains("+x"));
}

#[test]
fn lines_of_every_form_are_read() {
    let text = "`netsim variant=2.6.22`
 // nothing
 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
 +.1~+.105 < . 1:1(0) ack 1 win 320 <sack 1001:2001 3001:4001,nop,nop>
 +0 %{
assert tcpi_lost == 6, tcpi_lost  # six
}%
 +0 > P. 1:4001(4000) ack 1
";
    let script = read(text).expect("all can be expressed");
    assert_eq!(
        script.settings,
        [("variant".to_owned(), "2.6.22".to_owned())]
    );
    assert_eq!(script.steps.len(), 4);
    assert_eq!(
        script.steps[1].slack.map(|span| span.as_ns()),
        Some(5_000_000)
    );
    let Event::Arrives(packet) = &script.steps[1].event else {
        panic!("{:?}", script.steps[1]);
    };
    assert_eq!(packet.sack, [(1001, 2001), (3001, 4001)]);
    assert_eq!(
        script.steps[2].event,
        Event::Asserts(vec![("tcpi_lost".to_owned(), 6)])
    );
}

mod hostile {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(testkit::properties())]

        /// Any text is read or rejected.
        #[test]
        fn no_text_panics(text in "[-+~. 0-9<>`%{}SFP:()a-z\n,=]{0,200}") {
            let _ = read(&text).and_then(|script| play(&script, &TODAY));
        }
    }
}
