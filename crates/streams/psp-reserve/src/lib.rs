// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reservations for programs in C: `include/psp_reserve.h` describes every function. Rust programs
//! use `manager_proto::client`.
//!
//! # Safety
//! As the header says: strings end with a 0, `to` has `to_count` of them, `error` has room for
//! `error_size` bytes, and a manager comes from [`psp_reserve_open`] and is not closed.

#![allow(unsafe_code, reason = "pointers of C")]

use std::any::Any;
use std::ffi::{CStr, c_char};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

use admission::{
    FrameSpecification, Interval, Listener, NAME, Requirements, StreamRequest, Talker,
    TrafficSpecification, is_name,
};
use manager_proto::answer::View;
use manager_proto::api::ReserveBody;
use manager_proto::client::{Client, ClientError, Reserved, Tls};

/// Longest id, with the final 0.
pub const ID_BYTES: usize = 65;

/// How a call ends.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Ok = 0,
    /// The stream does not fit.
    Refused = 1,
    /// An argument is not valid.
    Invalid = 2,
    /// The manager does not answer.
    NoAnswer = 3,
    /// The manager does not do it.
    Failed = 4,
}

#[derive(Debug)]
pub struct Manager(Client);

/// A stream that asks.
#[repr(C)]
#[derive(Debug)]
pub struct Stream {
    /// Id of the request.
    pub id: *const c_char,
    /// The host that sends.
    pub from: *const c_char,
    /// The hosts that receive.
    pub to: *const *const c_char,
    /// How many.
    pub to_count: usize,
    /// Address and port of the stream's frames, or null.
    pub udp_to: *const c_char,
    /// UDP payload in a period, bytes.
    pub bytes: u32,
    /// Period, ns.
    pub period_ns: u64,
    /// Longest delay, ns; 0: any.
    pub latency_ns: u64,
    /// Length of the lease, ns.
    pub lease_ns: u64,
}

#[repr(C)]
#[derive(Debug)]
pub struct Grant {
    pub id: [c_char; ID_BYTES],
    /// 1 if it is in force.
    pub in_force: u8,
    /// Longest delay, ns.
    pub bound_ns: u64,
    /// Length of the lease, ns.
    pub lease_ns: u64,
    /// Time until it ends, ns.
    pub expires_in_ns: u64,
}

// The header has the same numbers, asserted by the test's program.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<Stream>() == 72 && std::mem::offset_of!(Stream, bytes) == 40);
    assert!(std::mem::offset_of!(Stream, lease_ns) == 64);
    assert!(size_of::<Grant>() == 96 && std::mem::offset_of!(Grant, in_force) == 65);
    assert!(std::mem::offset_of!(Grant, expires_in_ns) == 88);
};

type Fault = (Status, String);

fn invalid(problem: String) -> Fault {
    (Status::Invalid, problem)
}

fn of_client(error: ClientError) -> Fault {
    let status = match &error {
        ClientError::Transport { .. } => Status::NoAnswer,
        ClientError::Certificate(_) | ClientError::Refused { status: 400, .. } => Status::Invalid,
        ClientError::Refused { .. } => Status::Failed,
    };
    (status, error.to_string())
}

/// Returns a string of C; `None` is a null pointer.
unsafe fn optional<'a>(name: &str, text: *const c_char) -> Result<Option<&'a str>, Fault> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: it ends with a 0, as the header asks.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(Some)
        .map_err(|_| invalid(format!("`{name}` is no UTF-8")))
}

/// Returns a string of C.
unsafe fn required<'a>(name: &str, text: *const c_char) -> Result<&'a str, Fault> {
    // SAFETY: the caller's.
    let text = unsafe { optional(name, text) }?;
    text.ok_or_else(|| invalid(format!("`{name}` is NULL, expected a string")))
}

/// Returns an id, which is part of a path.
unsafe fn required_id<'a>(id: *const c_char) -> Result<&'a str, Fault> {
    // SAFETY: the caller's.
    let id = unsafe { required("id", id) }?;
    if is_name(id) {
        Ok(id)
    } else {
        Err(invalid(format!("`id` is \"{id}\", expected {NAME}")))
    }
}

