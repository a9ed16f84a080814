// SPDX-License-Identifier: MIT OR Apache-2.0
//! apt with a private state that knows no installed package: what it would install for a set of
//! packages, and the files of that.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::cache::{Cache, short_hash};
use crate::command::{failure, output};
use crate::error::{At, Error};
use crate::progress::{Event, Progress};
use crate::sources::Archives;

/// Debian's name of the architecture that the laboratory runs on.
const HOST: &str = "amd64";

/// A set of packages that are used together.
pub(crate) struct Set {
    pub name: &'static str,
    /// Debian suites; the last is preferred where versions differ.
    pub suites: &'static [&'static str],
    /// Names of packages; of another architecture with that behind a colon.
    pub wanted: &'static [&'static str],
    /// Prefixes of names: a dependency of the wanted packages is kept if its name begins with one
    /// of these. The others (init systems, perl, ...) serve an installation and are not needed
    /// here.
    pub keep: &'static [&'static str],
    /// Prepares the files once they are unpacked.
    pub prepare: fn(&Path) -> Result<(), Error>,
}

impl Set {
    /// Returns the architectures whose packages the set may have: the host's, and those that names
    /// of wanted packages end with, as in `dash:arm64`.
    pub fn architectures(&self) -> BTreeSet<&'static str> {
        let others = self.wanted.iter().filter_map(|name| name.split_once(':'));
        others.map(|(_, other)| other).chain([HOST]).collect()
    }

    /// Returns the name of the set in the cache. It changes when other suites or packages are asked
    /// for.
    pub fn key(&self) -> String {
        let lists = [self.suites, self.wanted, self.keep].map(|list| list.join(" "));
        let hash = short_hash(lists.iter().map(|list| list.as_bytes()));
        format!("{}-{hash}", self.name)
    }
}

/// What apt would fetch for a set.
pub(crate) struct Packages {
    /// `name=version` of each, as apt takes it.
    specs: Vec<String>,
    /// Their files, in an order of apt's own.
    pub files: Vec<Package>,
}

/// One package file of the archive.
pub(crate) struct Package {
    pub name: String,
    bytes: u64,
}

/// apt with a private state.
pub(crate) struct Apt {
    config: PathBuf,
    pub archives: PathBuf,
}

impl Apt {
    pub fn new(cache: &Cache, set: &Set) -> Result<Self, Error> {
        let archives = Archives::of_this_machine()?;
        let suites = archives.available(set.suites);
        let release = suites.last().copied().unwrap_or_default();
        Self::with_sources(cache, set, &archives.sources(set.suites), release)
    }

    fn with_sources(cache: &Cache, set: &Set, list: &str, release: &str) -> Result<Self, Error> {
        let folder = cache.folder(&format!("apt/{}", set.name))?;
        let lists = cache.folder("apt/lists")?;
        cache.folder("apt/lists/partial")?;
        cache.folder(&format!("apt/{}/archives/partial", set.name))?;
        let path = |name: &str| folder.join(name);
        let sources = path("debian.sources");
        fs::write(&sources, list).at("write", &sources)?;
        let status = path("status");
        fs::write(&status, "").at("write", &status)?;
        let config = path("apt.conf");
        let settings = [
            ("APT::Architecture", HOST.into()),
            ("APT::Default-Release", release.into()),
            ("APT::Install-Recommends", "false".into()),
            ("APT::Get::List-Cleanup", "false".into()),
            ("APT::Update::Error-Mode", "any".into()),
            // The cache belongs to the user: apt must not change to a user of its own, who could
            // not write there.
            ("APT::Sandbox::User", String::new()),
            ("Acquire::Languages", "none".into()),
            ("Dir::State", folder.display().to_string()),
            ("Dir::State::status", status.display().to_string()),
            ("Dir::State::lists", lists.display().to_string()),
            ("Dir::Cache", folder.display().to_string()),
            ("Dir::Etc::sourcelist", sources.display().to_string()),
            ("Dir::Etc::sourceparts", "-".into()),
            ("Dir::Etc::preferences", "-".into()),
            ("Dir::Etc::preferencesparts", "-".into()),
        ];
        let mut text: String = settings
            .iter()
            .map(|(key, value)| format!("{key} \"{value}\";\n"))
            .collect();
        text += "#clear APT::Architectures;\n";
        for architecture in set.architectures() {
            text += &format!("APT::Architectures:: \"{architecture}\";\n");
        }
        // The hooks that the machine runs after its own updates must not run here.
        let text =
            text + "#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n";
        fs::write(&config, text).at("write", &config)?;
        Ok(Self {
            config,
            archives: path("archives"),
        })
    }

