// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filters, which assign packets to classes by addresses and ports.

use std::net::Ipv4Addr;

use crate::packet::{Header, Proto};

/// Conditions that must all hold, and the class of the packets that meet them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub proto: Option<Proto>,
    /// Sender's network and its mask.
    pub src: Option<(Ipv4Addr, u32)>,
    /// Receiver's network and its mask.
    pub dst: Option<(Ipv4Addr, u32)>,
    /// Sender's port and its mask.
    pub sport: Option<(u16, u16)>,
    /// Receiver's port and its mask.
    pub dport: Option<(u16, u16)>,
    /// Minor number of the class.
    pub minor: u32,
}

impl Filter {
    /// Returns whether all conditions hold.
    pub fn matches(&self, header: &Header) -> bool {
        let address = |net: Option<(Ipv4Addr, u32)>, of: Ipv4Addr| {
            net.is_none_or(|(net, mask)| u32::from(net) & mask == u32::from(of) & mask)
        };
        let port = |wanted: Option<(u16, u16)>, of: u16| {
            wanted.is_none_or(|(port, mask)| port & mask == of & mask)
        };
        self.proto.is_none_or(|proto| proto == header.proto)
            && address(self.src, header.src)
            && address(self.dst, header.dst)
            && port(self.sport, header.sport)
            && port(self.dport, header.dport)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_must_all_hold() {
        let header = Header {
            proto: Proto::Udp,
            src: Ipv4Addr::new(10, 1, 1, 1),
            dst: Ipv4Addr::new(10, 1, 2, 1),
            sport: 20001,
            dport: 5001,
        };
        let any = Filter::default();
        assert!(any.matches(&header));
        let port = Filter {
            dport: Some((5001, 0xffff)),
            ..any.clone()
        };
        assert!(port.matches(&header) && !port.matches(&header.reversed()));
        let net = Filter {
            src: Some((Ipv4Addr::new(10, 1, 0, 0), 0xffff_0000)),
            ..port.clone()
        };
        assert!(net.matches(&header));
        let tcp = Filter {
            proto: Some(Proto::Tcp),
            ..net
        };
        assert!(!tcp.matches(&header));
    }
}
