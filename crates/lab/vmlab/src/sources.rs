// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the Debian archives that the machine's own apt uses, to fetch other suites from them.
//!
//! apt itself lists its sources (`apt-get update --print-uris`, which fetches nothing), so that
//! every form of them works. Only the signing keys must be read from the sources files, because apt
//! does not list them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::command::output;
use crate::error::Error;

/// Code names of the suites of the main archive.
const CODENAMES: &[&str] = &[
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "duke",
    "sid",
    "oldoldstable",
    "oldstable",
    "stable",
    "testing",
    "unstable",
];
/// An archive in apt's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Archive {
    uri: String,
    /// Value of `Signed-By`, as written; empty: apt's own keys.
    signed_by: String,
}

/// The machine's Debian archives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Archives {
    main: Archive,
    security: Option<Archive>,
}

impl Archives {
    /// Asks apt for its sources.
    pub fn of_this_machine() -> Result<Self, Error> {
        let mut apt = Command::new("apt-get");
        apt.args(["update", "--print-uris"]);
        let uris = output(&mut apt, "asking apt for its sources")?;
        let mut config = Command::new("apt-config");
        config.args(["dump", "--format", "%F=%v%n", "Dir"]);
        let config = output(&mut config, "asking apt where its sources are")?;
        Self::from_uris(&uris, &sources_files(&config))
    }

    /// Parses the output of `apt-get update --print-uris` and the texts of the sources files.
    fn from_uris(printed: &str, texts: &[String]) -> Result<Self, Error> {
        let (mut main, mut security, mut seen) = (None, None, Vec::new());
        // Archives of other vendors also call a suite "stable" or "bookworm", but have no updates
        // or backports of it: an archive that has them is preferred.
        let mut sure = None;
        for line in printed.lines() {
            let Some((uri, suite)) = archive_of(line) else {
                continue;
            };
            seen.push(suite);
            let (codename, kind) = suite.split_once('-').unwrap_or((suite, ""));
            if !CODENAMES.contains(&codename) {
                continue;
            }
            let slot = match kind {
                "security" => &mut security,
                "updates" | "backports" => &mut sure,
                "" => &mut main,
                _ => continue,
            };
            slot.get_or_insert_with(|| Archive {
                uri: uri.to_owned(),
                signed_by: texts
                    .iter()
                    .find_map(|text| signed_by(text, uri))
                    .unwrap_or_default(),
            });
        }
        seen.dedup();
        let main = sure.or(main).ok_or_else(|| Error::NoArchive {
            seen: if seen.is_empty() {
                "it has none".into()
            } else {
                seen.join(", ")
            },
        })?;
        Ok(Self { main, security })
    }

    /// Returns the archive that has a suite. Security suites are in an archive of their own, which
    /// not every machine has.
    fn archive_with(&self, suite: &str) -> Option<&Archive> {
        if suite.ends_with("-security") {
            self.security.as_ref()
        } else {
            Some(&self.main)
        }
    }

