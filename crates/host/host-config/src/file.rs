// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host's file: devices, their classes, and which frames go to which class. It is read and
//! checked completely before anything is changed (docs/use/host-file.md).

use tcpsp::{Budget, ClassOptions, Dynamic, Launch, Mark, Match, QdiscOptions, TypeOptions};
use tcpsp::{ClassType, Gap, LaunchClock, Layer, Mode, Order, SplitGso};
use toml_reader::{Document, Error, Key, Section, Taken, key};
use units::parse;

use crate::backend::{Backend, Queues};
use crate::group::{self, Group};
use crate::launch_times::Launches;
use crate::limits::{
    EDT_WAIT_NS_MAX, LINE_BPS_MAX, LINE_BPS_MIN, PERIOD_BYTES_MAX, PERIOD_EXPECTED, PERIODS_NS,
};
use crate::matching;
use crate::minor;
use crate::rates::{at_least, carries, rate, share, within_line};
use crate::waiting;

/// Most filters of a device that are a list: those of the kernel have room to be put between each
/// other.
pub const MOST_RULES: usize = 1000;

const RATE: &str = parse::RATE;
const WORD_ANY: &str = "true or false";
const FRAMES: &str = "a number from 1 to 1048576";

pub(crate) const FILE_KEYS: &[Key] = &[key("device", "an array of tables, [[device]]")];
pub(crate) const DEVICE_KEYS: &[Key] = &[
    key("name", "the name of a device, of up to 127 characters"),
    key(
        "line",
        "a rate from \"8kbit\" to \"1tbit\" such as \"10gbit\", or \"auto\"",
    ),
    key("mode", "\"auto\", \"gap\", \"timer\" or \"hybrid\""),
    key("queues", "\"root\" or \"mq\""),
    key("backend", "\"module\", \"bpf\", \"edt\" or \"auto\""),
    key("default", "the name of a class of this device"),
    key("layer", "\"link\", \"wire\" or \"ip\""),
    key("order", "\"next\", \"clock\" or \"rate\""),
    key("gap", "\"multicast\" or \"pause\""),
    key("guard", WORD_ANY),
    key("overhead", "a number from 0 to 256"),
    key("split_gso", "\"auto\", \"on\" or \"off\""),
    key("period", PERIOD_EXPECTED),
    key(
        "budget",
        "bytes a period such as \"50kb\", or \"70%\" of the line",
    ),
    key(
        "align",
        "a time below the period such as \"0ms\", or \"off\"",
    ),
    key(
        "byte_queue_limit_min",
        "a size up to \"1gb\", such as \"64kb\"",
    ),
    key("net_cls", WORD_ANY),
    key("class", "an array of tables, [[device.class]]"),
    key("group", "an array of tables, [[device.group]]"),
];
pub(crate) const CLASS_KEYS: &[Key] = &[
    key(
        "name",
        "a name of letters, digits, `-`, `_` and `.`, of up to 32 characters",
    ),
    key("minor", "a hexadecimal number from \"8000\" to \"fffe\""),
    key(
        "type",
        "\"paced\", \"normal\", \"dynamic\", \"rt\" or \"nrt\"",
    ),
    key("group", "the name of a group of this device"),
    key("rate", RATE),
    key("ceil", RATE),
    key("total", RATE),
    key("share", "a share of the line such as \"20%\" or \"2.5%\""),
    key("deadline", "a time above 0 such as \"50ms\", or \"off\""),
    key("mark", "a time up to \"9s\" such as \"20ms\", or \"off\""),
    key("quantum", "a size from \"256b\" to \"1mb\""),
    key("reserve", "bytes a period such as \"15kb\""),
    key("floor", RATE),
    key("pacing_floor", RATE),
    key("flows", "a number from 1 to 65536"),
    key("limit", FRAMES),
    key("flow_limit", FRAMES),
    key("horizon", "a time from \"1s\" to \"3600s\""),
    key("txtime", "\"monotonic\" or \"tai\""),
    key("txtime_deadline", WORD_ANY),
    key("txtime_late", "a time up to \"1s\""),
    key(
        "launches",
        "a list of tables such as [{ every = \"1ms\", at = \"0us\", size = \"142b\" }]",
    ),
    key(
        "match",
        "a list of tables such as [{ to = \"192.0.2.0/24\" }]",
    ),
];

