// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the stream of fragments: only the first fragment of a datagram has the port.

use std::collections::VecDeque;

use crate::ethernet::{Fragment, Header};

/// Most datagrams that are remembered: in a flood of first fragments the oldest are forgotten.
const MOST: usize = 256;

/// The fields that all fragments of one datagram share (RFC 791, 3.2).
type Key = (std::net::Ipv4Addr, std::net::Ipv4Addr, u8, u16);

/// Datagrams whose first fragment belongs to a stream, the latest first.
#[derive(Debug, Default)]
pub struct Fragments(VecDeque<(Key, usize)>);

impl Fragments {
    /// Returns the stream of a packet. `by_header` finds the stream of a header. A later fragment
    /// has the stream of its first fragment, if that has arrived before on the same device. O(1),
    /// for fragments O(datagrams remembered).
    pub fn stream(
        &mut self,
        header: &Header,
        by_header: impl FnOnce(&Header) -> Option<usize>,
    ) -> Option<usize> {
        let Some(Fragment {
            protocol,
            id,
            first,
        }) = header.fragment
        else {
            return by_header(header);
        };
        let key = (header.source, header.destination, protocol, id);
        let known = self.0.iter().position(|(k, _)| *k == key);
        if !first {
            let known = known.and_then(|place| self.0.get(place));
            return known
                .map(|(_, stream)| *stream)
                .or_else(|| by_header(header));
        }
        // The sender used the identification again: the older datagram is forgotten.
        known.and_then(|place| self.0.remove(place));
        let stream = by_header(header)?;
        self.0.truncate(MOST - 1);
        self.0.push_front((key, stream));
        Some(stream)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn header(id: u16, first: bool) -> Header {
        Header {
            source: Ipv4Addr::new(10, 1, 0, 1),
            destination: Ipv4Addr::new(10, 3, 0, 2),
            dscp: 0,
            port: first.then_some(5001),
            ttl: 9,
            total_bytes: 576,
            fragment: Some(Fragment {
                protocol: 17,
                id,
                first,
            }),
        }
    }

    fn by_port(header: &Header) -> Option<usize> {
        (header.port == Some(5001)).then_some(3)
    }

    #[test]
    fn later_fragments_go_with_the_first() {
        let mut fragments = Fragments::default();
        assert_eq!(fragments.stream(&header(1, false), by_port), None);
        assert_eq!(fragments.stream(&header(1, true), by_port), Some(3));
        assert_eq!(fragments.stream(&header(1, false), by_port), Some(3));
        assert_eq!(fragments.stream(&header(1, false), by_port), Some(3));
        assert_eq!(fragments.stream(&header(2, false), by_port), None);
        // This datagram of another host has the same number.
        let mut other = header(1, false);
        other.source = Ipv4Addr::new(10, 1, 0, 9);
        assert_eq!(fragments.stream(&other, by_port), None);
        // The number now belongs to another datagram, which is of no stream.
        assert_eq!(fragments.stream(&header(1, true), |_| None), None);
        assert_eq!(fragments.stream(&header(1, false), by_port), None);
        // A reservation without a port matches each fragment by itself.
        assert_eq!(fragments.stream(&header(5, false), |_| Some(7)), Some(7));
    }

    #[test]
    fn the_oldest_datagram_is_forgotten() {
        let mut fragments = Fragments::default();
        for id in 0..10_000 {
            fragments.stream(&header(id, true), by_port);
        }
        assert_eq!(fragments.0.len(), MOST);
        assert_eq!(fragments.stream(&header(9_999, false), by_port), Some(3));
        assert_eq!(fragments.stream(&header(0, false), by_port), None);
    }
}
