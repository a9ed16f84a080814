// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two sockets on which the kubelet calls: one says who the driver is, the other serves it.

use std::convert::Infallible;
use std::fs;
use std::future::{Future, Ready, ready};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::{Context, Poll};

use anyhow::{Context as _, Result, bail};
use prost::Message;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::spawn_blocking;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::authority::OfHere;
use crate::driver::Driver;
use crate::proto::{
    ClaimsRequest, InfoRequest, PluginInfo, PrepareResponse, RegistrationStatus,
    RegistrationStatusResponse, UnprepareResponse,
};

/// Names of services on the wire: who the driver is, and what it does by two versions of one
/// protocol.
const SERVICES: [&str; 3] = [
    "pluginregistration.Registration",
    "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
    "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
];
/// The same versions as a plugin names them, the best first.
const VERSIONS: [&str; 2] = ["v1.DRAPlugin", "v1beta1.DRAPlugin"];
const TYPE: &str = "DRAPlugin";

/// The sockets of a driver, below the kubelet's folder.
#[derive(Clone, Debug)]
pub struct Sockets {
    /// Who it is.
    pub registration: PathBuf,
    /// What it does.
    pub service: PathBuf,
}

impl Sockets {
    /// Returns where the kubelet looks for them.
    #[must_use]
    pub fn new(kubelet: &Path, driver: &str) -> Self {
        let registration = format!("plugins_registry/{driver}-reg.sock");
        Self {
            registration: kubelet.join(registration),
            service: kubelet.join("plugins").join(driver).join("dra.sock"),
        }
    }
}

/// What the kubelet says of the registration.
pub type Registered = Result<(), String>;

/// Serves both sockets for good.
///
/// # Errors
/// A socket that cannot be made.
pub async fn serve(
    driver: Arc<Driver>,
    sockets: &Sockets,
    registered: Sender<Registered>,
) -> Result<()> {
    let own = Own {
        driver,
        endpoint: sockets.service.display().to_string(),
        registered,
    };
    // The kubelet calls as soon as it sees the second.
    let service = listen(&sockets.service)?;
    let registration = listen(&sockets.registration)?;
    let serve = Server::builder()
        .add_service(Plugin::<1>(own.clone()))
        .add_service(Plugin::<2>(own.clone()))
        .serve_with_incoming(UnixListenerStream::new(service).map(of_here));
    let register = Server::builder()
        .add_service(Plugin::<0>(own))
        .serve_with_incoming(UnixListenerStream::new(registration).map(of_here));
    tokio::try_join!(serve, register).context("the kubelet's sockets")?;
    Ok(())
}

fn of_here(stream: io::Result<UnixStream>) -> io::Result<OfHere> {
    stream.map(OfHere::new)
}

/// Makes a socket in place of that of a process that has ended.
fn listen(path: &Path) -> Result<UnixListener> {
    let make = || -> Result<UnixListener> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => fs::remove_file(path)?,
            Ok(_) => bail!("it is no socket, expected one or nothing"),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        Ok(UnixListener::bind(path)?)
    };
    make().with_context(|| path.display().to_string())
}

#[derive(Clone)]
struct Own {
    driver: Arc<Driver>,
    endpoint: String,
    registered: Sender<Registered>,
}

impl Own {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            kind: TYPE.to_owned(),
            name: self.driver.owner.driver.clone(),
            endpoint: self.endpoint.clone(),
            supported_versions: VERSIONS.map(str::to_owned).to_vec(),
        }
    }

    fn notify(&self, status: RegistrationStatus) -> RegistrationStatusResponse {
        let RegistrationStatus {
            plugin_registered,
            error,
        } = status;
        // Nobody listens to a process that ends.
        let _ = self.registered.send(if plugin_registered {
            Ok(())
        } else {
            Err(error)
        });
        RegistrationStatusResponse {}
    }
}

/// One of [`SERVICES`].
#[derive(Clone)]
struct Plugin<const SERVICE: usize>(Own);

impl<const SERVICE: usize> NamedService for Plugin<SERVICE> {
    const NAME: &'static str = SERVICES[SERVICE];
}

type Answer = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

impl<const SERVICE: usize> Service<http::Request<Body>> for Plugin<SERVICE> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Answer {
        let own = self.0.clone();
        let path = request.uri().path().to_owned();
        let method = path.rsplit('/').next().unwrap_or_default();
        match (SERVICE, method) {
            (0, "GetInfo") => answer(request, move |_: InfoRequest| own.info()),
            (0, "NotifyRegistrationStatus") => answer(request, move |status| own.notify(status)),
            (1 | 2, "NodePrepareResources") => answer(request, move |asked: ClaimsRequest| {
                let claims = own.driver.prepare(&asked.claims);
                PrepareResponse { claims }
            }),
            (1 | 2, "NodeUnprepareResources") => answer(request, move |asked: ClaimsRequest| {
                let claims = own.driver.unprepare(&asked.claims);
                UnprepareResponse { claims }
            }),
            _ => Box::pin(ready(
                Ok(Status::new(Code::Unimplemented, path).into_http()),
            )),
        }
    }
}

/// Answers a request by a function that may wait.
fn answer<Q, A>(request: http::Request<Body>, work: impl FnOnce(Q) -> A + Send + 'static) -> Answer
where
    Q: Message + Default + 'static,
    A: Message + Default + 'static,
{
    Box::pin(async move {
        let mut grpc = Grpc::new(ProstCodec::<A, Q>::default());
        Ok(grpc.unary(Method(Some(work)), request).await)
    })
}

/// A function as a method; it is called once.
struct Method<F>(Option<F>);

impl<Q, A, F> UnaryService<Q> for Method<F>
where
    Q: Send + 'static,
    A: Send + 'static,
    F: FnOnce(Q) -> A + Send + 'static,
{
    type Response = A;
    type Future = Pin<Box<dyn Future<Output = Result<Response<A>, Status>> + Send>>;

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let Some(work) = self.0.take() else {
            let called: Ready<Result<Response<A>, Status>> =
                ready(Err(Status::internal("called twice")));
            return Box::pin(called);
        };
        Box::pin(async move {
            let done = spawn_blocking(move || work(request.into_inner())).await;
            match done {
                Ok(answer) => Ok(Response::new(answer)),
                Err(_) => Err(Status::internal("a thread ended early")),
            }
        })
    }
}
