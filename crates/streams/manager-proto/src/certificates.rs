// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks a client's certificates before anything is sent: the HTTP client panics at a key that does not
//! belong to its certificate, and that in whatever thread asks first.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};

/// Returns what is wrong with the PEM of authorities, or of a client's certificate and its key; nothing, if
/// rustls can use them now.
///
/// # Errors
/// Which part is wrong, and why.
pub fn check(ca: Option<&[u8]>, identity: Option<(&[u8], &[u8])>) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    if let Some(ca) = ca {
        const CA: &str = "the authority's certificate";
        for certificate in chain(ca).map_err(|error| format!("{CA}: {error}"))? {
            let added = roots.add(certificate);
            added.map_err(|error| format!("{CA}: {error}"))?;
        }
    }
    let Some((certificate, key)) = identity else {
        return Ok(());
    };
    const OWN: &str = "the client's certificate";
    let chain = chain(certificate).map_err(|error| format!("{OWN}: {error}"))?;
    let key = PrivateKeyDer::from_pem_slice(key);
    let key = key.map_err(|error| format!("the key: {error}, expected a key as PEM"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    is_in_time(&chain, &provider).map_err(|error| format!("{OWN}: {error}"))?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key);
    let together = |error: Error| format!("{OWN} and its key: {error}, expected a pair");
    config.map(drop).map_err(together)
}

/// Reads the certificates of a PEM, one at least.
pub fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| error.to_string())?;
    if found.is_empty() {
        return Err("no certificate in it, expected PEM".to_owned());
    }
    Ok(found)
}

/// Returns an error if a certificate cannot be parsed, has expired or is not valid yet. The verifier
/// looks at the times first; that it does not trust the certificate is the manager's affair.
fn is_in_time(
    chain: &[CertificateDer<'static>],
    provider: &Arc<CryptoProvider>,
) -> Result<(), Error> {
    let Some((first, others)) = chain.split_first() else {
        return Ok(());
    };
    let mut roots = RootCertStore::empty();
    roots.add(first.clone())?;
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    let Ok(verifier) = verifier else {
        return Ok(());
    };
    match verifier.verify_client_cert(first, others, UnixTime::now()) {
        Err(
            error @ Error::InvalidCertificate(
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. },
            ),
        ) => Err(error),
        _ => Ok(()),
    }
}
