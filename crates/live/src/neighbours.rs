// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which station has an address: the kernel asks (ARP) and knows.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

/// Where nobody listens (RFC 863): the kernel has to ask for the station before.
const DISCARD: u16 = 9;

/// Makes the kernel ask, with one datagram of one byte.
///
/// # Errors
/// When there is no way to the address.
pub fn ask(address: Ipv4Addr) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.send_to(&[0], (address, DISCARD)).map(|_| ())
}

/// What the kernel knows: address, device and station of each neighbour.
///
/// # Errors
/// When the kernel's table cannot be read.
pub fn known() -> io::Result<Vec<(Ipv4Addr, String, String)>> {
    let table = std::fs::read_to_string("/proc/net/arp")?;
    Ok(table.lines().skip(1).filter_map(entry).collect())
}

/// `IP address, HW type, Flags, HW address, Mask, Device`.
fn entry(line: &str) -> Option<(Ipv4Addr, String, String)> {
    let columns: Vec<_> = line.split_whitespace().collect();
    let [address, _, flags, station, _, device] = columns.as_slice() else {
        return None;
    };
    // Complete, or set by hand: ATF_COM.
    let flags = u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()?;
    let whole = flags & 2 != 0;
    whole.then_some((
        address.parse().ok()?,
        (*device).to_owned(),
        (*station).to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_table() {
        let of = |flags| format!("10.1.0.2  0x1  {flags}  02:00:00:00:00:01  *  eth0");
        let expected = (
            Ipv4Addr::new(10, 1, 0, 2),
            "eth0".to_owned(),
            "02:00:00:00:00:01".to_owned(),
        );
        assert_eq!(entry(&of("0x2")), Some(expected));
        assert_eq!(entry(&of("0x0")), None);
        assert_eq!(entry("10.1.0.2"), None);
    }
}
