// SPDX-License-Identifier: MIT OR Apache-2.0
//! Session descriptions.

use proptest::prelude::*;
use st2110::format::Scan;
use st2110::known::{Encoding, Kind};
use st2110::sdp::parse;

const VIDEO: &str = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=camera\r\nt=0 0\r\na=group:DUP one two\r\n\
    m=video 5004 RTP/AVP 96\r\nc=IN IP4 239.1.1.1/64\r\na=rtpmap:96 raw/90000\r\n\
    a=fmtp:96 sampling=YCbCr-4:2:2; width=1920; height=1080; exactframerate=30000/1001; depth=10; interlace; \
    TCS=SDR; PM=2110GPM; SSN=ST2110-20:2017; TP=2110TPN; TROFF=652; CMAX=5; MAXUDP=1460;\r\na=mid:one\r\n\
    m=video 5004 RTP/AVP 96\r\nc=IN IP4 239.1.1.2/64\r\na=rtpmap:96 raw/90000\r\na=mid:two\r\n";

#[test]
fn a_pair_of_video() {
    let session = parse(VIDEO).unwrap();
    assert_eq!(session.duplicates, [["one", "two"]]);
    let [first, second] = &session.media[..] else {
        panic!("{session:?}")
    };
    assert_eq!((first.port, first.payload_type, first.line), (5004, 96, 6));
    assert_eq!(first.address, "239.1.1.1".parse().ok());
    assert_eq!(second.address, "239.1.1.2".parse().ok());
    let given = first.given();
    assert_eq!(
        (given.kind, given.height, given.scan),
        (Some(Kind::Raw), Some(1080), Some(Scan::Interlaced))
    );
    assert_eq!(given.rate.unwrap().to_string(), "29.97");
    assert_eq!(
        (first.width(), first.cmax(), first.largest_udp_bytes()),
        (Some(1920), Some(5), Some(1460))
    );
    assert_eq!(
        (first.offset_ps(), first.parameter("TP")),
        (Some(652_000_000), Some("2110TPN"))
    );
}

#[test]
fn audio_and_ancillary_data() {
    let text = "v=0\nc=IN IP6 ff3e::1\nm=audio 5006 RTP/AVP 97\na=rtpmap:97 L24/48000/8\na=ptime:0.125\n\
        m=video 5008 RTP/AVP 100\na=rtpmap:100 smpte291/90000\na=fmtp:100 VPID_Code=133;exactframerate=50\n";
    let session = parse(text).unwrap();
    let (audio, data) = (&session.media[0], &session.media[1]);
    assert_eq!(audio.address, "ff3e::1".parse().ok());
    assert_eq!(audio.given().encoding, Some((Encoding::L24, 8)));
    assert_eq!(
        (audio.given().sampling_hz, audio.packet_time_ns),
        (Some(48_000), Some(125_000))
    );
    assert_eq!(
        (data.given().kind, data.given().scan),
        (Some(Kind::Ancillary), None)
    );
    assert_eq!(data.given().rate.unwrap().to_string(), "50");
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    for (text, expected) in [
        ("", "m= line"),
        ("hello", "a letter, = and a value"),
        ("s=x", "v=0"),
        ("v=0\nm=video RTP/AVP 96", "line 2"),
        ("v=0\nm=video 5004 RTP/AVP 200", "payload types"),
        ("v=0\nm=video 5004 TCP 96", "RTP/AVP"),
        ("v=0\nc=IN IP4 ff3e::1", "IN IP4 or IN IP6"),
        ("v=0\nm=video 1 RTP/AVP 96\na=rtpmap:96 raw", "clock rate"),
        ("v=0\nm=audio 1 RTP/AVP 96\na=ptime:0", "ms"),
        (
            "v=0\na=group:DUP a b\nm=audio 1 RTP/AVP 96\na=mid:a",
            "a=mid",
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn the_corpus_of_descriptions_is_in_order() {
    for (_, bytes) in testkit::corpus("sdp", 3) {
        crate::any_sdp::replay(&bytes);
    }
}

proptest! {
    #![proptest_config(testkit::properties())]

    #[test]
    fn any_text_is_read_without_panic(lines in prop::collection::vec("[vmcasot]=[ -~]{0,40}", 0..20)) {
        crate::any_sdp::replay(format!("v=0\n{}", lines.join("\n")).as_bytes());
    }
}
