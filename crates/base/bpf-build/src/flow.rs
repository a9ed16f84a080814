// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way through a function of BPF's assembly: which registers each line reads and writes, which
//! lines follow it, and whose numbers are still looked at.

use std::collections::BTreeMap;

/// A set of registers: r0 is the lowest bit.
pub(crate) type Registers = u16;

/// Registers that a call reads, and those that it may change.
const CALL_READS: Registers = 0b11_1110;
const CALL_CHANGES: Registers = 0b11_1111;
/// The stack's register, which nothing changes.
const STACK: u32 = 10;

/// What a line of assembly is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its code without a comment; empty if it is no instruction.
    pub code: String,
    pub label: Option<String>,
    /// The label that it jumps to.
    target: Option<String>,
    /// Registers that it reads, but for the base of its access.
    pub reads: Registers,
    /// The base of its access to memory that is not the stack.
    pub base: Option<u32>,
    /// Its access is to the stack.
    pub is_stack: bool,
    pub writes: Registers,
    /// It copies a whole register: to, from.
    pub copies: Option<(u32, u32)>,
    /// It writes a number, or adds one, that it names.
    pub is_constant: bool,
    pub is_step: bool,
}

fn bit(register: u32) -> Registers {
    1 << register
}

/// Returns the registers of a set.
pub(crate) fn each(registers: Registers) -> impl Iterator<Item = u32> {
    (0..STACK).filter(move |register| registers & bit(*register) != 0)
}

/// Returns the number of a register, named as whole or as half.
fn register(word: &str) -> Option<u32> {
    word.strip_prefix(['r', 'w'])?.parse().ok()
}

/// Returns the registers that code names, as often as it does.
fn named(code: &str) -> impl Iterator<Item = u32> + '_ {
    let words = code.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter_map(register).filter(|number| *number < STACK)
}

fn set(registers: impl Iterator<Item = u32>) -> Registers {
    registers.fold(0, |set, register| set | bit(register))
}

/// Returns the label that a line begins with.
pub(crate) fn label(code: &str) -> Option<&str> {
    let name = code.split_whitespace().next()?.strip_suffix(':')?;
    (!name.is_empty() && !name.starts_with('#')).then_some(name)
}

/// Returns a line without its comment.
pub(crate) fn code_of(line: &str) -> String {
    let code = line.split('#').next().unwrap_or_default();
    code.trim().to_owned()
}

impl Line {
    pub(crate) fn read(line: &str) -> Self {
        let code = code_of(line);
        if let Some(label) = label(line.trim()) {
            return Self {
                label: Some(label.to_owned()),
                ..Self::default()
            };
        }
        if code.is_empty() || code.starts_with('.') {
            return Self::default();
        }
        let mut this = Self::default();
        if let Some((_, access)) = code.split_once("*)(") {
            let base = access.split_whitespace().next().and_then(register);
            this.is_stack = base == Some(STACK);
            this.base = base.filter(|base| *base < STACK);
        }
        this.target = code
            .split_once("goto ")
            .map(|(_, target)| target.trim().to_owned());
        if code.starts_with("call") {
            this.reads = CALL_READS | set(named(&code));
            this.writes = CALL_CHANGES;
        } else if code == "exit" {
            this.reads = bit(0);
        } else if let (Some((to, value)), None) = (code.split_once(" = "), &this.target) {
            let to_register = register(to).filter(|to| *to < STACK);
            this.writes = to_register.map_or(0, bit);
            let other = if to_register.is_some() { value } else { &*code };
            this.reads = this.others(other);
            let source = value.strip_prefix('r').and_then(|n| n.parse().ok());
            this.copies = to_register.zip(source.filter(|from| *from < STACK));
            this.copies = this.copies.filter(|_| to.starts_with('r'));
            this.is_constant = value.parse::<u32>().is_ok_and(|value| value < 1 << 31);
        } else {
            this.reads = this.others(&code);
            let changed = code.split_once("= ").filter(|_| this.target.is_none());
            let to = changed.and_then(|_| register(code.split(' ').next()?));
            this.writes = to.map_or(0, bit);
            this.is_step = code.starts_with('r')
                && code
                    .split_once(" += ")
                    .is_some_and(|(_, step)| step.parse::<i64>().is_ok());
        }
        this.code = code;
        this
    }

    /// Returns the registers that code reads other than as the base of its access.
    fn others(&self, code: &str) -> Registers {
        let base = self.base;
        let mut is_base_seen = false;
        set(named(code).filter(|register| {
            let is_base = Some(*register) == base && !is_base_seen;
            is_base_seen |= is_base;
            !is_base
        }))
    }

    /// Writes into memory, and nothing else.
    pub(crate) fn is_store(&self) -> bool {
        self.code.starts_with('*')
    }

    pub(crate) fn is_jump(&self) -> bool {
        self.target.is_some()
    }

    /// The next line does not follow it.
    fn ends(&self) -> bool {
        self.code == "exit" || self.code.starts_with("goto ")
    }
}

/// Returns, by line, whether a way leads to it.
fn reached(next: &[Vec<usize>], from: usize) -> Vec<bool> {
    let mut is_reached = vec![false; next.len()];
    let mut ways = vec![from];
    while let Some(at) = ways.pop() {
        if at < next.len() && !std::mem::replace(&mut is_reached[at], true) {
            ways.extend(&next[at]);
        }
    }
    is_reached
}

