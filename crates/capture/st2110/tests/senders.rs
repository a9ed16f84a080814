// SPDX-License-Identifier: MIT OR Apache-2.0
//! Senders whose results are known by hand.

use st2110::format::{Format, Scan, Schedule};
use st2110::infer::{Contents, Given, Kind, contents};
use st2110::limits::SenderType;
use st2110::list::Quantity;
use st2110::video::{Datum, Options, VideoResult, measure};

use crate::common::{ORIGIN_PS, Timed, US, measured, on_time, sent, stream};

fn of(packets: &[Timed]) -> VideoResult {
    measured(packets, &Options::default())
}

/// Cmax, VRXfull, largest VRX and late packets of a type.
fn numbers(result: &VideoResult, of: SenderType) -> (u64, u64, i64, u64) {
    let verdict = result.types.iter().find(|v| v.sender_type == of).unwrap();
    (
        verdict.limits.cmax,
        verdict.limits.vrx_full,
        verdict.vrx_max,
        verdict.late,
    )
}

/// 1080p60: 4 packets a line, 4320 a frame. Each comes when it is read, rounded down to a
/// picosecond, so that VRX is 1, or 0 where nothing is rounded; Cinst is 0, because T_DRAIN =
/// T / 4752 is less than T_RS = T / 4500.
#[test]
fn a_perfect_gapped_sender_is_narrow() {
    let result = of(&on_time("1080p60", Schedule::Gapped, 3));
    assert_eq!(result.sender_type, Some(SenderType::Narrow));
    assert_eq!(result.kind, Kind::Raw);
    assert_eq!(result.picture_rate.to_string(), "60");
    assert_eq!(
        (result.raster.height, result.raster.scan),
        (1080, Scan::Progressive)
    );
    assert_eq!(result.picture_packets, 4320);
    assert_eq!(numbers(&result, SenderType::Narrow), (6, 9, 1, 0));
    assert_eq!(result.cinst_max, 0);
    assert_eq!(result.cinst_histogram.get(&0), Some(&(3 * 4320)));
    let buffer = &result.buffers[0];
    assert_eq!(
        (buffer.schedule, buffer.vrx_min, buffer.vrx_max),
        (Schedule::Gapped, 0, 1)
    );
    // T_RS = 0.96 / 60 / 4320 s; TR_OFFSET = 43 / 1125 / 60 s.
    assert!((buffer.spacing_ns - 3703.7037).abs() < 0.001, "{buffer:?}");
    assert!((buffer.offset_ns - 637_037.037).abs() < 0.01, "{buffer:?}");
    let fpt = result.fpt_ns.unwrap();
    assert!(
        (fpt.min - 637_037.037).abs() < 1.0 && (fpt.max - fpt.min) < 1.0,
        "{fpt:?}"
    );
    assert_eq!(result.pictures.len(), 3);
    // By the linear schedule its packets come ever earlier: the last of a frame when 4147 of the
    // 4320 have been read, INT(4319 × 0.96) + 1.
    assert_eq!(
        numbers(&result, SenderType::NarrowLinear),
        (6, 9, 4320 - 4147, 0)
    );
}

#[test]
fn a_perfect_linear_sender_is_narrow_linear() {
    let result = of(&on_time("1080p60", Schedule::Linear, 3));
    assert_eq!(result.sender_type, Some(SenderType::NarrowLinear));
    assert_eq!(numbers(&result, SenderType::NarrowLinear), (6, 9, 1, 0));
    assert_eq!(result.cinst_max, 0);
    // By the gapped schedule all but the first packet of each frame are late.
    assert_eq!(numbers(&result, SenderType::Narrow), (6, 9, 1, 3 * 4319));
    let gapped = result
        .buffers
        .iter()
        .find(|b| b.schedule == Schedule::Gapped)
        .unwrap();
    // The last one by 4319 × (3858.0247 - 3703.7037) ns.
    assert!(
        (gapped.latest_ns - 666_512.3).abs() < 1.0,
        "{}",
        gapped.latest_ns
    );
}

