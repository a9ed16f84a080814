// SPDX-License-Identifier: MIT OR Apache-2.0
//! A client's certificates that cannot be used are refused before anything is sent.

use std::net::TcpListener;

use manager_proto::client::{Client, ClientError, Tls};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use crate::service::Authority;

/// Returns a certificate that signs itself, and its key.
fn own(change: impl FnOnce(&mut CertificateParams)) -> (Vec<u8>, Vec<u8>) {
    let mut params = CertificateParams::new(vec!["a".to_owned()]).unwrap();
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    (
        certificate.pem().into_bytes(),
        key.serialize_pem().into_bytes(),
    )
}

#[test]
fn wrong_certificates_are_refused_before_anything_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let authority = Authority::new();
    let (good, other) = (authority.sign(), authority.sign());
    let expired = own(|params| params.not_after = date_time_ymd(2020, 1, 1));
    let future = own(|params| params.not_before = date_time_ymd(4000, 1, 1));
    let garbage = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec();
    for (ca, identity, words) in [
        (None, (good.pem.clone(), other.key.clone()), "and its key: "),
        (None, (good.pem.clone(), good.pem.clone()), "the key: "),
        (None, (good.pem.clone(), Vec::new()), "the key: "),
        (
            None,
            (good.key.clone(), good.key.clone()),
            "no certificate in it",
        ),
        (
            None,
            (garbage.clone(), good.key.clone()),
            "the client's certificate: ",
        ),
        (
            None,
            expired,
            "the client's certificate: invalid peer certificate: certificate expired",
        ),
        (
            None,
            future,
            "the client's certificate: invalid peer certificate: certificate not valid yet",
        ),
        (
            Some(garbage),
            (good.pem.clone(), good.key.clone()),
            "the authority's certificate: ",
        ),
    ] {
        let tls = Tls {
            ca,
            identity: Some(identity),
        };
        match Client::new(&url, None, &tls) {
            Err(ClientError::Certificate(said)) => assert!(said.contains(words), "{said}"),
            other => panic!("{words}: {other:?}"),
        }
    }
    assert!(listener.accept().is_err());
    // One that signs itself can be used, with its manager's hash alone.
    for identity in [own(|_| {}), (good.pem, good.key)] {
        let tls = Tls {
            ca: None,
            identity: Some(identity),
        };
        Client::new(&url, None, &tls).unwrap();
    }
}