/// Writes a sentence, cut between two letters, with a 0.
unsafe fn write_error(sentence: &str, error: *mut c_char, error_size: usize) {
    let Some(room) = error_size.checked_sub(1).filter(|_| !error.is_null()) else {
        return;
    };
    let mut length = sentence.len().min(room);
    while !sentence.is_char_boundary(length) {
        length -= 1;
    }
    // SAFETY: it has room for `error_size` bytes, as the header asks.
    let to = unsafe { slice::from_raw_parts_mut(error.cast::<u8>(), length + 1) };
    to[..length].copy_from_slice(&sentence.as_bytes()[..length]);
    to[length] = 0;
}

/// Does something; a panic must not leave for C.
unsafe fn called<T>(
    what: impl FnOnce() -> Result<T, Fault>,
    error: *mut c_char,
    error_size: usize,
) -> Result<T, Status> {
    let panicked =
        |_: Box<dyn Any + Send>| Err((Status::Failed, "a fault of the library".to_owned()));
    catch_unwind(AssertUnwindSafe(what))
        .unwrap_or_else(panicked)
        .map_err(|(status, sentence)| {
            // SAFETY: the caller's.
            unsafe { write_error(&sentence, error, error_size) };
            status
        })
}

unsafe fn client<'a>(manager: *const Manager) -> Result<&'a Client, Fault> {
    // SAFETY: it is NULL or from `psp_reserve_open`, as the header asks.
    let manager = unsafe { manager.as_ref() };
    let known = manager.map(|manager| &manager.0);
    known.ok_or_else(|| invalid("`manager` is NULL, expected one that is open".to_owned()))
}

/// Checks that there is room for a grant, before anything is asked.
fn room(grant: *mut Grant) -> Result<(), Fault> {
    if grant.is_null() {
        Err(invalid("`grant` is NULL, expected room for one".to_owned()))
    } else {
        Ok(())
    }
}

unsafe fn write_grant(view: &View, grant: *mut Grant) {
    let mut id = [0; ID_BYTES];
    for (to, from) in id.iter_mut().take(ID_BYTES - 1).zip(view.id.bytes()) {
        *to = from as c_char;
    }
    let new = Grant {
        id,
        in_force: view.in_force.into(),
        bound_ns: view.bound_ns,
        lease_ns: view.lease_ns,
        expires_in_ns: view.expires_in_ns,
    };
    // SAFETY: it has room, as the header asks.
    unsafe { grant.write(new) };
}

fn end(done: Result<(), Status>) -> Status {
    match done {
        Ok(()) => Status::Ok,
        Err(status) => status,
    }
}

/// Opens a manager; null if an argument is not valid.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psp_reserve_open(
    url: *const c_char,
    token: *const c_char,
    ca: *const c_char,
    error: *mut c_char,
    error_size: usize,
) -> *mut Manager {
    let open = || {
        // SAFETY: the caller's.
        let (url, token, ca) = unsafe {
            (
                required("url", url)?,
                optional("token", token)?,
                optional("ca", ca)?,
            )
        };
        let tls = Tls {
            ca: ca.map(|pem| pem.as_bytes().to_vec()),
            identity: None,
        };
        let client = Client::new(url, token.map(str::to_owned), &tls).map_err(of_client)?;
        Ok(Box::into_raw(Box::new(Manager(client))))
    };
    // SAFETY: the caller's.
    unsafe { called(open, error, error_size) }.unwrap_or(std::ptr::null_mut())
}

/// Closes a manager.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psp_reserve_close(manager: *mut Manager) {
    if !manager.is_null() {
        // SAFETY: it is from `psp_reserve_open` and not closed, as the header asks.
        drop(unsafe { Box::from_raw(manager) });
    }
}

