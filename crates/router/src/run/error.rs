// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a router does not run.

use std::io;

/// Why a router does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A device that cannot be used.
    #[error("device {name}: {error}")]
    Device {
        /// Its name.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// What AF_PACKET asks for.
    #[error(
        "device {name}: {error}: AF_PACKET needs CAP_NET_RAW (of the network namespace's \
         owner); run it as root, or: setcap cap_net_raw,cap_sys_nice+ep on pspacer"
    )]
    Rights {
        /// Its name.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// Each packet would be sent twice.
    #[error(
        "device {name}: the kernel forwards its IPv4 packets too, and by AF_PACKET both would \
         send each: expected 0 in {path}, as by: sysctl -w net.ipv4.ip_forward=0"
    )]
    Forwards {
        /// Its name.
        name: String,
        /// Where the kernel says so.
        path: String,
    },
    /// A device that is to be used by AF_XDP alone.
    #[error("device {name}: no AF_XDP (`io` is \"xdp\"): {error}")]
    NoXdp {
        /// Its name.
        name: String,
        /// Why not.
        error: afxdp::Error,
    },
    /// Anything else of the system's.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A bug of ours.
    #[error("the {0} thread failed")]
    Thread(&'static str),
}