    /// Returns those of `suites` that this machine has an archive for, in the same order: the
    /// preferred one stays last.
    pub fn available<'a>(&self, suites: &[&'a str]) -> Vec<&'a str> {
        let has = |suite: &&str| self.archive_with(suite).is_some();
        suites.iter().copied().filter(has).collect()
    }

    /// Returns a sources file with those of `suites` that this machine has an archive for.
    pub fn sources(&self, suites: &[&str]) -> String {
        suites
            .iter()
            .filter_map(|suite| {
                let archive = self.archive_with(suite)?;
                let mut text = format!(
                    "Types: deb\nURIs: {}\nSuites: {suite}\nComponents: main\n",
                    archive.uri
                );
                if !archive.signed_by.is_empty() {
                    text += &format!("Signed-By: {}\n", archive.signed_by);
                }
                Some(text)
            })
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Returns address and suite if the line is about the component main of an archive.
fn archive_of(line: &str) -> Option<(&str, &str)> {
    let path = line.strip_prefix('\'')?.split('\'').next()?;
    let (uri, rest) = path.split_once("/dists/")?;
    let (suite, _) = rest.split_once("/main/")?;
    Some((uri, suite))
}

/// Returns the texts of the sources files that apt reads; `config` has `KEY=VALUE` lines.
fn sources_files(config: &str) -> Vec<String> {
    let value = |key: &str| {
        let lines = config.lines();
        lines
            .filter_map(|line| line.split_once('='))
            .find(|(name, _)| *name == key)
            .map_or("", |(_, value)| value)
    };
    let folder = ["Dir", "Dir::Etc"]
        .map(value)
        .iter()
        .fold(PathBuf::from("/"), |path, part| path.join(part));
    let parts = folder.join(value("Dir::Etc::sourceparts"));
    let entries = fs::read_dir(parts).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.insert(0, folder.join(value("Dir::Etc::sourcelist")));
    let named = |path: &PathBuf| {
        let extension = path.extension().unwrap_or_default();
        extension == "list" || extension == "sources"
    };
    paths
        .into_iter()
        .filter(named)
        .filter_map(|path| fs::read_to_string(path).ok())
        .collect()
}

/// Returns the `Signed-By` value that a sources file gives the archive at `uri`; `None` if the file
/// does not name the archive.
fn signed_by(text: &str, uri: &str) -> Option<String> {
    let is_uri = |word: &str| word.trim_end_matches('/') == uri.trim_end_matches('/');
    for line in text.lines().filter(|line| line.starts_with("deb ")) {
        if line.split_whitespace().any(is_uri) {
            let options = line
                .split_once('[')
                .and_then(|(_, rest)| rest.split_once(']'))
                .map_or("", |(options, _)| options);
            let keys = options
                .split_whitespace()
                .find_map(|option| option.strip_prefix("signed-by="));
            return Some(keys.unwrap_or_default().replace(',', " "));
        }
    }
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    lines
        .split(|line| line.trim().is_empty())
        .find(|stanza| field(stanza, "uris").split_whitespace().any(is_uri))
        .map(|stanza| field(stanza, "signed-by"))
}

/// Returns a field of a stanza, with its continuation lines unchanged.
fn field(stanza: &[&str], name: &str) -> String {
    let mut value = String::new();
    let mut inside = false;
    for line in stanza {
        if line.starts_with([' ', '\t']) {
            if inside {
                value.push('\n');
                value.push_str(line);
            }
            continue;
        }
        inside = false;
        if let Some((key, rest)) = line.split_once(':') {
            if key.eq_ignore_ascii_case(name) {
                inside = true;
                value = rest.trim().to_owned();
            }
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEB822: &str = "\
# a comment
Types: deb
# another
URIs: http://archive.invalid/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/a.gpg

Types: deb
URIs: http://archive.invalid/security
Suites: bookworm-security
Components: main
signed-by:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
 -----END PGP PUBLIC KEY BLOCK-----
";
    const ONE_LINE: &str = "\
# deb http://archive.invalid/debian bookworm main
deb-src [signed-by=/c.gpg] http://other.invalid/debian bookworm main
deb [arch=amd64 signed-by=/a.gpg,/b.gpg] mirror+file:/etc/apt/mirrors.list bookworm main
";

    fn texts() -> Vec<String> {
        vec![DEB822.into(), ONE_LINE.into()]
    }

    #[test]
    fn an_archive_of_others_with_a_suite_of_that_name_is_not_taken() {
        let line = |host: &str, suite: &str| {
            format!("'http://{host}.invalid/dists/{suite}/main/binary-amd64/Packages' a 0\n")
        };
        let printed = line("vendor", "stable")
            + &line("database", "bookworm-pgdg")
            + &line("debian", "bookworm")
            + &line("debian", "bookworm-updates");
        let archives = Archives::from_uris(&printed, &[]).unwrap();
        assert_eq!(archives.main.uri, "http://debian.invalid");
        let alone = Archives::from_uris(&line("debian", "bookworm"), &[]).unwrap();
        assert_eq!(alone.main.uri, "http://debian.invalid");
    }

    /// apt rejects a default release that its sources do not have, as in a minimal root.
    #[test]
    fn without_security_the_main_suite_is_the_wanted_one() {
        let archive = Archive {
            uri: "http://archive.invalid/debian".into(),
            signed_by: String::new(),
        };
        let mut archives = Archives {
            main: archive.clone(),
            security: None,
        };
        let suites = ["bookworm", "bookworm-security"];
        assert_eq!(archives.available(&suites), ["bookworm"]);
        assert!(!archives.sources(&suites).contains("security"));
        archives.security = Some(archive);
        assert_eq!(archives.available(&suites), suites);
    }

    #[test]
    fn deb822_with_security_and_an_embedded_key() {
        let printed = "\
'http://archive.invalid/debian/dists/bookworm/InRelease' a_bookworm_InRelease 0
'http://archive.invalid/debian/dists/bookworm/main/binary-amd64/Packages.xz' a 0
'http://archive.invalid/debian/dists/bookworm-updates/main/binary-amd64/Packages.xz' a 0
'http://archive.invalid/security/dists/bookworm-security/main/binary-amd64/Packages.xz' a 0
";
        let archives = Archives::from_uris(printed, &texts()).unwrap();
        assert_eq!(
            archives.sources(&["trixie", "bookworm-security"]),
            "\
Types: deb
URIs: http://archive.invalid/debian
Suites: trixie
Components: main
Signed-By: /usr/share/keyrings/a.gpg

Types: deb
URIs: http://archive.invalid/security
Suites: bookworm-security
Components: main
Signed-By: \n -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
 -----END PGP PUBLIC KEY BLOCK-----
"
        );
    }

    #[test]
    fn a_mirror_list_in_one_line_style_survives() {
        let printed = "\
'http://vendor.invalid/dists/nodistro/main/binary-amd64/Packages.xz' a 0
'http://flat.invalid/./Packages.xz' a 0
'mirror+file:/etc/apt/mirrors.list/dists/trixie-updates/main/binary-amd64/Packages.xz' a 0
";
        let archives = Archives::from_uris(printed, &texts()).unwrap();
        assert_eq!(
            archives.sources(&["bookworm", "bookworm-security"]),
            "Types: deb\nURIs: mirror+file:/etc/apt/mirrors.list\nSuites: bookworm\n\
             Components: main\nSigned-By: /a.gpg /b.gpg\n"
        );
    }

    #[test]
    fn without_a_debian_archive_the_error_lists_the_sources() {
        let printed = "'http://x.invalid/dists/jammy/main/binary-amd64/Packages.xz' a 0\n";
        let text = Archives::from_uris(printed, &[]).unwrap_err().to_string();
        assert!(text.contains("jammy"), "{text}");
        let text = Archives::from_uris("", &[]).unwrap_err().to_string();
        assert!(text.contains("it has none"), "{text}");
    }

    #[test]
    fn sources_are_read_where_apts_configuration_says() {
        let folder = tempfile::tempdir().unwrap();
        let parts = folder.path().join("etc/apt/parts.d");
        fs::create_dir_all(&parts).unwrap();
        for name in ["b.list", "a.sources", "c.list.disabled"] {
            fs::write(parts.join(name), name).unwrap();
        }
        let config = format!(
            "Dir={}\nDir::Etc=etc/apt\nDir::Etc::sourcelist=none.list\n\
             Dir::Etc::sourceparts=parts.d\n",
            folder.path().display()
        );
        assert_eq!(sources_files(&config), ["a.sources", "b.list"]);
    }
}
