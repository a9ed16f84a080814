// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a shell script inside a guest, for tests of the kernel module that no scenario can express.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use scenario::Kernel;

use crate::debug_kernel;
use crate::error::{At, Error};
use crate::image::{Image, add_modules, add_plugin};
use crate::progress::Progress;
use crate::qemu::{Guest, Start};
use crate::results::collect;
use crate::setup::Lab;
use crate::snapshot::Origin;

/// The memory that guest and host share. A guest resumes if what it gets fits into half of it: a test's build
/// of the command has 56 MB, and to boot takes ten times as long.
const SHARED_BYTES: u64 = 1 << 27;

/// Modules for tests of psp together with other qdiscs, in the order to load them.
pub const QDISC_MODULES: &[&str] = &[
    "sch_psp",
    "wire",
    "pktgen",
    "veth",
    "dummy",
    "ifb",
    "sch_netem",
    "sch_prio",
    "sch_multiq",
    "sch_tbf",
    "sch_htb",
    "sch_hfsc",
    "sch_sfq",
    "sch_red",
    "sch_fq",
    "sch_codel",
    "sch_fq_codel",
    "sch_cake",
    "sch_drr",
    "sch_qfq",
    "sch_ets",
    "sch_pie",
    "sch_choke",
    "sch_plug",
    "sch_mqprio",
    "sch_ingress",
    "cls_u32",
    "cls_fw",
    "cls_flow",
    "cls_flower",
    "cls_matchall",
    "cls_basic",
    "act_gact",
    "act_mirred",
    "act_police",
    "act_skbedit",
];

/// Describes what [`run_script`] is to do.
#[derive(Clone, Debug)]
pub struct ScriptSpec<'a> {
    /// The kernel to run the script on.
    pub kernel: Kernel,
    /// Modules to load first, together with their dependencies; `wire` and `sch_psp` are compiled.
    pub modules: &'a [&'a str],
    /// Files of the host, and their paths in the guest.
    pub files: &'a [(&'a Path, &'a str)],
    /// Shell command; its working folder is `/`.
    pub command: &'a str,
    /// Seed of the guest.
    pub seed: u64,
    /// Limit of the processor time.
    pub timeout: Duration,
    /// Folder for the logs.
    pub out_dir: &'a Path,
}

/// The output and the exit status of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptOutput {
    pub status: i32,
    /// Standard output and standard error.
    pub output: String,
    /// The guest's console log.
    pub console: PathBuf,
}

/// Runs a script in a guest of its own. A script that fails is no error: see
/// [`ScriptOutput::status`].
///
/// # Errors
/// When the guest cannot be made, or its kernel complains, panics or hangs.
pub fn run_script(
    lab: &Lab,
    spec: &ScriptSpec<'_>,
    progress: &dyn Progress,
) -> Result<ScriptOutput, Error> {
    let parts = lab.parts(spec.kernel, true, progress)?;
    let wanted: Vec<String> = spec.modules.iter().map(ToString::to_string).collect();
    let modules = lab.modules(&parts, &wanted, &[], progress)?;
    let mut image = Image::default();
    let mut steps = add_modules(&mut image, modules);
    add_plugin(&mut image, &parts.programs)?;
    for (from, to) in spec.files {
        let bytes = fs::read(from).at("read", from)?;
        image.file(to.trim_start_matches('/'), bytes);
    }
    image.file("command", format!("{}\n", spec.command).into_bytes());
    steps.push("run sh /command > /out/output 2>&1; echo $? > /out/exit".into());
    image.file("plan", (steps.join("\n") + "\n").into_bytes());
    fs::create_dir_all(spec.out_dir).at("create", spec.out_dir)?;
    let scratch = tempfile::Builder::new()
        .prefix(".boot-")
        .tempdir_in(spec.out_dir)
        .at("create a folder in", spec.out_dir)?;
    let guest = Guest {
        qemu: &parts.qemu,
        kernel: &parts.kernel.image,
        kernel_line: if lab.debug_kernel {
            debug_kernel::LINE
        } else {
            ""
        },
        initrd: &[],
        start: Start::Boot,
        // The checkers of the debug kernel keep freed memory, so it needs about twice as much.
        memory_bytes: if lab.debug_kernel { 2 << 30 } else { 1 << 30 },
        cpus: lab.cpus,
        shared_bytes: SHARED_BYTES,
        seed: spec.seed,
        timeout: spec.timeout,
        folder: spec.out_dir,
        nics: &lab.nics,
        plugin: None,
        stop: &AtomicBool::new(false),
        store: &parts.store,
        answers: lab.answers,
    };
    let base = parts.base.to_cpio();
    let origin = Origin::new(&lab.cache, &guest, &base, image.to_cpio())?;
    let guest = Guest {
        initrd: &origin.initrd,
        start: origin.start(),
        ..guest
    };
    let left = guest.boot(scratch.path(), &mut |_| {})?;
    let console = guest.console();
    collect(&left.shared, spec.out_dir, spec.out_dir, &console, progress)?;
    let read = |name: &str| {
        let path = spec.out_dir.join(name);
        fs::read(&path)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .at("read", &path)
    };
    let status = read("exit")?;
    let status = status.trim().parse().map_err(|_| Error::Results {
        detail: format!("the exit status of the script is {:?}", status.trim()),
        console: console.clone(),
    })?;
    Ok(ScriptOutput {
        status,
        output: read("output")?,
        console,
    })
}
