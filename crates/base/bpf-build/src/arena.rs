// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes code that knows no arena use one: rewrites what the compiler put into `.text`
//! (bpf/arena.h).
//!
//! The verifier takes a number for a pointer into an arena where an instruction says so, and a loop
//! if it counts. So before each access to memory stands `addr_space_cast` of its base, unless that
//! was said just before, and at the head of each loop `may_goto`, which leaves the function. An
//! instruction that two ways lead to must find the same on both, a pointer or a number: so a pointer is a number
//! again (`wN = wN`; addresses have 32 bits) before anything but an access sees it, and where
//! another way leads to that finds a number there (`flow.rs`).
//!
//! The verifier looks at a global function once, and at others wherever they are called, which for
//! the core is too often. So these functions are global, and what they are given and return are
//! numbers. The stack is not the arena: a function that takes the address of a local variable is
//! refused.

use crate::btf::Types;
use crate::flow::{Flow, Registers, code_of, each, label};

/// The section of the types.
const TYPES: &str = ".BTF";
/// Registers that a function finds as its caller left them, and that the verifier does not let it
/// read.
const KEPT: Registers = 0b11_1100_0000;

/// Returns the assembly with the arena's instructions in `.text`, and types that say so.
///
/// # Errors
/// The function that cannot use an arena, and why.
pub fn rewrite(assembly: &str) -> Result<String, String> {
    let lines: Vec<&str> = assembly.lines().collect();
    let starts = lines.iter().position(|line| section(line) == Some(TYPES));
    let starts = starts.ok_or("the program has no types")? + 1;
    let ends = lines[starts..]
        .iter()
        .position(|line| section(line).is_some());
    let ends = ends.map_or(lines.len(), |length| starts + length);
    let mut types = Types::read(&lines[starts..ends])?;

    let mut out = String::with_capacity(assembly.len() * 2);
    let functions = rewrite_code(&lines[..starts], &types, &mut out)?;
    types.make_numbers(&functions)?;
    for line in types.lines() {
        push(&mut out, &line);
    }
    for line in &lines[ends..] {
        push(&mut out, line);
    }
    Ok(out)
}

/// Returns the section that a line begins.
fn section(line: &str) -> Option<&str> {
    let rest = match line.trim() {
        ".text" => return Some(".text"),
        code => code.strip_prefix(".section")?.trim(),
    };
    rest.split(',').next().map(|name| name.trim_matches('"'))
}

/// Rewrites all functions of `.text` and returns their names.
fn rewrite_code(lines: &[&str], types: &Types, out: &mut String) -> Result<Vec<String>, String> {
    let mut functions = Vec::new();
    let mut is_text = false;
    let mut function: Option<(String, Vec<&str>)> = None;
    for line in lines {
        let code = line.trim();
        if let Some((name, lines)) = &mut function {
            if !code.starts_with(".Lfunc_end") {
                lines.push(line);
                continue;
            }
            let is_void = types.is_void(name);
            let is_void = is_void.ok_or_else(|| format!("{name} has no type"))?;
            rewrite_function(name, lines, is_void, out)?;
            functions.push(std::mem::take(name));
            function = None;
        } else if let Some(section) = section(line) {
            is_text = section == ".text";
        } else if let Some(name) = label(code).filter(|name| is_text && !name.starts_with('.')) {
            function = Some((name.to_owned(), Vec::new()));
        }
        push(out, widened(&code_of(line)).as_deref().unwrap_or(line));
    }
    match function {
        Some((name, _)) => Err(format!("{name} does not end")),
        None => Ok(functions),
    }
}

