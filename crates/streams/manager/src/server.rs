// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accepts connections, with TLS or without, and bounds what each may take.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use linux_io::descriptors::{raise_limit, set_backlog};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::access::sha256;
use crate::connections::{Connections, Place};
use crate::open_connections::ConnectionLimits;
use crate::replaceable::Replaceable;
use crate::service::PeerCertificate;
use manager_proto::certificates::chain;

/// Longest wait of a known connection for the head of its next request. Clients keep a connection
/// for as long as 60 s; those that are pending have less time, see [`ConnectionLimits`].
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Longest time for a request with its answer: beyond the longest wait of the service, 25 s.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest head of a request, bytes.
const MOST_HEAD_BYTES: usize = 16 * 1024;
/// Wait after a connection could not be accepted, because there were no descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// Between two looks for connections that have been pending for too long.
const EXPIRE_EVERY: Duration = Duration::from_millis(250);
/// Connections that the kernel holds until they are accepted.
const BACKLOG: i32 = 4096;

/// PEM of a server.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// The server's certificate, and those that lead to its authority.
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
    /// Authorities of the clients' certificates; `None`: clients have none.
    pub client_ca: Option<Vec<u8>>,
}

/// A part of what TLS needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPart {
    /// The server's certificate, alone or beside its key.
    Certificate,
    Key,
    /// Authorities of the clients' certificates.
    ClientCa,
}

impl fmt::Display for TlsPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate => "the certificate",
            Self::Key => "the key",
            Self::ClientCa => "the clients' authority",
        })
    }
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {problem}")]
pub struct TlsError {
    /// The part that is wrong.
    pub what: TlsPart,
    problem: String,
}

fn certificates(pem: &[u8], what: TlsPart) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    chain(pem).map_err(|problem| TlsError { what, problem })
}

impl ServerTls {
    /// Returns what rustls needs. A client without a certificate may still have a token; one whose
    /// certificate is another authority's is refused in the handshake.
    ///
    /// # Errors
    /// If a certificate or key cannot be read, or they do not belong together.
    pub fn config(&self) -> Result<ServerConfig, TlsError> {
        let wrong = |what| {
            move |error: String| TlsError {
                what,
                problem: error,
            }
        };
        let chain = certificates(&self.certificate, TlsPart::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key);
        let key = key.map_err(|error| wrong(TlsPart::Key)(error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(TlsPart::Certificate)(error.to_string()))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = rustls::RootCertStore::empty();
                for certificate in certificates(pem, TlsPart::ClientCa)? {
                    let added = roots.add(certificate);
                    added.map_err(|error| wrong(TlsPart::ClientCa)(error.to_string()))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .allow_unauthenticated()
                        .build()
                        .map_err(|error| wrong(TlsPart::ClientCa)(error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(chain, key);
        config.map_err(|error| wrong(TlsPart::Certificate)(error.to_string()))
    }
}

/// Serves until `end` is sent or dropped. Connections that are open then are closed. A new connection
/// has the certificate that is current then.
pub async fn serve(
    listener: std::net::TcpListener,
    tls: Option<Arc<Replaceable<ServerConfig>>>,
    router: Router,
    end: oneshot::Receiver<()>,
) -> io::Result<()> {
    set_backlog(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let limits = ConnectionLimits::of_descriptors(raise_limit());
    let connections = Connections::new(limits);
    let handshakes = Connections::new(limits.of_handshakes());
    let accepting = async {
        loop {
            let Ok((stream, from)) = listener.accept().await else {
                // Without descriptors others give their own back.
                handshakes.give_way();
                connections.give_way();
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            // Small answers must not wait for more.
            let _ = stream.set_nodelay(true);
            let (router, connections) = (router.clone(), connections.clone());
            if let Some(tls) = &tls {
                let acceptor = TlsAcceptor::from(tls.get());
                let (place, closed) = handshakes.admit(from.ip());
                tokio::spawn(async move {
                    let shaken = tokio::select! {
                        of = acceptor.accept(stream) => of,
                        // Another one needs the place, or there was no handshake in time.
                        _ = closed => return,
                    };
                    drop(place);
                    let Ok(stream) = shaken else {
                        return;
                    };
                    let shown = stream.get_ref().1.peer_certificates();
                    let shown = shown.and_then(|chain| chain.first());
                    let certificate = shown.map(|one| PeerCertificate(sha256(one)));
                    one_connection(stream, from, certificate, (router, connections)).await;
                });
            } else {
                tokio::spawn(one_connection(stream, from, None, (router, connections)));
            }
            // All connections go on between two new ones: a flood of these does not hold them up.
            tokio::task::yield_now().await;
        }
    };
    let expiring = async {
        loop {
            tokio::time::sleep(EXPIRE_EVERY).await;
            handshakes.expire();
            connections.expire();
        }
    };
    tokio::select! {
        () = accepting => {}
        () = expiring => {}
        _ = end => {}
    }
    Ok(())
}

/// Serves as [`serve`] does, in this thread.
pub fn serve_here(
    listener: std::net::TcpListener,
    tls: Option<Arc<Replaceable<ServerConfig>>>,
    router: Router,
    end: oneshot::Receiver<()>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(listener, tls, router, end))
}

/// Serves a connection, as long as it has a place.
async fn one_connection<S>(
    stream: S,
    from: SocketAddr,
    certificate: Option<PeerCertificate>,
    (router, connections): (Router, Connections),
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (place, closed) = connections.admit(from.ip());
    tokio::select! {
        () = requests(stream, router, certificate, Arc::new(place)) => {}
        // Another one needs the place, or there was no request in time.
        _ = closed => {}
    }
}

/// Serves the requests of one connection.
async fn requests<S>(
    stream: S,
    router: Router,
    certificate: Option<PeerCertificate>,
    place: Arc<Place>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = TowerToHyperService::new(router);
    let timed = service_fn(move |mut request: Request<Incoming>| {
        if let Some(certificate) = certificate {
            request.extensions_mut().insert(certificate);
        }
        request.extensions_mut().insert(Arc::clone(&place));
        let answer = service.call(request);
        async move {
            let answer = tokio::time::timeout(REQUEST_TIMEOUT, answer).await;
            answer.unwrap_or_else(|_| {
                let body = Body::from("{\"error\":\"the request took too long\"}");
                let mut late = Response::new(body);
                *late.status_mut() = StatusCode::REQUEST_TIMEOUT;
                let json = HeaderValue::from_static("application/json");
                late.headers_mut().insert(CONTENT_TYPE, json);
                Ok(late)
            })
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
        .max_buf_size(MOST_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), timed);
    // A client that goes away, or sends no HTTP, is its own affair.
    let _ = served.await;
}