/// Packets that leave four read spacings early (and less than a picosecond, by rounding) lie in the
/// buffer until the fifth after them comes.
#[test]
fn an_early_sender_has_its_packets_in_the_buffer() {
    let result = of(&sent("1080p60", Schedule::Gapped, 2, 4, 0));
    assert_eq!(numbers(&result, SenderType::Narrow), (6, 9, 5, 0));
    assert_eq!(result.sender_type, Some(SenderType::Narrow));
}

#[test]
fn a_sender_that_bursts_a_whole_frame_is_of_no_type() {
    let mut packets = on_time("1080p60", Schedule::Gapped, 3);
    for (i, packet) in packets.iter_mut().enumerate() {
        // Back to back at 10 Gbit/s: 1.03 µs each, from the frame's read time on.
        let frame = (i / 4320) as i128;
        packet.time_ps =
            ORIGIN_PS + 637_037_037 + frame * 16_666_666_666 + (i % 4320) as i128 * 1_032_000;
    }
    let result = of(&packets);
    assert_eq!(result.sender_type, None);
    // 4319 packets later, 4319 × 1.032 / 3.507295 = 1270.8 were drained.
    assert_eq!(result.cinst_max, 4319 - 1270);
    let wide = result
        .types
        .iter()
        .find(|v| v.sender_type == SenderType::Wide)
        .unwrap();
    assert_eq!((wide.limits.cmax, wide.limits.vrx_full), (16, 864));
    assert_eq!(wide.why_not.len(), 2, "{:?}", wide.why_not);
    assert!(
        wide.why_not[0].starts_with("Cinst reaches 3049, and Cmax is 16."),
        "{:?}",
        wide.why_not
    );
}

/// A burst that a wide sender may send: 12 packets every 12 read spacings.
#[test]
fn a_sender_of_small_bursts_is_wide() {
    let mut packets = sent("1080p60", Schedule::Linear, 3, 12, 0);
    let times: Vec<_> = packets.iter().map(|packet| packet.time_ps).collect();
    for (i, packet) in packets.iter_mut().enumerate() {
        packet.time_ps = times[i / 12 * 12];
    }
    let result = of(&packets);
    assert_eq!(result.sender_type, Some(SenderType::Wide));
    assert_eq!(result.cinst_max, 11);
    // The last of a burst comes 23 read spacings early, and by rounding a little more.
    assert_eq!(numbers(&result, SenderType::Wide), (16, 864, 24, 0));
}

#[test]
fn a_packet_late_by_a_microsecond_is_found() {
    let mut packets = on_time("1080p60", Schedule::Gapped, 2);
    packets[5000].time_ps += US;
    let result = of(&packets);
    assert_eq!(numbers(&result, SenderType::Narrow), (6, 9, 1, 1));
    let gapped = result
        .buffers
        .iter()
        .find(|b| b.schedule == Schedule::Gapped)
        .unwrap();
    assert!(
        (gapped.latest_ns - 1000.0).abs() < 0.01,
        "{}",
        gapped.latest_ns
    );
    // A wide sender by the linear schedule may be late by that.
    assert_eq!(result.sender_type, Some(SenderType::Wide));
    let options = Options {
        schedule: Some(Schedule::Gapped),
        ..Options::default()
    };
    let result = measured(&packets, &options);
    assert_eq!(result.sender_type, None);
    assert!(
        result.types[0].why_not[0].contains("A packet comes 1.000 µs after its read time."),
        "{:?}",
        result.types
    );
    // One picosecond is enough.
    packets[5000].time_ps -= US - 1;
    assert_eq!(numbers(&of(&packets), SenderType::Narrow).3, 1);
}

#[test]
fn a_capture_may_begin_and_end_within_a_frame() {
    let packets = sent("1080p60", Schedule::Gapped, 5, 4, 0);
    let result = of(&packets[1000..4 * 4320 + 77]);
    assert_eq!((result.pictures.len(), result.partial_pictures), (3, 2));
    assert_eq!(result.sender_type, Some(SenderType::Narrow));
    assert_eq!(numbers(&result, SenderType::Narrow).2, 5);
    // Without a whole frame nothing can be said.
    let stream = stream(&packets[1000..5000]);
    let error = contents(&stream, &Given::default(), &Given::default())
        .map(|_| ())
        .unwrap_err();
    assert!(error.contains("--packets-per-frame"), "{error}");
}

