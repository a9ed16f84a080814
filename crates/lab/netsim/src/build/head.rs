// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the head of a line of tc(8): what stands before the kind, in any order, as tc takes it.

use super::refusal::Refusal;
use super::tc_tokens::TcTokens;

/// The head of a line, and the kind that ends it.
pub(super) struct Head<'a> {
    pub object: &'a str,
    pub verb: &'a str,
    pub device: &'a str,
    /// `None`: the root, or nothing was said.
    pub parent: Option<(u32, u32)>,
    /// Major number of a qdisc.
    pub handle: Option<u32>,
    pub classid: Option<(u32, u32)>,
    /// Preference of a filter.
    pub pref: Option<u32>,
    pub kind: &'a str,
}

impl<'a> Head<'a> {
    /// Reads a line's words up to its kind.
    pub fn read(tokens: &mut TcTokens<'a>) -> Result<Self, Refusal> {
        let object = tokens.word("an object")?;
        let verb = tokens.word("a verb")?;
        let is_known = matches!(object, "qdisc" | "class" | "filter")
            && matches!(verb, "add" | "replace" | "change");
        if !is_known {
            let known = "qdisc, class and filter with add and replace";
            return Err(tokens.unknown("tc", &format!("{object} {verb}"), known));
        }
        let (is_class, is_filter) = (object == "class", object == "filter");
        let mut device = None;
        let (mut parent, mut handle, mut classid, mut pref) = (None, None, None, None);
        let kind = loop {
            match tokens.word("a kind")? {
                "dev" => device = Some(tokens.word("a device")?),
                "root" => parent = None,
                "parent" => parent = Some(tokens.handle("parent")?),
                // That of a filter has parts of its own, and orders nothing here.
                "handle" if is_filter => drop(tokens.word("handle")?),
                "handle" => handle = Some(tokens.handle("handle")?.0),
                "classid" if is_class => classid = Some(tokens.handle("classid")?),
                "protocol" if is_filter => {
                    tokens.one_of("protocol", &[("ip", ()), ("all", ())])?;
                }
                "pref" | "preference" | "prio" | "priority" if is_filter => {
                    pref = Some(tokens.number("pref")?);
                }
                kind => break kind,
            }
        };
        let device = device
            .ok_or_else(|| tokens.refuse(format!("tc: expected `dev` and a device before {kind}")));
        Ok(Self {
            object,
            verb,
            device: device?,
            parent,
            handle,
            classid,
            pref,
            kind,
        })
    }
}
