// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls a driver as the kubelet does: gRPC over its sockets.

use std::path::Path;

use node::proto::{
    Claim, ClaimsRequest, InfoRequest, PluginInfo, PrepareResponse, Prepared, RegistrationStatus,
    RegistrationStatusResponse, UnprepareResponse,
};
use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Endpoint;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

pub const V1: &str = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin";
pub const V1BETA1: &str = "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin";

pub fn call<Q, A>(socket: &Path, method: &str, request: Q) -> Result<A, Status>
where
    Q: Message + Send + Sync + 'static,
    A: Message + Default + Send + Sync + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let endpoint = Endpoint::new(format!("unix:{}", socket.display())).unwrap();
        let unavailable = |error: tonic::transport::Error| Status::unavailable(error.to_string());
        let channel = endpoint.connect().await.map_err(unavailable)?;
        let mut grpc = Grpc::new(channel);
        grpc.ready().await.map_err(unavailable)?;
        let path = PathAndQuery::try_from(method.to_owned()).unwrap();
        let codec = ProstCodec::<Q, A>::default();
        let answer = grpc.unary(Request::new(request), path, codec).await?;
        Ok(answer.into_inner())
    })
}

/// Registers a driver as the kubelet does once it sees its socket, and returns what it is.
pub fn register(socket: &Path) -> PluginInfo {
    let of = "/pluginregistration.Registration";
    let info: PluginInfo = call(socket, &format!("{of}/GetInfo"), InfoRequest {}).unwrap();
    let status = RegistrationStatus {
        plugin_registered: true,
        error: String::new(),
    };
    let method = format!("{of}/NotifyRegistrationStatus");
    let _: RegistrationStatusResponse = call(socket, &method, status).unwrap();
    info
}

pub fn prepare(socket: &Path, version: &str, claim: &Claim) -> Result<Prepared, Status> {
    let claims = vec![claim.clone()];
    let method = format!("{version}/NodePrepareResources");
    let mut answer: PrepareResponse = call(socket, &method, ClaimsRequest { claims })?;
    assert_eq!(answer.claims.len(), 1);
    Ok(answer.claims.remove(&claim.uid).unwrap())
}

/// Unprepares one claim, and returns the error.
pub fn unprepare(socket: &Path, version: &str, claim: &Claim) -> Result<String, Status> {
    let claims = vec![claim.clone()];
    let method = format!("{version}/NodeUnprepareResources");
    let mut answer: UnprepareResponse = call(socket, &method, ClaimsRequest { claims })?;
    Ok(answer.claims.remove(&claim.uid).unwrap().error)
}
