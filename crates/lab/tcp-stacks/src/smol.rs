// SPDX-License-Identifier: MIT OR Apache-2.0
//! smoltcp as one end: a TCP that nobody here wrote, in virtual time.

use std::collections::VecDeque;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{ChecksumCapabilities, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, Ipv4Address};

use crate::ground_truth::{End, Why};
use crate::packet::{Ids, Packet, flag};
use crate::stack::Stack;

/// The settings of a smoltcp socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Receive buffer.
    pub receive_bytes: usize,
    /// Send buffer.
    pub send_bytes: usize,
    /// Delay of acknowledgements; 0 acknowledges at once.
    pub ack_delay_ms: u64,
    /// Nagle's rule.
    pub nagle: bool,
    /// Reno's congestion control; otherwise there is none, as is its default.
    pub reno: bool,
    /// Size of the largest IP packet.
    pub mtu: usize,
}

/// A device whose two queues the simulator fills and empties.
#[derive(Debug, Default)]
struct Queues {
    mtu: usize,
    arrived: VecDeque<Vec<u8>>,
    leaving: Vec<Vec<u8>>,
}

struct Arrived(Vec<u8>);
struct Leaving<'a>(&'a mut Vec<Vec<u8>>);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, use_it: F) -> R {
        use_it(&self.0)
    }
}

impl TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, fill: F) -> R {
        let mut packet = vec![0; bytes];
        let result = fill(&mut packet);
        self.0.push(packet);
        result
    }
}

impl Device for Queues {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, Leaving<'_>)> {
        let packet = self.arrived.pop_front()?;
        Some((Arrived(packet), Leaving(&mut self.leaving)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaving<'_>> {
        Some(Leaving(&mut self.leaving))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities.checksum = ChecksumCapabilities::ignored();
        capabilities
    }
}

/// What made smoltcp send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trigger {
    Packet,
    Timer,
    Application,
}

/// One end that runs smoltcp.
pub struct Smol {
    end: End,
    ids: Ids,
    device: Queues,
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    /// The highest number sent, and the right edge of the peer's window.
    sent: u64,
    edge: u64,
    una: u64,
    peer_shift: u8,
    repairing: u64,
    out: Vec<Packet>,
}

impl Smol {
    /// Makes an end; the server's listens.
    pub fn new(settings: Settings, end: End, ids: &Ids, seed: u64) -> Self {
        let mut device = Queues {
            mtu: settings.mtu,
            ..Queues::default()
        };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        let [a, b, c, d] = ids.addresses[end.index()];
        interface.update_ip_addrs(|addresses| {
            // The first address always fits.
            let _ = addresses.push(IpCidr::new(IpAddress::v4(a, b, c, d), 24));
        });
        let [a, b, c, d] = ids.addresses[end.other().index()];
        // The peer may be in another network.
        let _ = interface
            .routes_mut()
            .add_default_ipv4_route(Ipv4Address::new(a, b, c, d));
        let receive = SocketBuffer::new(vec![0; settings.receive_bytes]);
        let send = SocketBuffer::new(vec![0; settings.send_bytes]);
        let mut socket = Socket::new(receive, send);
        let delay = Some(settings.ack_delay_ms).filter(|ms| *ms > 0);
        socket.set_ack_delay(delay.map(Duration::from_millis));
        socket.set_nagle_enabled(settings.nagle);
        if settings.reno {
            socket.set_congestion_control(CongestionControl::Reno);
        }
        if end == End::Server {
            // The port is not 0, and the socket is fresh: it listens.
            let _ = socket.listen(ids.ports[End::Server.index()]);
        }
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        Self {
            end,
            ids: ids.clone(),
            device,
            interface,
            sockets,
            handle,
            sent: 0,
            edge: 0,
            una: 0,
            peer_shift: 0,
            repairing: 0,
            out: Vec::new(),
        }
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut::<Socket<'static>>(self.handle)
    }

    fn poll(&mut self, now_ns: u64, trigger: Trigger) {
        let now = instant(now_ns);
        self.interface
            .poll(now, &mut self.device, &mut self.sockets);
        for bytes in std::mem::take(&mut self.device.leaving) {
            let is_syn = bytes.get(33).is_some_and(|flags| flags & flag::SYN != 0);
            if is_syn {
                let number = [bytes[24], bytes[25], bytes[26], bytes[27]];
                self.ids.initial[self.end.index()] = u32::from_be_bytes(number);
            }
            let Some(mut packet) = Packet::parse(&bytes, self.end, &self.ids, Why::New) else {
                continue;
            };
            packet.why = self.why(&packet, trigger);
            self.sent = self.sent.max(packet.end());
            self.out.push(packet);
        }
    }

