// SPDX-License-Identifier: MIT OR Apache-2.0
//! An API server that answers badly, and one with certificates and tokens.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cni::claims::Claims;
use node::api::url;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

use crate::api_server::{Fault, Server};
use crate::claim::{DRIVER, asked, object, result};
use crate::prepare::driver;

#[test]
fn bad_answers_are_refused_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(0, None);
    let driver = driver(folder.path(), &server, 100);
    server.put_claim(&object("c1", "p1", &[result(DRIVER, "60M", "0")]));
    for (fault, expected) in [
        (Fault::Huge, "limit"),
        (Fault::Slow, "timeout"),
        (Fault::NoJson, "the answer is \"<html>[31mxxx"),
        (
            Fault::List,
            "the answer is \"[1]\", expected an object of JSON",
        ),
        (Fault::Refusal, "403 Forbidden: not allowed yyy"),
        (Fault::Closed, "GET http://127.0.0.1:"),
    ] {
        server.with(|state| state.fault = fault);
        let begun = Instant::now();
        let error = driver.prepare(&[asked("c1")])["c1"].error.clone();
        assert!(error.contains(expected), "{fault:?}: {error}");
        assert!(
            error.len() < 500 && !error.contains('\u{1b}'),
            "{fault:?}: {error}"
        );
        assert!(begun.elapsed() < Duration::from_secs(3), "{fault:?}");
    }
    assert_eq!(Claims::new(folder.path()).load(None).unwrap(), []);
    server.with(|state| state.fault = Fault::None);
    assert_eq!(driver.prepare(&[asked("c1")])["c1"].error, "");
}

#[test]
fn certificates_and_tokens_are_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let authority = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        let pem = params.self_signed(&key).unwrap().pem();
        (pem, Issuer::new(params, key))
    };
    let ((ca, issuer), (other_ca, _)) = (authority("one"), authority("two"));
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let tls = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let server = Server::start(0, Some(Arc::new(tls)));
    let mut driver = driver(folder.path(), &server, 100);
    driver.api.timeout = Duration::from_secs(5);
    server.put_claim(&object("c1", "p1", &[result(DRIVER, "60M", "0")]));
    server.with(|state| state.token = Some("first".to_owned()));
    let account = driver.api.account.clone();
    let error = || driver.prepare(&[asked("c1")])["c1"].error.clone();
    assert!(error().contains("no-account/token"), "{}", error());
    fs::create_dir(&account).unwrap();
    fs::write(account.join("token"), "first\n").unwrap();
    fs::write(account.join("ca.crt"), other_ca).unwrap();
    let trusts_nobody = error();
    assert!(trusts_nobody.contains("https://"), "{trusts_nobody}");
    assert_eq!(server.with(|state| state.asked.len()), 0);
    fs::write(account.join("ca.crt"), "none").unwrap();
    assert!(error().contains("ca.crt has no certificate, expected PEM"));
    fs::write(account.join("ca.crt"), ca).unwrap();
    assert_eq!(error(), "");
    // The kubelet writes another token.
    server.with(|state| state.token = Some("second".to_owned()));
    assert!(error().contains("401 Unauthorized: Unauthorized"));
    fs::write(account.join("token"), "second").unwrap();
    assert_eq!(error(), "");
}

#[test]
fn the_server_of_a_pod() {
    let found = |host: &str, port: &str| {
        let (host, port) = (host.to_owned(), port.to_owned());
        url(move |name| match name {
            "KUBERNETES_SERVICE_HOST" => Some(host.clone()),
            "KUBERNETES_SERVICE_PORT" => Some(port.clone()),
            _ => None,
        })
    };
    assert_eq!(found("10.96.0.1", "443").unwrap(), "https://10.96.0.1:443");
    assert_eq!(found("fd00::1", "443").unwrap(), "https://[fd00::1]:443");
    let error = found("", "443").unwrap_err().to_string();
    assert!(
        error.contains("KUBERNETES_SERVICE_HOST is not set"),
        "{error}"
    );
}