/// The types that have a key of a class. All types have the keys that are not here.
const KEYS_OF_TYPES: &[(&str, &[ClassType], &str)] = &[
    (
        "rate",
        &[ClassType::Paced, ClassType::Dynamic],
        "it only with type \"paced\" or \"dynamic\"",
    ),
    (
        "ceil",
        &[ClassType::Paced, ClassType::Dynamic],
        "it only with type \"paced\" or \"dynamic\"",
    ),
    (
        "share",
        &[ClassType::Paced, ClassType::Rt, ClassType::Nrt],
        "it only with type \"paced\", \"rt\" or \"nrt\"",
    ),
    (
        "quantum",
        &[ClassType::Normal],
        "it only with type \"normal\"",
    ),
    (
        "reserve",
        &[ClassType::Rt, ClassType::Nrt],
        "it only with type \"rt\" or \"nrt\"",
    ),
    ("total", &[ClassType::Dynamic], DYNAMIC),
    ("floor", &[ClassType::Dynamic], DYNAMIC),
    ("pacing_floor", &[ClassType::Dynamic], DYNAMIC),
    ("flows", &[ClassType::Dynamic], DYNAMIC),
    ("limit", &[ClassType::Dynamic], DYNAMIC),
    ("flow_limit", &[ClassType::Dynamic], DYNAMIC),
    (
        "horizon",
        &[ClassType::Paced, ClassType::Dynamic],
        "it only with type \"dynamic\" or with `txtime`",
    ),
    ("txtime", &[ClassType::Paced], PACED),
    ("txtime_deadline", &[ClassType::Paced], PACED),
    ("txtime_late", &[ClassType::Paced], PACED),
    ("launches", &[ClassType::Paced], PACED),
    ("mark", &[ClassType::Paced], PACED),
];
const PACED: &str = "it only with type \"paced\"";
const DYNAMIC: &str = "it only with type \"dynamic\"";

/// What a file says of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub devices: Vec<Device>,
}

/// What a file says of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub name: String,
    /// Line of the name.
    pub line: usize,
    /// Where psp stands.
    pub queues: Queues,
    /// What paces it; `None`: the first that the host can.
    pub backend: Option<Backend>,
    /// The options of psp, with Ethernet's overhead if none is given.
    pub options: QdiscOptions,
    /// Whether the overhead is given.
    pub has_overhead: bool,
    /// `limit_min` of the byte queue limit of each transmit queue.
    pub byte_queue_limit_min_bytes: Option<u64>,
    /// Its classes; groups, which are of a type of their own, are before all others.
    pub classes: Vec<Class>,
    /// Which frames go to which class; the first that matches decides.
    pub rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    pub name: String,
    /// Minor number of its id.
    pub minor: u16,
    pub options: ClassOptions,
    /// When its frames leave, if it says so.
    pub launches: Vec<Launches>,
}

/// Frames of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What the frames must have.
    pub matching: Match,
    /// Minor number of the class; 0 of [`Match::Cgroup`], which names it itself.
    pub class: u16,
}

impl Host {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// The first fault: its line, key and value, what was expected, and the nearest name.
    pub fn read(file: &str, text: &str) -> Result<Self, Error> {
        let document = Document::parse(file, text)?;
        let top = document.top("the file", FILE_KEYS).check()?;
        top.require("device")?;
        let mut devices: Vec<Device> = Vec::new();
        let mut names = Taken::default();
        for section in top.tables("device", "[[device]]", DEVICE_KEYS)? {
            let device = device(section)?;
            names.insert(section.require("name")?, device.name.clone(), "one")?;
            devices.push(device);
        }
        Ok(Self { devices })
    }
}

fn words<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> Vec<(&'static str, T)> {
    all.iter().map(|value| (word(*value), *value)).collect()
}

