// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a script in the laboratory's guest.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use capture::timeline::TimelineReader;
use scenario::Kernel;
use vmlab::{Lab, Quiet, ScriptSpec, run_script};

/// Runs a command in a guest with these modules and files, each with its place there, and prints
/// what it says, which is returned. What it leaves comes into `folder`.
///
/// # Panics
/// If the command fails, with what it and the guest said.
pub fn run_in_guest(
    (kernel, modules): (Kernel, &[&str]),
    files: &[(PathBuf, String)],
    command: &str,
    timeout: Duration,
    folder: &Path,
) -> String {
    let files: Vec<_> = files
        .iter()
        .map(|(from, to)| (from.as_path(), to.as_str()))
        .collect();
    let spec = ScriptSpec {
        kernel,
        modules,
        files: &files,
        command,
        seed: 1,
        timeout,
        out_dir: folder,
    };
    let ran = run_script(&Lab::find().unwrap(), &spec, &Quiet).unwrap_or_else(|error| {
        let console = fs::read_to_string(folder.join("console.log"));
        panic!("{kernel}: {error}\n{}", console.unwrap_or_default())
    });
    assert_eq!(ran.status, 0, "{kernel}:\n{}", ran.output);
    println!("{kernel}:\n{}", ran.output);
    ran.output
}

/// Bytes of each frame that the record keeps.
const SNAP_BYTES: usize = 64;

/// A frame of the cable's record: when it leaves, and its number in its flow.
pub type Frame = (u64, u64);

/// Returns the UDP frames to each port, of a record with the frames' beginnings.
pub fn numbered_frames(folder: &Path, name: &str) -> BTreeMap<u16, Vec<Frame>> {
    let file = fs::File::open(folder.join(format!("{name}.timeline"))).unwrap();
    let snaps = fs::read(folder.join(format!("{name}.snap"))).unwrap();
    let mut snaps = snaps.chunks_exact(SNAP_BYTES);
    let mut frames = BTreeMap::<u16, Vec<Frame>>::new();
    for record in TimelineReader::new(file) {
        let record = record.unwrap();
        if record.kind != capture::record::Kind::Data {
            continue;
        }
        let snap = snaps.next().unwrap();
        if snap[12..14] != [8, 0] || snap[23] != 17 {
            continue;
        }
        let port = u16::from_be_bytes(snap[36..38].try_into().unwrap());
        let number = u64::from_be_bytes(snap[42..50].try_into().unwrap());
        frames
            .entry(port)
            .or_default()
            .push((record.start_ps / 1000, number));
    }
    frames
}
