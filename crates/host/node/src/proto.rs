// SPDX-License-Identifier: MIT OR Apache-2.0
//! The messages that the kubelet and its plugins exchange: of pluginregistration (v1) and of DRA
//! (v1; v1beta1 has the same ones). Numbers of fields are the protocols'.

use std::collections::HashMap;

/// What the kubelet asks a plugin for first.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct InfoRequest {}

/// What a plugin is.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PluginInfo {
    #[prost(string, tag = "1")]
    pub kind: String,
    /// The driver's name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The socket of its service.
    #[prost(string, tag = "3")]
    pub endpoint: String,
    /// The services that it has.
    #[prost(string, repeated, tag = "4")]
    pub supported_versions: Vec<String>,
}

/// Whether the kubelet takes it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RegistrationStatus {
    #[prost(bool, tag = "1")]
    pub plugin_registered: bool,
    /// Why not.
    #[prost(string, tag = "2")]
    pub error: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RegistrationStatusResponse {}

/// A claim, as the kubelet names it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Claim {
    #[prost(string, tag = "1")]
    pub namespace: String,
    #[prost(string, tag = "2")]
    pub uid: String,
    #[prost(string, tag = "3")]
    pub name: String,
}

/// Claims that are to be prepared, or whose pods are gone.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ClaimsRequest {
    #[prost(message, repeated, tag = "1")]
    pub claims: Vec<Claim>,
}

/// What became of each, by uid.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PrepareResponse {
    #[prost(map = "string, message", tag = "1")]
    pub claims: HashMap<String, Prepared>,
}

/// A claim that is prepared, or why it is not.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Prepared {
    #[prost(message, repeated, tag = "1")]
    pub devices: Vec<Device>,
    /// Why not; empty if it is.
    #[prost(string, tag = "2")]
    pub error: String,
}

/// A device of a claim.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Device {
    /// The requests that it is for.
    #[prost(string, repeated, tag = "1")]
    pub request_names: Vec<String>,
    #[prost(string, tag = "2")]
    pub pool_name: String,
    /// Its name there.
    #[prost(string, tag = "3")]
    pub device_name: String,
    /// What a runtime adds to the containers.
    #[prost(string, repeated, tag = "4")]
    pub cdi_device_ids: Vec<String>,
    /// Which share of the device; since Kubernetes 1.35.
    #[prost(string, optional, tag = "5")]
    pub share_id: Option<String>,
}

/// What became of each claim whose pod is gone, by uid.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UnprepareResponse {
    #[prost(map = "string, message", tag = "1")]
    pub claims: HashMap<String, Unprepared>,
}

/// A claim that is no longer prepared, or why it still is.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Unprepared {
    /// Why; empty if it is not.
    #[prost(string, tag = "1")]
    pub error: String,
}