    /// Returns apt-get in a folder without packages: it leaves files that are in its folder already
    /// out of what it prints, and a fetch that was cut off leaves some in `archives`.
    fn command(&self) -> Command {
        let mut command = Command::new("apt-get");
        command.env("APT_CONFIG", &self.config).current_dir("/");
        command
    }

    pub fn update(&self) -> Result<(), Error> {
        output(self.command().args(["-q", "update"]), "apt-get update").map(drop)
    }

    /// Returns the wanted packages and those of their dependencies that are kept.
    pub fn resolve(&self, set: &Set) -> Result<Packages, Error> {
        let mut install = self.command();
        install.args(["-q", "-s", "install"]).args(set.wanted);
        let plan = output(&mut install, "apt-get install --simulate")?;
        let keep = |name: &str| {
            set.wanted.contains(&name) || set.keep.iter().any(|prefix| name.starts_with(prefix))
        };
        let mut specs: Vec<String> = planned(&plan)
            .filter(|(name, _)| keep(name))
            .map(|(name, version)| format!("{name}={version}"))
            .collect();
        specs.sort();
        let mut uris = self.command();
        uris.args(["-q", "download", "--print-uris"]).args(&specs);
        let uris = output(&mut uris, "apt-get download --print-uris")?;
        let files: Vec<Package> = uris.lines().filter_map(printed_uri).collect();
        if files.len() != specs.len() {
            return Err(Error::Command {
                what: "apt-get download --print-uris".into(),
                detail: format!("{} files for {} packages", files.len(), specs.len()),
            });
        }
        Ok(Packages { specs, files })
    }

    /// Fetches the files that are not in the cache yet. apt checks size and hash of what it fetches, and
    /// of what is there the size.
    pub fn download(
        &self,
        set: &Set,
        packages: &Packages,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let size = |name: &str| fs::metadata(self.archives.join(name)).map_or(0, |meta| meta.len());
        let files = &packages.files;
        let total_bytes = files.iter().map(|file| file.bytes).sum();
        let report = || {
            let done = files
                .iter()
                .map(|file| size(&file.name).min(file.bytes))
                .sum();
            progress.event(&Event::Download {
                set: set.name,
                done_bytes: done,
                total_bytes,
            });
        };
        let mut command = self.command();
        command.args(["-q", "download"]).args(&packages.specs);
        command.current_dir(&self.archives);
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|source| Error::Start {
            program: "apt-get".into(),
            source,
        })?;
        while let Ok(None) = child.try_wait() {
            report();
            sleep(Duration::from_millis(200));
        }
        report();
        let output = child
            .wait_with_output()
            .at("wait for apt-get in", &self.archives)?;
        if output.status.success() {
            Ok(())
        } else {
            Err(failure("apt-get download", &output))
        }
    }
}

/// Returns names and versions of `Inst NAME (VERSION ...)` lines.
pub(crate) fn planned(simulation: &str) -> impl Iterator<Item = (&str, &str)> {
    simulation.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("Inst ")?.split_once(" (")?;
        Some((
            name.split_whitespace().next()?,
            rest.split_whitespace().next()?,
        ))
    })
}

