// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `tc class`: the options of psp's and htb's classes.

use pace::ClassConfig;
use units::clock::Span;

use super::refusal::Refusal;
use super::tc_tokens::TcTokens;
use crate::qdisc::{HtbClass, Limit, PspClass, PspType, RateTable};

const PSP: &str = "rate, ceil, floor, mode, quantum, reserve, deadline and flows";
const HTB: &str = "rate, ceil, burst, cburst, quantum, prio, overhead, mpu, mtu and (its own) tick";

/// The last of htb's priorities (TC_HTB_NUMPRIO): a higher number is this one.
const LAST_PRIO: u32 = 7;

/// Default of the lowest rate of a flow in a dynamic class: a frame of the largest
/// size every 200 ms (docs/decisions/qdisc.md, "The rate of a flow in a dynamic
/// class").
const FLOOR_FRAMES_PER_S: u64 = 5;

/// Properties of the device that classes use.
#[derive(Clone, Copy)]
pub(super) struct Port {
    pub line_bps: u64,
    pub frame_bytes: u32,
    /// Limit of a class's queue, in packets, if no other queue is attached.
    pub packets: u32,
}

/// Reads the words of a psp class after `psp`.
pub(super) fn psp(tokens: &mut TcTokens<'_>, minor: u32, port: Port) -> Result<PspClass, Refusal> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mode {
        Paced,
        Normal,
        Dynamic,
        Rt,
        Nrt,
    }
    let (mut mode, mut rate, mut ceil, mut floor) = (None, None, None, None);
    let (mut quantum, mut deadline, mut reserve) = (None, None, None);
    while let Some(word) = tokens.next() {
        match word {
            "mode" => {
                let known = [
                    ("paced", Mode::Paced),
                    ("1", Mode::Paced),
                    ("normal", Mode::Normal),
                    ("0", Mode::Normal),
                    ("dynamic", Mode::Dynamic),
                    ("rt", Mode::Rt),
                    ("nrt", Mode::Nrt),
                ];
                mode = Some(tokens.one_of("mode", &known)?);
            }
            "rate" => rate = Some(tokens.rate("rate")?),
            "ceil" => ceil = Some(tokens.rate("ceil")?),
            "floor" => floor = Some(tokens.rate("floor")?),
            "quantum" => quantum = Some(tokens.size_u32("quantum")?),
            "reserve" => reserve = Some(tokens.size("reserve")?),
            "deadline" => deadline = Some(tokens.time("deadline")?).filter(|d| d.as_ps() > 0),
            // Limits the flows that the kernel module keeps; the simulator keeps
            // all flows.
            "flows" => drop(tokens.number("flows")?),
            other => return Err(tokens.unknown("a psp class", other, PSP)),
        }
    }
    let mode = match (mode, rate) {
        (Some(mode), _) => mode,
        (None, Some(_)) => Mode::Paced,
        (None, None) => return Err(tokens.refuse("tc: a psp class needs a rate or a mode")),
    };
    let by_period = matches!(mode, Mode::Rt | Mode::Nrt);
    if by_period != reserve.is_some() {
        return Err(tokens.refuse("tc: reserve belongs to modes rt and nrt, which need it"));
    }
    let reserve_bytes = reserve.unwrap_or(0);
    let kind = match (mode, rate, ceil) {
        (Mode::Rt, None, None) => PspType::Static(ClassConfig::Rt { reserve_bytes }),
        (Mode::Nrt, None, None) => PspType::Static(ClassConfig::Nrt { reserve_bytes }),
        (Mode::Normal, None, None) => PspType::Static(ClassConfig::Normal {
            quantum_bytes: quantum,
        }),
        (Mode::Paced, Some(rate_bps), None) => PspType::Static(ClassConfig::Paced { rate_bps }),
        (Mode::Paced, Some(rate_bps), Some(ceil_bps)) => {
            PspType::Static(ClassConfig::Borrowing { rate_bps, ceil_bps })
        }
        (Mode::Dynamic, rate, ceil) => PspType::Dynamic {
            rate_bps: rate.unwrap_or(port.line_bps),
            floor_bps: floor.unwrap_or(u64::from(port.frame_bytes) * 8 * FLOOR_FRAMES_PER_S),
            ceil_bps: ceil.unwrap_or(port.line_bps),
        },
        _ => return Err(tokens.refuse("tc: rate and ceil do not fit the mode of the psp class")),
    };
    Ok(PspClass {
        minor,
        kind,
        limit: Limit::Packets(port.packets),
        deadline,
    })
}

