// SPDX-License-Identifier: MIT OR Apache-2.0
//! The errors of a router.

use std::io;

/// The reason why a router does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A device cannot be used.
    #[error("device {name}: {error}")]
    Device { name: String, error: io::Error },
    /// AF_PACKET lacks a permission.
    #[error(
        "device {name}: {error}: AF_PACKET needs CAP_NET_RAW (of the network namespace's \
         owner); run it as root, or: setcap cap_net_raw,cap_sys_nice+ep on pspacer"
    )]
    Rights { name: String, error: io::Error },
    /// The kernel forwards the device's packets too: each packet would be sent twice.
    #[error(
        "device {name}: the kernel forwards its IPv4 packets too, and by AF_PACKET both would \
         send each: expected 0 in {path}, as by: sysctl -w net.ipv4.ip_forward=0"
    )]
    Forwards {
        name: String,
        /// File with the kernel's setting.
        path: String,
    },
    /// A device that is to be used with AF_XDP alone does not have it.
    #[error("device {name}: no AF_XDP (`io` is \"xdp\"): {error}")]
    NoXdp {
        name: String,
        error: crate::afxdp::Error,
    },
    /// Any other error of the system.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A thread panicked: a bug of the router.
    #[error("the {0} thread failed")]
    Thread(&'static str),
}
