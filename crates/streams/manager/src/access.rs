// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may ask a manager for what: tokens and certificates, known by their SHA-256.

use std::collections::BTreeSet;
use std::fmt;

use sha2::{Digest, Sha256};
use toml_reader::{Document, Error, Item, Key, Section, Taken, key};

use manager_proto::answer::Caller;
use manager_proto::quota::{self, Quota};

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reserve, and do with its own reservations what it likes.
    Talker,
    /// The same with everybody's reservations.
    Operator,
    /// Be another manager, of this name.
    Manager,
    /// Read what its nodes have to do, and say what is in force there and where streams go.
    Agent,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Talker => "talker",
            Self::Operator => "operator",
            Self::Manager => "manager",
            Self::Agent => "agent",
        })
    }
}

/// A caller that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The hosts of a talker and the nodes of an agent; `None`: all.
    pub hosts: Option<BTreeSet<String>>,
    /// How much a talker may reserve.
    pub quota: Quota,
}

impl Identity {
    /// Returns the caller of a command; `None` for a manager, which commands nothing.
    pub fn caller(&self) -> Option<Caller> {
        (self.role != Role::Manager).then(|| Caller {
            name: self.name.clone(),
            is_operator: self.role == Role::Operator,
            is_agent: self.role == Role::Agent,
            hosts: self.hosts.clone(),
            quota: self.quota,
        })
    }
}

/// The callers that a manager knows.
#[derive(Clone, Debug)]
pub enum Access {
    /// Everybody who reaches the socket, as an operator: for loopback alone.
    Open,
    /// Those of the file.
    Known(Vec<Entry>),
}

/// A line of the file.
#[derive(Clone, Debug)]
pub struct Entry {
    identity: Identity,
    token_sha256: Option<[u8; 32]>,
    certificate_sha256: Option<[u8; 32]>,
}

const HASH: &str = "the 64 hexadecimal digits of a SHA-256";
const FILE: &[Key] = &[key("access", "an array of tables, [[access]]")];
const ENTRY: &[Key] = &[
    key("name", "a name not in use"),
    key("role", "\"talker\", \"operator\", \"manager\" or \"agent\""),
    key("hosts", HOSTS),
    key("streams", "0 to 4294967295 streams"),
    key("bytes", "0 to 4294967295 bytes of a link's period"),
    key("lease", quota::LEASE),
    key("token_sha256", HASH),
    key("certificate_sha256", HASH),
];
const HOSTS: &str = "a list of one name or more";
const ROLES: [(&str, Role); 4] = [
    ("talker", Role::Talker),
    ("operator", Role::Operator),
    ("manager", Role::Manager),
    ("agent", Role::Agent),
];
/// The keys that only some roles have, and these.
const OF_ROLES: [(&str, &[Role], &str); 4] = [
    (
        "hosts",
        &[Role::Talker, Role::Agent],
        "the role \"talker\" or \"agent\" beside it",
    ),
    ("streams", &[Role::Talker], TALKER),
    ("bytes", &[Role::Talker], TALKER),
    ("lease", &[Role::Talker], TALKER),
];
const TALKER: &str = "the role \"talker\" beside it";

fn hash(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    let digits = text.as_bytes();
    if digits.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(hash)
}

/// Reads the hosts of a talker or an agent.
fn hosts(item: Item<'_>) -> Result<BTreeSet<String>, Error> {
    let names = item.list()?.into_iter();
    let name = |name: Item<'_>| {
        let known = |text: &str| admission::is_name(text).then(|| text.to_owned());
        name.parsed(known)
    };
    let hosts: BTreeSet<_> = names.map(name).collect::<Result<_, _>>()?;
    if hosts.is_empty() {
        return Err(item.wrong());
    }
    Ok(hosts)
}

/// Reads how much a talker may reserve.
fn quota(section: Section<'_>) -> Result<Quota, Error> {
    let number = |key| section.number(key, 0..=u32::MAX);
    Ok(Quota {
        streams: number("streams")?.map(u64::from),
        bytes: number("bytes")?.map(u64::from),
        lease_ns: section.parsed("lease", quota::lease_ns)?,
    })
}

