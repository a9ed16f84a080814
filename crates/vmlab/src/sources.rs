// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the machine's own apt gets Debian from, with the suite exchanged.
//!
//! apt itself says what its sources are (`apt-get indextargets`), so that
//! every form of them works; only the signing keys have to be read from the
//! file that names the source, because apt does not tell them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::output;
use crate::error::Error;

/// Names under which suites of the main archive go.
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
const FORMAT: &str = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(SOURCESENTRY)";

/// An archive as apt knows it.
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
    /// Asks apt.
    pub fn of_this_machine() -> Result<Self, Error> {
        let mut apt = Command::new("apt-get");
        apt.args(["indextargets", "--format", FORMAT, "Created-By: Packages"]);
        let targets = output(&mut apt, "asking apt for its sources")?;
        Self::from_targets(&targets, |path| {
            fs::read_to_string(path).unwrap_or_default()
        })
    }

    /// From `apt-get indextargets`; `read` gives the text of a sources file.
    fn from_targets(targets: &str, read: impl Fn(&Path) -> String) -> Result<Self, Error> {
        let (mut main, mut security, mut seen) = (None, None, Vec::new());
        for line in targets.lines() {
            let mut fields = line.split('|');
            let mut field = || fields.next().unwrap_or_default();
            let (uri, release, component, entry) = (field(), field(), field(), field());
            seen.push(format!("{release} {component}"));
            let (codename, kind) = release.split_once('-').unwrap_or((release, ""));
            if component != "main" || !CODENAMES.contains(&codename) {
                continue;
            }
            let slot = match kind {
                "security" => &mut security,
                _ => &mut main,
            };
            slot.get_or_insert_with(|| {
                let file = entry.rsplit_once(':').map_or(entry, |(file, _)| file);
                Archive {
                    uri: uri.to_owned(),
                    signed_by: signed_by(&read(Path::new(file)), uri),
                }
            });
        }
        seen.dedup();
        let main = main.ok_or_else(|| Error::NoArchive {
            seen: if seen.is_empty() {
                "it has none".into()
            } else {
                seen.join(", ")
            },
        })?;
        Ok(Self { main, security })
    }

    /// A sources file of these suites. Security suites come from the security
    /// archive, and are left out where the machine has none.
    pub fn sources(&self, suites: &[&str]) -> String {
        suites
            .iter()
            .filter_map(|suite| {
                let archive = match suite.ends_with("-security") {
                    true => self.security.as_ref()?,
                    false => &self.main,
                };
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

/// What a sources file says about the keys of the archive at `uri`.
fn signed_by(text: &str, uri: &str) -> String {
    let is_uri = |word: &str| word.trim_end_matches('/') == uri.trim_end_matches('/');
    for line in text.lines().filter(|line| line.starts_with("deb")) {
        if line.split_whitespace().any(is_uri) {
            let options = line
                .split_once('[')
                .and_then(|(_, rest)| rest.split_once(']'));
            return options
                .and_then(|(options, _)| {
                    options
                        .split_whitespace()
                        .find_map(|option| option.strip_prefix("signed-by="))
                })
                .map(|keys| keys.replace(',', " "))
                .unwrap_or_default();
        }
    }
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut stanzas = vec![Vec::new()];
    for line in lines {
        match line.trim().is_empty() {
            true => stanzas.push(Vec::new()),
            false => stanzas
                .last_mut()
                .into_iter()
                .for_each(|stanza| stanza.push(line)),
        }
    }
    stanzas
        .iter()
        .find(|stanza| field(stanza, "uris").split_whitespace().any(is_uri))
        .map(|stanza| field(stanza, "signed-by"))
        .unwrap_or_default()
}

/// A field of a stanza, its further lines as they are.
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

    fn read(path: &Path) -> String {
        match path.to_str() {
            Some("/etc/apt/sources.list.d/debian.sources") => DEB822.into(),
            Some("/etc/apt/sources.list") => ONE_LINE.into(),
            other => panic!("{other:?} read"),
        }
    }

    #[test]
    fn deb822_with_security_and_an_embedded_key() {
        let targets = "\
http://archive.invalid/debian/|bookworm|main|/etc/apt/sources.list.d/debian.sources:1
http://archive.invalid/debian/|bookworm-updates|main|/etc/apt/sources.list.d/debian.sources:1
http://archive.invalid/security/|bookworm-security|main|/etc/apt/sources.list.d/debian.sources:2
";
        let archives = Archives::from_targets(targets, read).unwrap();
        assert_eq!(
            archives.sources(&["trixie", "bookworm-security"]),
            "\
Types: deb
URIs: http://archive.invalid/debian/
Suites: trixie
Components: main
Signed-By: /usr/share/keyrings/a.gpg

Types: deb
URIs: http://archive.invalid/security/
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
        let targets = "\
http://vendor.invalid/|nodistro|main|/etc/apt/sources.list.d/vendor.list:1
mirror+file:/etc/apt/mirrors.list/|trixie-updates|main|/etc/apt/sources.list:3
";
        let archives = Archives::from_targets(targets, read).unwrap();
        assert_eq!(
            archives.sources(&["bookworm", "bookworm-security"]),
            "Types: deb\nURIs: mirror+file:/etc/apt/mirrors.list/\nSuites: bookworm\n\
             Components: main\nSigned-By: /a.gpg /b.gpg\n"
        );
    }

    #[test]
    fn without_a_debian_archive_the_error_lists_what_there_is() {
        let error = Archives::from_targets("http://x.invalid/|jammy|main|/etc/x:1\n", read);
        let text = error.unwrap_err().to_string();
        assert!(text.contains("jammy main"), "{text}");
        let text = Archives::from_targets("", read).unwrap_err().to_string();
        assert!(text.contains("it has none"), "{text}");
    }
}
