// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tc filter`: u32 and flower, as far as they ask for addresses and ports.

use std::net::Ipv4Addr;

use super::Refusal;
use super::words::Words;
use crate::filter::Filter;
use crate::packet::Proto;

const U32: &str = "`match ip src|dst NET`, `match ip sport|dport PORT MASK`, \
                   `match ip protocol NUMBER MASK` and `classid`";
const FLOWER: &str = "`ip_proto`, `src_ip`, `dst_ip`, `src_port`, `dst_port` and `classid`";

/// The rest of a line after `filter add dev DEV parent MAJOR:`: its preference
/// and the filter.
pub(super) fn read(words: &mut Words<'_>, major: u32) -> Result<(u32, Filter), Refusal> {
    let mut pref = u32::MAX;
    loop {
        match words.word("a kind of filter")? {
            "protocol" => {
                words.one_of("protocol", &[("ip", ()), ("all", ())])?;
            }
            "pref" | "prio" => pref = words.number("pref")?,
            "handle" => {
                words.word("handle")?;
            }
            "u32" => return Ok((pref, u32_filter(words, major)?)),
            "flower" => return Ok((pref, flower(words, major)?)),
            other => return Err(words.unknown("a filter", other, "u32 and flower")),
        }
    }
}

fn class(words: &mut Words<'_>, major: u32) -> Result<u32, Refusal> {
    match words.handle("classid")? {
        (found, minor) if found == major => Ok(minor),
        (found, _) => Err(words.refuse(format!(
            "tc: the filter names a class of {found:x}:, expected one of {major:x}:"
        ))),
    }
}

fn u32_filter(words: &mut Words<'_>, major: u32) -> Result<Filter, Refusal> {
    let mut filter = Filter::default();
    while let Some(word) = words.next() {
        match word {
            "classid" | "flowid" => filter.minor = class(words, major)?,
            "match" => {
                words.one_of("match", &[("ip", ())])?;
                match words.word("what to match")? {
                    "src" => filter.src = Some(net(words)?),
                    "dst" => filter.dst = Some(net(words)?),
                    "sport" => filter.sport = Some(port(words)?),
                    "dport" => filter.dport = Some(port(words)?),
                    "protocol" => {
                        let number = words.number("protocol")?;
                        mask(words, 0xff)?;
                        filter.proto = Some(proto(words, number)?);
                    }
                    other => return Err(words.unknown("u32", other, U32)),
                }
            }
            other => return Err(words.unknown("u32", other, U32)),
        }
    }
    Ok(filter)
}

fn flower(words: &mut Words<'_>, major: u32) -> Result<Filter, Refusal> {
    let mut filter = Filter::default();
    while let Some(word) = words.next() {
        match word {
            "classid" | "flowid" => filter.minor = class(words, major)?,
            "ip_proto" => {
                let known = [("tcp", Proto::Tcp), ("udp", Proto::Udp)];
                filter.proto = Some(words.one_of("ip_proto", &known)?);
            }
            "src_ip" => filter.src = Some(net(words)?),
            "dst_ip" => filter.dst = Some(net(words)?),
            "src_port" => filter.sport = Some((lone_port(words)?, u16::MAX)),
            "dst_port" => filter.dport = Some((lone_port(words)?, u16::MAX)),
            other => return Err(words.unknown("flower", other, FLOWER)),
        }
    }
    Ok(filter)
}

fn proto(words: &Words<'_>, number: u32) -> Result<Proto, Refusal> {
    match number {
        6 => Ok(Proto::Tcp),
        17 => Ok(Proto::Udp),
        _ => Err(words.unknown("u32", &format!("protocol {number}"), "6 and 17")),
    }
}

fn lone_port(words: &mut Words<'_>) -> Result<u16, Refusal> {
    let number = words.number("a port")?;
    u16::try_from(number).map_err(|_| words.refuse(format!("tc: {number} is no port")))
}

fn port(words: &mut Words<'_>) -> Result<(u16, u16), Refusal> {
    let port = lone_port(words)?;
    let mask = mask(words, 0xffff)?;
    // It was asked to be within 16 bits.
    Ok((port, mask as u16))
}

fn mask(words: &mut Words<'_>, most: u32) -> Result<u32, Refusal> {
    let word = words.word("a mask")?;
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let mask = u32::from_str_radix(digits, 16).ok();
    mask.filter(|mask| *mask <= most)
        .ok_or_else(|| words.refuse(format!("tc: {word:?} is no mask of at most {most:#x}")))
}

fn net(words: &mut Words<'_>) -> Result<(Ipv4Addr, u32), Refusal> {
    let word = words.word("a network")?;
    let (address, length) = word.split_once('/').unwrap_or((word, "32"));
    let read = || {
        let length: u32 = length.parse().ok().filter(|length| *length <= 32)?;
        let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
        Some((address.parse().ok()?, mask))
    };
    read().ok_or_else(|| words.refuse(format!("tc: {word:?} is no IPv4 network")))
}