/// Reads a file of callers.
///
/// # Errors
/// The first fault: its line, its key, its value, and what was expected.
pub fn read(text: &str) -> Result<Access, Error> {
    let document = Document::parse("", text)?;
    let file = document.top("the file", FILE).check()?;
    // A file that is being written is empty for a moment: nobody would be known.
    let list = file.require("access")?;
    let mut entries: Vec<Entry> = Vec::new();
    let mut names = Taken::default();
    for section in file.tables("access", "[[access]]", ENTRY)? {
        let item = section.require("name")?;
        let name = item.parsed(|name| admission::is_name(name).then(|| name.to_owned()))?;
        names.insert(item, name.clone(), "a name")?;
        let role = section.require("role")?.word(&ROLES)?;
        for (key, roles, expected) in OF_ROLES {
            let misplaced = section.get(key).filter(|_| !roles.contains(&role));
            if let Some(misplaced) = misplaced {
                return Err(misplaced.fault(expected));
            }
        }
        if role == Role::Agent {
            section.require("hosts")?;
        }
        let hosts = section.get("hosts").map(hosts).transpose()?;
        let quota = quota(section)?;
        let token_sha256 = section.parsed("token_sha256", hash)?;
        let certificate_sha256 = section.parsed("certificate_sha256", hash)?;
        if token_sha256.is_none() && certificate_sha256.is_none() {
            return Err(item.fault("`token_sha256` or `certificate_sha256` beside it"));
        }
        entries.push(Entry {
            identity: Identity {
                name,
                role,
                hosts,
                quota,
            },
            token_sha256,
            certificate_sha256,
        });
    }
    if entries.is_empty() {
        return Err(list.fault("one table or more"));
    }
    Ok(Access::Known(entries))
}

/// Returns the SHA-256 of a token or of a certificate in DER.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

impl Access {
    /// Returns who has this token or this certificate. A token that is not known is refused even
    /// beside a certificate that is.
    pub fn identify(&self, token: Option<&str>, certificate: Option<[u8; 32]>) -> Option<Identity> {
        let entries = match self {
            Self::Open => {
                return Some(Identity {
                    name: "local".to_owned(),
                    role: Role::Operator,
                    hosts: None,
                    quota: Quota::default(),
                });
            }
            Self::Known(entries) => entries,
        };
        // Hashes are compared, so that the time of a comparison says nothing about the token.
        let token = token.map(|token| sha256(token.as_bytes()));
        let found = entries.iter().find(|entry| match token {
            Some(token) => entry.token_sha256 == Some(token),
            None => certificate.is_some() && entry.certificate_sha256 == certificate,
        });
        found.map(|entry| entry.identity.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_token_is_known_by_its_hash() {
        let text =
            format!("[[access]]\nname = \"a\"\nrole = \"talker\"\ntoken_sha256 = \"{EMPTY}\"\n");
        let access = read(&text).unwrap();
        let found = access.identify(Some(""), None).unwrap();
        assert_eq!((found.name.as_str(), found.role), ("a", Role::Talker));
        assert_eq!(access.identify(Some("x"), None), None);
        assert_eq!(access.identify(None, None), None);
        assert_eq!(access.identify(None, Some(sha256(b""))), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let good =
            format!("[[access]]\nname = \"a\"\nrole = \"talker\"\ntoken_sha256 = \"{EMPTY}\"\n");
        for (from, to, words) in [
            ("\"a\"", "\"a b\"", "line 2: `name` is \"a b\""),
            (
                "talker",
                "king",
                "line 3: `role` is \"king\", expected \"talker\", \"operator\", \"manager\" or \"agent\"",
            ),
            (
                "role",
                "roll",
                "line 3: unknown key `roll` in [[access]]; did you mean `role`?",
            ),
            ("e3b0", "e3b", "line 4: `token_sha256` is"),
            (
                "token_sha256",
                "token",
                "line 4: unknown key `token` in [[access]]; there is `name`",
            ),
        ] {
            let said = read(&good.replace(from, to)).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
        let twice = good.repeat(2);
        assert!(read(&twice).unwrap_err().to_string().contains("line 6"));
        let none = "[[access]]\nname = \"a\"\nrole = \"talker\"\n";
        assert!(
            read(none)
                .unwrap_err()
                .to_string()
                .contains("certificate_sha256")
        );
    }
}
