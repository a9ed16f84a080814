// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures made to order, in either byte order.
#![allow(dead_code)] // Each test file uses its own part of this.

use etherparse::PacketBuilder;

/// Byte order of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    Little,
    Big,
}

pub const ORDERS: [Order; 2] = [Order::Little, Order::Big];

impl Order {
    pub fn u16(self, v: u16) -> [u8; 2] {
        if self == Self::Little {
            v.to_le_bytes()
        } else {
            v.to_be_bytes()
        }
    }
    pub fn u32(self, v: u32) -> [u8; 4] {
        if self == Self::Little {
            v.to_le_bytes()
        } else {
            v.to_be_bytes()
        }
    }
    pub fn u64(self, v: u64) -> [u8; 8] {
        if self == Self::Little {
            v.to_le_bytes()
        } else {
            v.to_be_bytes()
        }
    }
}

/// A UDP frame of 60 + `extra` bytes to port `dport`.
pub fn udp(dport: u16, extra: usize) -> Vec<u8> {
    let mut out = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4([10, 1, 1, 1], [10, 1, 2, 1], 64)
        .udp(40000, dport)
        .write(&mut out, &vec![0; 18 + extra])
        .unwrap();
    out
}

/// A PAUSE frame of 60 bytes.
pub fn pause() -> Vec<u8> {
    let mut out = vec![1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08, 0, 1];
    out.resize(60, 0);
    out
}

/// A pcap file; times are in its own unit after whole seconds.
pub fn pcap(order: Order, nanos: bool, packets: &[(u32, u32, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(order.u32(if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }));
    out.extend(order.u16(2));
    out.extend(order.u16(4));
    for word in [0, 0, 65535, 1] {
        out.extend(order.u32(word));
    }
    for (seconds, fraction, bytes) in packets {
        let length = bytes.len() as u32;
        for word in [*seconds, *fraction, length, length] {
            out.extend(order.u32(word));
        }
        out.extend(bytes);
    }
    out
}

/// A pcapng block.
pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = order.u32(body.len() as u32 + 12);
    [&order.u32(kind)[..], &length, &body, &length].concat()
}

/// A pcapng section header.
pub fn section(order: Order) -> Vec<u8> {
    let body = [
        &order.u32(0x1a2b_3c4d)[..],
        &order.u16(1),
        &order.u16(0),
        &order.u64(u64::MAX),
    ]
    .concat();
    block(order, 0x0a0d_0d0a, &body)
}

/// An interface whose clock is given by `if_tsresol` and `if_tsoffset`.
pub fn interface(order: Order, link: u16, tsresol: u8, tsoffset: i64) -> Vec<u8> {
    let body = [
        &order.u16(link)[..],
        &order.u16(0),
        &order.u32(0),
        &order.u16(9),
        &order.u16(1),
        &[tsresol, 0, 0, 0],
        &order.u16(14),
        &order.u16(8),
        &order.u64(tsoffset as u64),
        &[0; 4],
    ]
    .concat();
    block(order, 1, &body)
}

/// An enhanced packet.
pub fn packet(order: Order, interface: u32, timestamp: u64, bytes: &[u8]) -> Vec<u8> {
    let length = order.u32(bytes.len() as u32);
    let body = [
        &order.u32(interface)[..],
        &order.u32((timestamp >> 32) as u32),
        &order.u32(timestamp as u32),
        &length,
        &length,
        bytes,
    ]
    .concat();
    block(order, 6, &body)
}

/// Three interfaces: nanoseconds; 2^-10 s from 2 s on, of "cooked" packets;
/// and one of an unknown link type.
pub fn pcapng_two_clocks(order: Order) -> Vec<u8> {
    let frame = udp(5001, 0);
    let cooked = [&[0; 14][..], &frame[12..]].concat();
    [
        section(order),
        interface(order, 1, 9, 0),
        interface(order, 113, 0x80 | 10, 2),
        interface(order, 147, 6, 0),
        packet(order, 0, 2_000_001_000, &frame),
        packet(order, 2, 5, &frame),
        // A block of a kind to be skipped: statistics.
        block(order, 5, &[0; 12]),
        packet(order, 1, 512, &cooked),
    ]
    .concat()
}
