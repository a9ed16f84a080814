// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the head of a line of tc(8): what stands before the kind, in any order, as tc takes it.

use units::tc::class_id;

use crate::model::TcLine;

/// The head of a line, the kind that ends it, and the words after that.
#[derive(Debug)]
pub struct TcHead<'l> {
    pub object: &'l str,
    pub verb: &'l str,
    pub device: &'l str,
    pub is_root: bool,
    pub parent: Option<(u32, u32)>,
    /// Major number of a qdisc.
    pub handle: Option<u32>,
    pub classid: Option<(u32, u32)>,
    /// What a filter is for: `ip` or `all`.
    pub protocol: Option<&'l str>,
    /// Preference of a filter.
    pub pref: Option<u32>,
    pub kind: &'l str,
    pub options: &'l [String],
}

impl TcLine {
    /// Reads the line's words up to its kind.
    ///
    /// # Errors
    /// What is not understood, and what is expected instead.
    pub fn head(&self) -> Result<TcHead<'_>, String> {
        let mut words = Words(&self.args);
        let object = words.next("an object")?;
        let verb = words.next("a verb")?;
        let is_known = matches!(object, "qdisc" | "class" | "filter")
            && matches!(verb, "add" | "replace" | "change");
        if !is_known {
            return Err(format!(
                "tc: `{object} {verb}`, expected qdisc, class or filter with add, replace or change"
            ));
        }
        let (is_class, is_filter) = (object == "class", object == "filter");
        let (mut device, mut is_root, mut protocol) = (None, false, None);
        let (mut parent, mut handle, mut classid, mut pref) = (None, None, None, None);
        let id = "a class id such as 1:1";
        let kind = loop {
            match words.next("a kind")? {
                "dev" => device = Some(words.next("a device")?),
                "root" => is_root = true,
                "parent" => parent = Some(words.value("parent", id, class_id)?),
                // That of a filter has parts of its own, and orders nothing here.
                "handle" if is_filter => drop(words.next("handle")?),
                "handle" => handle = Some(words.value("handle", id, class_id)?.0),
                "classid" if is_class => classid = Some(words.value("classid", id, class_id)?),
                "protocol" if is_filter => {
                    let known = |word| matches!(word, "ip" | "all").then_some(word);
                    protocol = Some(words.value("protocol", "ip, all", known)?);
                }
                "pref" | "preference" | "prio" | "priority" if is_filter => {
                    pref = Some(words.value("pref", "a number", |word| word.parse().ok())?);
                }
                kind => break kind,
            }
        };
        let device =
            device.ok_or_else(|| format!("tc: expected `dev` and a device before {kind}"))?;
        Ok(TcHead {
            object,
            verb,
            device,
            is_root,
            parent,
            handle,
            classid,
            protocol,
            pref,
            kind,
            options: words.0,
        })
    }
}

struct Words<'l>(&'l [String]);

impl<'l> Words<'l> {
    fn next(&mut self, what: &str) -> Result<&'l str, String> {
        let ends = || format!("tc: the line ends where {what} should be");
        let (word, rest) = self.0.split_first().ok_or_else(ends)?;
        self.0 = rest;
        Ok(word)
    }

    fn value<T>(
        &mut self,
        key: &str,
        expected: &str,
        read: impl Fn(&'l str) -> Option<T>,
    ) -> Result<T, String> {
        let word = self.next(key)?;
        read(word).ok_or_else(|| format!("tc: {key} is {word:?}, expected {expected}"))
    }
}