/// Reads a stream of C.
unsafe fn body(stream: *const Stream) -> Result<ReserveBody, Fault> {
    // SAFETY: it is NULL or a stream, as the header asks.
    let stream = unsafe { stream.as_ref() };
    let stream = stream.ok_or_else(|| invalid("`stream` is NULL, expected one".to_owned()))?;
    // SAFETY: the caller's.
    let (id, from, udp_to) = unsafe {
        (
            required_id(stream.id)?,
            required("from", stream.from)?,
            optional("udp_to", stream.udp_to)?,
        )
    };
    if stream.to.is_null() {
        return Err(invalid(
            "`to` is NULL, expected the hosts that receive".to_owned(),
        ));
    }
    // SAFETY: there are `to_count`, as the header asks.
    let to = unsafe { slice::from_raw_parts(stream.to, stream.to_count) };
    let listener = |name: &*const c_char| {
        Ok(Listener {
            // SAFETY: the caller's.
            name: unsafe { required("to", *name) }?.to_owned(),
            user_to_network_requirements: Requirements::default(),
            route: Vec::new(),
        })
    };
    let udp_to = udp_to.map(|text| {
        let expected = "an address and port such as 10.0.0.2:5004";
        text.parse::<SocketAddr>()
            .map_err(|_| invalid(format!("`udp_to` is \"{text}\", expected {expected}")))
    });
    let frames = udp_to.transpose()?.map(FrameSpecification::udp_to);
    let interval = Interval::from_ns(stream.period_ns).ok_or_else(|| {
        let expected = "1000 to 4294967295";
        invalid(format!(
            "`period_ns` is {}, expected {expected}",
            stream.period_ns
        ))
    })?;
    let traffic_specification = TrafficSpecification {
        interval,
        max_frames_per_interval: None,
        max_frame_size: None,
        bytes_per_interval: Some(stream.bytes),
    };
    Ok(ReserveBody {
        replace: false,
        id: id.to_owned(),
        lease_ns: stream.lease_ns,
        stream: StreamRequest {
            stream_id: id.to_owned(),
            talker: Talker {
                name: from.to_owned(),
                data_frame_specification: frames.into_iter().collect(),
                traffic_specification,
                user_to_network_requirements: Requirements {
                    max_latency: stream.latency_ns,
                },
            },
            listeners: to.iter().map(listener).collect::<Result<_, Fault>>()?,
        },
    })
}

/// Reserves.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psp_reserve(
    manager: *const Manager,
    stream: *const Stream,
    grant: *mut Grant,
    error: *mut c_char,
    error_size: usize,
) -> Status {
    let reserve = || {
        room(grant)?;
        // SAFETY: the caller's.
        let (client, body) = unsafe { (client(manager)?, body(stream)?) };
        match client.reserve(&body).map_err(of_client)? {
            Reserved::Granted(view) => {
                // SAFETY: the caller's.
                unsafe { write_grant(&view, grant) };
                Ok(())
            }
            Reserved::Refused(view) => Err((Status::Refused, view.message)),
        }
    };
    // SAFETY: the caller's.
    end(unsafe { called(reserve, error, error_size) })
}

/// Begins a lease anew.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psp_reserve_renew(
    manager: *const Manager,
    id: *const c_char,
    lease_ns: u64,
    grant: *mut Grant,
    error: *mut c_char,
    error_size: usize,
) -> Status {
    let renew = || {
        room(grant)?;
        // SAFETY: the caller's.
        let (client, id) = unsafe { (client(manager)?, required_id(id)?) };
        let lease_ns = Some(lease_ns).filter(|ns| *ns > 0);
        let view = client.refresh(id, lease_ns).map_err(of_client)?;
        // SAFETY: the caller's.
        unsafe { write_grant(&view, grant) };
        Ok(())
    };
    // SAFETY: the caller's.
    end(unsafe { called(renew, error, error_size) })
}

/// Frees a reservation.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn psp_reserve_release(
    manager: *const Manager,
    id: *const c_char,
    error: *mut c_char,
    error_size: usize,
) -> Status {
    let release = || {
        // SAFETY: the caller's.
        let (client, id) = unsafe { (client(manager)?, required_id(id)?) };
        client.release(id).map(|_| ()).map_err(of_client)
    };
    // SAFETY: the caller's.
    end(unsafe { called(release, error, error_size) })
}
