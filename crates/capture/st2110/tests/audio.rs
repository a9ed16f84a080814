// SPDX-License-Identifier: MIT OR Apache-2.0
//! Audio streams whose results are known by hand.

use st2110::audio::{AudioResult, Evenness, measure};
use st2110::infer::{Contents, Given, contents};
use st2110::synthetic::Audio;

use crate::common::{ORIGIN_PS, Timed, US, stream};

const MS: i128 = 1000 * US;

/// Packets from the origin on, each when its last sample has been taken.
fn even(channels: u32, packet_time_ns: u64, packets: u32) -> Vec<Timed> {
    let audio = Audio::new(channels, packet_time_ns, 9).unwrap();
    let first = audio.first_after(ORIGIN_PS);
    let packet = |i: u32| {
        let mut bytes = Vec::new();
        let number = first + i128::from(i);
        // The lower bits wrap.
        audio.write(number, 65_530 + i, &mut bytes);
        Timed {
            time_ps: audio.launch_ps(number),
            bytes,
        }
    };
    (0..packets).map(packet).collect()
}

fn of(packets: &[Timed]) -> AudioResult {
    let stream = stream(packets);
    match contents(&stream, &Given::default(), &Given::default()).unwrap() {
        Contents::Audio(audio) => measure(&stream, audio),
        _ => panic!("not taken for audio"),
    }
}

/// 1 ms of 8 channels: packets a packet time after their timestamps, without variation.
#[test]
fn an_even_sender() {
    let result = of(&even(8, 1_000_000, 1000));
    assert_eq!((result.sampling_hz, result.packet_samples), (48_000, 48));
    assert_eq!((result.channels, result.sample_bytes), (8, 3));
    assert_eq!(
        (result.packets, result.lost, result.reordered),
        (1000, 0, 0)
    );
    assert_eq!(result.tsdf_max_ns, 0.0);
    let delay = result.delay_ns.unwrap();
    assert_eq!((delay.min, delay.max), (1e6, 1e6));
    let interval = result.interval_ns.unwrap();
    assert_eq!((interval.min, interval.max), (1e6, 1e6));
    assert_eq!(result.evenness, Evenness::WithinPacketTime);
    // Windows of 201 packets: one begins where more than 200 ms have passed.
    let begins: Vec<_> = result.tsdf.iter().map(|window| window.at_s).collect();
    assert_eq!(begins, [0.0, 0.201, 0.402, 0.603, 0.804]);
}

#[test]
fn the_delay_factor_is_the_spread_of_a_window() {
    let mut packets = even(2, 1_000_000, 500);
    packets[10].time_ps += 300 * US;
    packets[20].time_ps -= 150 * US;
    packets[300].time_ps += 900 * US;
    let result = of(&packets);
    let windows: Vec<_> = result.tsdf.iter().map(|window| window.tsdf_ns).collect();
    assert_eq!(windows, [450_000.0, 900_000.0, 0.0]);
    assert_eq!(result.tsdf_max_ns, 900_000.0);
    assert_eq!(result.evenness, Evenness::WithinPacketTime);
    // Beyond a packet time, and beyond 17.
    for (late, evenness) in [
        (2 * MS, Evenness::Within17PacketTimes),
        (17 * MS, Evenness::Beyond),
    ] {
        let mut packets = even(2, 1_000_000, 100);
        // The packets behind it are held as well.
        for packet in &mut packets[50..70] {
            packet.time_ps = packet.time_ps.max(ORIGIN_PS + 51 * MS + late);
        }
        assert_eq!(of(&packets).evenness, evenness);
    }
}

#[test]
fn short_packets_and_lost_ones() {
    let mut packets = even(8, 125_000, 4000);
    packets.drain(100..103);
    let result = of(&packets);
    assert_eq!(
        (result.packet_samples, result.packet_time_ns),
        (6, 125_000.0)
    );
    assert_eq!((result.lost, result.tsdf_max_ns), (3, 0.0));
    assert_eq!(result.evenness, Evenness::WithinPacketTime);
}

#[test]
fn clocks_that_have_nothing_in_common_leave_the_delay_out() {
    let mut packets = even(2, 1_000_000, 100);
    for packet in &mut packets {
        packet.time_ps += 37_000 * MS;
    }
    let result = of(&packets);
    assert_eq!((result.delay_ns, result.tsdf_max_ns), (None, 0.0));
    assert!(
        result
            .notes
            .iter()
            .any(|note| note.contains("clock of the capture"))
    );
}

#[test]
fn what_no_sender_can_send_is_refused() {
    for (channels, packet_time_ns) in [
        (0, 1_000_000),
        (11, 1_000_000),
        (2, 0),
        (2, 999_999),
        (81, 125_000),
    ] {
        assert!(
            Audio::new(channels, packet_time_ns, 0).is_err(),
            "{channels} {packet_time_ns}"
        );
    }
    assert!(
        Audio::new(10, 1_000_000, 0).is_ok(),
        "1440 bytes and 20 of headers are 1460"
    );
}