    /// Tells why smoltcp sent a packet, by what woke it.
    fn why(&mut self, packet: &Packet, trigger: Trigger) -> Why {
        if packet.has(flag::SYN) {
            return Why::Handshake;
        }
        if packet.has(flag::RST) {
            return Why::Reset;
        }
        if packet.end() == packet.seq {
            return match trigger {
                Trigger::Packet => Why::Ack,
                Trigger::Timer => Why::DelayedAck,
                Trigger::Application => Why::WindowUpdate,
            };
        }
        if packet.payload_bytes > 0 && packet.seq < self.una {
            return Why::KeepAlive;
        }
        if packet.payload_bytes == 1 && packet.seq >= self.edge {
            return Why::WindowProbe;
        }
        if packet.seq >= self.sent {
            return Why::New;
        }
        if trigger == Trigger::Timer && packet.seq <= self.una && self.repairing <= self.una {
            self.repairing = self.sent;
            return Why::Timeout;
        }
        match (trigger, self.una < self.repairing) {
            // A timer that fires again repeats the first byte.
            (Trigger::Timer, true) if packet.seq <= self.una => Why::Timeout,
            (_, true) => Why::AfterTimeout,
            _ => Why::Fast,
        }
    }
}

fn instant(now_ns: u64) -> Instant {
    Instant::from_micros(i64::try_from(now_ns / 1000).unwrap_or(i64::MAX))
}

impl Stack for Smol {
    fn connect(&mut self, now_ns: u64) {
        let peer = self.end.other();
        let [a, b, c, d] = self.ids.addresses[peer.index()];
        let remote = (IpAddress::v4(a, b, c, d), self.ids.ports[peer.index()]);
        let local = self.ids.ports[self.end.index()];
        let socket = self.sockets.get_mut::<Socket<'static>>(self.handle);
        // The socket is fresh and both ports are not 0.
        let _ = socket.connect(self.interface.context(), remote, local);
        self.poll(now_ns, Trigger::Application);
    }

    fn receive(&mut self, now_ns: u64, packet: &Packet) {
        if packet.has(flag::SYN) {
            self.peer_shift = packet.window_scale.unwrap_or(0);
        }
        if packet.has(flag::ACK) {
            let shift = if packet.has(flag::SYN) {
                0
            } else {
                self.peer_shift
            };
            self.una = self.una.max(packet.ack);
            self.edge = packet.ack + (u64::from(packet.window) << shift);
        }
        self.device
            .arrived
            .push_back(packet.ipv4(&self.ids, packet.hop_limit));
        self.poll(now_ns, Trigger::Packet);
    }

    fn wake(&mut self, now_ns: u64) {
        self.poll(now_ns, Trigger::Timer);
    }

    fn deadline(&mut self, now_ns: u64) -> Option<u64> {
        let due = self.interface.poll_at(instant(now_ns), &self.sockets)?;
        let due_ns = u64::try_from(due.total_micros()).unwrap_or(0) * 1000;
        // smoltcp counts in microseconds: a timer that is due now is due in the next one.
        Some(due_ns.max(now_ns / 1000 * 1000 + 1000))
    }

    fn take(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.out)
    }

    fn write(&mut self, now_ns: u64, bytes: u64) -> u64 {
        let most = usize::try_from(bytes.min(1 << 20)).unwrap_or(0);
        let zeros = vec![0; most];
        // A closed socket takes nothing.
        let taken = self.socket().send_slice(&zeros).unwrap_or(0);
        if taken > 0 {
            self.poll(now_ns, Trigger::Application);
        }
        taken as u64
    }

    fn read(&mut self, now_ns: u64, most: u64) -> u64 {
        let mut left = usize::try_from(most).unwrap_or(usize::MAX);
        let mut taken = 0;
        // The ring buffer gives what lies in one piece.
        while left > 0 {
            let got = self.socket().recv(|bytes| {
                let part = bytes.len().min(left);
                (part, part)
            });
            match got {
                Ok(part) if part > 0 => {
                    left -= part;
                    taken += part as u64;
                }
                _ => break,
            }
        }
        if taken > 0 {
            self.poll(now_ns, Trigger::Application);
        }
        taken
    }

    fn close(&mut self, now_ns: u64) {
        self.socket().close();
        self.poll(now_ns, Trigger::Application);
    }

    fn abort(&mut self, now_ns: u64) {
        self.socket().abort();
        self.poll(now_ns, Trigger::Application);
    }

    fn is_established(&self) -> bool {
        let socket = self.sockets.get::<Socket<'static>>(self.handle);
        !matches!(
            socket.state(),
            State::Closed | State::Listen | State::SynSent | State::SynReceived
        )
    }

    fn is_ended(&self) -> bool {
        let socket = self.sockets.get::<Socket<'static>>(self.handle);
        !socket.may_recv() && socket.recv_queue() == 0
    }

    fn is_over(&self) -> bool {
        let socket = self.sockets.get::<Socket<'static>>(self.handle);
        self.sent > 0 && matches!(socket.state(), State::Closed | State::TimeWait)
    }

    fn room(&self) -> u64 {
        let socket = self.sockets.get::<Socket<'static>>(self.handle);
        (socket.recv_capacity() - socket.recv_queue()) as u64
    }

    fn queued(&self) -> u64 {
        self.sockets
            .get::<Socket<'static>>(self.handle)
            .send_queue() as u64
    }
}
