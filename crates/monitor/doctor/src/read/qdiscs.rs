// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the options of the kernel's own qdiscs say, as the structures of linux/pkt_sched.h have them.

use tcpsp::attribute;
use units::ethernet;

use super::netlink;

/// The attribute with the structure of etf, and of tbf.
const PARAMETERS: u16 = 1;
/// The attribute of an fq that `nopacing` sets to 0.
const FQ_RATE_ENABLE: u16 = 5;
/// Ticks of the kernel's packet scheduler are of 64 ns.
const TICK_NS: u64 = 64;

/// Returns whether the NIC launches the frames of an etf: a flag of struct tc_etf_qopt.
pub(super) fn etf_is_offloaded(options: &[u8]) -> Option<bool> {
    const OFFLOAD: u32 = 2;
    // delta, clockid, flags.
    Some(word(&parameters(options)?, 2)? & OFFLOAD != 0)
}

/// Returns whether an fq keeps the rates of sockets: not with `nopacing`. Launch times it keeps anyway.
pub(super) fn fq_keeps_rates(options: &[u8]) -> bool {
    let attributes = attribute::read(options);
    let is_enabled = netlink::value(&attributes, FQ_RATE_ENABLE);
    is_enabled.and_then(|value| word(value, 0)) != Some(0)
}

/// Returns why a qdisc drops all packets, or all full ones, if its options are such.
pub(super) fn drops_all(kind: &str, options: &[u8], mtu_bytes: usize) -> Option<String> {
    match kind {
        "pfifo" | "bfifo" => {
            (word(options, 0)? == 0).then(|| "its limit is 0: it drops every packet".to_owned())
        }
        "etf" => (word(&parameters(options)?, 0)? == 0).then(|| {
            "its delta is 0: each packet leaves its queue too late, and is dropped".to_owned()
        }),
        "tbf" => {
            // struct tc_tbf_qopt: rate and peakrate of 3 words each, of which the last is bytes a
            // second, limit, then the time of the burst.
            let parameters = parameters(options)?;
            let (bytes_s, ticks) = (word(&parameters, 2)?, word(&parameters, 7)?);
            // A rate that needs more bits stands elsewhere; its burst is long.
            (bytes_s != u32::MAX).then_some(())?;
            let burst_bytes = u64::from(bytes_s) * u64::from(ticks) * TICK_NS / 1_000_000_000;
            let full_bytes = (mtu_bytes + ethernet::HEADER_BYTES as usize) as u64;
            // Ticks cut what is below one.
            let lost_bytes = u64::from(bytes_s) * TICK_NS / 1_000_000_000 + 1;
            (burst_bytes + lost_bytes < full_bytes).then(|| {
                format!(
                    "its burst is {burst_bytes} bytes, less than a frame of {full_bytes}: it drops \
                     every full one"
                )
            })
        }
        _ => None,
    }
}

fn parameters(options: &[u8]) -> Option<Vec<u8>> {
    netlink::value(&attribute::read(options), PARAMETERS).map(<[u8]>::to_vec)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(4 * at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An attribute with these words.
    fn attribute(kind: u16, words: &[u32]) -> Vec<u8> {
        let bytes = u16::try_from(4 + 4 * words.len()).unwrap();
        let head = [bytes, kind].map(u16::to_ne_bytes).concat();
        let words = words.iter().flat_map(|word| word.to_ne_bytes());
        head.into_iter().chain(words).collect()
    }

    #[test]
    fn etf_says_whether_the_nic_launches() {
        let options = |flags: u32| attribute(1, &[300_000, 11, flags]);
        assert_eq!(etf_is_offloaded(&options(0)), Some(false));
        assert_eq!(etf_is_offloaded(&options(2)), Some(true));
        assert_eq!(etf_is_offloaded(&options(2)[..12]), None);
        assert_eq!(etf_is_offloaded(&[]), None);
    }

    #[test]
    fn an_fq_with_nopacing_keeps_no_rates() {
        let limit = attribute(1, &[10_000]);
        let of = |enabled| fq_keeps_rates(&[limit.clone(), attribute(5, &[enabled])].concat());
        assert_eq!([of(0), of(1), fq_keeps_rates(&limit)], [false, true, true]);
    }

    #[test]
    fn what_drops_all_is_told_from_what_does_not() {
        let of = |kind, options: &[u8]| drops_all(kind, options, 1500);
        for kind in ["pfifo", "bfifo"] {
            assert!(of(kind, &0u32.to_ne_bytes()).is_some());
            assert_eq!(of(kind, &1000u32.to_ne_bytes()), None);
        }
        assert!(of("etf", &attribute(1, &[0, 11, 0])).is_some());
        assert_eq!(of("etf", &attribute(1, &[300_000, 11, 0])), None);
        // `tbf rate 100mbit burst N`: N bytes last N / 12,500,000 s, in ticks of 64 ns.
        let tbf = |burst_bytes: u32| {
            let ticks = u64::from(burst_bytes) * 1_000_000_000 / 12_500_000 / TICK_NS;
            let ticks = u32::try_from(ticks).unwrap();
            attribute(1, &[0, 0, 12_500_000, 0, 0, 0, 100_000, ticks, 0])
        };
        assert!(of("tbf", &tbf(1500)).unwrap().contains("a frame of 1514"));
        assert_eq!(of("tbf", &tbf(1514)), None);
        assert_eq!(of("tbf", &tbf(1600)), None);
        for kind in ["pfifo", "etf", "tbf", "fq"] {
            assert_eq!(of(kind, &[]), None, "{kind}");
        }
    }
}
