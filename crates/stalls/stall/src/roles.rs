// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds which end of a connection is the client: by its handshake, else by ports.

use crate::connection::Connection;

/// Ports above 1023 that servers of common protocols listen on: proxies, VPNs, databases, queues,
/// messages, remote desktops, measurements, industry. In order.
const SERVERS: [u16; 43] = [
    1080, 1194, 1433, 1521, 1723, 1883, 2049, 2181, 2379, 2404, 3128, 3260, 3306, 3389, 4840, 5001,
    5060, 5201, 5222, 5223, 5228, 5432, 5671, 5672, 5900, 5984, 6379, 6443, 6667, 7000, 8000, 8080,
    8443, 8883, 9000, 9042, 9092, 9200, 9300, 11211, 20_000, 27_017, 44_818,
];
/// Ports below this belong to servers.
const WELL_KNOWN: u16 = 1024;
/// Systems give clients ports from here on, or from a higher one on (RFC 6335 has 49152).
const EPHEMERAL: u16 = 32_768;

/// How likely a port is a server's: the less, the more likely.
fn rank(port: u16) -> u8 {
    if port < WELL_KNOWN {
        0
    } else if SERVERS.binary_search(&port).is_ok() {
        1
    } else if port < EPHEMERAL {
        2
    } else {
        3
    }
}

/// Returns the index of the client's end.
pub(crate) fn client(connection: &Connection) -> usize {
    if let Some((client, _)) = connection.handshake.client {
        return client;
    }
    let [a, b] = connection.ends.map(|end| rank(end.port));
    if a != b {
        return usize::from(b > a);
    }
    let [a, b] = [0, 1].map(|end: usize| connection.flows[end].counts().bytes);
    usize::from(b > a)
}

/// Returns whether the capture shows which end is the client: it has the handshake, or one port is
/// a server's.
pub(crate) fn are_known(connection: &Connection) -> bool {
    let [a, b] = connection.ends.map(|end| rank(end.port));
    connection.handshake.client.is_some() || a != b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_tell_servers_from_clients() {
        assert!(SERVERS.is_sorted());
        for (server, client) in [
            (80, 1025),
            (443, 51_000),
            (5223, 55_368),
            (3306, 4000),
            (7551, 40_000),
        ] {
            assert!(rank(server) < rank(client), "{server} {client}");
        }
        assert_eq!(rank(51_000), rank(52_000));
    }
}