/// Returns the file of a line `'URI' FILE BYTES HASH`.
fn printed_uri(line: &str) -> Option<Package> {
    let mut words = line
        .strip_prefix('\'')?
        .split_once("' ")?
        .1
        .split_whitespace();
    Some(Package {
        name: words.next()?.to_owned(),
        bytes: words.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Quiet;

    const ONE: Set = Set {
        name: "one",
        suites: &[],
        wanted: &["one"],
        keep: &[],
        prepare: |_| Ok(()),
    };

    #[test]
    fn the_output_of_apt_is_read() {
        let plan = "\
NOTE: This is only a simulation!
Inst gcc-14-base (14.2.0-19 Debian:13.7/stable [amd64])
Inst libgcc-s1 (14.2.0-19 Debian:13.7/stable [amd64]) []
Inst libc6 [2.36] (2.41-12+deb13u4 Debian:13.7/stable [amd64])
Conf libc6 (2.41-12+deb13u4 Debian:13.7/stable [amd64])
";
        let planned: Vec<_> = planned(plan).collect();
        let expected = [
            ("gcc-14-base", "14.2.0-19"),
            ("libgcc-s1", "14.2.0-19"),
            ("libc6", "2.41-12+deb13u4"),
        ];
        assert_eq!(planned, expected);
        let line = "'mirror+file:/m/pool/l%2bx.deb' l+x_1%3a2_amd64.deb 1456096 SHA256:7b";
        let file = printed_uri(line).unwrap();
        assert_eq!(
            (&*file.name, file.bytes),
            ("l+x_1%3a2_amd64.deb", 1_456_096)
        );
        assert!(printed_uri("Reading package lists...").is_none());
    }

    /// Makes an archive of one package, and returns apt with that alone.
    fn apt_of_one_package(folder: &Path) -> Apt {
        let run = |program: &str, args: &[&str]| {
            let mut command = Command::new(program);
            command.args(args).current_dir(folder);
            output(&mut command, program).unwrap()
        };
        fs::create_dir_all(folder.join("one/DEBIAN")).unwrap();
        let control =
            "Package: one\nVersion: 1\nArchitecture: all\nMaintainer: m\nDescription: d\n";
        fs::write(folder.join("one/DEBIAN/control"), control).unwrap();
        run("dpkg-deb", &["-b", "one", "one_1_all.deb"]);
        let bytes = fs::metadata(folder.join("one_1_all.deb")).unwrap().len();
        let hash = run("sha256sum", &["one_1_all.deb"]);
        let hash = hash.split(' ').next().unwrap();
        let list = format!("{control}Filename: ./one_1_all.deb\nSize: {bytes}\nSHA256: {hash}\n");
        fs::write(folder.join("Packages"), list).unwrap();
        let uri = folder.display();
        let sources = format!("Types: deb\nURIs: file:{uri}\nSuites: ./\nTrusted: yes\n");
        let apt = Apt::with_sources(&Cache::at(folder.join("cache")), &ONE, &sources, "").unwrap();
        apt.update().unwrap();
        apt
    }

    #[test]
    fn a_fetch_that_was_cut_off_is_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let apt = apt_of_one_package(folder.path());
        let whole = fs::read(folder.path().join("one_1_all.deb")).unwrap();
        let there = apt.archives.join("one_1_all.deb");
        // Nothing is there, then all of it, then its beginning.
        for before in [None, Some(&*whole), Some(&whole[..40])] {
            if let Some(before) = before {
                fs::write(&there, before).unwrap();
            }
            let packages = apt.resolve(&ONE).unwrap();
            let names: Vec<&str> = packages.files.iter().map(|file| &*file.name).collect();
            assert_eq!(names, ["one_1_all.deb"]);
            apt.download(&ONE, &packages, &Quiet).unwrap();
            assert_eq!(fs::read(&there).unwrap(), whole);
        }
    }

    #[test]
    fn packages_of_other_architectures_are_named() {
        assert_eq!(ONE.architectures(), BTreeSet::from(["amd64"]));
        let set = Set {
            wanted: &["dash:s390x", "dash"],
            ..ONE
        };
        assert_eq!(set.architectures(), BTreeSet::from(["amd64", "s390x"]));
        let line = "Inst dash:s390x (0.5.12-2 Debian:12/oldstable [s390x])";
        assert_eq!(planned(line).next(), Some(("dash:s390x", "0.5.12-2")));
    }
}
