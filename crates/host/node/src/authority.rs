// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes a client's word for where it is, whatever that is. HTTP/2 names the server of a request in
//! `:authority`, and the kubelet names it by the path of the socket, as gRPC's libraries do that were
//! given a path. Such a name is none of RFC 3986, and the HTTP/2 server below tonic resets the
//! stream. On a socket of ours the name says nothing: it is [`AUTHORITY`] from here on.
//!
//! Frames pass as they are, but for those with headers: these are decoded (RFC 7541) and written
//! again without a table. O(bytes); at most a frame and a request's headers are kept.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use loona_hpack::Decoder;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tonic::transport::server::{Connected, UdsConnectInfo};

/// The name of the server.
const AUTHORITY: &[u8] = b"localhost";

/// What a client sends first (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of a frame's header, and the longest frame while a server announces no other.
const HEADER_BYTES: usize = 9;
const FRAME_BYTES_MAX: usize = 16_384;
/// Longest headers of a request.
const HEADERS_BYTES_MAX: usize = 16_384;
/// The dynamic table, while a server announces no other.
const TABLE_BYTES: usize = 4096;

/// Types of frames, and flags of those with headers.
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

fn wrong(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("HTTP/2: {what}"))
}

/// Rewrites what a client sends.
struct Rewriter {
    decoder: Decoder<'static>,
    has_preface: bool,
    /// Bytes of a frame that is not whole yet.
    begun: Vec<u8>,
    /// Headers whose end has not come: stream, flags and block.
    open: Option<([u8; 4], u8, Vec<u8>)>,
}

impl Rewriter {
    fn new() -> Self {
        let mut decoder = Decoder::new();
        decoder.set_max_allowed_table_size(TABLE_BYTES);
        Self {
            decoder,
            has_preface: false,
            begun: Vec::new(),
            open: None,
        }
    }

    /// Takes bytes as they come, and appends those of whole frames to `out`.
    ///
    /// # Errors
    /// What is no HTTP/2, or too long.
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.begun.extend_from_slice(bytes);
        let begun = std::mem::take(&mut self.begun);
        let mut rest = &begun[..];
        if !self.has_preface {
            let Some((preface, after)) = rest.split_at_checked(PREFACE.len()) else {
                self.begun = begun;
                return Ok(());
            };
            if preface != PREFACE {
                return Err(wrong("its preface was expected"));
            }
            out.extend_from_slice(preface);
            (rest, self.has_preface) = (after, true);
        }
        while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let bytes = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
            if bytes > FRAME_BYTES_MAX {
                return Err(wrong("a frame is longer than was agreed"));
            }
            let Some((payload, after)) = after.split_at_checked(bytes) else {
                break;
            };
            self.frame(header, payload, out)?;
            rest = after;
        }
        self.begun = rest.to_vec();
        Ok(())
    }

    fn frame(
        &mut self,
        header: &[u8; HEADER_BYTES],
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let [_, _, _, kind, flags, stream @ ..] = *header;
        let (flags_of_all, mut block) = match (kind, self.open.take()) {
            (HEADERS, None) => (flags & END_STREAM, fragment(flags, payload)?.to_vec()),
            (CONTINUATION, Some((of, first, mut block))) if of == stream => {
                block.extend_from_slice(payload);
                (first, block)
            }
            (_, None) => {
                out.extend_from_slice(header);
                out.extend_from_slice(payload);
                return Ok(());
            }
            (_, Some(_)) => return Err(wrong("headers have no end")),
        };
        if block.len() > HEADERS_BYTES_MAX {
            return Err(wrong("a request's headers are too long"));
        }
        if flags & END_HEADERS == 0 {
            self.open = Some((stream, flags_of_all, block));
            return Ok(());
        }
        block = self.rewritten(&block)?;
        out.extend_from_slice(&u32::try_from(block.len()).unwrap_or(0).to_be_bytes()[1..]);
        out.extend([HEADERS, flags_of_all | END_HEADERS]);
        out.extend(stream);
        out.append(&mut block);
        Ok(())
    }

    /// Returns a block of headers with our name of the server.
    fn rewritten(&mut self, block: &[u8]) -> io::Result<Vec<u8>> {
        let headers = self.decoder.decode(block);
        let headers = headers.map_err(|error| wrong(&error.to_string()))?;
        let mut out = Vec::new();
        for (name, value) in headers {
            let is_authority = name == b":authority";
            // A literal without indexing, with a name of its own.
            out.push(0);
            text(&name, &mut out);
            text(if is_authority { AUTHORITY } else { &value }, &mut out);
            if out.len() > FRAME_BYTES_MAX {
                return Err(wrong("a request's headers are too long"));
            }
        }
        Ok(out)
    }
}

/// Returns the part of a block that a frame of headers has, without padding and priority.
fn fragment(flags: u8, payload: &[u8]) -> io::Result<&[u8]> {
    let short = || wrong("a frame of headers is too short");
    let (padding, payload) = if flags & PADDED == 0 {
        (0, payload)
    } else {
        let (padding, payload) = payload.split_first().ok_or_else(short)?;
        (usize::from(*padding), payload)
    };
    let skipped = if flags & PRIORITY == 0 { 0 } else { 5 };
    let end = payload.len().checked_sub(padding).ok_or_else(short)?;
    payload.get(skipped..end).ok_or_else(short)
}