/// A function: its lines, and what follows from all of them.
pub(crate) struct Flow {
    pub lines: Vec<Line>,
    /// By line: the lines that follow it.
    next: Vec<Vec<usize>>,
    /// By line: registers whose numbers are looked at later.
    pub live: Vec<Registers>,
    /// By line: it is a label to which code jumps back.
    pub is_loop: Vec<bool>,
}

impl Flow {
    pub(crate) fn read(lines: &[&str]) -> Self {
        let lines: Vec<Line> = lines.iter().map(|line| Line::read(line)).collect();
        let labels: BTreeMap<&str, usize> = (0..)
            .zip(&lines)
            .filter_map(|(number, line)| Some((line.label.as_deref()?, number)))
            .collect();
        let mut jumps_back = Vec::new();
        let mut next = Vec::with_capacity(lines.len());
        for (number, line) in lines.iter().enumerate() {
            let mut after = Vec::new();
            if !line.ends() && number + 1 < lines.len() {
                after.push(number + 1);
            }
            let target = line.target.as_deref();
            if let Some(to) = target.and_then(|target| labels.get(target).copied()) {
                if to <= number {
                    jumps_back.push((number, to));
                }
                after.push(to);
            }
            next.push(after);
        }
        // What nothing leads to, such as the empty lines behind a jump, leads nowhere.
        let is_reached = reached(&next, 0);
        for (next, is_reached) in next.iter_mut().zip(is_reached) {
            if !is_reached {
                next.clear();
            }
        }
        let mut is_loop = vec![false; lines.len()];
        for (from, to) in jumps_back {
            is_loop[to] |= reached(&next, to)[from];
        }
        let live = vec![0; lines.len()];
        let mut flow = Self {
            lines,
            next,
            live,
            is_loop,
        };
        flow.find_live();
        flow
    }

    fn find_live(&mut self) {
        let mut changes = true;
        while changes {
            changes = false;
            for number in (0..self.lines.len()).rev() {
                let after = self.live_after(number);
                let line = &self.lines[number];
                let base = line.base.map_or(0, bit);
                let live = after & !line.writes | line.reads | base;
                changes |= live != self.live[number];
                self.live[number] = live;
            }
        }
    }

    /// Returns the registers that are looked at after a line.
    pub(crate) fn live_after(&self, number: usize) -> Registers {
        let next = self.next[number].iter();
        next.fold(0, |live, next| live | self.live[*next])
    }

    /// Returns, by line, the registers that are pointers before it: those that are pointers on each
    /// way to it, once cast by an access.
    pub(crate) fn pointers(&self) -> Vec<Registers> {
        let mut before = vec![0; self.lines.len()];
        for next in self.next.iter().flatten() {
            before[*next] = self.live[*next];
        }
        if let Some(first) = before.first_mut() {
            *first = 0;
        }
        let mut changes = true;
        while changes {
            changes = false;
            for number in 0..self.lines.len() {
                let after = self.pointers_after(number, &before);
                for next in &self.next[number] {
                    let both = before[*next] & after;
                    changes |= both != before[*next];
                    before[*next] = both;
                }
            }
        }
        before
    }

    /// Returns the registers that have to be numbers where a line reads them.
    pub(crate) fn numbers(&self, number: usize) -> Registers {
        let line = &self.lines[number];
        if line.copies.is_some() || line.is_store() && line.base.is_some() {
            return 0;
        }
        line.reads
    }

    /// Returns the registers that are pointers after a line, and stay so on each way from it.
    fn pointers_after(&self, number: usize, before: &[Registers]) -> Registers {
        let after = self.pointers_then(number, before);
        after & !self.left(number, after, before)
    }

    /// Returns the registers that are pointers after a line.
    pub(crate) fn pointers_then(&self, number: usize, before: &[Registers]) -> Registers {
        let line = &self.lines[number];
        let mut after = before[number] & !self.numbers(number);
        after |= line.base.map_or(0, bit);
        let is_copied = line.copies.is_some_and(|(_, from)| after & bit(from) != 0);
        after &= !line.writes;
        if is_copied {
            after |= line.writes;
        }
        after
    }

    /// Returns which of these pointers somebody behind a line takes for numbers.
    pub(crate) fn left(
        &self,
        number: usize,
        pointers: Registers,
        before: &[Registers],
    ) -> Registers {
        let next = self.next[number].iter();
        let numbers = next.map(|next| self.live[*next] & !before[*next]);
        pointers & numbers.fold(0, |all, registers| all | registers)
    }

    /// Returns whether neither the number that a line writes nor one made of it is still there where
    /// a loop begins, or on the stack: so it counts no loop.
    pub(crate) fn is_passing(&self, number: usize) -> bool {
        let mut known: Vec<Registers> = vec![0; self.lines.len()];
        let mut ways: Vec<(usize, Registers)> = Vec::new();
        let written = self.lines[number].writes;
        ways.extend(self.next[number].iter().map(|next| (*next, written)));
        while let Some((at, registers)) = ways.pop() {
            let all = known[at] | registers & self.live[at];
            if all == known[at] {
                continue;
            }
            known[at] = all;
            let line = &self.lines[at];
            let is_read = line.reads & all != 0;
            if self.is_loop[at] || is_read && line.is_stack {
                return false;
            }
            let mut after = all & !line.writes;
            // What a call returns is no number that the verifier knows.
            if is_read && !line.code.starts_with("call") {
                after |= line.writes;
            }
            ways.extend(self.next[at].iter().map(|next| (*next, after)));
        }
        true
    }
}
