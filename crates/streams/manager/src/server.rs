// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accepts connections, with TLS or without, and bounds what each may take.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio_rustls::TlsAcceptor;

use crate::access::sha256;
use crate::service::PeerCertificate;

/// Most connections at a time.
const MOST_CONNECTIONS: usize = 1024;
/// Longest time for a handshake, and for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time for a request with its answer: beyond the protocol's deadline.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest head of a request, bytes.
const MOST_HEAD_BYTES: usize = 16 * 1024;
/// Wait after a connection could not be accepted, because there were no descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// PEM of a server.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// The server's certificate, and those that lead to its authority.
    pub certificate: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
    /// Authorities of the clients' certificates; `None`: clients have none.
    pub client_ca: Option<Vec<u8>>,
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {problem}")]
pub struct TlsError {
    what: &'static str,
    problem: String,
}

fn certificates(pem: &[u8], what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |problem: String| TlsError { what, problem };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| wrong(error.to_string()))?;
    if found.is_empty() {
        Err(wrong("no certificate in it, expected PEM".to_owned()))
    } else {
        Ok(found)
    }
}

impl ServerTls {
    /// Returns what rustls needs. A client without a certificate may still have a token; one whose
    /// certificate is another authority's is refused in the handshake.
    ///
    /// # Errors
    /// If a certificate or key cannot be read, or they do not belong together.
    pub fn config(&self) -> Result<ServerConfig, TlsError> {
        const CERTIFICATE: &str = "the certificate";
        const CLIENT_CA: &str = "the clients' authority";
        let wrong = |what| {
            move |error: String| TlsError {
                what,
                problem: error,
            }
        };
        let chain = certificates(&self.certificate, CERTIFICATE)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key);
        let key = key.map_err(|error| wrong("the key")(error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(CERTIFICATE)(error.to_string()))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = rustls::RootCertStore::empty();
                for certificate in certificates(pem, CLIENT_CA)? {
                    let added = roots.add(certificate);
                    added.map_err(|error| wrong(CLIENT_CA)(error.to_string()))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .allow_unauthenticated()
                        .build()
                        .map_err(|error| wrong(CLIENT_CA)(error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(chain, key);
        config.map_err(|error| wrong(CERTIFICATE)(error.to_string()))
    }
}

/// Serves until `end` is sent or dropped. Connections that are open then are closed.
///
/// # Errors
/// If the socket cannot be used.
pub async fn serve(
    listener: std::net::TcpListener,
    tls: Option<ServerConfig>,
    router: Router,
    end: oneshot::Receiver<()>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
    let slots = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let accepting = async {
        loop {
            // The semaphore is never closed.
            let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
                return;
            };
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let (router, acceptor) = (router.clone(), acceptor.clone());
            tokio::spawn(async move {
                let _slot = slot;
                // Small answers must not wait for more.
                let _ = stream.set_nodelay(true);
                let Some(acceptor) = acceptor else {
                    return connection(stream, router, None).await;
                };
                let handshake = tokio::time::timeout(HEAD_TIMEOUT, acceptor.accept(stream));
                if let Ok(Ok(stream)) = handshake.await {
                    let shown = stream.get_ref().1.peer_certificates();
                    let shown = shown.and_then(|chain| chain.first());
                    let certificate = shown.map(|one| PeerCertificate(sha256(one)));
                    connection(stream, router, certificate).await;
                }
            });
        }
    };
    tokio::select! {
        () = accepting => {}
        _ = end => {}
    }
    Ok(())
}

/// Serves the requests of one connection.
async fn connection<S>(stream: S, router: Router, certificate: Option<PeerCertificate>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router);
    let timed = service_fn(move |mut request: Request<Incoming>| {
        if let Some(certificate) = certificate {
            request.extensions_mut().insert(certificate);
        }
        let answer = service.call(request);
        async move {
            let answer = tokio::time::timeout(REQUEST_TIMEOUT, answer).await;
            answer.unwrap_or_else(|_| {
                let body = Body::from("{\"error\":\"the request took too long\"}");
                let mut late = Response::new(body);
                *late.status_mut() = StatusCode::REQUEST_TIMEOUT;
                Ok(late)
            })
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MOST_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), timed);
    // A client that goes away, or sends no HTTP, is its own affair.
    let _ = served.await;
}