fn device(section: Section<'_>) -> Result<Device, Error> {
    let name = section.require("name")?;
    let mut options = options(section)?;
    let queues = [("root", Queues::Root), ("mq", Queues::Mq)];
    let backends = [
        ("module", Some(Backend::Module)),
        ("bpf", Some(Backend::Bpf)),
        ("edt", Some(Backend::Edt)),
        ("auto", None),
    ];
    let mut sections = section.tables("group", "[[device.group]]", group::KEYS)?;
    let groups = sections.len();
    sections.extend(section.tables("class", "[[device.class]]", CLASS_KEYS)?);
    if let (Some(item), true) = (section.get("class"), sections.len() > minor::MOST_CLASSES) {
        let (count, most) = (sections.len(), minor::MOST_CLASSES);
        let expected = format!("at most {most} classes and groups, there are {count}");
        return Err(item.fault(&expected));
    }
    let minors = minor::minors(&names(&sections)?);
    let all: Vec<_> = sections.into_iter().zip(minors).collect();
    let (of_groups, of_classes) = all.split_at(groups);
    let groups = of_groups.iter();
    let groups = groups.map(|(section, minor)| Group::read(*section, &options, *minor));
    let groups = groups.collect::<Result<Vec<_>, _>>()?;
    let mut classes: Vec<Class> = groups.iter().map(Class::of_group).collect();
    let mut rules = Vec::new();
    for (section, minor) in of_classes.iter().copied() {
        let class = class(section, &options, &groups, minor)?;
        for table in section.tables("match", "a match", matching::KEYS)? {
            let matches = matching::read(table)?.into_iter();
            rules.extend(matches.map(|matching| Rule {
                matching,
                class: minor,
            }));
        }
        classes.push(class);
    }
    if let Some(item) = section.get("default") {
        let wanted = item.text()?;
        let classes = classes.iter().skip(groups.len());
        let known = || {
            let names = classes.clone().map(|class| class.name.clone());
            names.collect()
        };
        let class = classes.clone().find(|class| class.name == wanted);
        options.default_minor = class.ok_or_else(|| item.unknown(known()))?.minor;
    }
    if section.boolean("net_cls")? == Some(true) {
        rules.push(Rule {
            matching: Match::Cgroup,
            class: 0,
        });
    }
    check_reservations(section, &options, &classes)?;
    Ok(Device {
        name: name.parsed(matching::device_name)?,
        line: name.line(),
        queues: section.word("queues", &queues)?.unwrap_or(Queues::Root),
        backend: section
            .word("backend", &backends)?
            .unwrap_or(Some(Backend::Module)),
        has_overhead: section.get("overhead").is_some(),
        byte_queue_limit_min_bytes: section.size("byte_queue_limit_min", 0..=1 << 30)?,
        options,
        classes,
        rules,
    })
}

fn options(section: Section<'_>) -> Result<QdiscOptions, Error> {
    let none = QdiscOptions::default_of(true);
    let line = |text: &str| match text {
        "auto" => Some(None),
        _ => parse::rate_bps(text)
            .filter(|rate| (LINE_BPS_MIN..=LINE_BPS_MAX).contains(rate))
            .map(Some),
    };
    let period_ns = section.time("period", PERIODS_NS)?;
    let period_ns = period_ns.unwrap_or(none.period_ns);
    let align = |text: &str| match text {
        "off" => Some(None),
        _ => parse::time_ns(text)
            .filter(|align| *align < period_ns)
            .map(Some),
    };
    Ok(QdiscOptions {
        default_minor: 0,
        line_rate_bps: section.parsed("line", line)?.unwrap_or(none.line_rate_bps),
        mode: section
            .word("mode", &words(Mode::ALL, Mode::word))?
            .unwrap_or(none.mode),
        overhead_bytes: section
            .number("overhead", 0..=256)?
            .unwrap_or(none.overhead_bytes),
        layer: section
            .word("layer", &words(Layer::ALL, Layer::word))?
            .unwrap_or(none.layer),
        order: section
            .word("order", &words(Order::ALL, Order::word))?
            .unwrap_or(none.order),
        gap: section
            .word("gap", &words(Gap::ALL, Gap::word))?
            .unwrap_or(none.gap),
        guard: section.boolean("guard")?.unwrap_or(none.guard),
        split_gso: section
            .word("split_gso", &words(SplitGso::ALL, SplitGso::word))?
            .unwrap_or(none.split_gso),
        period_ns,
        budget: section.parsed("budget", budget)?.unwrap_or(none.budget),
        align_ns: section.parsed("align", align)?.unwrap_or(none.align_ns),
        shared: false,
    })
}

fn budget(text: &str) -> Option<Budget> {
    let Some(percent) = text.strip_suffix('%') else {
        let bytes = parse::size_bytes(text);
        let bytes = bytes.filter(|bytes| (1..=PERIOD_BYTES_MAX).contains(bytes));
        return bytes.map(Budget::Bytes);
    };
    let is_number = percent.bytes().all(|byte| byte.is_ascii_digit());
    let percent = percent.parse().ok().filter(|p| (1..=100).contains(p));
    percent.filter(|_| is_number).map(Budget::Percent)
}

