// SPDX-License-Identifier: MIT OR Apache-2.0
//! What paces a device.

use serde::Serialize;

/// Where psp stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queues {
    /// It is the device's root qdisc and sends through one transmit queue.
    Root,
    /// Each transmit queue has one, below mq. Classes are the device's.
    Mq,
}

/// A way to pace a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The qdisc psp, which needs the module.
    Module,
    /// The same core as a qdisc of BPF.
    Bpf,
    /// Departure times by a BPF classifier, which fq keeps.
    Edt,
}

impl Backend {
    /// All, in the order in which `auto` tries them.
    pub const ALL: [Self; 3] = [Self::Module, Self::Bpf, Self::Edt];

    /// Returns its word in the file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Bpf => "bpf",
            Self::Edt => "edt",
        }
    }

    /// Returns the one of a word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

/// What a psp is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// The module's qdisc.
    Module,
    /// BPF's qdisc.
    Bpf,
    /// A classifier, and one fq at the root.
    Edt,
    /// A classifier, and an fq for each transmit queue. The classes are the device's.
    EdtMq,
}

impl Made {
    /// Returns what a backend makes at these queues.
    pub const fn new(backend: Backend, queues: Queues) -> Self {
        match (backend, queues) {
            (Backend::Module, _) => Self::Module,
            (Backend::Bpf, _) => Self::Bpf,
            (Backend::Edt, Queues::Root) => Self::Edt,
            (Backend::Edt, Queues::Mq) => Self::EdtMq,
        }
    }

    /// Returns who makes it.
    pub const fn backend(self) -> Backend {
        match self {
            Self::Module => Backend::Module,
            Self::Bpf => Backend::Bpf,
            Self::Edt | Self::EdtMq => Backend::Edt,
        }
    }

    /// Returns the name of its kind in tables.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Module => "psp",
            Self::Bpf => "psp_bpf",
            Self::Edt => "edt",
            Self::EdtMq => "edt-mq",
        }
    }

    /// Returns what has this name of a kind.
    pub fn of_kind(kind: &str) -> Self {
        let all = [Self::Bpf, Self::Edt, Self::EdtMq];
        let found = all.into_iter().find(|made| made.kind() == kind);
        found.unwrap_or(Self::Module)
    }

    /// Returns whether each transmit queue has a psp of its own with `queues = "mq"`.
    pub const fn is_of_each_queue(self) -> bool {
        matches!(self, Self::Module | Self::Bpf)
    }
}