/// Appends a text as it is: its length with a prefix of 7 bits (RFC 7541, 5.1), and its bytes.
fn text(text: &[u8], out: &mut Vec<u8>) {
    const PREFIX_MAX: usize = 127;
    let mut left = text.len();
    if left < PREFIX_MAX {
        out.push(left as u8);
    } else {
        out.push(PREFIX_MAX as u8);
        left -= PREFIX_MAX;
        while left >= 128 {
            out.push((left % 128) as u8 | 128);
            left /= 128;
        }
        out.push(left as u8);
    }
    out.extend_from_slice(text);
}

/// A connection on which the server's name is ours.
pub struct OfHere {
    stream: UnixStream,
    rewriter: Rewriter,
    /// What has not been read yet, from `read` on.
    ready: Vec<u8>,
    read: usize,
}

impl OfHere {
    /// Wraps a connection.
    pub fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            rewriter: Rewriter::new(),
            ready: Vec::new(),
            read: 0,
        }
    }
}

impl Connected for OfHere {
    type ConnectInfo = UdsConnectInfo;

    fn connect_info(&self) -> UdsConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for OfHere {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.read == this.ready.len() {
            this.ready.clear();
            this.read = 0;
            let mut bytes = [0; 4096];
            let mut came = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut came))?;
            if came.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.rewriter.take(came.filled(), &mut this.ready)?;
        }
        let left = &this.ready[this.read..];
        let now = &left[..left.len().min(into.remaining())];
        into.put_slice(now);
        this.read += now.len();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for OfHere {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let bytes = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = bytes[1..].to_vec();
        frame.extend([kind, flags, 0, 0, 0, 1]);
        frame.extend_from_slice(payload);
        frame
    }

    /// Returns what a server decodes of a client's frames: kind, flags and headers.
    fn headers(bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let payload = &bytes[PREFACE.len() + HEADER_BYTES..];
        Decoder::new().decode(payload).unwrap()
    }

    /// `:path: /sample/path`, `:authority: %2Frun` in parts, padded and with a priority.
    #[test]
    fn a_path_is_no_name_of_a_server() {
        let mut block = b"\x44\x0c/sample/path\x41\x06%2Frun".to_vec();
        let rest = block.split_off(20);
        let mut first = vec![3, 0, 0, 0, 0, 16];
        first.extend(block);
        first.extend([0; 3]);
        let mut bytes = PREFACE.to_vec();
        bytes.extend(frame(HEADERS, PADDED | PRIORITY | END_STREAM, &first));
        bytes.extend(frame(CONTINUATION, END_HEADERS, &rest));
        let mut out = Vec::new();
        Rewriter::new().take(&bytes, &mut out).unwrap();
        assert_eq!(out[PREFACE.len() + 3], HEADERS);
        assert_eq!(out[PREFACE.len() + 4], END_STREAM | END_HEADERS);
        let expected = [
            (b":path".to_vec(), b"/sample/path".to_vec()),
            (b":authority".to_vec(), b"localhost".to_vec()),
        ];
        assert_eq!(headers(&out), expected);
    }

    #[test]
    fn what_is_no_http_2_is_refused() {
        let long = frame(0, 0, &vec![0; FRAME_BYTES_MAX + 1]);
        let many = frame(HEADERS, 0, &[0; FRAME_BYTES_MAX]);
        for frames in [
            long,
            [&many[..], &frame(CONTINUATION, 0, &[0])].concat(),
            [&many[..], &frame(0, 0, &[])].concat(),
            frame(CONTINUATION, END_HEADERS, &[]).repeat(2)[..9].repeat(2),
            frame(HEADERS, PADDED | END_HEADERS, &[9]),
            frame(HEADERS, END_HEADERS, &[0xff; 9]),
        ] {
            let mut bytes = PREFACE.to_vec();
            bytes.extend(&frames);
            let mut out = Vec::new();
            let taken = Rewriter::new().take(&bytes, &mut out);
            // A continuation of nothing is the server's to refuse.
            let is_passed = frames[3] == CONTINUATION;
            assert_eq!(taken.is_ok(), is_passed, "{:?}", &frames[..9]);
        }
        assert!(Rewriter::new().take(&[b'G'; 24], &mut Vec::new()).is_err());
    }

    proptest! {
        #![proptest_config(testkit::properties())]

        #[test]
        fn parts_of_any_length_give_the_same(
            frames in prop::collection::vec((0u8..12, any::<u8>(), prop::collection::vec(any::<u8>(), 0..200)), 0..8),
            cuts in prop::collection::vec(1usize..100, 1..50),
        ) {
            let mut bytes = PREFACE.to_vec();
            for (kind, flags, payload) in &frames {
                bytes.extend(frame(*kind, *flags, payload));
            }
            let mut whole = Vec::new();
            let ended = Rewriter::new().take(&bytes, &mut whole).is_ok();
            let (mut rewriter, mut parts, mut rest) = (Rewriter::new(), Vec::new(), &bytes[..]);
            let mut is_well = true;
            for cut in cuts.iter().cycle() {
                if rest.is_empty() || !is_well {
                    break;
                }
                let (part, after) = rest.split_at(rest.len().min(*cut));
                is_well = rewriter.take(part, &mut parts).is_ok();
                rest = after;
            }
            prop_assert_eq!(is_well, ended);
            prop_assert_eq!(parts, whole);
        }
    }
}
