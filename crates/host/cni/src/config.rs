// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin's table of a conflist, and what runtimes add to it. Pure.

use host_config::Backend;
use host_config::limits::{RATES_BPS, rate_expected};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use units::nearest::hint;
use units::parse;

use crate::environment::{Attachment, is_device, is_id};
use crate::error::{
    DECODING_FAILURE, Error, INCOMPATIBLE_VERSION, INVALID_CONFIGURATION, UNSUPPORTED_FIELD,
};

/// Versions of CNI, the newest last.
pub const VERSIONS: &[&str] = &["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

/// The line of a device without one of its own, where a backend wants it: no class is faster.
pub const LINE_BPS: u64 = host_config::LINE_UNKNOWN_BPS;

const PSP_KEYS: &[&str] = &[
    "rate",
    "ceil",
    "deadline",
    "txtime",
    "backend",
    "budget",
    "ingress-budget",
];
/// The most that a node may have to give.
const BUDGET_BPS: u64 = 10_000_000_000_000;
const RATES: &[&str] = &["ingressRate", "egressRate"];
const BURSTS: &[&str] = &["ingressBurst", "egressBurst"];
/// Keys of the stock plugin that choose between destinations.
const SUBNETS: &[&str] = &["unshapedSubnets", "shapedSubnets"];
/// Where a runtime says what a pod sends, and what it receives.
const EGRESS_KEY: &str = "runtimeConfig.bandwidth.egressRate";
const INGRESS_KEY: &str = "runtimeConfig.bandwidth.ingressRate";
/// What a pod's claims got.
const CLAIM_KEY: &str = "the pod's claim";
const BUDGET: &str = "a rate above 0 and up to \"10tbit\" such as \"9gbit\"";
const RATE: &str = "bit/s as a whole number, or 0 for no limit";

/// What all commands need.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The version of CNI, one of [`VERSIONS`].
    pub version: &'static str,
    pub name: String,
    table: Map<String, Value>,
}

/// What a direction's class shall be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    pub rate_bps: u64,
    pub ceil_bps: Option<u64>,
    /// How long a frame may wait.
    pub deadline_ns: Option<u64>,
    /// Whose clock launch times are of.
    pub txtime: Option<String>,
}

/// What a network's configuration lets all attachments of the host have together; `None` is no
/// bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Of what pods send.
    pub egress_bps: Option<u64>,
    /// Of what pods receive.
    pub ingress_bps: Option<u64>,
}

/// Rates of both directions, in bit/s; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rates {
    /// What pods send.
    pub egress_bps: u64,
    /// What pods receive.
    pub ingress_bps: u64,
}

impl Rates {
    /// Returns those of two classes.
    pub fn new(egress: Option<&Class>, ingress: Option<&Class>) -> Self {
        let rate = |class: Option<&Class>| class.map_or(0, |class| class.rate_bps);
        Self {
            egress_bps: rate(egress),
            ingress_bps: rate(ingress),
        }
    }

    pub fn add(&mut self, other: Self) {
        self.egress_bps = self.egress_bps.saturating_add(other.egress_bps);
        self.ingress_bps = self.ingress_bps.saturating_add(other.ingress_bps);
    }

    /// Returns the greater of each direction.
    pub fn most(self, other: Self) -> Self {
        Self {
            egress_bps: self.egress_bps.max(other.egress_bps),
            ingress_bps: self.ingress_bps.max(other.ingress_bps),
        }
    }

    /// Returns what is left without others, in each direction at least nothing.
    pub fn without(self, other: Self) -> Self {
        Self {
            egress_bps: self.egress_bps.saturating_sub(other.egress_bps),
            ingress_bps: self.ingress_bps.saturating_sub(other.ingress_bps),
        }
    }
}

/// What is wanted of an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Who paces; `None`: the first that the host can.
    pub backend: Option<Backend>,
    /// What the pod sends.
    pub egress: Option<Class>,
    /// What is sent to the pod.
    pub ingress: Option<Class>,
    /// The keys that say what the pod sends, and what is sent to it.
    pub keys: (&'static str, &'static str),
    /// What all attachments of the host may have together.
    pub budget: Budget,
    /// What is ignored.
    pub notes: Vec<String>,
}

