// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defect 2 of paper 001: orders of blocks in which the sort loses one.

use crate::tcp::SackBlock;
use crate::tcp::sender::sack_memory::sort;
use crate::tcp::variant::SackSort;

/// Sorts blocks whose ranks by start are `wire`, in wire order.
fn sorted(wire: &[u64], how: SackSort) -> Vec<u64> {
    let blocks: Vec<SackBlock> = wire
        .iter()
        .map(|&rank| SackBlock {
            start: rank * 10,
            end: rank * 10 + 5,
        })
        .collect();
    let mut out = blocks.clone();
    sort(&mut out, &blocks, how);
    out.iter().map(|block| block.start / 10).collect()
}

fn orders(count: u64) -> Vec<Vec<u64>> {
    if count == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for shorter in orders(count - 1) {
        for at in 0..=shorter.len() {
            let mut order = shorter.clone();
            order.insert(at, count);
            all.push(order);
        }
    }
    all
}

#[test]
fn three_blocks() {
    let expected: [([u64; 3], [u64; 3]); 6] = [
        ([1, 2, 3], [1, 2, 3]),
        ([1, 3, 2], [1, 2, 3]),
        ([2, 1, 3], [1, 2, 3]),
        ([2, 3, 1], [3, 2, 3]),
        ([3, 1, 2], [1, 2, 1]),
        ([3, 2, 1], [2, 3, 2]),
    ];
    for (wire, result) in expected {
        assert_eq!(sorted(&wire, SackSort::LosesBlocks), result, "{wire:?}");
    }
}

#[test]
fn nineteen_orders_of_four_blocks_are_sorted_wrongly() {
    let wrong = |count: u64| {
        let right: Vec<u64> = (1..=count).collect();
        orders(count)
            .iter()
            .filter(|wire| sorted(wire, SackSort::LosesBlocks) != right)
            .count()
    };
    assert_eq!([1, 2, 3, 4].map(wrong), [0, 0, 3, 19]);
}

#[test]
fn the_repaired_sort_is_right_for_all_orders() {
    for count in 1..=4 {
        let right: Vec<u64> = (1..=count).collect();
        for wire in orders(count) {
            assert_eq!(sorted(&wire, SackSort::Right), right);
        }
    }
}
