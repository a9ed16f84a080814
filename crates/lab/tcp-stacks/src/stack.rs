// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the simulator asks of one end's TCP, whoever wrote it.

use crate::packet::Packet;

/// One end's TCP. Times are of the simulation's clock; nothing happens between calls.
pub trait Stack {
    /// Opens the connection; only the client's end is told.
    fn connect(&mut self, now_ns: u64);
    /// Takes a packet of the peer.
    fn receive(&mut self, now_ns: u64, packet: &Packet);
    /// Lets due timers fire.
    fn wake(&mut self, now_ns: u64);
    /// Returns when [`Self::wake`] is to be called.
    fn deadline(&mut self, now_ns: u64) -> Option<u64>;
    /// Returns the packets to send, in order, and forgets them.
    fn take(&mut self) -> Vec<Packet>;
    /// Takes up to `bytes` to send, and returns how many it took.
    fn write(&mut self, now_ns: u64, bytes: u64) -> u64;
    /// Reads up to `most` bytes, and returns how many.
    fn read(&mut self, now_ns: u64, most: u64) -> u64;
    /// Ends the own stream behind what was written.
    fn close(&mut self, now_ns: u64);
    /// Resets the connection.
    fn abort(&mut self, now_ns: u64);
    /// Returns whether data may be written and read.
    fn is_established(&self) -> bool;
    /// Returns whether the peer ended its stream and all of it was read.
    fn is_ended(&self) -> bool;
    /// Returns whether nothing will happen any more.
    fn is_over(&self) -> bool;
    /// Returns the bytes that its receive buffer has room for.
    fn room(&self) -> u64;
    /// Returns bytes that the application wrote and the peer has not acknowledged.
    fn queued(&self) -> u64;
}