/// The table `psp`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Psp {
    rate_bps: Option<u64>,
    ceil_bps: Option<u64>,
    deadline_ns: Option<u64>,
    txtime: Option<&'static str>,
    backend: Option<Backend>,
    budget: Budget,
}

impl Config {
    /// Reads what a runtime gives.
    ///
    /// # Errors
    /// That it is no configuration of a network, or of another version of CNI.
    pub fn read(text: &[u8]) -> Result<Self, Error> {
        let table = object(text)?;
        let version = version(&table)?;
        let name = match table.get("name") {
            Some(Value::String(name)) if is_id(name) => name.clone(),
            Some(other) => {
                let expected = "a name of letters, digits, `_`, `.` and `-`";
                return Err(Error::wrong("name", other, expected));
            }
            None => return Err(Error::lacks("name", "the network's name")),
        };
        Ok(Self {
            version,
            name,
            table,
        })
    }

    /// Returns the result of the plugins before, if there is one.
    pub fn previous(&self) -> Option<&Value> {
        self.table
            .get("prevResult")
            .filter(|value| !value.is_null())
    }

    /// Reads what is wanted of an attachment. In each direction that claims of its pod give a rate,
    /// that goes before what the runtime and the table say.
    ///
    /// # Errors
    /// The first key that is unknown or has a wrong value.
    pub fn wanted(&self, claimed: Rates) -> Result<Wanted, Error> {
        let psp = self.psp()?;
        for key in RATES.iter().chain(BURSTS) {
            if let Some(value) = self.table.get(*key) {
                let place = format!("`runtimeConfig.bandwidth.{key}`, or `psp.rate`");
                return Err(Error::wrong(key, value, &format!("it as {place}")));
            }
        }
        let mut notes = Vec::new();
        let (ingress_bps, egress_bps) = self.bandwidth(&mut notes)?;
        let egress_key = match egress_bps {
            Some(_) => EGRESS_KEY,
            None => "psp.rate",
        };
        let egress_bps = egress_bps.or(psp.rate_bps);
        let mut claim = |direction: &str, rate_bps: u64, other: Option<u64>, key: &'static str| {
            if rate_bps == 0 {
                return Ok((other, key));
            }
            if let Some(expected) = rate_expected(rate_bps, &RATES_BPS) {
                let claimed = format!("the claims of the pod have {rate_bps} bit/s of {direction}");
                let msg = format!("{claimed}, expected {expected}");
                return Err(Error::new(INVALID_CONFIGURATION, msg));
            }
            if let Some(other_bps) = other {
                notes.push(format!(
                    "`{key}` is {other_bps} bit/s, and the pod's claim of {rate_bps} bit/s goes \
                     before it"
                ));
            }
            Ok((Some(rate_bps), CLAIM_KEY))
        };
        let (egress_bps, egress_key) = claim("egress", claimed.egress_bps, egress_bps, egress_key)?;
        let (ingress_bps, ingress_key) =
            claim("ingress", claimed.ingress_bps, ingress_bps, INGRESS_KEY)?;
        // A cluster's ceil is for those without a claim.
        let ceil_bps = psp
            .ceil_bps
            .map(|ceil_bps| ceil_bps.max(claimed.egress_bps));
        let at_least = |rate_bps: u64| match ceil_bps {
            Some(ceil_bps) if ceil_bps < rate_bps => Err(Error::new(
                INVALID_CONFIGURATION,
                format!(
                    "`psp.ceil` is {ceil_bps} bit/s, expected at least the rate of what the pod \
                     sends, {rate_bps} bit/s"
                ),
            )),
            _ => Ok(rate_bps),
        };
        let egress_bps = egress_bps.map(at_least).transpose()?;
        Ok(Wanted {
            backend: psp.backend,
            egress: egress_bps.map(|rate_bps| Class {
                rate_bps,
                ceil_bps,
                deadline_ns: psp.deadline_ns,
                txtime: psp.txtime.map(str::to_owned),
            }),
            ingress: ingress_bps.map(|rate_bps| Class {
                rate_bps,
                ceil_bps: None,
                deadline_ns: psp.deadline_ns,
                txtime: None,
            }),
            keys: (egress_key, ingress_key),
            budget: psp.budget,
            notes,
        })
    }

    /// Returns who shall pace; `None`: the first that the host can.
    ///
    /// # Errors
    /// As [`Self::wanted`].
    pub fn backend(&self) -> Result<Option<Backend>, Error> {
        Ok(self.psp()?.backend)
    }

    /// Returns the attachments that there are, of GC; `None`: the caller does not say.
    pub fn valid(&self) -> Result<Option<Vec<Attachment>>, Error> {
        let key = "cni.dev/valid-attachments";
        let expected = "a list of tables { \"containerID\", \"ifname\" }";
        let list = match self.table.get(key) {
            None => return Ok(None),
            Some(Value::Null) => return Ok(Some(Vec::new())),
            Some(Value::Array(list)) => list,
            Some(other) => return Err(Error::wrong(key, other, expected)),
        };
        let read = |entry: &Value| {
            let container = entry.get("containerID")?.as_str().filter(|id| is_id(id))?;
            let device = entry
                .get("ifname")?
                .as_str()
                .filter(|name| is_device(name))?;
            Some(Attachment {
                container: container.to_owned(),
                device: device.to_owned(),
            })
        };
        let entries = list.iter();
        let entries =
            entries.map(|entry| read(entry).ok_or_else(|| Error::wrong(key, entry, expected)));
        entries.collect::<Result<_, _>>().map(Some)
    }

    fn psp(&self) -> Result<Psp, Error> {
        let Some(table) = table(&self.table, "psp", "psp")? else {
            return Ok(Psp::default());
        };
        if let Some((key, value)) = table
            .iter()
            .find(|(key, _)| !PSP_KEYS.contains(&key.as_str()))
        {
            let known = hint(key, PSP_KEYS);
            let msg = format!("`psp.{key}` is {value}, expected no such key{known}");
            return Err(Error::new(UNSUPPORTED_FIELD, msg));
        }
        let rate = |key: &str| {
            let rate_bps = text_of(table, key, parse::RATE, parse::rate_bps)?;
            let expected = rate_bps.and_then(|rate_bps| rate_expected(rate_bps, &RATES_BPS));
            match expected {
                Some(expected) => Err(Error::wrong(&format!("psp.{key}"), &table[key], &expected)),
                None => Ok(rate_bps),
            }
        };
        let budget_of = |text: &str| {
            let budget = parse::rate_bps(text);
            budget.filter(|budget| (1..=BUDGET_BPS).contains(budget))
        };
        let clock = |text: &str| ["monotonic", "tai"].into_iter().find(|word| *word == text);
        let backend = |text: &str| match text {
            "auto" => Some(None),
            _ => Backend::from_word(text).map(Some),
        };
        let time = |text: &str| parse::time_ns(text).filter(|time| *time > 0);
        let psp = Psp {
            rate_bps: rate("rate")?,
            ceil_bps: rate("ceil")?,
            deadline_ns: text_of(table, "deadline", "a time above 0 such as \"10ms\"", time)?,
            txtime: text_of(table, "txtime", "\"monotonic\" or \"tai\"", clock)?,
            backend: text_of(
                table,
                "backend",
                "\"module\", \"bpf\", \"edt\" or \"auto\"",
                backend,
            )?
            .flatten(),
            budget: Budget {
                egress_bps: text_of(table, "budget", BUDGET, budget_of)?,
                ingress_bps: text_of(table, "ingress-budget", BUDGET, budget_of)?,
            },
        };
        match (table.get("deadline"), psp.txtime) {
            (Some(value), Some(_)) if !value.is_null() => Err(Error::wrong(
                "psp.deadline",
                value,
                "none with `psp.txtime`",
            )),
            _ => Ok(psp),
        }
    }

    /// Reads the rates to the pod and from it, and says what is ignored.
    fn bandwidth(&self, notes: &mut Vec<String>) -> Result<(Option<u64>, Option<u64>), Error> {
        let Some(runtime) = table(&self.table, "runtimeConfig", "runtimeConfig")? else {
            return Ok((None, None));
        };
        let of = "runtimeConfig.bandwidth";
        let Some(bandwidth) = table(runtime, "bandwidth", of)? else {
            return Ok((None, None));
        };
        let mut bursts = Vec::new();
        // Each key as the runtime writes it, and its value.
        let mut rates: [Option<(&str, &Value)>; 2] = [None; 2];
        for (written, value) in bandwidth {
            let place = format!("{of}.{written}");
            let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            // Readers in Go, such as the stock plugin, take capitals for small letters, so runtimes
            // write both.
            let is = |known: &&&str| known.eq_ignore_ascii_case(written);
            if let Some(at) = RATES.iter().position(|known| is(&known)) {
                if let Some((other, _)) = rates[at].replace((written, value)) {
                    let expected = format!("it once, there is `{other}`");
                    return Err(Error::wrong(&place, value, &expected));
                }
            } else if let Some(key) = BURSTS.iter().find(is) {
                let Some(bits) = value.as_u64() else {
                    let expected = "bits as a whole number";
                    return Err(Error::wrong(&place, value, expected));
                };
                if bits > 0 {
                    bursts.push(format!("{key} {bits}"));
                }
            } else if SUBNETS.iter().any(|known| is(&known)) {
                if !is_empty {
                    let expected = "none: a pod has one rate, wherever its packets go";
                    return Err(Error::wrong(&place, value, expected));
                }
            } else {
                let known: Vec<_> = RATES.iter().chain(BURSTS).copied().collect();
                let hint = hint(written, &known);
                let msg = format!("`{place}` is {value}, expected no such key{hint}");
                return Err(Error::new(UNSUPPORTED_FIELD, msg));
            }
        }
        if !bursts.is_empty() {
            notes.push(format!(
                "{} ignored: psp sends no bursts",
                bursts.join(", ") + if bursts.len() > 1 { " are" } else { " is" }
            ));
        }
        let [ingress, egress] = rates.map(|given| match given {
            None | Some((_, Value::Null)) => Ok(None),
            Some((key, value)) => {
                let expected = match value.as_u64() {
                    None => RATE.to_owned(),
                    Some(0) => return Ok(None),
                    Some(rate_bps) => match rate_expected(rate_bps, &RATES_BPS) {
                        None => return Ok(Some(rate_bps)),
                        Some(expected) => expected,
                    },
                };
                Err(Error::wrong(&format!("{of}.{key}"), value, &expected))
            }
        });
        Ok((ingress?, egress?))
    }
}