/// Returns names and chosen minor numbers of classes.
fn names<'a>(sections: &[Section<'a>]) -> Result<Vec<(&'a str, Option<u16>)>, Error> {
    let mut all = Vec::new();
    let (mut names, mut minors) = (Taken::default(), Taken::default());
    for section in sections {
        let item = section.require("name")?;
        let name = item.text()?;
        let known = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 32 || !name.chars().all(known) {
            return Err(item.wrong());
        }
        let minor = section.parsed("minor", |text| {
            u16::from_str_radix(text, 16)
                .ok()
                .filter(|minor| !text.starts_with('+') && minor::is_ours(*minor))
        })?;
        names.insert(item, name, "one")?;
        if let (Some(minor), Some(item)) = (minor, section.get("minor")) {
            minors.insert(item, minor, "one")?;
        }
        all.push((name, minor));
    }
    Ok(all)
}

impl Class {
    fn of_group(group: &Group) -> Self {
        Self {
            name: group.name.clone(),
            minor: group.minor,
            options: group.options(),
            launches: Vec::new(),
        }
    }
}

fn class(
    section: Section<'_>,
    of: &QdiscOptions,
    groups: &[Group],
    minor: u16,
) -> Result<Class, Error> {
    let name = section.require("name")?.text()?.to_owned();
    let has = |key| section.get(key).is_some();
    let mut types = words(ClassType::ALL, ClassType::word);
    types.retain(|(_, class_type)| *class_type != ClassType::Group);
    let class_type = match section.word("type", &types)? {
        Some(class_type) => class_type,
        None if has("rate") || has("share") => ClassType::Paced,
        None => return Err(section.lacks("rate", "a rate, a share, or a type")),
    };
    for (key, types, expected) in KEYS_OF_TYPES {
        if let (Some(item), false) = (section.get(key), types.contains(&class_type)) {
            return Err(item.fault(expected));
        }
    }
    let share = share(section, of)?;
    let by_type = match class_type {
        ClassType::Normal => TypeOptions::Normal {
            quantum_bytes: section
                .size("quantum", 256..=1 << 20)?
                .and_then(|bytes| bytes.try_into().ok()),
        },
        ClassType::Paced => paced(section, of, share)?,
        ClassType::Dynamic => TypeOptions::Dynamic(dynamic(section, of)?),
        ClassType::Rt => TypeOptions::Rt {
            reserve_bytes: reserve(section, of, share)?,
        },
        ClassType::Nrt => TypeOptions::Nrt {
            reserve_bytes: reserve(section, of, share)?,
        },
        ClassType::Group => return Err(section.require("type")?.wrong()),
    };
    let deadline_ns = match section.parsed("deadline", deadline)? {
        None => waiting::deadline_ns(&by_type),
        Some(given_ns) => given_ns,
    };
    Ok(Class {
        name,
        minor,
        options: ClassOptions {
            group: Group::of_class(section, groups, &by_type)?,
            by_type,
            deadline_ns,
            mark_ns: section.parsed("mark", mark)?,
        },
        launches: Launches::read(section)?,
    })
}

/// Returns how long frames may wait; `Some(None)`: as long as there is room.
fn deadline(text: &str) -> Option<Option<u64>> {
    match text {
        "off" => Some(None),
        _ => parse::time_ns(text).filter(|time| *time > 0).map(Some),
    }
}

fn mark(text: &str) -> Option<Mark> {
    match text {
        "off" => Some(Mark::Off),
        _ => parse::time_ns(text)
            .filter(|time| *time <= EDT_WAIT_NS_MAX)
            .map(Mark::After),
    }
}

fn paced(
    section: Section<'_>,
    of: &QdiscOptions,
    share: Option<u64>,
) -> Result<TypeOptions, Error> {
    let rate_bps = match share {
        Some(share) => share,
        None => match within_line(section, "rate", of)? {
            Some(rate) => rate,
            None => return Err(section.lacks("rate", "a rate or a share")),
        },
    };
    let ceil_bps = within_line(section, "ceil", of)?;
    at_least(section.get("ceil"), ceil_bps, Some(rate_bps), "rate")?;
    Ok(TypeOptions::Paced {
        rate_bps,
        ceil_bps,
        launch: launch(section)?,
    })
}

