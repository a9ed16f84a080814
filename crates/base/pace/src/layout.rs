// SPDX-License-Identifier: MIT OR Apache-2.0
//! Declares the core's structs and enumerators that Rust passes by value or reads.
//!
//! Sizes and offsets are stated here and in shim.c; each compiler checks its own side against
//! them.

use std::mem::offset_of;

/// `enum pace_error` as an integer, because the core's compiler chose its size.
pub(crate) type ErrorCode = u32;

/// Opaque: `struct pace_sched`.
#[repr(C)]
pub(crate) struct RawSched {
    _private: [u8; 0],
}

/// Opaque: `struct pace_class`.
#[repr(C)]
pub(crate) struct RawClass {
    _private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawConfig {
    pub line_rate_bps: u64,
    pub overhead_bytes: u32,
    pub min_frame_bytes: u32,
    pub max_frame_bytes: u32,
    pub max_burst_bytes: u32,
    pub link_header_bytes: u32,
    pub layer: u32,
    pub order: u32,
    pub mode: u32,
    pub guard_band: bool,
    pub aligned: bool,
    pub period_ns: u64,
    pub budget_bytes: u64,
    pub align_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawClassConfig {
    pub class_type: u32,
    pub launches: bool,
    pub rate_bps: u64,
    pub ceil_bps: u64,
    pub quantum_bytes: u32,
    pub reserve_bytes: u64,
    pub reservation: *mut RawReservation,
}

impl RawClassConfig {
    pub const NONE: Self = RawClassConfig {
        class_type: TYPE_PACED,
        launches: false,
        rate_bps: 0,
        ceil_bps: 0,
        quantum_bytes: 0,
        reserve_bytes: 0,
        reservation: std::ptr::null_mut(),
    };
}

/// `struct pace_burst`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawBurst {
    pub len_bytes: u32,
    pub frames: u32,
    pub wire_bytes: u32,
}

#[repr(C)]
pub(crate) struct RawDecision {
    pub verdict: u32,
    pub cls: *mut RawClass,
    pub gap_bytes: u32,
    pub until_ns: u64,
    pub late_ps: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct RawStats {
    pub sent_frames: u64,
    pub sent_wire_bytes: u64,
    pub gap_frames: u64,
    pub gap_wire_bytes: u64,
    pub early_max_ps: u64,
    pub late_max_ps: u64,
    pub rebases: u64,
    pub rebased_ps: u64,
    pub borrowed_frames: u64,
    pub guard_band_held: u64,
    pub waits: u64,
    pub wait_late_max_ns: u64,
    pub lead_ns: u64,
    pub periods: u64,
    pub periods_spent: u64,
    pub rt_over: u64,
    pub rt_deferred: u64,
    pub rt_overrun: u64,
    pub rt_catchup_bytes: u64,
    pub nrt_deferred: u64,
    pub rt_excess: u64,
}

/// `struct pace_reservation`: the core writes it, Rust reads it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct RawReservation {
    _reserve_bytes: u64,
    _period: u64,
    _left_bytes: i64,
    _late_left_bytes: i64,
    _credit_bytes: i64,
    _backlog_wire_bytes: u64,
    _gated_wire_bytes: u64,
    _ring: u8,
    pub over: u64,
    pub deferred: u64,
    pub overrun: u64,
    pub excess: u64,
    pub catchup_bytes: u64,
}

macro_rules! layout {
    ($type:ident, $bytes:literal: $($field:ident $at:literal),+) => {
        const _: () = {
            assert!(size_of::<$type>() == $bytes);
            $(assert!(offset_of!($type, $field) == $at);)+
        };
    };
}

layout!(
    RawConfig,
    72: line_rate_bps 0,
    overhead_bytes 8,
    min_frame_bytes 12,
    max_frame_bytes 16,
    max_burst_bytes 20,
    link_header_bytes 24,
    layer 28,
    order 32,
    mode 36,
    guard_band 40,
    aligned 41,
    period_ns 48,
    budget_bytes 56,
    align_ns 64
);
layout!(
    RawClassConfig,
    48: class_type 0,
    launches 4,
    rate_bps 8,
    ceil_bps 16,
    quantum_bytes 24,
    reserve_bytes 32,
    reservation 40
);
layout!(
    RawReservation,
    104: _reserve_bytes 0,
    _period 8,
    _left_bytes 16,
    _late_left_bytes 24,
    _credit_bytes 32,
    _backlog_wire_bytes 40,
    _gated_wire_bytes 48,
    _ring 56,
    over 64,
    deferred 72,
    overrun 80,
    excess 88,
    catchup_bytes 96
);
layout!(RawBurst, 12: len_bytes 0, frames 4, wire_bytes 8);
layout!(
    RawDecision,
    40: verdict 0,
    cls 8,
    gap_bytes 16,
    until_ns 24,
    late_ps 32
);
layout!(
    RawStats,
    168: sent_frames 0,
    sent_wire_bytes 8,
    gap_frames 16,
    gap_wire_bytes 24,
    early_max_ps 32,
    late_max_ps 40,
    rebases 48,
    rebased_ps 56,
    borrowed_frames 64,
    guard_band_held 72,
    waits 80,
    wait_late_max_ns 88,
    lead_ns 96,
    periods 104,
    periods_spent 112,
    rt_over 120,
    rt_deferred 128,
    rt_overrun 136,
    rt_catchup_bytes 144,
    nrt_deferred 152,
    rt_excess 160
);

// As `enum pace_error` and the others are for the C compiler.
const _: () = assert!(size_of::<ErrorCode>() == 4);

macro_rules! values {
    ($($name:ident $value:literal,)+) => {
        $(pub(crate) const $name: u32 = $value;)+
        #[cfg(test)]
        pub(crate) const VALUES: [u32; [$($value),+].len()] = [$($value),+];
    };
}

// The order is that of shim.c; a test in ffi.rs compares both.
values! {
    LAYER_LINK 0,
    LAYER_WIRE 1,
    LAYER_IP 2,
    ORDER_CLOCK 0,
    ORDER_RATE 1,
    ORDER_NEXT 2,
    MODE_GAP 0,
    MODE_TIMER 1,
    MODE_HYBRID 2,
    TYPE_PACED 0,
    TYPE_NORMAL 1,
    TYPE_RT 2,
    TYPE_NRT 3,
    SEND 1,
    GAP 2,
    WAIT 3,
    ERR_LINE_RATE 1,
    ERR_RATE_ZERO 2,
    ERR_RATE_LINE 3,
    ERR_RATE_LOW 4,
    ERR_FRAME 5,
    ERR_OVERHEAD 6,
    ERR_FULL 7,
    ERR_BUSY 8,
    ERR_QUANTUM 9,
    ERR_CEIL 10,
    ERR_BURST 11,
    ERR_PERIOD 12,
    ERR_BUDGET 13,
    ERR_RESERVE 14,
    ERR_RESERVED 15,
}