/// Reads the words of an htb class after `htb`; `r2q` is that of its qdisc.
pub(super) fn htb(
    tokens: &mut TcTokens<'_>,
    (minor, parent): (u32, Option<u32>),
    r2q: u32,
    port: Port,
) -> Result<HtbClass, Refusal> {
    let (mut rate, mut ceil, mut burst, mut cburst) = (None, None, None, None);
    let (mut quantum, mut prio, mut overhead, mut mpu) = (None, 0, 0, 0);
    // The default of tc.
    let (mut mtu_bytes, mut tick) = (1600, None);
    while let Some(word) = tokens.next() {
        match word {
            "rate" => rate = Some(tokens.rate("rate")?),
            "ceil" => ceil = Some(tokens.rate("ceil")?),
            "burst" | "buffer" | "maxburst" => burst = Some(tokens.size("burst")?),
            "cburst" | "cbuffer" | "cmaxburst" => cburst = Some(tokens.size("cburst")?),
            "quantum" => quantum = Some(tokens.size_u32("quantum")?),
            "prio" => prio = tokens.number("prio")?.min(LAST_PRIO),
            "overhead" => overhead = tokens.size_u32("overhead")?,
            "mpu" => mpu = tokens.size_u32("mpu")?,
            "mtu" => mtu_bytes = tokens.size_u32("mtu")?,
            "tick" => tick = Some(tokens.time("tick")?),
            other => return Err(tokens.unknown("an htb class", other, HTB)),
        }
    }
    let Some(rate_bps) = rate else {
        return Err(tokens.refuse("tc: an htb class needs a rate"));
    };
    // The default of tc: what one tick of the clock lets through, which is next to
    // nothing with high-resolution timers, plus 1600 bytes.
    let usual = 1600;
    // The default of sch_htb.
    let by_rate = (rate_bps / 8 / u64::from(r2q.max(1))).clamp(1000, 200_000);
    Ok(HtbClass {
        minor,
        parent,
        rate_bps,
        ceil_bps: ceil.unwrap_or(rate_bps),
        burst_bytes: burst.unwrap_or(usual),
        cburst_bytes: cburst.unwrap_or(usual),
        quantum_bytes: quantum.unwrap_or(u32::try_from(by_rate).unwrap_or(200_000)),
        prio,
        overhead_bytes: overhead,
        mpu_bytes: mpu,
        limit: Limit::Packets(port.packets),
        table: tick
            .filter(|tick| *tick > Span::ZERO)
            .map(|tick| RateTable { mtu_bytes, tick }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::{Options, parse};

    /// As sch_htb has it.
    #[test]
    fn the_priorities_of_htb_end_with_the_last() {
        let prio = |number: &str| {
            let text = format!(
                "name = \"t\"\ntitle = \"t\"\nduration = \"10ms\"\n[[host]]\nname = \"tx\"\n\
                 [[host]]\nname = \"rx\"\n[[cable]]\nname = \"wire\"\nrate = \"1gbit\"\n\
                 ends = [\"tx:eth0\", \"rx:eth0\"]\n[[tc]]\nhost = \"tx\"\n\
                 lines = [\"class add dev eth0 htb rate 1mbit prio {number}\"]\n"
            );
            let scenario = parse("t.toml", &text, &Options::default()).unwrap();
            let port = Port {
                line_bps: 1_000_000_000,
                frame_bytes: 1514,
                packets: 1000,
            };
            let (_, mut tokens) = TcTokens::of(&scenario.cells[0].tc[0]).unwrap();
            htb(&mut tokens, (1, None), 10, port).unwrap().prio
        };
        assert_eq!(["0", "7", "8", "4000000000"].map(prio), [0, 7, 7, 7]);
    }
}
