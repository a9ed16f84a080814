// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the kernel developers' own checkers, checkpatch and sparse, over everything that is
//! compiled into a kernel.

use std::path::Path;
use std::process::Command;

use scenario::Kernel;

use crate::command::{output, start};
use crate::error::Error;
use crate::kbuild::{Headers, PACE_CALLS, SCH_PSP, WIRE};
use crate::kernels::KernelFiles;
use crate::packages::{self, CHECKPATCH};
use crate::progress::{Event, Progress};
use crate::setup::Lab;

/// Folders and files in kernel style.
const FOLDERS: &[&str] = &[
    "core/pace.c",
    "core/src",
    "core/include",
    "core/deps/kernel",
    "core/deps/mul_div.h",
    "kernel",
    "uapi",
    "lab/core",
    "lab/wire",
];
/// checkpatch's checks that do not apply outside of the kernel's tree.
const IGNORED: &str = "FILE_PATH_CHANGES,SPDX_LICENSE_TAG,LINUX_VERSION_CODE";

impl Lab {
    /// Runs both, and returns their complaints; the text is empty if there are none.
    ///
    /// # Errors
    /// When a tool or its package is missing, or the modules do not compile.
    pub fn lint(&self, kernel: Kernel, progress: &dyn Progress) -> Result<String, Error> {
        let mut complaints = self.checkpatch(progress)?;
        let set = packages::kernel(kernel);
        let root = packages::root(&self.cache, &set, self.refresh, progress)?;
        let files = KernelFiles::find(set.name, &root)?;
        let headers = Headers {
            cross: None,
            release: &files.release,
            root: &root,
        };
        for own in [&WIRE, &SCH_PSP, &PACE_CALLS] {
            progress.event(&Event::Build {
                what: "the modules under sparse",
            });
            complaints += &headers.sparse(&self.cache, &self.sources, own)?;
        }
        Ok(complaints)
    }

    fn checkpatch(&self, progress: &dyn Progress) -> Result<String, Error> {
        let package = packages::root(&self.cache, &CHECKPATCH, self.refresh, progress)?;
        let scripts = self
            .cache
            .entry("checkpatch", &name_of(&package), |target| {
                progress.event(&Event::Build {
                    what: "checkpatch out of the kernel's sources",
                });
                unpack_scripts(&package, target)
            })?;
        let mut check = Command::new("perl");
        check.arg(scripts.join("scripts/checkpatch.pl"));
        check.args(["--no-tree", "--no-summary", "--terse", "--show-types"]);
        check.args(["--ignore", IGNORED, "--file"]);
        for file in self.sources.files(FOLDERS)? {
            if file.extension().is_some_and(|e| e == "c" || e == "h") {
                check.arg(file);
            }
        }
        check.current_dir(self.sources.path());
        // checkpatch exits with 1 when it has complaints.
        let said = start(&mut check)?;
        Ok(String::from_utf8_lossy(&said.stdout).into_owned())
    }
}

fn name_of(package: &Path) -> String {
    package
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Unpacks those kernel sources that checkpatch reads.
fn unpack_scripts(package: &Path, target: &Path) -> Result<(), Error> {
    let archive = packages::source_archive(package)?;
    let mut tar = Command::new("tar");
    tar.arg("-xJf").arg(&archive).arg("-C").arg(target);
    tar.args(["--strip-components=1", "--wildcards"]);
    tar.args([
        "*/scripts/checkpatch.pl",
        "*/scripts/spelling.txt",
        "*/scripts/const_structs.checkpatch",
    ]);
    output(&mut tar, "unpacking checkpatch").map(drop)
}