/// How a class's frames leave at the time that their sockets say.
fn launch(section: Section<'_>) -> Result<Option<Launch>, Error> {
    let Some(clock) = section.word("txtime", &words(LaunchClock::ALL, LaunchClock::word))? else {
        for key in ["txtime_deadline", "txtime_late", "horizon"] {
            if let Some(item) = section.get(key) {
                return Err(item.fault("it only with `txtime`"));
            }
        }
        return Ok(None);
    };
    if let Some(item) = section.get("deadline") {
        return Err(item.fault("none with `txtime`, but `txtime_late`"));
    }
    let none = Launch::new(clock);
    let late_ns = section.time("txtime_late", 0..=1_000_000_000)?;
    Ok(Some(Launch {
        clock,
        is_deadline: section
            .boolean("txtime_deadline")?
            .unwrap_or(none.is_deadline),
        late_ns: late_ns.filter(|late_ns| *late_ns > 0),
        horizon_ns: horizon_ns(section)?.unwrap_or(none.horizon_ns),
    }))
}

fn horizon_ns(section: Section<'_>) -> Result<Option<u64>, Error> {
    section.time("horizon", 1_000_000_000..=3_600_000_000_000)
}

fn dynamic(section: Section<'_>, of: &QdiscOptions) -> Result<Dynamic, Error> {
    let none = Dynamic::default();
    let frames = 1..=1 << 20;
    let dynamic = Dynamic {
        rate_bps: within_line(section, "rate", of)?,
        ceil_bps: within_line(section, "ceil", of)?,
        total_bps: within_line(section, "total", of)?,
        floor_bps: rate(section, "floor")?,
        pacing_floor_bps: rate(section, "pacing_floor")?,
        flows: section.number("flows", 1..=65_536)?.unwrap_or(none.flows),
        limit_frames: section
            .number("limit", frames.clone())?
            .unwrap_or(none.limit_frames),
        flow_limit_frames: section
            .number("flow_limit", frames)?
            .unwrap_or(none.flow_limit_frames),
        horizon_ns: horizon_ns(section)?.unwrap_or(none.horizon_ns),
    };
    let total = section.get("total");
    at_least(total, dynamic.total_bps, dynamic.rate_bps, "rate")?;
    carries(total, dynamic.total_bps)?;
    for (least, what) in [
        (dynamic.rate_bps, "rate"),
        (dynamic.floor_bps, "floor"),
        (dynamic.pacing_floor_bps, "pacing_floor"),
    ] {
        at_least(section.get("ceil"), dynamic.ceil_bps, least, what)?;
    }
    Ok(dynamic)
}

fn reserve(section: Section<'_>, of: &QdiscOptions, share: Option<u64>) -> Result<u64, Error> {
    let given = section.size("reserve", 1..=PERIOD_BYTES_MAX)?;
    let of_share = share.and_then(|share_bps| bytes_in(share_bps, of.period_ns));
    match given.or(of_share).filter(|bytes| *bytes > 0) {
        Some(bytes) => Ok(bytes),
        None => Err(section.lacks("reserve", "bytes a period, or a share of the line")),
    }
}

/// Returns the bytes that a rate is in a period, rounded down.
fn bytes_in(rate_bps: u64, period_ns: u64) -> Option<u64> {
    let bytes = u128::from(rate_bps) * u128::from(period_ns) / 8_000_000_000;
    u64::try_from(bytes).ok()
}

/// Returns the bytes of a budget, on a line of this rate.
pub(crate) fn budget_bytes(options: &QdiscOptions, line_bps: Option<u64>) -> Option<u64> {
    match options.budget {
        Budget::Bytes(bytes) => Some(bytes),
        Budget::Percent(percent) => {
            let whole = bytes_in(line_bps?, options.period_ns)?;
            u64::try_from(u128::from(whole) * u128::from(percent) / 100).ok()
        }
    }
}

/// Rejects reservations that are more than the budget, if that is known.
fn check_reservations(
    section: Section<'_>,
    options: &QdiscOptions,
    classes: &[Class],
) -> Result<(), Error> {
    let reserved: u64 = classes
        .iter()
        .map(|class| class.options.reserve_bytes())
        .fold(0, u64::saturating_add);
    match budget_bytes(options, options.line_rate_bps) {
        Some(budget) if reserved > budget => Err(match section.get("budget") {
            Some(item) => item.fault(&format!(
                "at least {reserved} bytes a period, which the classes reserve; it is {budget}"
            )),
            None => section.lacks(
                "budget",
                &format!(
                    "at least {reserved} bytes a period, which the classes reserve; without it \
                     it is {budget}"
                ),
            ),
        }),
        _ => Ok(()),
    }
}