/// Lost packets do not make the buffer emptier: the ones after them lie where they would.
#[test]
fn lost_packets_are_counted_and_do_not_shift_the_others() {
    let mut packets = sent("1080p60", Schedule::Gapped, 5, 4, 0);
    // Within a frame; the end of a frame with its marker; the begin of a frame.
    packets.drain(3 * 4320..3 * 4320 + 5);
    packets.drain(2 * 4320 - 3..2 * 4320);
    packets.drain(5000..5010);
    let result = of(&packets);
    assert_eq!(result.lost, 18);
    let lost: Vec<_> = result
        .pictures
        .iter()
        .map(|p| (p.packets, p.lost))
        .collect();
    assert_eq!(
        lost,
        [(4320, 0), (4320, 13), (4320, 0), (4320, 5), (4320, 0)]
    );
    assert_eq!(numbers(&result, SenderType::Narrow), (6, 9, 5, 0));
    assert_eq!(result.pictures[3].fpt_ns, None, "its first packet is lost");
    assert_eq!(result.sender_type, Some(SenderType::Narrow));
}

#[test]
fn low_rates_are_found() {
    for format in [
        "560x360@15",
        "1080p12.5",
        "1080i12.5",
        "720p5",
        "1120x720@14.99",
        "720p20",
    ] {
        let result = of(&sent(format, Schedule::Gapped, 3, 4, 0));
        let wanted: Format = format.parse().unwrap();
        assert_eq!(result.picture_rate, wanted.picture_rate(), "{format}");
        assert_eq!(result.sender_type, Some(SenderType::Narrow), "{format}");
        let steps = result
            .list
            .iter()
            .find(|c| c.quantity == Quantity::RtpStepTicks);
        assert!(
            steps.is_some_and(|c| c.is_met),
            "{format}: {:?}",
            result.list
        );
    }
}

#[test]
fn numbers_and_timestamps_may_wrap() {
    // The extended number wraps in the second frame.
    let packets = sent("1080p60", Schedule::Gapped, 3, 4, u32::MAX - 5000);
    let plain = of(&sent("1080p60", Schedule::Gapped, 3, 4, 0));
    assert_eq!(of(&packets), plain);
    // A timestamp that wraps: 2^32 ticks after the epoch are 47,721.86 s.
    let mut packets = sent("1080p60", Schedule::Gapped, 3, 4, 0);
    let first = u32::from_be_bytes(plain_timestamp());
    for packet in &mut packets {
        let field: [u8; 4] = packet.bytes[4..8].try_into().unwrap();
        let moved = u32::from_be_bytes(field)
            .wrapping_sub(first)
            .wrapping_sub(1000);
        packet.bytes[4..8].copy_from_slice(&moved.to_be_bytes());
    }
    let mut wrapped = of(&packets);
    // Its timestamps have nothing to do with the clock any more; their steps stay.
    assert_eq!(wrapped.list, plain.list[2..]);
    wrapped.list = plain.list.clone();
    assert!(wrapped == plain);
}

fn plain_timestamp() -> [u8; 4] {
    let packets = on_time("1080p60", Schedule::Gapped, 1);
    packets[0].bytes[4..8].try_into().unwrap()
}

#[test]
fn packets_that_overtake_and_repeat_are_counted() {
    let mut packets = sent("1080p60", Schedule::Gapped, 3, 4, 0);
    let (a, b) = (packets[6000].time_ps, packets[6001].time_ps);
    (packets[6000].time_ps, packets[6001].time_ps) = (b, a);
    let again = Timed {
        time_ps: packets[7000].time_ps + 1,
        ..packets[7000].clone()
    };
    packets.push(again);
    let result = of(&packets);
    assert_eq!(
        (result.reordered, result.duplicates, result.lost),
        (1, 1, 0)
    );
    assert_eq!(numbers(&result, SenderType::Narrow), (6, 9, 5, 0));
}

