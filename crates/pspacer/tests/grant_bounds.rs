// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bound that a manager grants, beside what psp does with networks that equal streams fill, in the
//! simulator.

use std::fmt::Write as _;
use std::fs;

use admission::{Medium, NodeSpec, SegmentSpec, Topology};
use proptest::prelude::*;
use serde_json::Value;

use crate::common::{Folder, pspacer, text};

const RATE_BPS: u64 = 100_000_000;
const PERIOD_BYTES: u64 = 125_000;
/// A full frame on the wire, and its payload of UDP.
const FRAME_BYTES: u64 = 1_538;
const PAYLOAD_BYTES: u64 = 1_472;
/// A period, in microseconds.
const PERIOD_US: u64 = 10_000;

/// A stream that enters the row of hosts at `first`, and sends at this phase of the period.
#[derive(Clone, Copy, Debug)]
struct Stream {
    first: usize,
    phase_us: u64,
}

/// Returns streams over up to four hops, and the phase of each host's periods.
fn networks() -> impl Strategy<Value = (Vec<Stream>, Vec<u64>)> {
    (1..5_usize).prop_flat_map(|hops| {
        let phase = prop_oneof![0..PERIOD_US, Just(0), Just(PERIOD_US - 1)];
        let stream = (0..hops, phase).prop_map(|(first, phase_us)| Stream { first, phase_us });
        let streams = prop::collection::vec(stream, 2..9);
        (streams, prop::collection::vec(0..PERIOD_US, hops))
    })
}

/// Returns the scenario: hosts in a row, whose psp is as agents make it, full streams from where they
/// enter to the last host, and at each hop best effort that is never silent.
fn scenario(streams: &[Stream], aligns_us: &[u64], frames: u64) -> String {
    let mut out =
        "name = \"bounds\"\ntitle = \"t\"\nsource = \"t\"\nduration = \"1s\"\n".to_owned();
    let hops = aligns_us.len();
    for host in 0..=hops {
        write!(out, "[[host]]\nname = \"h{host}\"\n").unwrap();
    }
    // The last cable first: there all streams are measured.
    for hop in (0..hops).rev() {
        let ends = format!("[\"h{hop}:eth1\", \"h{}:eth0\"]", hop + 1);
        write!(
            out,
            "[[cable]]\nname = \"c{hop}\"\nends = {ends}\nrate = \"100mbit\"\n"
        )
        .unwrap();
    }
    let reserve_bytes = frames * FRAME_BYTES;
    for (hop, align_us) in aligns_us.iter().enumerate() {
        let here = || (0..).zip(streams).filter(|(_, of)| of.first <= hop);
        let left_bytes = PERIOD_BYTES - reserve_bytes * here().count() as u64;
        let psp = format!("period 10ms budget {PERIOD_BYTES} align {align_us}us");
        let mut lines = vec![
            format!("qdisc add dev eth1 root handle 1: psp default 99 mode timer {psp}"),
            format!("class add dev eth1 parent 1: classid 1:99 psp mode nrt reserve {left_bytes}"),
        ];
        for (n, _) in here() {
            let class = n + 1;
            lines.push(format!(
                "class add dev eth1 parent 1: classid 1:{class} psp mode rt reserve {reserve_bytes}"
            ));
            lines.push(format!(
                "filter add dev eth1 parent 1: protocol ip pref 1 u32 match ip dport {} 0xffff \
                 classid 1:{class}",
                6_000 + n
            ));
        }
        write!(out, "[[tc]]\nhost = \"h{hop}\"\nlines = {lines:?}\n").unwrap();
    }
    let mut flow = |name: String, from: usize, to: usize, port: u64, more: String| {
        write!(
            out,
            "[[flow]]\nname = \"{name}\"\ntype = \"udp\"\nfrom = \"h{from}\"\nto = \"h{to}\"\n\
             port = {port}\npayload = \"{PAYLOAD_BYTES}b\"\n{more}\n"
        )
        .unwrap();
    };
    for (n, Stream { first, phase_us }) in (0..).zip(streams) {
        let rate_bps = frames * PAYLOAD_BYTES * 8 * 100;
        let start_us = 5 * PERIOD_US + phase_us;
        let more = format!("batch = {frames}\nrate = \"{rate_bps}bit\"\nstart = \"{start_us}us\"");
        flow(format!("{first}-{n}"), *first, hops, 6_000 + n, more);
    }
    for hop in 0..hops {
        flow(
            format!("nrt{hop}"),
            hop,
            hop + 1,
            5_000,
            "rate = \"max\"".to_owned(),
        );
    }
    out
}

/// Fills the network with the streams, as far as frames of all fit, and simulates it. Returns what a hop counts in a grant, and of
/// each stream the longest that a packet waited; nothing may be lost.
fn worst_waits_us(folder: &Folder, streams: &[Stream], aligns_us: &[u64]) -> (f64, Vec<f64>) {
    let segment = SegmentSpec::new("s", Medium::Switched, RATE_BPS, &["a", "b"]);
    let hop_us = segment.hop_ns() as f64 / 1e3;
    let nodes = ["a", "b"].map(|name| NodeSpec {
        name: name.to_owned(),
        is_router: false,
    });
    let topology = Topology::new(&nodes, &[segment]).unwrap();
    let frames = topology.links()[0].budget_bytes / FRAME_BYTES / streams.len() as u64;
    let file = folder.at("scenario.toml");
    fs::write(&file, scenario(streams, aligns_us, frames)).unwrap();
    let out = pspacer(&["sim", "run", &file, "--out", &folder.at("out")]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let result: Value = serde_json::from_slice(&folder.read("out/result.json")).unwrap();
    let flows = result["cells"][0]["windows"][0]["flows"]
        .as_array()
        .unwrap();
    let waits = streams.iter().enumerate().map(|(n, Stream { first, .. })| {
        let name = format!("{first}-{n}");
        let flow = flows.iter().find(|flow| flow["name"] == name.as_str());
        let flow = flow.unwrap();
        assert_eq!(flow["dropped"], 0, "{flow}");
        assert!(flow["frames"].as_u64() > Some(80 * frames), "{flow}");
        flow["wait_max_us"].as_f64().unwrap()
    });
    (hop_us, waits.collect())
}

/// A period and a slot of 1 ms, which was granted once, is less than a full link takes.
#[test]
fn a_full_link_takes_a_period_and_nearly_the_share_of_streams() {
    let folder = Folder::new("grant-bounds-full");
    let stream = |phase_us| Stream { first: 0, phase_us };
    let (hop_us, waits_us) = worst_waits_us(&folder, &[stream(0), stream(5_000)], &[1_000]);
    assert_eq!(hop_us, 18_000.0);
    let worst_us = waits_us.into_iter().fold(0.0, f64::max);
    assert!((16_000.0..17_000.0).contains(&worst_us), "{worst_us}");
}

proptest! {
    #![proptest_config(testkit::cases(12))]

    #[test]
    fn what_is_granted_is_kept_where_all_is_reserved((streams, aligns_us) in networks()) {
        let (hop_us, waits_us) = worst_waits_us(&Folder::new("grant-bounds"), &streams, &aligns_us);
        for (Stream { first, .. }, worst_us) in streams.iter().zip(waits_us) {
            let bound_us = hop_us * (aligns_us.len() - first) as f64;
            prop_assert!(worst_us <= bound_us, "from {first}: {worst_us} of {bound_us}");
        }
    }
}
