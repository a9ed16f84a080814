// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects what a guest needs.

use std::env;
use std::path::PathBuf;

use scenario::Kernel;

use crate::cache::Cache;
use crate::debug_kernel;
use crate::error::Error;
use crate::guest_store::{Answers, Store};
use crate::image::{self, Image};
use crate::kbuild::{self, Headers, PACE_CALLS, SCH_PSP, WIRE};
use crate::kernels::{KernelFiles, Module, unsigned};
use crate::packages::{
    self, APPARMOR, CHECKPATCH, DPDK, ETCD, ETHTOOL, GUEST, PROMETHEUS, QEMU, SYSTEMD,
};
use crate::progress::Progress;
use crate::repo::Sources;

/// The laboratory: the folder of its cache, and the sources that it compiles.
#[derive(Clone, Debug)]
pub struct Lab {
    /// Downloads and builds.
    pub cache: Cache,
    pub sources: Sources,
    /// Looks for newer packages even if the cache has some.
    pub refresh: bool,
    /// Boots the debug kernel, whichever kernel is asked for.
    pub debug_kernel: bool,
    /// QEMU's models of NICs. A guest gets two devices of each, joined by a hub of their own. If
    /// there are any, the kernel is Debian's generic one, which has the drivers.
    pub nics: Vec<&'static str>,
    /// Processors of the guests of scripts; with more than one, no two runs are equal. Cells have
    /// their own.
    pub cpus: u32,
    /// Counts the instructions of every window by function: [`crate::CellOutput::profile`].
    pub profile: bool,
    /// Leaves the kernel's own modules their signatures, which cost a guest time.
    pub signatures: bool,
    /// Whether guests that have run before run again.
    pub answers: Answers,
    /// The command `pspacer`, which makes a psp of BPF in a guest.
    pub command: Option<PathBuf>,
}

/// The parts that the guests of a run share.
pub(crate) struct Parts {
    pub qemu: PathBuf,
    pub kernel: KernelFiles,
    pub kernel_root: PathBuf,
    /// Folder of what was compiled with the host's compiler.
    pub programs: PathBuf,
    /// Initial file system, without modules.
    pub base: Image,
    pub store: Store,
}

impl Lab {
    /// Returns a laboratory with the default cache, the project's sources, and the command beside
    /// the program that runs: mostly the program itself. Guests that have run
    /// before are answered from the cache's store, as [`Answers::asked`] says.
    ///
    /// # Errors
    /// If the cache folder cannot be determined or the sources are not found.
    pub fn find() -> Result<Self, Error> {
        let (cache, sources) = (Cache::default_folder()?, Sources::find()?);
        Ok(Self {
            cache,
            sources,
            refresh: false,
            debug_kernel: false,
            nics: Vec::new(),
            cpus: 1,
            profile: false,
            signatures: false,
            answers: Answers::asked(),
            command: env::current_exe()
                .ok()
                .map(|program| program.with_file_name("pspacer"))
                .filter(|command| command.is_file()),
        })
    }

    pub(crate) fn parts(
        &self,
        kernel: Kernel,
        iperf3: bool,
        progress: &dyn Progress,
    ) -> Result<Parts, Error> {
        let root = |set| packages::root(&self.cache, set, self.refresh, progress);
        let qemu = root(&QEMU)?;
        let guest = root(&GUEST)?;
        let (name, kernel_root) = if self.debug_kernel {
            let source = root(&CHECKPATCH)?;
            let built = debug_kernel::root(&self.cache, &self.sources, &source, progress)?;
            (debug_kernel::NAME, built)
        } else {
            let set = if self.nics.is_empty() {
                packages::kernel(kernel)
            } else {
                packages::generic_kernel(kernel)
            };
            (set.name, root(&set)?)
        };
        let kernel = KernelFiles::find(name, &kernel_root)?;
        let programs = kbuild::programs(&self.cache, &self.sources, progress)?;
        let base = image::base(&guest, &programs, iperf3)?;
        Ok(Parts {
            qemu,
            kernel,
            kernel_root,
            programs,
            base,
            store: Store::of(&self.cache)?,
        })
    }

    /// Returns modules in the order to load them: the wanted ones, which must exist, and those
    /// candidates that exist.
    pub(crate) fn modules(
        &self,
        parts: &Parts,
        wanted: &[String],
        candidates: &[String],
        progress: &dyn Progress,
    ) -> Result<Vec<Module>, Error> {
        let own = [&WIRE, &SCH_PSP, &PACE_CALLS];
        let is_own = |name: &str| own.iter().any(|module| module.name == name);
        let mut names = wanted.to_vec();
        names.extend(
            candidates
                .iter()
                .filter(|name| is_own(name) || parts.kernel.has(name))
                .cloned(),
        );
        let headers = Headers {
            cross: None,
            release: &parts.kernel.release,
            root: &parts.kernel_root,
        };
        let mut built = Vec::new();
        for module in own
            .iter()
            .filter(|module| names.iter().any(|name| name == module.name))
        {
            built.push(headers.module(&self.cache, &self.sources, module, progress)?);
        }
        let mut modules = parts.kernel.load_order(&names, &built)?;
        if !self.signatures {
            for module in &mut modules {
                module.bytes = unsigned(std::mem::take(&mut module.bytes));
            }
        }
        Ok(modules)
    }

    /// Fetches and compiles everything a kernel's guests need, so that later
    /// runs need no network.
    ///
    /// # Errors
    /// When something can neither be fetched nor found in the cache, or does
    /// not compile.
    pub fn prepare(&self, kernel: Kernel, progress: &dyn Progress) -> Result<String, Error> {
        let parts = self.parts(kernel, true, progress)?;
        packages::root(&self.cache, &ETHTOOL, self.refresh, progress)?;
        self.modules(&parts, &["wire".into(), "sch_psp".into()], &[], progress)?;
        Ok(parts.kernel.release)
    }
}

/// Returns the folder with DPDK's headers and static libraries, laid out as in the packages
/// (`usr/include`, `usr/lib`). Fetches them if the cache has none.
///
/// # Errors
/// When the packages can neither be fetched nor found in the cache.
pub fn dpdk(cache: &Cache, progress: &dyn Progress) -> Result<PathBuf, Error> {
    packages::root(cache, &DPDK, false, progress)
}

/// Returns the folder with the programs of Debian's Prometheus, laid out as in the package.
pub fn prometheus(cache: &Cache, progress: &dyn Progress) -> Result<PathBuf, Error> {
    packages::root(cache, &PROMETHEUS, false, progress)
}

/// Returns the folder with the program of Debian's etcd, laid out as in the package.
pub fn etcd(cache: &Cache, progress: &dyn Progress) -> Result<PathBuf, Error> {
    packages::root(cache, &ETCD, false, progress)
}

/// Returns the folder with systemd, udev and the libraries that they need, laid out as in the
/// packages.
pub fn systemd(cache: &Cache, progress: &dyn Progress) -> Result<PathBuf, Error> {
    packages::root(cache, &SYSTEMD, false, progress)
}

/// Returns the folder with AppArmor's programs and abstractions, laid out as in the package.
pub fn apparmor(cache: &Cache, progress: &dyn Progress) -> Result<PathBuf, Error> {
    packages::root(cache, &APPARMOR, false, progress)
}
