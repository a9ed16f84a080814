// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pspacer.1`, from the same text as `--help`: one page for all subcommands.

use std::io::{self, Write};

use clap::Command;
use clap_mangen::Man;

/// Writes the page.
pub fn write<W: Write>(mut out: W, mut command: Command) -> io::Result<()> {
    writeln!(out, ".\\\" SPDX-License-Identifier: MIT OR Apache-2.0")?;
    writeln!(
        out,
        ".\\\" Made from the command line's own help: pspacer man"
    )?;
    command.build();
    let top = Man::new(command.clone());
    top.render_title(&mut out)?;
    top.render_name_section(&mut out)?;
    top.render_synopsis_section(&mut out)?;
    top.render_description_section(&mut out)?;
    writeln!(out, ".SH COMMANDS")?;
    subcommands(&mut out, &command)?;
    writeln!(out, ".SH EXIT STATUS")?;
    writeln!(
        out,
        "0 all well; 1 a run, a file or a bound failed (the reason is on standard error);"
    )?;
    writeln!(
        out,
        "2 the command line is wrong; 3 with \\-\\-exit\\-code of stalls or watch, something stopped."
    )?;
    writeln!(
        out,
        "Of ping: 0 there was an answer; 1 there was none; 2 anything else;"
    )?;
    writeln!(out, "3 a round trip was above \\-\\-stop\\-above.")?;
    writeln!(out, ".SH ENVIRONMENT")?;
    entry(
        &mut out,
        "PSPACER_CACHE",
        "Where packages and builds are kept [default: ~/.cache/pspacer].",
    )?;
    entry(
        &mut out,
        "PSPACER_ROOT",
        "The project's sources, if not above the working directory.",
    )?;
    entry(&mut out, "NO_COLOR", "No colours, when set and not empty.")?;
    writeln!(out, ".SH SEE ALSO\n.BR tc (8),\n.BR tc\\-psp (8)")
}

fn subcommands<W: Write>(out: &mut W, command: &Command) -> io::Result<()> {
    for sub in command
        .get_subcommands()
        .filter(|c| !c.is_hide_set() && c.get_name() != "help")
    {
        if sub.has_subcommands() {
            subcommands(out, sub)?;
            continue;
        }
        // The words of its own synopsis, without the name of the program twice.
        let name = sub
            .get_bin_name()
            .unwrap_or(sub.get_name())
            .replace('-', "\\-");
        writeln!(out, ".SS {name}")?;
        if let Some(about) = sub.get_about() {
            writeln!(out, "{about}.")?;
        }
        for arg in sub
            .get_arguments()
            .filter(|a| !a.is_hide_set() && a.get_id() != "help")
        {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            entry(out, &format!("{arg}"), &help)?;
        }
    }
    Ok(())
}

fn entry<W: Write>(out: &mut W, term: &str, text: &str) -> io::Result<()> {
    writeln!(
        out,
        ".TP\n\\fB{}\\fR\n{}",
        term.replace('-', "\\-"),
        text.replace('-', "\\-")
    )
}
