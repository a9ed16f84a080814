// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any bytes as a session description.

use st2110::sdp;

/// Reads a description; of one that can be read, everything is asked.
///
/// # Panics
/// If an error says nothing, or a medium has no payload type that there is.
pub fn replay(bytes: &[u8]) {
    match sdp::parse(&String::from_utf8_lossy(bytes)) {
        Ok(session) => {
            assert!(!session.media.is_empty());
            for media in &session.media {
                assert!(media.payload_type < 128 && media.line > 0);
                let given = media.given();
                assert!(given.height.is_none_or(|height| height > 0));
                let _ = (
                    media.width(),
                    media.cmax(),
                    media.offset_ps(),
                    media.largest_udp_bytes(),
                );
            }
        }
        Err(why) => assert!(!why.is_empty() && !why.chars().any(char::is_control)),
    }
}