/// 1080i29.97: fields of 540 lines, 2160 packets, every 1001/60000 s; TR_OFFSET is 22/1125 of a
/// frame, 44/1125 of a field.
#[test]
fn interlaced_video_is_measured_by_its_fields() {
    let result = of(&sent("1080i29.97", Schedule::Gapped, 4, 4, 0));
    assert_eq!(
        (result.raster.height, result.raster.scan),
        (1080, Scan::Interlaced)
    );
    assert_eq!(result.picture_rate.to_string(), "59.94");
    assert_eq!(result.picture_packets, 2160);
    assert_eq!(numbers(&result, SenderType::Narrow), (4, 8, 5, 0));
    assert_eq!(result.sender_type, Some(SenderType::Narrow));
    let offset_ns = result.buffers[0].offset_ns;
    assert!((offset_ns - 652_503.7).abs() < 0.1, "{offset_ns}");
}

#[test]
fn rates_of_the_trade() {
    for (format, rate) in [
        ("1080p59.94", "59.94"),
        ("720p29.97", "29.97"),
        ("720p23.98", "23.976"),
        ("720p50", "50"),
    ] {
        let result = of(&sent(format, Schedule::Gapped, 4, 4, 0));
        assert_eq!(result.picture_rate.to_string(), rate, "{format}");
        assert_eq!(result.sender_type, Some(SenderType::Narrow), "{format}");
        assert_eq!(numbers(&result, SenderType::Narrow).2, 5, "{format}");
    }
}

/// A capture whose clock is 300 µs ahead of the sender's: everything is late, but for a datum that
/// fits.
#[test]
fn clocks_apart_need_a_datum_that_fits() {
    let mut packets = sent("1080p60", Schedule::Gapped, 3, 4, 0);
    for packet in &mut packets {
        packet.time_ps += 300 * US;
    }
    assert_eq!(numbers(&of(&packets), SenderType::Narrow).3, 3 * 4320);
    for datum in [Datum::Fit, Datum::First] {
        let options = Options {
            datum,
            ..Options::default()
        };
        let result = measured(&packets, &options);
        let (.., vrx_max, _) = numbers(&result, SenderType::Narrow);
        assert!((0..=1).contains(&vrx_max), "{datum:?}: {vrx_max}");
        assert!(datum == Datum::First || result.sender_type == Some(SenderType::Narrow));
    }
    // With the offset that it has, it is narrow as well.
    let options = Options {
        offset_ps: Some(637_037_037 + 300 * US),
        ..Options::default()
    };
    assert_eq!(
        measured(&packets, &options).sender_type,
        Some(SenderType::Narrow)
    );
}

/// ST 2110-22: packets without RFC 4175's headers, a constant number to a frame.
#[test]
fn compressed_video_is_measured_by_its_packets() {
    let mut packets = sent("1080p60", Schedule::Linear, 3, 4, 0);
    for packet in &mut packets {
        packet.bytes[14..].fill(0x55);
    }
    let result = of(&packets);
    assert_eq!(result.kind, Kind::Compressed);
    assert_eq!((result.picture_packets, result.lost), (4320, 0));
    assert_eq!(result.sender_type, Some(SenderType::NarrowLinear));
    assert!(
        result.notes[0].contains("1080 lines are assumed"),
        "{:?}",
        result.notes
    );
    // What is given goes before what is inferred.
    let stream = stream(&packets);
    let given = Given {
        rate: "50".parse().ok(),
        height: Some(720),
        ..Given::default()
    };
    let Ok(Contents::Video(video)) = contents(&stream, &given, &Given::default()) else {
        panic!("no video");
    };
    assert!(video.notes.is_empty(), "{:?}", video.notes);
    let result = measure(&stream, video, &Options::default()).unwrap();
    assert_eq!(
        (result.picture_rate.to_string(), result.raster.height),
        ("50".to_owned(), 720)
    );
}
