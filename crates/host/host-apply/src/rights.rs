// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel tells root alone: who is not told does not know that it is not so.

use std::error::Error;
use std::fmt::{Display, Formatter, Result as Formatted};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use anyhow::Result;
use tcpsp::Tc;

/// What is not known to this user; its causes say what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Untold;

impl Display for Untold {
    fn fmt(&self, out: &mut Formatter<'_>) -> Formatted {
        out.write_str("run it as root with its capabilities, the kernel tells this to nobody else")
    }
}

impl Error for Untold {}

/// Returns what a file says; nothing, if there is none.
///
/// # Errors
/// That this user may not read it.
pub(crate) fn told(path: &Path) -> Result<Vec<u8>> {
    known(path, fs::read(path)).map(Option::unwrap_or_default)
}

/// Returns whether there is such a file.
///
/// # Errors
/// That this user may not look.
pub(crate) fn exists(path: &Path) -> Result<bool> {
    Ok(known(path, fs::metadata(path))?.is_some())
}

fn known<T>(path: &Path, read: io::Result<T>) -> Result<Option<T>> {
    match read {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let path = path.display().to_string();
            Err(anyhow::Error::new(error).context(path).context(Untold))
        }
        read => Ok(read.ok()),
    }
}

/// Returns whether the kernel's refusal to show BPF, or to load it, says what it can do: of a process
/// that may not change anything it says nothing.
pub(crate) fn is_known(tc: &mut Tc, error: &backend::Error) -> bool {
    use backend::Error::{Kernel, Qdisc, Refused};
    !matches!(error, Refused { .. } | Qdisc(_) | Kernel(_)) || tc.may_change()
}

/// Returns a refusal to show BPF, or to load it, with what helps.
pub(crate) fn refused(tc: &mut Tc, error: backend::Error) -> anyhow::Error {
    if is_known(tc, &error) {
        return error.into();
    }
    anyhow::Error::new(error).context(Untold)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail that way")]

    use super::*;

    #[test]
    fn what_may_not_be_read_is_not_known() {
        let path = Path::new("/lib/modules");
        let denied = known::<()>(path, Err(ErrorKind::PermissionDenied.into()));
        let error = denied.unwrap_err().context("host.toml:2");
        assert!(error.is::<Untold>());
        let said = format!("{error:#}");
        let expected = format!("host.toml:2: {Untold}: /lib/modules: permission denied");
        assert_eq!(said, expected);
        let missing = known::<()>(path, Err(ErrorKind::NotFound.into()));
        assert_eq!(missing.unwrap(), None);
        assert_eq!(known(path, Ok(7)).unwrap(), Some(7));
    }
}
