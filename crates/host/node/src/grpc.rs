// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kubelet calls on a driver's sockets: who it is, and what it does.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::{Context as _, Result};
use prost::Message;
use tokio::sync::mpsc::channel;
use tokio::task::spawn_blocking;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::driver::Driver;
use crate::proto::{
    ClaimsRequest, InfoRequest, PluginInfo, PrepareResponse, RegistrationStatus,
    RegistrationStatusResponse, UnprepareResponse,
};
use crate::sockets::Made;

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

/// What the kubelet says of the registration.
pub type Registered = Result<(), String>;

/// Serves both sockets until an end, and then answers what has been asked. Looks after the sockets
/// each time.
///
/// # Errors
/// A socket that is gone and cannot be made again.
pub(crate) async fn serve(
    driver: Arc<Driver>,
    Made {
        registration,
        service,
    }: Made,
    every: Duration,
    registered: Sender<Registered>,
    end: impl Future<Output = ()>,
) -> Result<()> {
    let own = Own {
        driver,
        endpoint: service.path.display().to_string(),
        registered,
    };
    let (came, incoming) = channel(1);
    let served = Server::builder()
        .add_service(Plugin::<0>(own.clone()))
        .add_service(Plugin::<1>(own.clone()))
        .add_service(Plugin::<2>(own))
        .serve_with_incoming_shutdown(ReceiverStream::new(incoming), end);
    tokio::select! {
        served = served => served.context("the kubelet's sockets"),
        failed = service.accept(every, came.clone()) => failed.map(|never| match never {}),
        failed = registration.accept(every, came) => failed.map(|never| match never {}),
    }
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
