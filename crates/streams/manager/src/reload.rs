// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a manager reads again while it runs: its callers and its certificates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::ServerConfig;

use crate::access::{self, Access};
use crate::replaceable::Replaceable;
use crate::server::{ServerTls, TlsPart};

/// Paths of the files.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Who may ask for what; `None`: everybody.
    pub access: Option<PathBuf>,
    /// Certificate and key; `None`: without TLS.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Authorities of the clients' certificates.
    pub client_ca: Option<PathBuf>,
}

/// What the files say.
#[derive(Debug)]
pub struct Loaded {
    /// Who may ask for what.
    pub access: Access,
    pub tls: Option<ServerConfig>,
}

/// Reads a file; errors name it.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    psp_files::read::bytes(path).with_context(|| path.display().to_string())
}

impl Files {
    /// Reads and checks all files.
    ///
    /// # Errors
    /// The first fault, with the file, and its line where it has lines.
    pub fn read(&self) -> Result<Loaded> {
        Ok(Loaded {
            access: self.read_access()?,
            tls: self.read_tls()?,
        })
    }

    fn read_access(&self) -> Result<Access> {
        let Some(path) = &self.access else {
            return Ok(Access::Open);
        };
        let named = || path.display().to_string();
        let text = psp_files::read::text(path).with_context(named)?;
        access::read(&text).with_context(named)
    }

    fn read_tls(&self) -> Result<Option<ServerConfig>> {
        let Some((certificate, key)) = &self.identity else {
            return Ok(None);
        };
        let tls = ServerTls {
            certificate: read(certificate)?,
            key: read(key)?,
            client_ca: self.client_ca.as_deref().map(read).transpose()?,
        };
        match tls.config() {
            Ok(config) => Ok(Some(config)),
            Err(error) => {
                let path = match error.what {
                    TlsPart::Certificate => certificate,
                    TlsPart::Key => key,
                    TlsPart::ClientCa => self.client_ca.as_ref().unwrap_or(certificate),
                };
                Err(error).with_context(|| path.display().to_string())
            }
        }
    }
}

/// The files of a manager that runs, and what it has read of them.
#[derive(Clone, Debug)]
pub struct Reload {
    files: Files,
    /// Who may ask for what.
    pub access: Arc<Replaceable<Access>>,
    pub tls: Option<Arc<Replaceable<ServerConfig>>>,
}

impl Reload {
    /// Reads the files for the first time.
    pub fn start(files: Files) -> Result<Self> {
        let Loaded { access, tls } = files.read()?;
        Ok(Self {
            files,
            access: Arc::new(Replaceable::new(access)),
            tls: tls.map(|config| Arc::new(Replaceable::new(config))),
        })
    }

    /// Reads the files again. All of them are checked before any takes effect.
    ///
    /// # Errors
    /// The first fault of a file. What was read before stays in effect.
    pub fn again(&self) -> Result<()> {
        let Loaded { access, tls } = self.files.read()?;
        self.access.set(access);
        if let (Some(current), Some(config)) = (&self.tls, tls) {
            current.set(config);
        }
        Ok(())
    }

    /// Reads the files again, and returns what is to be said of it.
    pub fn again_in_words(&self) -> String {
        match self.again() {
            Ok(()) => "pspacer: --access and certificates are read again".to_owned(),
            Err(error) => {
                format!("pspacer: {error:#}; --access and certificates stay as they were")
            }
        }
    }
}
