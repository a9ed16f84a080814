// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each rule, tested by a change of a plain pause.

use stall::{Cause, Confidence};

use super::{judge, judge_idle};
use crate::facts::{After, Closed, Evidence, Facts, IdleFacts, Resent, Timeout};

const MS: u64 = 1_000_000;

fn pause() -> Facts {
    Facts {
        start_ns: 1000 * MS,
        end_ns: 1300 * MS,
        closed: Closed::Delivery(1),
        timeouts: 0,
        first_timeout: None,
        first_probe_ns: None,
        tail_probe: false,
        fast: 0,
        idle_acks: 0,
        packets_out: 10,
        mss_bytes: 1448,
        window_bytes: 100_000,
        window_ns: 0,
        srtt_ns: 20 * MS,
        after: After::default(),
        rate_bytes_per_s: 0,
        evidence: Evidence::default(),
    }
}

fn timed_out(timeouts: u32, sacked_out: u32, resent_before: Option<Resent>) -> Facts {
    Facts {
        timeouts,
        first_timeout: Some(Timeout {
            at_ns: 1220 * MS,
            sacked_out,
            resent_before,
        }),
        packets_out: 5,
        ..pause()
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn each_change_of_a_pause_has_its_cause() {
    let closed = Facts {
        packets_out: 0,
        window_bytes: 500,
        window_ns: 290 * MS,
        ..pause()
    };
    let probed = Facts {
        first_probe_ns: Some(1050 * MS),
        ..pause()
    };
    let dsack = After {
        dsacks: 1,
        resent: 0,
    };
    let cases = [
        (
            closed.clone(),
            Cause::ReceiverWindowClosed,
            Confidence::High,
        ),
        (
            Facts {
                closed: Closed::Open,
                ..closed
            },
            Cause::ReceiverWindowClosed,
            Confidence::High,
        ),
        (timed_out(1, 0, None), Cause::RtoTail, Confidence::High),
        (
            timed_out(1, 0, Some(Resent::Probe)),
            Cause::RtoTail,
            Confidence::High,
        ),
        (
            timed_out(1, 2, None),
            Cause::RtoFewDupacks,
            Confidence::High,
        ),
        (timed_out(1, 7, None), Cause::RtoOther, Confidence::Low),
        (
            timed_out(1, 7, Some(Resent::Fast)),
            Cause::RtoLostRetransmission,
            Confidence::High,
        ),
        (
            timed_out(2, 1, None),
            Cause::RtoLostRetransmission,
            Confidence::High,
        ),
        (timed_out(2, 0, None), Cause::SilentPath, Confidence::Medium),
        (timed_out(3, 0, None), Cause::SilentPath, Confidence::High),
        (timed_out(3, 2, None), Cause::RtoStorm, Confidence::High),
        (
            Facts {
                packets_out: 20,
                ..timed_out(1, 0, None)
            },
            Cause::SilentPath,
            Confidence::Medium,
        ),
        (
            Facts {
                after: dsack,
                ..timed_out(1, 0, None)
            },
            Cause::DelaySpike,
            Confidence::Medium,
        ),
        (
            Facts {
                after: dsack,
                closed: Closed::Delivery(5),
                ..timed_out(1, 0, None)
            },
            Cause::AckLoss,
            Confidence::Medium,
        ),
        (probed.clone(), Cause::TailLossProbe, Confidence::High),
        (
            Facts {
                after: dsack,
                ..probed
            },
            Cause::DelaySpike,
            Confidence::Medium,
        ),
        (
            Facts {
                tail_probe: true,
                after: After {
                    dsacks: 0,
                    resent: 2,
                },
                ..pause()
            },
            Cause::TailLossProbe,
            Confidence::High,
        ),
        (
            Facts {
                fast: 2,
                after: dsack,
                ..pause()
            },
            Cause::Reordering,
            Confidence::Medium,
        ),
        (
            Facts { fast: 2, ..pause() },
            Cause::Unknown,
            Confidence::Low,
        ),
        (
            Facts {
                packets_out: 1,
                end_ns: 1061 * MS,
                ..pause()
            },
            Cause::DelayedAck,
            Confidence::High,
        ),
        (
            Facts {
                packets_out: 2,
                end_ns: 1090 * MS,
                ..pause()
            },
            Cause::DelayedAck,
            Confidence::Medium,
        ),
        (pause(), Cause::Unknown, Confidence::Low),
        (
            Facts {
                closed: Closed::End,
                ..pause()
            },
            Cause::Unknown,
            Confidence::Low,
        ),
    ];
    for (facts, cause, confidence) in cases {
        let finding = judge(&facts);
        assert_eq!(
            (finding.cause, finding.confidence),
            (cause, confidence),
            "{facts:?}"
        );
        assert!(!finding.explanation.is_empty());
    }
}

#[test]
fn an_open_window_is_not_named_as_closed() {
    let facts = Facts {
        packets_out: 0,
        window_ns: 290 * MS,
        ..pause()
    };
    assert_eq!(judge(&facts).cause, Cause::Unknown);
}

#[test]
fn an_idle_sender_waits_for_its_application_or_its_peer() {
    let idle = IdleFacts {
        start_ns: 1000 * MS,
        end_ns: 2000 * MS,
        peer_data_ns: 0,
        sent_bytes: 100_000,
        mss_bytes: 1448,
        srtt_ns: 20 * MS,
        window_bytes: 65535,
        rate_bytes_per_s: 0,
        evidence: Evidence::default(),
    };
    for (peer_data_ns, cause) in [
        (0, Cause::Application),
        (900 * MS, Cause::Application),
        (1500 * MS, Cause::Application),
        (1990 * MS, Cause::WaitingForPeer),
        (2003 * MS, Cause::WaitingForPeer),
    ] {
        let facts = IdleFacts {
            peer_data_ns,
            ..idle.clone()
        };
        let finding = judge_idle(&facts).unwrap();
        assert_eq!(finding.cause, cause, "{peer_data_ns}");
        // A control connection sends a few bytes now and then, and is idle between.
        let facts = IdleFacts {
            sent_bytes: 37,
            ..facts
        };
        assert_eq!(judge_idle(&facts), None, "{peer_data_ns}");
    }
}
