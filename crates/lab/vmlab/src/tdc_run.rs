// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs all conformance cases in one guest.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use scenario::Kernel;

use crate::error::{At, Error};
use crate::progress::Progress;
use crate::script::{QDISC_MODULES, ScriptSpec, run_script};
use crate::setup::Lab;
use crate::tdc::{Case, Verdict, judge, references, script};

/// Files of `tests/tdc` that the guest gets beside the cases, and their paths in the guest.
const FILES: &[(&str, &str)] = &[
    ("guest.sh", "/tdc/guest.sh"),
    ("wire.sh", "/tdc/wire.sh"),
    ("flow.sh", "/tdc/flow.sh"),
    ("modprobe.sh", "/sbin/modprobe"),
];

/// The results of all cases.
#[derive(Clone, Debug)]
pub struct TdcOutput {
    /// One verdict for each case, in the order of the cases.
    pub verdicts: Vec<Verdict>,
    /// References to `sch_psp` that were left at the end; 0 unless something leaked.
    pub references: u32,
}

impl TdcOutput {
    /// Returns the results in the Test Anything Protocol.
    pub fn tap(&self) -> String {
        let mut text = format!("1..{}\n", self.verdicts.len() + 1);
        for (number, verdict) in (1..).zip(&self.verdicts) {
            text += &verdict.tap(number);
        }
        let result = match self.references {
            0 => "ok",
            _ => "not ok",
        };
        let last = self.verdicts.len() + 1;
        text += &format!("{result} {last} - no reference to the module is left\n");
        text
    }

    /// Returns whether every case passed and no reference is left.
    pub fn is_ok(&self) -> bool {
        self.references == 0 && self.verdicts.iter().all(|v| v.faults.is_empty())
    }
}

/// Runs the cases in a guest, each in a network namespace of its own.
///
/// # Errors
/// When the guest cannot be made, or its kernel complains, panics or hangs. A
/// case that fails is no error.
pub fn run_tdc(
    lab: &Lab,
    kernel: Kernel,
    cases: &[Case],
    timeout: Duration,
    out_dir: &Path,
    progress: &dyn Progress,
) -> Result<TdcOutput, Error> {
    let folder = out_dir.join("cases");
    fs::create_dir_all(&folder).at("create", &folder)?;
    let mut files: Vec<(PathBuf, String)> = FILES
        .iter()
        .map(|(from, to)| {
            (
                lab.sources.path().join("tests/tdc").join(from),
                (*to).into(),
            )
        })
        .collect();
    let leaks = lab.sources.path().join("lab/debug-kernel/leaks.sh");
    files.push((leaks, "/tdc/leaks.sh".into()));
    let mut command = "sh /tdc/leaks.sh sh /tdc/guest.sh".to_owned();
    for case in cases {
        let path = folder.join(format!("{}.sh", case.id));
        fs::write(&path, script(case)).at("write", &path)?;
        let inside = format!("/tdc/cases/{}.sh", case.id);
        command += &format!(" {inside}");
        files.push((path, inside));
    }
    let files: Vec<_> = files
        .iter()
        .map(|(from, to)| (from.as_path(), to.as_str()))
        .collect();
    let spec = ScriptSpec {
        kernel,
        modules: QDISC_MODULES,
        files: &files,
        command: &command,
        seed: 1,
        timeout,
        out_dir,
    };
    let ran = run_script(lab, &spec, progress)?;
    let not_ended = || Error::Results {
        detail: "the cases did not run to their end".into(),
        console: ran.console.clone(),
    };
    let references = references(&ran.output).ok_or_else(not_ended)?;
    if ran.status != 0 {
        return Err(Error::Results {
            detail: ran.output,
            console: ran.console,
        });
    }
    Ok(TdcOutput {
        verdicts: judge(cases, &ran.output),
        references,
    })
}
