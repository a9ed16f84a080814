// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `tc filter`: u32 and flower, as far as they match addresses and ports.

use std::net::Ipv4Addr;

use super::refusal::Refusal;
use super::tc_tokens::TcTokens;
use crate::filter::Filter;
use crate::packet::Proto;

const U32: &str = "`match ip src|dst NET`, `match ip sport|dport PORT MASK`, \
                   `match ip protocol NUMBER MASK` and `classid`";
const FLOWER: &str = "`ip_proto`, `src_ip`, `dst_ip`, `src_port`, `dst_port` and `classid`";

/// Smallest preference that the kernel takes for one of its own, and the first that it gives.
const OWN_PREF: u32 = 0x8000;
const FIRST_OWN_PREF: u32 = 0xc000;

/// Reads what follows the kind of a filter.
pub(super) fn read(kind: &str, tokens: &mut TcTokens<'_>, major: u32) -> Result<Filter, Refusal> {
    match kind {
        "u32" => u32_filter(tokens, major),
        "flower" => flower(tokens, major),
        other => Err(tokens.unknown("a filter", other, "u32 and flower")),
    }
}

/// Returns the preference that the kernel gives a filter without one: it is asked before those that
/// had none before it (`tcf_auto_prio()`). `filters` are in order of their preference.
pub(super) fn allocated(filters: &[(u32, Filter)]) -> u32 {
    let mut prefs = filters.iter().map(|(pref, _)| *pref);
    let first = prefs.find(|pref| *pref >= OWN_PREF);
    first.map_or(FIRST_OWN_PREF, |pref| pref - 1)
}

/// The filters in order of their preference.
pub(super) fn without_preference(filters: Vec<(u32, Filter)>) -> Vec<Filter> {
    filters.into_iter().map(|(_, filter)| filter).collect()
}

fn class(tokens: &mut TcTokens<'_>, major: u32) -> Result<u32, Refusal> {
    match tokens.handle("classid")? {
        (found, minor) if found == major => Ok(minor),
        (found, _) => Err(tokens.refuse(format!(
            "tc: the filter names a class of {found:x}:, expected one of {major:x}:"
        ))),
    }
}

fn u32_filter(tokens: &mut TcTokens<'_>, major: u32) -> Result<Filter, Refusal> {
    let mut filter = Filter::default();
    while let Some(word) = tokens.next() {
        match word {
            "classid" | "flowid" => filter.minor = class(tokens, major)?,
            "match" => {
                tokens.one_of("match", &[("ip", ())])?;
                match tokens.word("what to match")? {
                    "src" => filter.src = Some(net(tokens)?),
                    "dst" => filter.dst = Some(net(tokens)?),
                    "sport" => filter.sport = Some(port(tokens)?),
                    "dport" => filter.dport = Some(port(tokens)?),
                    "protocol" => {
                        let number = tokens.number("protocol")?;
                        mask(tokens, 0xff)?;
                        filter.proto = Some(proto(tokens, number)?);
                    }
                    other => return Err(tokens.unknown("u32", other, U32)),
                }
            }
            other => return Err(tokens.unknown("u32", other, U32)),
        }
    }
    Ok(filter)
}

fn flower(tokens: &mut TcTokens<'_>, major: u32) -> Result<Filter, Refusal> {
    let mut filter = Filter::default();
    while let Some(word) = tokens.next() {
        match word {
            "classid" | "flowid" => filter.minor = class(tokens, major)?,
            "ip_proto" => {
                let known = [("tcp", Proto::Tcp), ("udp", Proto::Udp)];
                filter.proto = Some(tokens.one_of("ip_proto", &known)?);
            }
            "src_ip" => filter.src = Some(net(tokens)?),
            "dst_ip" => filter.dst = Some(net(tokens)?),
            "src_port" => filter.sport = Some((lone_port(tokens)?, u16::MAX)),
            "dst_port" => filter.dport = Some((lone_port(tokens)?, u16::MAX)),
            other => return Err(tokens.unknown("flower", other, FLOWER)),
        }
    }
    Ok(filter)
}

fn proto(tokens: &TcTokens<'_>, number: u32) -> Result<Proto, Refusal> {
    match number {
        6 => Ok(Proto::Tcp),
        17 => Ok(Proto::Udp),
        _ => Err(tokens.unknown("u32", &format!("protocol {number}"), "6 and 17")),
    }
}

fn lone_port(tokens: &mut TcTokens<'_>) -> Result<u16, Refusal> {
    let number = tokens.number("a port")?;
    u16::try_from(number).map_err(|_| tokens.refuse(format!("tc: {number} is no port")))
}

fn port(tokens: &mut TcTokens<'_>) -> Result<(u16, u16), Refusal> {
    let port = lone_port(tokens)?;
    let mask = mask(tokens, 0xffff)?;
    // It was asked to be within 16 bits.
    Ok((port, mask as u16))
}

fn mask(tokens: &mut TcTokens<'_>, most: u32) -> Result<u32, Refusal> {
    let word = tokens.word("a mask")?;
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let mask = u32::from_str_radix(digits, 16).ok();
    mask.filter(|mask| *mask <= most)
        .ok_or_else(|| tokens.refuse(format!("tc: {word:?} is no mask of at most {most:#x}")))
}

fn net(tokens: &mut TcTokens<'_>) -> Result<(Ipv4Addr, u32), Refusal> {
    let word = tokens.word("a network")?;
    let (address, length) = word.split_once('/').unwrap_or((word, "32"));
    let read = || {
        let length: u32 = length.parse().ok().filter(|length| *length <= 32)?;
        let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
        Some((address.parse().ok()?, mask))
    };
    read().ok_or_else(|| tokens.refuse(format!("tc: {word:?} is no IPv4 network")))
}