fn push(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

/// Makes pointers numbers again.
fn end(out: &mut String, registers: Registers) {
    for register in each(registers) {
        push(out, &format!("\tw{register} = w{register}"));
    }
}

fn begin(out: &mut String, register: u32) {
    push(
        out,
        &format!("\tr{register} = addr_space_cast(r{register}, 0, 1)"),
    );
}

/// Makes the verifier forget the number of 32 bits that registers have. With numbers that it knows
/// it would go round a loop, instead of looking at it with any.
fn forget(out: &mut String, registers: Registers) {
    for register in each(registers) {
        begin(out, register);
    }
    end(out, registers);
}

/// The same for the bounds of numbers of 64 bits, which are swapped twice.
fn forget_bounds(out: &mut String, registers: Registers) {
    for register in each(registers) {
        for _ in 0..2 {
            push(out, &format!("\tr{register} = be64 r{register}"));
        }
    }
}

/// The compiler writes the move of 32 bits that clears the others in a form that its assembler
/// does not read.
fn widened(code: &str) -> Option<String> {
    let (to, from) = code.split_once(" = ")?;
    let (to, from) = (to.strip_prefix('r')?, from.strip_prefix('w')?);
    let are_registers = to.parse::<u8>().is_ok() && from.parse::<u8>().is_ok();
    are_registers.then(|| format!("\tw{to} = w{from}"))
}

fn rewrite_function(
    name: &str,
    lines: &[&str],
    is_void: bool,
    out: &mut String,
) -> Result<(), String> {
    let flow = Flow::read(lines);
    let has_loop = flow.is_loop.contains(&true);
    let over = format!("LBB_over_{name}");
    let pointers = flow.pointers();
    let mut is_first = true;
    for (number, (text, line)) in lines.iter().zip(&flow.lines).enumerate() {
        let is_loop = flow.is_loop[number];
        if (is_loop || !line.code.is_empty()) && std::mem::take(&mut is_first) {
            // A compiler may copy what nothing was written to yet, if nobody looks at the copy.
            for register in each(flow.live[number] & KEPT) {
                push(out, &format!("\tr{register} = 0"));
            }
        }
        if line.code.ends_with(" = r10") && line.writes != 0 {
            let code = &line.code;
            return Err(format!(
                "{name} takes the address of a local variable ({code}); a function that is given \
                 one has to be part of its caller (bpf/core.h)"
            ));
        }
        end(out, pointers[number] & flow.numbers(number));
        if let Some(base) = line.base.filter(|base| pointers[number] & (1 << base) == 0) {
            begin(out, base);
        }
        if line.code == "exit" && is_void {
            push(out, "\tr0 = 0");
        }
        let left = flow.left(number, flow.pointers_then(number, &pointers), &pointers);
        if line.is_jump() {
            end(out, left);
        }
        push(out, widened(&line.code).as_deref().unwrap_or(text));
        if is_loop {
            push(out, &format!("\tmay_goto {over}"));
        }
        if has_loop && !flow.is_passing(number) {
            if line.is_constant {
                forget(out, line.writes);
            } else if line.is_step {
                forget_bounds(out, line.writes);
            }
        }
        if !line.is_jump() {
            end(out, left);
        }
    }
    if has_loop {
        push(out, &format!("{over}:"));
        push(out, "\tr0 = 0");
        push(out, "\texit");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;

    fn rewritten(lines: &[&str], is_void: bool) -> Result<Vec<String>, String> {
        let mut out = String::new();
        rewrite_function("f", lines, is_void, &mut out)?;
        Ok(out.lines().map(|line| line.trim().to_owned()).collect())
    }

    fn instructions(lines: &[&str]) -> Vec<String> {
        let all = rewritten(lines, false).unwrap();
        let rest = all.into_iter().skip_while(|line| line == "r6 = 0");
        rest.collect()
    }

    #[test]
    fn registers_of_the_caller_are_written_before_they_are_read() {
        let lines = [
            ".Lfunc_begin0:",
            "# %bb.0:",
            "*(u64 *)(r10 - 8) = r9",
            "w1 = w7",
        ];
        let expected = [
            ".Lfunc_begin0:",
            "# %bb.0:",
            "r7 = 0",
            "r9 = 0",
            "*(u64 *)(r10 - 8) = r9",
            "w1 = w7",
        ];
        assert_eq!(rewritten(&lines, false).unwrap(), expected);
    }

    #[test]
    fn moves_of_32_bits_are_written_as_the_assembler_reads_them() {
        assert_eq!(widened("r7 = w0").as_deref(), Some("\tw7 = w0"));
        for code in ["r7 = r0", "w7 = w0", "r7 = 4", "goto LBB0_1"] {
            assert_eq!(widened(code), None, "{code}");
        }
    }

    #[test]
    fn numbers_are_forgotten_in_a_function_with_a_loop() {
        let lines = [
            "w1 = 4",
            "LBB0_1:",
            "r2 += 1",
            "w3 += w1",
            "w4 = 5",
            "if w4 > w3 goto LBB0_1",
            "*(u32 *)(r2 + 0) = w4",
            "exit",
        ];
        let expected = [
            "w1 = 4",
            "r1 = addr_space_cast(r1, 0, 1)",
            "w1 = w1",
            "LBB0_1:",
            "may_goto LBB_over_f",
            "r2 += 1",
            "r2 = be64 r2",
            "r2 = be64 r2",
            "w3 += w1",
            "w4 = 5",
            "if w4 > w3 goto LBB0_1",
            "r2 = addr_space_cast(r2, 0, 1)",
            "*(u32 *)(r2 + 0) = w4",
            "exit",
            "LBB_over_f:",
            "r0 = 0",
            "exit",
        ];
        assert_eq!(rewritten(&lines, false).unwrap(), expected);
        assert_eq!(rewritten(&lines[..1], false).unwrap(), lines[..1]);
    }

    #[test]
    fn a_base_is_a_pointer_until_something_else_sees_it() {
        const R1: &str = "r1 = addr_space_cast(r1, 0, 1)";
        const R6: &str = "r6 = addr_space_cast(r6, 0, 1)";
        for (lines, expected) in [
            (
                &["r2 = *(u64 *)(r1 + 8)", "w3 = *(u32 *)(r1 + 0)"][..],
                &[R1, "r2 = *(u64 *)(r1 + 8)", "w3 = *(u32 *)(r1 + 0)"][..],
            ),
            (
                &["r1 = *(u64 *)(r1 + 8)", "*(u8 *)(r1 - 4) = r2"],
                &[R1, "r1 = *(u64 *)(r1 + 8)", R1, "*(u8 *)(r1 - 4) = r2"],
            ),
            (
                &["*(u8 *)(r6 + 0) = r2", "r6 += 8", "*(u8 *)(r6 + 0) = r2"],
                &[
                    R6,
                    "*(u8 *)(r6 + 0) = r2",
                    "w6 = w6",
                    "r6 += 8",
                    R6,
                    "*(u8 *)(r6 + 0) = r2",
                ],
            ),
            (
                &["*(u8 *)(r6 + 0) = r2", "*(u64 *)(r10 - 8) = r6", "r6 = 4"],
                &[
                    R6,
                    "*(u8 *)(r6 + 0) = r2",
                    "w6 = w6",
                    "*(u64 *)(r10 - 8) = r6",
                    "r6 = 4",
                ],
            ),
            (
                &["*(u8 *)(r6 + 0) = r2", "*(u64 *)(r6 + 8) = r6", "r3 = r6"],
                &[
                    R6,
                    "*(u8 *)(r6 + 0) = r2",
                    "*(u64 *)(r6 + 8) = r6",
                    "r3 = r6",
                ],
            ),
            (
                &[
                    "*(u8 *)(r6 + 0) = r2",
                    "*(u8 *)(r1 + 0) = r2",
                    "call g",
                    "*(u8 *)(r6 + 0) = r0",
                    "exit",
                ],
                &[
                    R6,
                    "*(u8 *)(r6 + 0) = r2",
                    R1,
                    "*(u8 *)(r1 + 0) = r2",
                    "w1 = w1",
                    "call g",
                    "*(u8 *)(r6 + 0) = r0",
                    "exit",
                ],
            ),
            (
                &["*(u8 *)(r1 + 0) = r2", "if w3 != 0 goto LBB0_1"],
                &[R1, "*(u8 *)(r1 + 0) = r2", "if w3 != 0 goto LBB0_1"],
            ),
            (
                &["r0 = *(u64 *)(r1 + 0)", "w2 = *(u32 *)(r0 + 4)", "exit"],
                &[
                    R1,
                    "r0 = *(u64 *)(r1 + 0)",
                    "r0 = addr_space_cast(r0, 0, 1)",
                    "w2 = *(u32 *)(r0 + 4)",
                    "w0 = w0",
                    "exit",
                ],
            ),
            (&["r4 = w3", "w1 = w2"], &["w4 = w3", "w1 = w2"]),
            (
                &["*(u64 *)(r10 - 8) = r1", "r1 = *(u64 *)(r10 - 8)"],
                &["*(u64 *)(r10 - 8) = r1", "r1 = *(u64 *)(r10 - 8)"],
            ),
        ] {
            assert_eq!(instructions(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn what_another_way_takes_for_a_number_is_one() {
        let lines = [
            "if w3 == 0 goto LBB0_1",
            "w1 = *(u32 *)(r2 + 0)",
            "w1 = *(u32 *)(r4 + 0)",
            "LBB0_1:",
            "w2 += w3",
            "w1 = *(u32 *)(r4 + 0)",
            "if w1 == 0 goto LBB0_2",
            "w1 = *(u32 *)(r4 + 4)",
            "goto LBB0_2",
            "",
            "LBB0_2:",
            "w0 = w4",
            "exit",
        ];
        let expected = [
            "if w3 == 0 goto LBB0_1",
            "r2 = addr_space_cast(r2, 0, 1)",
            "w1 = *(u32 *)(r2 + 0)",
            "r4 = addr_space_cast(r4, 0, 1)",
            "w1 = *(u32 *)(r4 + 0)",
            "w2 = w2",
            "w4 = w4",
            "LBB0_1:",
            "w2 += w3",
            "r4 = addr_space_cast(r4, 0, 1)",
            "w1 = *(u32 *)(r4 + 0)",
            "if w1 == 0 goto LBB0_2",
            "w1 = *(u32 *)(r4 + 4)",
            "goto LBB0_2",
            "",
            "LBB0_2:",
            "w4 = w4",
            "w0 = w4",
            "exit",
        ];
        assert_eq!(instructions(&lines), expected);
    }

    #[test]
    fn a_pointer_on_each_way_stays_one_and_a_loop_counts() {
        let lines = [
            "w1 = *(u32 *)(r2 + 0)",
            "LBB0_1:    # =>This Inner Loop",
            "w1 = *(u32 *)(r2 + 0)",
            "if w1 != 0 goto LBB0_1",
            "if w1 == 3 goto LBB0_2",
            "LBB0_2:",
            "exit",
        ];
        let expected = [
            "r2 = addr_space_cast(r2, 0, 1)",
            "w1 = *(u32 *)(r2 + 0)",
            "LBB0_1:    # =>This Inner Loop",
            "may_goto LBB_over_f",
            "w1 = *(u32 *)(r2 + 0)",
            "if w1 != 0 goto LBB0_1",
            "if w1 == 3 goto LBB0_2",
            "LBB0_2:",
            "exit",
            "LBB_over_f:",
            "r0 = 0",
            "exit",
        ];
        assert_eq!(instructions(&lines), expected);
    }

    #[test]
    fn a_function_that_returns_nothing_returns_a_number() {
        assert_eq!(rewritten(&["exit"], false).unwrap(), ["exit"]);
        assert_eq!(rewritten(&["exit"], true).unwrap(), ["r0 = 0", "exit"]);
    }

    #[test]
    fn other_sections_stay_as_they_are() {
        let types = "\t.section\t.BTF,\"\",@progbits\n\t.short\t60319\n\t.byte\t1\n\t.byte\t0\n\
                     \t.long\t24\n\t.long\t0\n\t.long\t16\n\t.long\t16\n\t.long\t1\n\
                     \t.long\t0\n\t.long\t16777216\n\t.long\t8\n\t.long\t64\n\t.byte\t0\n";
        let program = "\t.section\t\"struct_ops/f\",\"ax\",@progbits\nf:\n\
                       r1 = *(u64 *)(r1 + 0)\nr2 = r10\n.Lfunc_end0:\n";
        let out = rewrite(&format!("{program}{types}")).unwrap();
        assert!(out.starts_with(program), "{out}");
        assert_eq!(rewrite(program).unwrap_err(), "the program has no types");
        let error = rewrite(&format!("\t.text\ng:\n.Lfunc_end0:\n{types}")).unwrap_err();
        assert_eq!(error, "g has no type");
        let error = rewrite(&format!("\t.text\ng:\nexit\n{types}")).unwrap_err();
        assert_eq!(error, "g does not end");
    }

    #[test]
    fn the_address_of_a_local_variable_is_refused() {
        let error = rewritten(&["r2 = r10", "r2 += -8", "call g"], true).unwrap_err();
        assert!(
            error.starts_with("f takes the address of a local variable (r2 = r10)"),
            "{error}"
        );
    }
}
