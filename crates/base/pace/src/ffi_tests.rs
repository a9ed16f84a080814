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

/// Two classes that wait for their second frames, of which the second has become inactive, and
/// active again, so often.
fn left_and_came_back(capacity: u32, times: u32) -> Port {
    let timer = RawConfig { mode: 1, ..CONFIG };
    let mut port = Port::new(&timer, capacity, 0).unwrap();
    for slot in 0..2 {
        port.add(&PACED).unwrap();
        port.activate(slot, 0).unwrap();
    }
    let mut now_ns = 0;
    for slot in 0..2 {
        now_ns += 100_000;
        assert_eq!(port.next(now_ns).1, Some(slot));
        port.sent(slot, 1514, true, now_ns).unwrap();
    }
    for _ in 0..times {
        port.deactivate(1, now_ns).unwrap();
        port.activate(1, now_ns).unwrap();
    }
    port
}

#[test]
fn storage_too_small_for_the_keys_left_behind_is_handed_back() {
    for (times, capacity) in [(0, 2), (16, 2), (17, 100), (60, 100)] {
        let mut port = left_and_came_back(100, times);
        port.grow(2);
        assert_eq!(port.capacity(), capacity, "{times} keys and 2");
    }
}

/// The queue of two has room for 18 keys. While it has keys that were left behind, a frame takes the
/// longer path, which does not say at once that all wait; when they have been dropped, it does not.
#[test]
fn keys_left_behind_are_counted_until_they_are_dropped() {
    for (times, is_short) in [(0, true), (16, false), (17, true)] {
        let mut port = left_and_came_back(2, times);
        let now_ns = 12_500_000;
        for slot in 0..2 {
            assert_eq!(port.next(now_ns + u64::from(slot) * 20_000).1, Some(slot));
            port.sent(slot, 1514, true, now_ns + u64::from(slot) * 20_000)
                .unwrap();
        }
        assert_eq!(port.is_quiet(), is_short, "{times} times");
    }
}
