// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the binding that reach what it keeps to itself.

use super::*;

const CONFIG: RawConfig = RawConfig {
    line_rate_bps: 1_000_000_000,
    overhead_bytes: 24,
    min_frame_bytes: 60,
    max_frame_bytes: 1514,
    max_burst_bytes: 0,
    link_header_bytes: 14,
    layer: 0,
    order: 0,
    mode: 0,
    guard_band: false,
    aligned: false,
    period_ns: 0,
    budget_bytes: 0,
    align_ns: 0,
};
const PACED: RawClassConfig = RawClassConfig {
    rate_bps: 1_000_000,
    ..RawClassConfig::NONE
};

unsafe extern "C" {
    static pace_shim_values: [u32; crate::layout::VALUES.len()];
    static pace_shim_values_count: u32;
}

#[test]
fn enumerators_have_the_values_of_the_core() {
    // SAFETY: constants of shim.c; the second says how long the first is.
    let values = unsafe {
        assert_eq!(pace_shim_values_count as usize, crate::layout::VALUES.len());
        pace_shim_values
    };
    assert_eq!(values, crate::layout::VALUES);
}

#[test]
fn without_a_free_id_the_storage_is_full() {
    let mut port = Port::new(&CONFIG, 2, 0).unwrap();
    assert_eq!(port.add(&PACED), Ok(0));
    assert_eq!(port.add(&PACED), Ok(1));
    assert_eq!(port.add(&PACED), Err(ERR_FULL));
    port.grow(3);
    assert_eq!(port.add(&PACED), Ok(2));
}

#[test]
fn storage_too_small_for_the_ids_in_use_is_handed_back() {
    let mut port = Port::new(&CONFIG, 4, 0).unwrap();
    for _ in 0..3 {
        port.add(&PACED).unwrap();
    }
    port.grow(2);
    assert_eq!(port.capacity(), 4, "nothing has changed");
    assert_eq!(port.add(&PACED), Ok(3));
}

#[test]
fn a_class_is_added_once() {
    let mut port = Port::new(&CONFIG, 4, 0).unwrap();
    let slot = port.add(&PACED).unwrap();
    let class = port.class(slot).unwrap();
    // SAFETY: the class is alive; the core refuses it.
    let err = unsafe { pace_class_add(port.sched(), class, &PACED) };
    assert_eq!(err, ERR_BUSY);
}