fn object(text: &[u8]) -> Result<Map<String, Value>, Error> {
    match serde_json::from_slice(text) {
        Ok(Value::Object(table)) => Ok(table),
        Ok(other) => Err(Error {
            details: other.to_string().chars().take(80).collect(),
            ..Error::new(
                DECODING_FAILURE,
                "standard input is another JSON value, expected an object",
            )
        }),
        Err(error) => Err(Error {
            details: error.to_string(),
            ..Error::new(
                DECODING_FAILURE,
                "standard input is no JSON, expected an object: the configuration of a network",
            )
        }),
    }
}

/// Returns the version that an object names.
fn version(table: &Map<String, Value>) -> Result<&'static str, Error> {
    let value = table.get("cniVersion");
    let found = VERSIONS
        .iter()
        .find(|known| value.and_then(Value::as_str) == Some(**known));
    found.copied().ok_or_else(|| {
        let value = value.map_or_else(|| "missing".to_owned(), |value| format!("is {value}"));
        let known = VERSIONS.join(", ");
        let msg = format!("`cniVersion` {value}, expected one of {known}");
        Error::new(INCOMPATIBLE_VERSION, msg)
    })
}

/// Returns the version that a runtime asks for, if it can be told from what it gives: errors are of
/// it, too.
pub fn version_of(text: &[u8]) -> Option<String> {
    let table = object(text).ok()?;
    Some(table.get("cniVersion")?.as_str()?.to_owned())
}

/// Returns a table of another, `None` if it has none.
fn table<'a>(
    of: &'a Map<String, Value>,
    key: &str,
    place: &str,
) -> Result<Option<&'a Map<String, Value>>, Error> {
    match of.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(table)) => Ok(Some(table)),
        Some(other) => Err(Error::wrong(place, other, "a table")),
    }
}

/// Returns what a text of the table `psp` says.
fn text_of<T>(
    of: &Map<String, Value>,
    key: &str,
    expected: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Error> {
    let Some(value) = of.get(key).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let read = value.as_str().and_then(read);
    match read {
        Some(read) => Ok(Some(read)),
        None => Err(Error::wrong(&format!("psp.{key}"), value, expected)),
    }
}
