// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes `pspacer.1` from the same text as `--help`: one page for all subcommands.

use std::io::{self, Write};

use clap::builder::PossibleValue;
use clap::{Arg, Command};
use clap_mangen::Man;
use pspacer::{GROUPS, STATUSES};

/// Writes the page.
pub fn write<W: Write>(mut out: W, mut command: Command) -> io::Result<()> {
    writeln!(out, ".\\\" SPDX-License-Identifier: MIT OR Apache-2.0")?;
    writeln!(
        out,
        ".\\\" Made from the command line's own help: cargo xtask man"
    )?;
    command.build();
    let top = Man::new(command.clone());
    top.render_title(&mut out)?;
    top.render_name_section(&mut out)?;
    top.render_synopsis_section(&mut out)?;
    top.render_description_section(&mut out)?;
    writeln!(out, ".SH OPTIONS\nOf every command:")?;
    for arg in command.get_arguments().filter(|a| a.is_global_set()) {
        option(&mut out, arg)?;
    }
    writeln!(out, ".SH COMMANDS")?;
    for (_, names) in GROUPS {
        for command in names
            .iter()
            .filter_map(|name| command.find_subcommand(name))
        {
            subcommand(&mut out, command)?;
        }
    }
    writeln!(out, ".SH EXIT STATUS")?;
    for (status, meaning) in STATUSES {
        entry(&mut out, status, meaning)?;
    }
    writeln!(out, ".SH ENVIRONMENT")?;
    entry(
        &mut out,
        "PSPACER_CACHE",
        "Where packages and builds are kept [default: ~/.cache/pspacer].",
    )?;
    entry(
        &mut out,
        "PSPACER_ROOT",
        "The project's sources, with its experiments [default: the source tree around the working \
         folder, else what was installed in PREFIX/share/pspacer].",
    )?;
    entry(
        &mut out,
        "NO_COLOR",
        "No colours, when set and not empty; --color always is stronger.",
    )?;
    entry(
        &mut out,
        "COLUMNS",
        "How wide text may be [default: as wide as the terminal].",
    )?;
    writeln!(out, ".SH SEE ALSO\n.BR tc (8),\n.BR tc\\-psp (8)")
}

fn subcommand<W: Write>(out: &mut W, sub: &Command) -> io::Result<()> {
    if sub.get_name() == "help" {
        return Ok(());
    }
    if sub.has_subcommands() {
        let shown = sub.get_subcommands().filter(|c| !c.is_hide_set());
        return shown.into_iter().try_for_each(|sub| subcommand(out, sub));
    }
    // The heading is the subcommand's own synopsis, which contains the program's name only once.
    let name = sub.get_bin_name().unwrap_or(sub.get_name());
    writeln!(out, ".SS {}", escaped(name))?;
    if let Some(about) = sub.get_about() {
        writeln!(out, "{}.", escaped(&about.to_string()))?;
    }
    let mut arguments = sub.get_arguments();
    arguments.try_for_each(|arg| {
        let is_its_own = !arg.is_hide_set() && !arg.is_global_set() && arg.get_id() != "help";
        if is_its_own { option(out, arg) } else { Ok(()) }
    })
}

fn option<W: Write>(out: &mut W, arg: &Arg) -> io::Result<()> {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let term = match arg.get_short().filter(|_| arg.get_long().is_some()) {
        Some(short) => format!("-{short}, {arg}"),
        None => arg.to_string(),
    };
    entry(out, &term, &(help + &values(arg)))
}

/// Returns which values an option takes and which it has without one, as `--help` says it.
fn values(arg: &Arg) -> String {
    if !arg.get_action().takes_values() {
        return String::new();
    }
    let possible = arg.get_possible_values();
    let shown = possible.iter().filter(|value| !value.is_hide_set());
    let possible: Vec<&str> = shown.map(PossibleValue::get_name).collect();
    let default = arg.get_default_values().iter();
    let default: Vec<_> = default.map(|value| value.to_string_lossy()).collect();
    let mut text = String::new();
    if !default.is_empty() && !arg.is_hide_default_value_set() {
        text += &format!(" [default: {}]", default.join(" "));
    }
    if !possible.is_empty() && !arg.is_hide_possible_values_set() {
        text += &format!(" [possible values: {}]", possible.join(", "));
    }
    text
}

/// Escapes hyphens: in a command `-` must be printed as a minus, not as a hyphen.
fn escaped(text: &str) -> String {
    text.replace('-', "\\-")
}

fn entry<W: Write>(out: &mut W, term: &str, text: &str) -> io::Result<()> {
    let (term, text) = (escaped(term), escaped(text));
    writeln!(out, ".TP\n\\fB{term}\\fR\n{text}")
}
